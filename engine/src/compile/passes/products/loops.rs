//! Loops that add a product to a variable in each iteration: the products wait, a few at a time, and are added as one.
//!
//! ```text
//! before   begin -> Enter -> Merge -> Switch -> AddN(., MatMul) -> NextIteration      Switch -> Exit
//! after    begin -> _BeginProducts -> Enter -> Merge -> Switch -> _AddProduct -> NextIteration
//!                                                         Switch -> Exit -> _EndProducts
//! ```
//!
//! Between, the variable is the sum with the operands that wait, of type variant; it must have no other use in the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::super::{NewNode, PassContext, Redirects, Source, Uses, WorkGraph, WorkId};
use super::product::{Transposed, attrs, is_addition, is_same_place, is_sole_use, originals, product};
use crate::compile::CompileError;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node, Port};
use engine_core::ops::OpKind as K;
use engine_core::shape::PartialShape;

/// Rewrites all such variables; gives their number.
pub(super) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let mut redirects = Redirects::default();
    let mut n_changed = 0;
    for id in graph.ids() {
        if graph.get(id).is_none_or(|node| !context.has_kernel(node, "_AddProduct")) {
            continue;
        }
        if let Some(sum) = Sum::find(graph, &uses, id) {
            sum.rewrite(graph, &mut redirects)?;
            n_changed += 1;
        }
    }
    graph.redirect(&redirects);
    Ok(n_changed)
}

/// A loop variable that sums up products.
struct Sum {
    enter: WorkId,
    merge: WorkId,
    switch: WorkId,
    add: WorkId,
    next: WorkId,
    exits: Vec<WorkId>,
    products: Vec<WorkId>,
    transposed: Transposed,
}

impl Sum {
    fn find(graph: &WorkGraph, uses: &Uses, add: WorkId) -> Option<Sum> {
        let node = graph.get(add).filter(|node| is_addition(graph, node))?;
        let is_variable = |source: &&Source| matches!(source, Source::Port(id, 1) if graph.kind(*id) == K::Switch);
        let switch = node.inputs.iter().find(is_variable)?.node()?;
        let found: Option<Vec<(WorkId, Transposed)>> =
            (node.inputs.iter().filter(|s| !is_variable(s))).map(|source| product(graph, uses, *source, add)).collect();
        let (products, kinds): (Vec<WorkId>, Vec<Transposed>) = found?.into_iter().unzip();
        let transposed = *kinds.first().filter(|first| kinds.iter().all(|kind| kind == *first))?;
        let [one] = uses.of_node(add) else { return None };
        let next = one.consumer;
        let merge = graph.get(switch)?.inputs[0].node()?;
        let inputs = &graph.get(merge).filter(|merge| merge.kind() == K::Merge)?.inputs;
        let &[Source::Port(enter, 0), Source::Port(back, 0)] = inputs.as_slice() else { return None };
        let is_chain = graph.kind(enter) == K::Enter
            && graph.kind(next) == K::NextIteration
            && back == next
            && is_sole_use(uses, enter, merge)
            && is_sole_use(uses, merge, switch)
            && is_sole_use(uses, add, next)
            && is_sole_use(uses, next, merge)
            && !uses.is_wanted(switch)
            && products.len() + 1 == node.inputs.len()
            && [enter, merge, switch, next].iter().all(|id| graph.get(*id).is_some_and(|n| is_same_place(n, node)));
        let exits = exits(graph, uses, switch, add)?;
        is_chain.then_some(Sum { enter, merge, switch, add, next, exits, products, transposed })
    }

    fn rewrite(self, graph: &mut WorkGraph, redirects: &mut Redirects) -> Result<(), CompileError> {
        let Some(node) = graph.get(self.add) else { return Ok(()) };
        let (Port { dtype, shape }, device) = (node.outputs()[0].clone(), node.device);
        let typed = || BTreeMap::from([("T".to_owned(), Attr::Type(dtype))]);
        let Some(begin) = graph.get(self.enter).map(|enter| enter.inputs[0]) else { return Ok(()) };
        let begin = graph.add_new(NewNode {
            name: &format!("{}/products", graph.get(self.enter).map_or("", |enter| enter.name())),
            op: "_BeginProducts",
            attrs: typed(),
            inputs: smallvec![begin],
            control_inputs: SmallVec::new(),
            outputs: vec![waiting()],
            device,
        })?;
        graph.set_input(self.enter, 0, begin.into());
        for id in [self.enter, self.merge, self.switch, self.next].into_iter().chain(self.exits.iter().copied()) {
            retype(graph, id);
        }
        self.add_products(graph, dtype, device)?;
        for exit in &self.exits {
            let end = graph.add_new(NewNode {
                name: &format!("{}/sum", graph.get(*exit).map_or("", |exit| exit.name())),
                op: "_EndProducts",
                attrs: attrs(dtype, self.transposed),
                inputs: smallvec![(*exit).into()],
                control_inputs: SmallVec::new(),
                outputs: vec![Port { dtype, shape: shape.clone() }],
                device,
            })?;
            redirects.port(*exit, 0, end.into());
            // Its own input is the exit itself.
            redirects.keep(end);
        }
        Ok(())
    }

    /// Makes an `_AddProduct` of each product, the last one of the addition.
    fn add_products(&self, graph: &mut WorkGraph, dtype: DType, device: u32) -> Result<(), CompileError> {
        let mut sum = Source::Port(self.switch, 1);
        for (i, product) in self.products.iter().enumerate() {
            let Some(node) = graph.get(*product) else { continue };
            let (name, inputs) = (Arc::clone(node.name()), smallvec![sum, node.inputs[0], node.inputs[1]]);
            let mut attrs = attrs(dtype, self.transposed);
            attrs.extend([originals(graph, &[*product])]);
            graph.remove(*product);
            if i + 1 == self.products.len() {
                graph.turn_into(self.add, "_AddProduct", attrs, inputs)?;
                set_outputs(graph, self.add, vec![waiting()]);
                continue;
            }
            let (control_inputs, outputs) = (SmallVec::new(), vec![waiting()]);
            let new = NewNode { name: &name, op: "_AddProduct", attrs, inputs, control_inputs, outputs, device };
            sum = graph.add_new(new)?.into();
        }
        Ok(())
    }
}

/// The exits of a variable whose switch has no other use than them and `add`.
fn exits(graph: &WorkGraph, uses: &Uses, switch: WorkId, add: WorkId) -> Option<Vec<WorkId>> {
    let mut exits = Vec::new();
    let mut n_added = 0;
    for one in uses.of_node(switch) {
        match one.edge {
            Some((_, 1)) if one.consumer == add => n_added += 1,
            Some((_, 0)) if graph.kind(one.consumer) == K::Exit => exits.push(one.consumer),
            _ => return None,
        }
    }
    (n_added == 1).then_some(exits)
}

/// A sum with products that wait.
fn waiting() -> Port {
    Port { dtype: DType::Variant, shape: PartialShape::scalar() }
}

/// Lets a node that passes a value on pass on a sum with products that wait.
fn retype(graph: &mut WorkGraph, id: WorkId) {
    let Some(node) = graph.get(id) else { return };
    let n_values = if node.kind() == K::Merge { 1 } else { node.outputs().len() };
    let mut def = Node::clone(&node.def);
    def.attrs.insert("T".to_owned(), Attr::Type(DType::Variant));
    def.outputs.iter_mut().take(n_values).for_each(|port| *port = waiting());
    graph.redefine(id, Arc::new(def));
}

fn set_outputs(graph: &mut WorkGraph, id: WorkId, outputs: Vec<Port>) {
    let Some(node) = graph.get(id) else { return };
    let def = Node { outputs, ..Node::clone(&node.def) };
    graph.redefine(id, Arc::new(def));
}
