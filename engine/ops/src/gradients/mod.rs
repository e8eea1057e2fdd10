//! Gradients as graph nodes (white paper, section 4.1): walk back from `ys` to `xs`, and at each node add the nodes
//! that its op's gradient function says.
//!
//! A gradient function takes the gradients of the loss with respect to a node's outputs and gives those with respect
//! to its inputs. Functions register in the link-time slice [`GRADIENT_TABLES`], which other crates may extend, or at run time with [`register`]. Where
//! several paths meet, their gradients are added with `AddN`. Nodes lie in `gradients/NODE_grad/`, as TensorFlow's.
//!
//! [`walk`] goes back over what lies outside of loops, and a loop as a whole as soon as the gradients of all its
//! results are there: [`loops`] makes a second loop that goes back over its iterations, and within that `walk` goes back
//! over the body. [`back_loop`] brings the values of the iterations there. Calls of functions are put in their places
//! first.

mod activation;
mod array;
mod back_loop;
mod context;
mod control_flow;
mod conv;
mod ctc;
mod elementwise;
mod error;
mod layout;
mod linalg;
mod loops;
mod math;
mod nn;
mod norm;
mod place;
mod pool;
mod quantized;
mod random;
mod resize;
mod rnn;
mod rule;
mod segment;
mod sparse;
mod state;
mod strings;
mod tensor_array;
mod tensor_list;
mod walk;

use rustc_hash::{FxHashMap, FxHashSet};

pub use context::GradientContext;
use engine_core::functions;
use engine_core::graph::{ContextId, FunctionError, Graph, NodeId, Output};
use engine_core::ops::OpKind;
pub use error::GradientError;
use place::GradientLocation;
pub use rule::{BinaryFn, GRADIENT_TABLES, GradientFn, GradientSpec, Rule, SlopeFn, UnaryFn, register, rule};
use walk::{Stacks, Walk};

/// Adds to the graph the gradients of the sum of `ys` with respect to each of `xs`.
///
/// `grad_ys` are the gradients that flow into the `ys`, ones where it is empty. `xs` may be any outputs: also handles
/// of variables, which gives the gradient of the variable's value. The gradient of an `x` that no `y` depends on is
/// zeros of its shape.
///
/// # Errors
/// That an op between `ys` and `xs` has no gradient, or an output is another graph's.
pub fn gradients(
    graph: &Graph,
    ys: &[Output],
    xs: &[Output],
    grad_ys: &[Output],
) -> Result<Vec<Output>, GradientError> {
    graph.check()?;
    if !grad_ys.is_empty() && grad_ys.len() != ys.len() {
        return Err(GradientError::Count { ys: ys.len(), given: grad_ys.len() });
    }
    let frame = common_frame(graph, ys, xs)?;
    let between = without_calls(graph, ys, xs)?;
    let scope = graph.scope("gradients");
    let walk = Walk::new(&scope, between);
    let place = match (frame, ys.first()) {
        (ContextId::ROOT, _) | (_, None) => GradientLocation::outside(&scope),
        (frame, Some(y)) => GradientLocation::in_same_loop(&scope, frame, y.node),
    };
    let mut seeds = Vec::with_capacity(ys.len());
    for (i, y) in ys.iter().enumerate() {
        let grad = match grad_ys.get(i) {
            Some(given) => *given,
            None => place.graph.add_node("OnesLike").name(&format!("grad_ys_{i}")).input(*y).output()?,
        };
        seeds.push((*y, grad));
    }
    let wanted: FxHashSet<Output> = xs.iter().copied().collect();
    let of_x = walk.region(&place, &seeds, &wanted)?;
    let grad_of = |x: &Output| match of_x.get(x) {
        Some(grad) => Ok(*grad),
        None => Ok(place.zeros(*x).try_output()?),
    };
    xs.iter().map(grad_of).collect()
}

/// The frame that all of them are in.
fn common_frame(graph: &Graph, ys: &[Output], xs: &[Output]) -> Result<ContextId, GradientError> {
    let nodes = graph.nodes();
    let mut frames = ys.iter().chain(xs).map(|o| (o, nodes.frame_of(nodes.value_context(*o))));
    let Some((_, first)) = frames.next() else { return Ok(ContextId::ROOT) };
    match frames.find(|(_, frame)| *frame != first) {
        None => Ok(first),
        Some((o, _)) => {
            let name = nodes.get(o.node).map(|n| n.name.to_string()).unwrap_or_default();
            Err(GradientError::OtherLoop { name: format!("{name}:{}", o.port) })
        }
    }
}

/// The nodes between `xs` and `ys`, those that call functions replaced by what they call.
fn without_calls(graph: &Graph, ys: &[Output], xs: &[Output]) -> Result<FxHashSet<NodeId>, GradientError> {
    let found = between(graph, ys, xs);
    let nodes = graph.nodes();
    let is_call = |id: &NodeId| nodes.get(*id).is_some_and(|node| node.op.kind.is_functional());
    let mut calls: Vec<NodeId> = found.iter().copied().filter(is_call).collect();
    drop(nodes);
    if calls.is_empty() {
        return Ok(found);
    }
    calls.sort_unstable();
    let fork = graph.fork();
    let n_before = fork.n_nodes();
    lower(&fork, &calls, functions::MAX_NODES)?;
    match graph.join(&fork, n_before) {
        true => Ok(between(graph, ys, xs)),
        false => Err(GradientError::Changed),
    }
}

/// Puts what they call in the place of those of the nodes that call functions; see [`functions::lower`].
///
/// # Errors
/// As there.
pub fn lower(graph: &Graph, ids: &[NodeId], max_nodes: usize) -> Result<(), FunctionError> {
    let differentiate: functions::Gradients =
        |graph, ys, xs, grad_ys| gradients(graph, ys, xs, grad_ys).map_err(|error| error.to_string());
    functions::lower(graph, ids, max_nodes, differentiate)
}

/// The nodes on a path from an `x` to a `y`: those that an `x` reaches, among those that reach a `y`.
fn between(graph: &Graph, ys: &[Output], xs: &[Output]) -> FxHashSet<NodeId> {
    let nodes = graph.nodes();
    let mut consumers: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    let mut above: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack: Vec<NodeId> = ys.iter().map(|y| y.node).collect();
    let mut stacks: Option<Stacks> = None;
    while let Some(id) = stack.pop() {
        let Some(node) = nodes.get(id).filter(|_| above.insert(id)) else { continue };
        if node.op.kind == OpKind::StackPop {
            // What one loop pushed another one pops.
            for push in stacks.get_or_insert_with(|| Stacks::of(&nodes)).pushed_to(id) {
                consumers.entry(push).or_default().push(id);
                stack.push(push);
            }
        }
        for input in &node.inputs {
            consumers.entry(input.node).or_default().push(id);
            stack.push(input.node);
        }
    }
    let mut reached: FxHashSet<NodeId> = FxHashSet::default();
    stack.extend(xs.iter().map(|x| x.node).filter(|x| above.contains(x)));
    while let Some(id) = stack.pop() {
        if reached.insert(id) {
            stack.extend(consumers.get(&id).into_iter().flatten());
        }
    }
    reached
}
