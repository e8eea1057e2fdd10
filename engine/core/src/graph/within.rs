//! Adding nodes inside of loops and branches: what a node uses from elsewhere is brought there.
//!
//! A handle's [`Capture`] does so for each node. Values from outside come as in TensorFlow: into a loop through a constant `Enter`, into a branch through a `Switch` on its predicate, one
//! context after the other from the value's own to the node's, each value once. A node that depends on nothing of its
//! context runs after the context's pivot, so that it runs as often as its neighbours.

use std::sync::Arc;

use super::arena::Capture;
use super::contexts::{CondContext, ContextId, ContextKind, WhileContext};
use super::{ControlFlowError, Graph, GraphError, Node, NodeId, Nodes, Output};
use crate::ops::{self, OpKind};
use crate::shape::PartialShape;

/// Brings values from outside into a loop or branch.
struct Within {
    context: ContextId,
    /// Runs whenever the context's nodes do.
    pivot: Option<NodeId>,
}

impl Capture for Within {
    fn context(&self) -> ContextId {
        self.context
    }

    fn capture(
        &self,
        graph: &Graph,
        name: &str,
        op: &str,
        inputs: &mut [Output],
        control: &mut Vec<NodeId>,
    ) -> Result<(), GraphError> {
        // A node built by hand may lead into or out of the context: its inputs are taken as they are.
        if matches!(ops::kind(op), OpKind::Exit | OpKind::NextIteration | OpKind::LoopCond) {
            return Ok(());
        }
        let (nodes, at) = (&mut *graph.nodes.write(), self.context);
        for input in &mut *inputs {
            *input = nodes.bring_in(graph, name, *input, at)?;
        }
        for before in &mut *control {
            *before = nodes.bring_in_control(graph, name, *before, at)?;
        }
        // What comes from outside of the context or does not change does not determine when the node runs.
        let is_varying = |id: NodeId, context| nodes.contexts.is_within(context, at) && !nodes.is_invariant(id);
        let is_bound = inputs.iter().any(|input| is_varying(input.node, nodes.value_context(*input)))
            || control.iter().any(|before| is_varying(*before, nodes.control_context(*before)));
        control.extend(self.pivot.filter(|_| !is_bound));
        Ok(())
    }
}

impl Graph {
    /// A handle that adds to a loop's body or a branch that is in the graph. Nodes that it builds may use values of
    /// that context and of those around it.
    ///
    /// # Errors
    /// The context has no `Switch` yet, so that nothing determines when its nodes run.
    pub fn within(&self, context: ContextId) -> Result<Graph, GraphError> {
        let at = |pivot| Graph { capture: Some(Arc::new(Within { context, pivot })), ..self.clone() };
        match context {
            ContextId::ROOT => Ok(Graph { capture: None, ..self.clone() }),
            _ => Ok(at(Some(at(None).find_pivot()?))),
        }
    }

    /// The loop or branch that this handle adds to.
    pub fn context(&self) -> ContextId {
        self.capture.as_ref().map_or(ContextId::ROOT, |capture| capture.context())
    }

    /// This handle in another context, with this pivot.
    pub(super) fn with_context(&self, context: ContextId, pivot: NodeId) -> Graph {
        let within = Within { context, pivot: Some(pivot) };
        Graph { capture: Some(Arc::new(within)), control: [].into(), ..self.clone() }
    }

    /// This handle, with another way to bring values to where they are used.
    pub fn with_capture(&self, capture: Arc<dyn Capture>) -> Graph {
        Graph { capture: Some(capture), ..self.clone() }
    }

    /// A node that runs whenever the context's nodes do: an `Identity` behind one of its `Switch`es.
    fn find_pivot(&self) -> Result<NodeId, GraphError> {
        let switched = self.nodes().switched(self.context());
        let Some(switched) = switched else {
            let source = ControlFlowError::OutsideOfLoop;
            return Err(GraphError::ControlFlow {
                node: self.scope_name().to_owned(),
                op: "Switch",
                source: source.into(),
            });
        };
        let nodes = self.nodes();
        let is_pivot = |n: &&Arc<Node>| n.op.kind == OpKind::Identity && n.inputs[0] == switched;
        // Consumers come later in the arena, mostly soon.
        let found = nodes.iter().skip(switched.node.index()).find(is_pivot).map(|n| n.id);
        drop(nodes);
        match found {
            Some(id) => Ok(id),
            None => self.add_node("Identity").name("pivot").input(switched).build(),
        }
    }

    /// What stands for `value` in this handle's loop or branch: brought in where it comes from outside.
    ///
    /// # Errors
    /// The value is inside of another loop or branch.
    pub fn inside(&self, value: Output) -> Result<Output, GraphError> {
        self.nodes.write().bring_in(self, self.scope_name(), value, self.context())
    }

    /// Lets input `input` of a loop's `Merge` come from a `NextIteration` of the same loop: closes the loop.
    ///
    /// # Errors
    /// The nodes are of other ops or loops, or the value's type or shape is not the variable's.
    pub fn close_loop(&self, merge: NodeId, input: usize, next: Output) -> Result<(), GraphError> {
        self.nodes.write().close_loop(merge, input, next)
    }
}

impl Nodes {
    /// An output that is alive whenever the nodes of the context are.
    fn switched(&self, context: ContextId) -> Option<Output> {
        match &self.contexts.get(context).kind {
            ContextKind::Root => None,
            ContextKind::While(of) => {
                let switch = of.vars.iter().find_map(|var| var.switch)?;
                Some(Output { node: switch, port: 1 })
            }
            // Any of them is; the first added is the pivot's.
            ContextKind::Cond(_) => self.contexts.get(context).captures.values().min().copied(),
        }
    }

    /// Whether the value is a loop's constant `Enter`.
    fn is_invariant(&self, id: NodeId) -> bool {
        let node = self.get(id);
        node.is_some_and(|n| n.op.kind == OpKind::Enter && n.flag("is_constant").is_ok_and(|c| *c))
    }

    /// What stands for `value` in context `at`.
    fn bring_in(&mut self, graph: &Graph, user: &str, value: Output, at: ContextId) -> Result<Output, GraphError> {
        if self.get(value.node).is_none() {
            return Err(GraphError::ForeignNode { id: value.node });
        }
        let from = self.value_context(value);
        if from == at {
            return Ok(value);
        }
        if !self.contexts.is_within(at, from) {
            let source = ControlFlowError::OutOfContext {
                value: self.get(value.node).map(|n| n.name.to_string()).unwrap_or_default(),
                context: self.contexts.frame_text(from),
            };
            return Err(GraphError::ControlFlow { node: user.to_owned(), op: "", source: source.into() });
        }
        let parent = self.contexts.get(at).parent;
        let outside = self.bring_in(graph, user, value, parent)?;
        if let Some(inside) = self.contexts.get(at).captures.get(&outside) {
            return Ok(*inside);
        }
        // Added around the context, whose inputs are brought in already.
        let around = graph.outside();
        let node = match &self.contexts.get(at).kind {
            ContextKind::Cond(CondContext { pred, branch }) => {
                let port = u32::from(*branch);
                let switch = around.add_node("Switch").input(outside).input(*pred);
                return Ok(Output { node: switch.build_in(self)?.0, port });
            }
            ContextKind::While(WhileContext { frame_name, parallel_iterations, .. }) => around
                .add_node("Enter")
                .input(outside)
                .attr("frame_name", frame_name.clone().as_str())
                .attr("is_constant", true)
                .attr("parallel_iterations", *parallel_iterations),
            ContextKind::Root => return Ok(outside),
        };
        Ok(node.build_in(self)?.0.into())
    }

    /// A node in context `at` that runs after `before`, which may be outside of it.
    fn bring_in_control(
        &mut self,
        graph: &Graph,
        user: &str,
        before: NodeId,
        at: ContextId,
    ) -> Result<NodeId, GraphError> {
        let from = self.control_context(before);
        if self.contexts.frame_of(from) == self.contexts.frame_of(at) {
            return Ok(before);
        }
        // An empty value that is there once `before` ran.
        let around = graph.outside();
        let nothing = crate::tensor::Tensor::vector::<f32>(&[]);
        let signal = around.add_node("Const").name("after").attr("value", nothing).attr("dtype", crate::DType::F32);
        let signal = signal.after(&[before]).build_in(self)?.0;
        let inside = self.bring_in(graph, user, signal.into(), at)?;
        Ok(inside.node)
    }

    /// Changes what is known of the shape of a node's first output.
    pub(super) fn set_shape(&mut self, id: NodeId, shape: PartialShape) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            let mut new = (**node).clone();
            if let Some(port) = new.outputs.first_mut() {
                port.shape = shape;
            }
            *node = Arc::new(new);
        }
    }
}
