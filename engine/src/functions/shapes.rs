//! What a call gives: the shapes that its function's body tells, as TensorFlow infers them where a call comes into a graph.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formats::proto::{FunctionDef, GraphDef};

use super::Library;
use super::body::{self, Call};
use crate::graph::{FuncRef, Graph, GraphError, ImportError, Port, attr_to_proto};
use crate::shape::PartialShape;

/// Nodes of bodies that are looked at for one call of a graph, those of calls in bodies included.
const MAX_NODES: usize = 20_000;
/// Where less of the stack is left than this, a body in a body gets a new piece of [`STACK_PIECE`] bytes.
const STACK_LEFT: usize = 128 << 10;
const STACK_PIECE: usize = 2 << 20;

/// How many nodes more may be looked at for the call whose body this is.
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

/// The shapes of what a call of `f` gives for such arguments. `None` where that is not told: the function is missing or does
/// not fit (an error of the step that runs the call), or too much would have to be looked at.
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
    let call =
        Call { node, scope, names: scope, attrs: &attrs, args: &names, types: &types, after, device, is_default };
    let body = body::instantiate(library, function, &call)?;
    graph.import(&GraphDef { node: body.nodes, ..GraphDef::default() }, "")?;
    let outputs = body.outputs.iter().map(|output| graph.shape(graph.output(output)?));
    Ok(outputs.collect::<Result<_, GraphError>>()?)
}
