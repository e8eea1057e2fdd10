//! Gradients as graph nodes (white paper, section 4.1): walk back from `ys` to `xs`, and at each node add the nodes
//! that its op's gradient function says.
//!
//! A gradient function takes the gradients of the loss with respect to a node's outputs and gives those with respect
//! to its inputs. Functions register in the link-time slice [`GRADIENT_TABLES`], which other crates may extend. Where
//! several paths meet, their gradients are added with `AddN`. Nodes lie in `gradients/NODE_grad/`, as TensorFlow's.

mod array;
mod context;
mod elementwise;
mod linalg;
mod math;
mod nn;
mod segment;
mod state;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::DType;
use crate::graph::{Graph, GraphError, NodeId, Output};
pub use context::GradientContext;

/// Adds the nodes that compute the gradients of a node's inputs.
pub type GradientFn = fn(&mut GradientContext<'_>) -> Result<(), GradientError>;

/// How gradients pass an op.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// By this function.
    Function(GradientFn),
    /// Not at all: the outputs do not change, or only in steps, when the inputs change.
    Zero,
}

/// The rule of one op.
pub type GradientSpec = (&'static str, Rule);

/// Tables of gradient rules, by op.
#[linkme::distributed_slice]
pub static GRADIENT_TABLES: [&'static [GradientSpec]];

static BY_OP: LazyLock<FxHashMap<&'static str, Rule>> =
    LazyLock::new(|| GRADIENT_TABLES.iter().flat_map(|table| table.iter().copied()).collect());

/// The rule of an op, where it has one.
pub fn rule(op: &str) -> Option<Rule> {
    BY_OP.get(op).copied()
}

/// Why there are no gradients.
#[derive(Debug, thiserror::Error)]
pub enum GradientError {
    /// A gradient would have to pass an op that has no rule.
    #[error("node {node}: op {op} has no gradient")]
    NoRule {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
    },
    /// The op has a gradient, but not for this node's attributes or constants.
    #[error("node {node} ({op}): no gradient {why}")]
    Unsupported {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
        /// Which case it is.
        why: &'static str,
    },
    /// The number of given gradients is not that of the `ys`.
    #[error("{given} gradients given for {ys} outputs")]
    Count {
        /// Outputs to differentiate.
        ys: usize,
        /// Gradients given.
        given: usize,
    },
    /// A node could not be added.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

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
    if !grad_ys.is_empty() && grad_ys.len() != ys.len() {
        return Err(GradientError::Count { ys: ys.len(), given: grad_ys.len() });
    }
    let scope = graph.scope("gradients");
    let between = between(graph, ys, xs);
    let mut arrived = Arrived::default();
    for (i, y) in ys.iter().enumerate() {
        let grad = match grad_ys.get(i) {
            Some(given) => *given,
            None => scope.add_node("OnesLike").name(&format!("grad_ys_{i}")).input(*y).output()?,
        };
        arrived.add(*y, grad);
    }
    let wanted: FxHashSet<Output> = xs.iter().copied().collect();
    let mut of_x: FxHashMap<Output, Output> = FxHashMap::default();
    // Each node comes after its inputs in the arena: going back by id, all of a node's gradients have arrived.
    while let Some((node_id, grads)) = arrived.pop_last() {
        let node = graph.node(node_id)?;
        let sums = sum_all(&scope, &node.name, node.outputs.len(), grads)?;
        for (port, sum) in sums.iter().enumerate() {
            let output = Output { node: node_id, port: port as u32 };
            if let Some(sum) = sum.filter(|_| wanted.contains(&output)) {
                of_x.insert(output, sum);
            }
        }
        if !between.contains(&node_id) || node.inputs.is_empty() {
            continue;
        }
        let Some(rule) = rule(node.op.name) else {
            return Err(GradientError::NoRule { node: node.name.to_string(), op: node.op.name });
        };
        let Rule::Function(function) = rule else { continue };
        let at = scope.at_scope(&format!("{}/{}_grad", scope.scope_name(), node.name));
        let mut context = GradientContext::new(&at, &node, &sums);
        function(&mut context)?;
        for (input, grad) in context.finish() {
            if between.contains(&input.node) || wanted.contains(&input) {
                arrived.add(input, grad);
            }
        }
    }
    xs.iter().map(|x| of_x.get(x).map_or_else(|| zeros(&scope, *x), |grad| Ok(*grad))).collect()
}

/// Gradients on their way back: by node (its last output's first), each output's list.
#[derive(Default)]
struct Arrived(BTreeMap<NodeId, Vec<(u32, Output)>>);

impl Arrived {
    fn add(&mut self, output: Output, grad: Output) {
        self.0.entry(output.node).or_default().push((output.port, grad));
    }

    fn pop_last(&mut self) -> Option<(NodeId, Vec<(u32, Output)>)> {
        self.0.pop_last()
    }
}

/// The nodes on a path from an `x` to a `y`: those that an `x` reaches, among those that reach a `y`.
fn between(graph: &Graph, ys: &[Output], xs: &[Output]) -> FxHashSet<NodeId> {
    let nodes = graph.nodes();
    let mut above: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack: Vec<NodeId> = ys.iter().map(|y| y.node).collect();
    while let Some(id) = stack.pop() {
        if let Some(node) = nodes.get(id).filter(|_| above.insert(id)) {
            stack.extend(node.inputs.iter().map(|input| input.node));
        }
    }
    let sources: FxHashSet<NodeId> = xs.iter().map(|x| x.node).collect();
    let mut sorted: Vec<NodeId> = above.into_iter().collect();
    sorted.sort_unstable();
    let mut reached: FxHashSet<NodeId> = FxHashSet::default();
    for id in sorted {
        let from_x = nodes.get(id).is_some_and(|node| node.inputs.iter().any(|input| reached.contains(&input.node)));
        if from_x || sources.contains(&id) {
            reached.insert(id);
        }
    }
    reached
}

/// One gradient per output: what arrived, added up.
fn sum_all(
    scope: &Graph,
    node: &str,
    n_outputs: usize,
    grads: Vec<(u32, Output)>,
) -> Result<Vec<Option<Output>>, GradientError> {
    let mut by_port: Vec<Vec<Output>> = vec![Vec::new(); n_outputs];
    for (port, grad) in grads {
        if let Some(of_port) = by_port.get_mut(port as usize) {
            of_port.push(grad);
        }
    }
    let sum = |of_port: Vec<Output>| match of_port.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        many => {
            let at = scope.at_scope(&format!("{}/{node}_grad", scope.scope_name()));
            Ok(Some(at.add_node("AddN").inputs(many).output()?))
        }
    };
    by_port.into_iter().map(sum).collect()
}

/// Zeros for an `x` that no `y` depends on; for a variable's handle, of its value.
fn zeros(scope: &Graph, x: Output) -> Result<Output, GradientError> {
    let handle = scope.node(x.node)?;
    let value = match (scope.dtype(x)?, handle.dtype("dtype").copied()) {
        (DType::Resource, Ok(dtype)) => scope.add_node("ReadVariableOp").input(x).attr("dtype", dtype).output()?,
        _ => x,
    };
    Ok(scope.add_node("ZerosLike").input(value).output()?)
}
