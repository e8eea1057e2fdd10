//! The shapes of a call's results, inferred from the body of its function when the call is added to a graph, as in
//! TensorFlow.

use std::collections::BTreeMap;
use std::sync::Arc;

use formats::proto::{FunctionDef, GraphDef};

use super::body::{self, Call};
use super::{STACK_LEFT, STACK_PIECE};
use crate::graph::{FuncRef, Graph, GraphError, ImportError, attr_to_proto};
use crate::ops::{Attr, Budget, InferContext, Library, OP_TABLES, OpKind as K, OpSpec, Port, ShapeError, op, stateful};
use crate::shape::PartialShape;

const CALL: &str = "Tin: list(type); Tout: list(type); f: func; config: string = ''; config_proto: string = ''; \
                    executor_type: string = ''";

#[linkme::distributed_slice(OP_TABLES)]
static CALLS: &[OpSpec] = &[
    op("PartitionedCall", "args: Tin -> output: Tout", CALL, called).kind(K::Call),
    stateful("StatefulPartitionedCall", "args: Tin -> output: Tout", CALL, called).kind(K::Call),
];

/// The shapes that follow from the function's body.
fn called(c: &mut InferContext<'_>) -> Result<(), ShapeError> {
    if c.flag("_disable_call_shape_inference") {
        return Ok(());
    }
    let (Some(Attr::Func(f)), Some(args)) = (c.attr("f"), c.ports()) else { return Ok(()) };
    let (n_outputs, (library, budget)) = (c.n_outputs(), c.functions());
    let shapes = of_call(library, f, &args, &budget).map_err(|error| ShapeError(error.to_string()))?;
    let shapes = shapes.filter(|shapes| shapes.len() == n_outputs);
    shapes.into_iter().flatten().enumerate().for_each(|(i, shape)| c.set(i, shape));
    Ok(())
}

/// The shapes of the results of calling `f` with such arguments. `None` where they cannot be inferred: the function is missing
/// or does not fit (an error of the step that runs the call), or the budget is spent.
///
/// # Errors
/// The arguments' shapes do not fit a node of the body.
fn of_call(
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
        let placeholder = graph.placeholder(&format!("arg_{i}"), arg.dtype, arg.shape.clone()).try_output()?;
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
