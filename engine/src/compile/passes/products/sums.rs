//! Trees of additions: the products among what they add up become one.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::super::{PassContext, Source, Uses, WorkGraph, WorkId};
use super::product::{Transposed, attrs, is_addition, is_same_place, is_sole_use, originals, product};
use crate::compile::CompileError;
use engine_core::graph::Attr;

/// Adds up all sums of the graph; gives how many nodes went.
pub(super) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let mut n_gone = 0;
    // The last addition of a tree first: the others go with it.
    for root in graph.order()?.into_iter().rev() {
        if graph.get(root).is_some_and(|node| is_addition(graph, node) && context.has_kernel(node, "_SumOfProducts")) {
            n_gone += rewrite(graph, &uses, root)?;
        }
    }
    Ok(n_gone)
}

/// What a tree of additions adds up.
#[derive(Default)]
struct Tree {
    /// Additions other than the last one.
    inner: Vec<WorkId>,
    products: BTreeMap<Transposed, Vec<WorkId>>,
    others: SmallVec<[Source; 3]>,
}

impl Tree {
    fn of(graph: &WorkGraph, uses: &Uses, root: WorkId) -> Tree {
        let mut tree = Tree::default();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            let Some(node) = graph.get(id) else { continue };
            for source in &node.inputs {
                if let Some((product, transposed)) = product(graph, uses, *source, id).filter(|(p, _)| pays(graph, *p))
                {
                    tree.products.entry(transposed).or_default().push(product);
                } else if let Some(inner) = source.node().filter(|inner| is_inner(graph, uses, *inner, id)) {
                    tree.inner.push(inner);
                    stack.push(inner);
                } else {
                    tree.others.push(*source);
                }
            }
        }
        // One alone stays as it is.
        let others = &mut tree.others;
        tree.products.retain(|_, of| {
            let is_sum = of.len() > 1;
            if !is_sum {
                others.extend(of.iter().map(|id| Source::from(*id)));
            }
            is_sum
        });
        tree
    }
}

fn is_inner(graph: &WorkGraph, uses: &Uses, id: WorkId, consumer: WorkId) -> bool {
    let (Some(node), Some(of)) = (graph.get(id), graph.get(consumer)) else { return false };
    is_addition(graph, node)
        && is_sole_use(uses, id, consumer)
        && is_same_place(node, of)
        && node.control_inputs.is_empty()
}

/// Whether the product's operands take not much more memory than the product: all of them wait for the last.
fn pays(graph: &WorkGraph, id: WorkId) -> bool {
    let Some(node) = graph.get(id) else { return false };
    let n = |source: &Source| graph.port(*source).and_then(|(_, shape)| shape.known()).map(|shape| shape.n_elements());
    let (operands, product) = (node.inputs.iter().map(n).sum::<Option<usize>>(), node.outputs()[0].shape.known());
    operands.zip(product).is_none_or(|(operands, product)| operands <= 2 * product.n_elements())
}

fn rewrite(graph: &mut WorkGraph, uses: &Uses, root: WorkId) -> Result<usize, CompileError> {
    let tree = Tree::of(graph, uses, root);
    let Some(dtype) = graph.get(root).map(|node| node.outputs()[0].dtype) else { return Ok(0) };
    let is_all = tree.others.is_empty() && tree.products.len() == 1;
    let n_before = graph.len();
    let mut terms = tree.others;
    for (transposed, products) in tree.products {
        let operands = |i: usize| -> SmallVec<[Source; 3]> {
            products.iter().filter_map(|id| graph.get(*id)).map(|node| node.inputs[i]).collect()
        };
        let mut inputs = operands(0);
        inputs.extend(operands(1));
        let mut attrs = attrs(dtype, transposed);
        attrs.insert("N".to_owned(), Attr::Int(products.len() as i64));
        let gone = if is_all { &products[..] } else { &products[1..] };
        let becomes = if is_all { root } else { products[0] };
        attrs.extend([originals(graph, &products)]);
        graph.turn_into(becomes, "_SumOfProducts", attrs, inputs)?;
        gone.iter().for_each(|id| drop(graph.remove(*id)));
        terms.push(becomes.into());
    }
    if graph.len() == n_before {
        return Ok(0);
    }
    if !is_all {
        let attrs =
            BTreeMap::from([("T".to_owned(), Attr::Type(dtype)), ("N".to_owned(), Attr::Int(terms.len() as i64))]);
        graph.turn_into(root, "AddN", attrs, terms)?;
    }
    tree.inner.iter().for_each(|id| drop(graph.remove(*id)));
    Ok(n_before - graph.len())
}
