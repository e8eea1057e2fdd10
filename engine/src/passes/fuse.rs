//! Element-wise fusion: trees of element-wise nodes of one shape become one node, whose kernel touches memory once.
//!
//! A tree grows from its last node backwards over producers of the same type, shape and device whose every use lies in the
//! tree already. The fused node keeps the name of the last one, and lists the others in attribute `originals`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{PassContext, Source, Uses, WorkGraph, WorkId, WorkNode};
use crate::dtype::DType;
use crate::graph::{Attr, Node};
use crate::kernels::fused::{FusedOp, fused_op};
use crate::ops;
use crate::plan::PlanError;
use crate::shape::PartialShape;

/// Steps of one program.
const MAX_STEPS: usize = 48;

/// The pass.
pub(super) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, PlanError> {
    let order = graph.order()?;
    let mut position = vec![0u32; graph.n_ids()];
    order.iter().enumerate().for_each(|(i, id)| position[id.index()] = i as u32);
    let mut fusion = Fusion { uses: graph.uses(), position, is_taken: vec![false; graph.n_ids()] };
    let mut n_gone = 0;
    for root in order.into_iter().rev() {
        if let Some(members) = fusion.tree(graph, root) {
            n_gone += members.len() - 1;
            fusion.replace(graph, root, &members)?;
        }
    }
    Ok(n_gone)
}

struct Fusion {
    uses: Uses,
    /// In topological order.
    position: Vec<u32>,
    is_taken: Vec<bool>,
}

impl Fusion {
    /// The nodes to fuse with `root`, itself last, where there are at least two.
    fn tree(&self, graph: &WorkGraph, root: WorkId) -> Option<Vec<WorkId>> {
        let last = graph.get(root).filter(|node| !self.is_taken[root.index()] && is_fusable(graph, node))?;
        let mut members: SmallVec<[WorkId; 16]> = SmallVec::from_slice(&[root]);
        let mut n_steps = n_steps(last);
        let mut next = 0;
        while let Some(id) = members.get(next).copied() {
            next += 1;
            for source in graph.get(id).into_iter().flat_map(|node| &node.inputs) {
                let Source::Port(from, 0) = *source else { continue };
                let Some(node) = graph.get(from).filter(|_| !members.contains(&from)) else { continue };
                if n_steps + self::n_steps(node) <= MAX_STEPS && self.may_join(graph, last, from, node, &members) {
                    n_steps += self::n_steps(node);
                    members.push(from);
                }
            }
        }
        members.sort_unstable_by_key(|id| self.position[id.index()]);
        (members.len() > 1).then(|| members.into_vec())
    }

    fn may_join(&self, graph: &WorkGraph, root: &WorkNode, id: WorkId, node: &WorkNode, members: &[WorkId]) -> bool {
        !self.is_taken[id.index()]
            && is_fusable(graph, node)
            && !self.uses.is_wanted(id)
            && node.control_inputs.is_empty()
            && node.device == root.device
            && node.def.device == root.def.device
            && node.outputs()[0] == root.outputs()[0]
            && self.uses.of_node(id).iter().all(|one| one.edge.is_some() && members.contains(&one.consumer))
    }

    /// Makes `root` the fused node, and takes the others out.
    fn replace(&mut self, graph: &mut WorkGraph, root: WorkId, members: &[WorkId]) -> Result<(), PlanError> {
        let Some(op) = ops::lookup("_FusedElementwise") else {
            return Err(PlanError::Pass { pass: "fuse", problem: "there is no op _FusedElementwise".into() });
        };
        let program = Program::of(graph, members);
        let Some(last) = graph.get(root) else { return Ok(()) };
        let (n, dtype) = (program.inputs.len(), last.outputs()[0].dtype);
        let def = Node {
            op,
            attrs: program.attrs(dtype),
            inputs: vec![crate::graph::Output { node: last.def.id, port: 0 }; n],
            control_inputs: Vec::new(),
            name: Arc::clone(last.name()),
            id: last.def.id,
            device: Arc::clone(&last.def.device),
            outputs: last.outputs().to_vec(),
        };
        graph.redefine(root, Arc::new(def));
        if let Some(node) = graph.get_mut(root) {
            node.inputs = program.inputs;
        }
        self.is_taken[root.index()] = true;
        for id in members.iter().filter(|id| **id != root) {
            graph.remove(*id);
        }
        Ok(())
    }
}

/// Steps that a node becomes.
fn n_steps(node: &WorkNode) -> usize {
    if node.op() == "AddN" { node.inputs.len().saturating_sub(1) } else { 1 }
}

fn is_fusable(graph: &WorkGraph, node: &WorkNode) -> bool {
    let Some(def) = fused_op(node.op()) else { return false };
    let [output] = node.outputs() else { return false };
    let is_default = |name: &str, value: &[u8]| match node.def.attrs.get(name) {
        Some(Attr::Str(v)) => v == value,
        _ => true,
    };
    let n_fits = if def.op == FusedOp::AddN { node.inputs.len() >= 2 } else { node.inputs.len() == def.n_operands };
    let repeats = |source: &Source| {
        graph.port(*source).is_some_and(|(dtype, shape)| dtype == output.dtype && repeats_whole(shape, &output.shape))
    };
    n_fits
        && matches!(output.dtype, DType::F32 | DType::F64)
        && is_default("data_format", b"NHWC")
        && node.inputs.iter().all(repeats)
}

/// Whether an input of this shape runs along the output as a scalar, a row, or all of it, as far as known.
fn repeats_whole(input: &PartialShape, output: &PartialShape) -> bool {
    let (Some(input), Some(output)) = (input.dims(), output.dims()) else { return true };
    let begin = input.iter().position(|d| *d != Some(1)).unwrap_or(input.len());
    output.ends_with(&input[begin..])
}

/// The steps of a fused node.
#[derive(Default)]
struct Program {
    inputs: SmallVec<[Source; 3]>,
    ops: Vec<Vec<u8>>,
    /// Of each step two: an input's number, or where negative -1 - the step's.
    operands: Vec<i64>,
    originals: Vec<Vec<u8>>,
}

impl Program {
    fn of(graph: &WorkGraph, members: &[WorkId]) -> Program {
        let mut program = Program::default();
        let mut steps: FxHashMap<WorkId, i64> = FxHashMap::default();
        for id in members {
            let Some(node) = graph.get(*id) else { continue };
            let operand = |program: &mut Program, source: &Source| match source.node().and_then(|n| steps.get(&n)) {
                Some(step) => -1 - step,
                None => program.input(*source),
            };
            let operands: SmallVec<[i64; 3]> = node.inputs.iter().map(|s| operand(&mut program, s)).collect();
            let mut a = operands[0];
            // A unary op has its operand twice.
            for b in if operands.len() == 1 { &operands[..] } else { &operands[1..] } {
                program.operands.extend([a, *b]);
                program.ops.push(node.op().into());
                a = -(program.ops.len() as i64);
            }
            program.originals.push(node.name().as_bytes().to_vec());
            steps.insert(*id, program.ops.len() as i64 - 1);
        }
        program
    }

    fn input(&mut self, source: Source) -> i64 {
        let known = self.inputs.iter().position(|input| *input == source);
        known.unwrap_or_else(|| {
            self.inputs.push(source);
            self.inputs.len() - 1
        }) as i64
    }

    fn attrs(&self, dtype: DType) -> BTreeMap<String, Attr> {
        let n = self.inputs.len() as i64;
        let operands = self.operands.iter().map(|o| if *o < 0 { n - 1 - o } else { *o }).collect();
        BTreeMap::from([
            ("N".to_owned(), Attr::Int(n)),
            ("T".to_owned(), Attr::Type(dtype)),
            ("ops".to_owned(), Attr::ListStr(self.ops.clone())),
            ("operands".to_owned(), Attr::ListInt(operands)),
            ("originals".to_owned(), Attr::ListStr(self.originals.clone())),
        ])
    }
}
