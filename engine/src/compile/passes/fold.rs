//! Constant folding: what depends on constants alone, or on shapes that are known, is computed once.
//!
//! Kernels compute it on the CPU, where they would compute it in every step, so results are the same. A value of more than
//! [`MAX_BYTES`] is folded only where it is no larger than what it comes from. What has state, what fails, and control
//! flow are left alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use smallvec::SmallVec;

use super::region::conditional;
use super::{NewNode, PassContext, Redirects, Source, Uses, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use crate::denormals::DenormalsAreZero;
use engine_core::buffer::Allocator;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node, Port};
use engine_core::kernel::{
    self, AnyKernel, FrameTag, KernelContext, NoFunctions, NoRendezvous, NodeInfo, Serial, Slot, StepCancellation,
};
use engine_core::resources::ResourceManager;
use engine_core::tensor::Tensor;

/// Larger values are not kept in the graph.
pub const MAX_BYTES: usize = 1 << 20;
/// What kernels may allocate while they fold.
const MAX_SCRATCH: usize = 64 << 20;

/// Memory of folded values, apart from any device's.
static MEMORY: LazyLock<Allocator> = LazyLock::new(|| Allocator::new("/fold", MAX_SCRATCH));

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    let is_conditional = conditional(graph);
    let uses = graph.uses();
    let mut redirects = Redirects::default();
    let mut n_folded = 0;
    for id in graph.order()? {
        let Some(node) = graph.get_mut(id) else { continue };
        for input in &mut node.inputs {
            *input = redirects.source(*input);
        }
        let node = node.clone();
        if !is_foldable(&node) {
            continue;
        }
        let Some((values, after)) = values(graph, &node, &is_conditional)? else { continue };
        n_folded += usize::from(replace(graph, id, &node, values, after, &uses, &mut redirects)?);
    }
    graph.redirect(&redirects);
    graph.sweep();
    Ok(n_folded)
}

fn is_foldable(node: &WorkNode) -> bool {
    let is_plain = |dtype: DType| dtype != DType::Resource && dtype.name() != "variant";
    node.is_pure()
        && !node.inputs.is_empty()
        && !node.outputs().is_empty()
        && node.outputs().iter().all(|port| is_plain(port.dtype))
}

/// What a node computes, and what a constant in its place must run after.
type Folded = (Vec<Tensor>, SmallVec<[WorkId; 2]>);

fn values(graph: &mut WorkGraph, node: &WorkNode, is_conditional: &[bool]) -> Result<Option<Folded>, CompileError> {
    if let Some(folded) = of_constants(graph, node) {
        return Ok(Some(folded));
    }
    let Some(value) = of_shape(graph, node) else { return Ok(None) };
    let mut after = node.control_inputs.clone();
    for source in &node.inputs {
        // A value that is dead has a shape all the same; what is made of it must be dead too, as may be what the pass
        // itself added.
        let may_be_dead = |id: WorkId| is_conditional.get(id.index()).is_none_or(|is| *is);
        if source.node().is_some_and(may_be_dead)
            && let Some(witness) = witness(graph, node, *source)?
            && !after.contains(&witness)
        {
            after.push(witness);
        }
    }
    Ok(Some((vec![value], after)))
}

/// The node that is dead where the value is: the one that makes it, or behind a switch, which runs whichever way it
/// takes, an identity of the value.
fn witness(graph: &mut WorkGraph, of: &WorkNode, source: Source) -> Result<Option<WorkId>, CompileError> {
    let Some(from) = source.node() else { return Ok(None) };
    let Some((dtype, shape)) = graph.port(source).filter(|_| graph.kind(from).is_switch()) else {
        return Ok(Some(from));
    };
    let outputs = vec![Port { dtype, shape: shape.clone() }];
    let identity = NewNode {
        name: &format!("{}/live", of.name()),
        op: "Identity",
        attrs: BTreeMap::from([("T".to_owned(), Attr::Type(dtype))]),
        inputs: SmallVec::from_slice(&[source]),
        control_inputs: SmallVec::new(),
        outputs,
        device: of.device,
    };
    graph.add_new(identity).map(Some)
}

/// What follows from inputs that are all constants.
fn of_constants(graph: &WorkGraph, node: &WorkNode) -> Option<Folded> {
    let mut after = node.control_inputs.clone();
    let mut add = |id: WorkId| {
        if !after.contains(&id) {
            after.push(id);
        }
    };
    let inputs: Vec<Tensor> = node.inputs.iter().map(|s| graph.constant(*s).cloned()).collect::<Option<_>>()?;
    for source in node.inputs.iter().filter_map(|s| graph.get(s.node()?)) {
        source.control_inputs.iter().copied().for_each(&mut add);
    }
    let bytes_in: usize = inputs.iter().map(bytes).sum();
    if known_bytes(node) > MAX_BYTES.max(bytes_in) {
        return None;
    }
    let values = evaluate(&node.def, inputs)?;
    (values.iter().map(bytes).sum::<usize>() <= MAX_BYTES.max(bytes_in)).then_some((values, after))
}

/// What follows from the input's shape alone.
fn of_shape(graph: &WorkGraph, node: &WorkNode) -> Option<Tensor> {
    let (_, shape) = graph.port(*node.inputs.first()?)?;
    let is_long = matches!(node.def.attrs.get("out_type"), Some(Attr::Type(DType::I64)));
    let number = |n: usize| match is_long {
        true => i64::try_from(n).ok().map(Tensor::scalar),
        false => i32::try_from(n).ok().map(Tensor::scalar),
    };
    match node.op() {
        "Rank" => number(shape.rank()?),
        "Size" => number(shape.known()?.checked_n_elements()?),
        "Shape" if is_long => {
            let dims: Option<Vec<i64>> = shape.known()?.dims().iter().map(|d| i64::try_from(*d).ok()).collect();
            Some(Tensor::vector(&dims?))
        }
        "Shape" => {
            let dims: Option<Vec<i32>> = shape.known()?.dims().iter().map(|d| i32::try_from(*d).ok()).collect();
            Some(Tensor::vector(&dims?))
        }
        _ => None,
    }
}

fn bytes(value: &Tensor) -> usize {
    match value.strings() {
        Ok(strings) => strings.iter().map(|s| s.len() + size_of::<Vec<u8>>()).sum(),
        Err(_) => value.bytes().len(),
    }
}

/// Bytes of the outputs whose shapes are known.
fn known_bytes(node: &WorkNode) -> usize {
    let of = |port: &Port| {
        let n = port.shape.known().map_or(Some(0), |shape| shape.checked_n_elements());
        n.map_or(usize::MAX, |n| n.saturating_mul(port.dtype.size()))
    };
    node.outputs().iter().map(of).fold(0, usize::saturating_add)
}

/// Runs a node's kernel on the CPU, outside of any step. `None` where there is none, or it fails, or an output is not set.
pub(crate) fn evaluate(def: &Node, inputs: Vec<Tensor>) -> Option<Vec<Tensor>> {
    let AnyKernel::Sync(kernel) = kernel::build(def, "CPU").ok()? else { return None };
    let mut inputs: Vec<Slot> = inputs.into_iter().map(Some).collect();
    let mut outputs: Vec<Slot> = vec![None; def.outputs.len()];
    let info = NodeInfo { name: def.name.clone(), op: def.op.name, event_id: 0 };
    let resources = ResourceManager::default();
    let rendezvous = NoRendezvous;
    let _mode = DenormalsAreZero::begin();
    let mut context = KernelContext {
        inputs: &mut inputs,
        outputs: &mut outputs,
        node: &info,
        step_id: 0,
        traced_step: 0,
        resources: &resources,
        step_resources: &resources,
        frame: FrameTag::default(),
        rendezvous: &rendezvous,
        cancellation: &StepCancellation::default(),
        functions: &NoFunctions,
        allocator: &MEMORY,
        driver: None,
        sharder: &Serial,
    };
    // A kernel that panics does so again in the step, which reports it.
    catch_unwind(AssertUnwindSafe(|| kernel.compute(&mut context))).ok()?.ok()?;
    outputs.into_iter().collect()
}

/// Replaces a node by constants: the node itself becomes one where it has one output, else new nodes take its place. Returns
/// whether it was replaced.
fn replace(
    graph: &mut WorkGraph,
    id: WorkId,
    node: &WorkNode,
    mut values: Vec<Tensor>,
    after: SmallVec<[WorkId; 2]>,
    uses: &Uses,
    redirects: &mut Redirects,
) -> Result<bool, CompileError> {
    if values.len() == 1
        && let Some(value) = values.pop()
    {
        graph.make_constant(id, &value, after)?;
        return Ok(true);
    }
    // Others wait for it, or want it by its name.
    if uses.is_wanted(id) || uses.of_node(id).iter().any(|one| one.edge.is_none()) {
        return Ok(false);
    }
    for (port, value) in values.into_iter().enumerate() {
        let constant = graph.add_constant(node, port, &value, after.clone())?;
        redirects.port(id, port as u32, Source::from(constant));
    }
    Ok(true)
}
