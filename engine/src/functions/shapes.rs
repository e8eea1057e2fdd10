//! The shapes of a call's results, inferred from the body of its function when the call is added to a graph, as in
//! TensorFlow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formats::proto::{FunctionDef, GraphDef};

use super::Library;
use super::body::{self, Call};
use super::lower::{STACK_LEFT, STACK_PIECE};
use crate::graph::{FuncRef, Graph, GraphError, ImportError, Port, attr_to_proto};
use crate::shape::PartialShape;

/// Nodes that shape inference visits for one call, nested calls included.
const MAX_NODES: usize = 20_000;

/// How many more nodes shape inference may visit.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Arc::new(AtomicUsize::new(MAX_NODES)))
    }
}

impl Budget {
    fn take(&self, n: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(n)).is_ok()
    }
}

/// The shapes of the results of calling `f` with such arguments. `None` where they cannot be inferred: the function is missing
/// or does not fit (an error of the step that runs the call), or the budget is spent.
///
/// # Errors
/// The arguments' shapes do not fit a node of the body.
pub(crate) fn of_call(
    library: &Arc<Library>,
    f: &FuncRef,
    args: &[Port],
    budget: &Budget,
) -> Result<Option<Vec<PartialShape>>, GraphError> {
    let Some(function) = library.get(&f.name).filter(|function| budget.take(function.node_def.len() + 1)) else {
        return Ok(None);
    };
    match stacker::maybe_grow(STACK_LEFT, STACK_PIECE, || infer(library, function, f, args, budget)) {
        Ok(shapes) => Ok(Some(shapes)),
        Err(ImportError::Graph(error @ GraphError::Shape { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

fn infer(
    library: &Arc<Library>,
    function: &FunctionDef,
    f: &FuncRef,
    args: &[Port],
    budget: &Budget,
) -> Result<Vec<PartialShape>, ImportError> {
    let graph = Graph::for_inference(Arc::clone(library), budget.clone());
    let mut names = Vec::with_capacity(args.len());
    for (i, arg) in args.iter().enumerate() {
        let placeholder = graph.placeholder(&format!("arg_{i}"), arg.dtype, arg.shape.clone())?;
        names.push(format!("arg_{i}:{}", placeholder.port));
    }
    let types: Vec<i32> = args.iter().map(|arg| arg.dtype as i32).collect();
    let attrs: BTreeMap<_, _> = f.attrs.iter().map(|(name, value)| (name.clone(), attr_to_proto(value))).collect();
    let (node, scope) = ("call", &*f.name);
    let (after, device, is_default) = (None, "", false);
    let call = Call {
        node,
        scope,
        colocation_scope: scope,
        attrs: &attrs,
        args: &names,
        types: &types,
        after,
        device,
        is_default,
    };
    let body = body::instantiate(library, function, &call)?;
    graph.import(&GraphDef { node: body.nodes, ..GraphDef::default() }, "")?;
    let outputs = body.outputs.iter().map(|output| graph.shape(graph.output(output)?));
    Ok(outputs.collect::<Result<_, GraphError>>()?)
}
