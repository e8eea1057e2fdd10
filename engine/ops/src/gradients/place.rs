//! Where gradient nodes are added: outside of loops, or in the loop that goes back over one.

use std::sync::Arc;

use parking_lot::Mutex;

use super::back_loop::{BackLoop, Mirrors};
use engine_core::dtype::DType;
use engine_core::graph::{Capture, ContextId, Graph, GraphError, NodeId, Output, Value};
use engine_core::ops::OpKind as K;
use engine_core::shape::PartialShape;

/// Where gradient nodes are added.
#[derive(Clone)]
pub(super) struct GradientLocation {
    /// Adds them; what they use of the forward pass is brought there.
    pub graph: Graph,
    /// The loop whose body is differentiated; the root outside of loops.
    pub frame: ContextId,
    /// The loop that goes back over it.
    pub back: Option<Arc<BackLoop>>,
    /// Names the call of [`super::gradients`].
    pub source: Arc<str>,
    /// Gradients of what the forward pass pushed to stacks.
    pub mirrors: Arc<Mutex<Mirrors>>,
}

/// Gradients of one iteration, added to the same loop: nothing is brought anywhere, but what has no inputs must run
/// in that loop.
struct SameLoopCapture {
    pivot: NodeId,
}

impl Capture for SameLoopCapture {
    fn context(&self) -> ContextId {
        ContextId::ROOT
    }

    fn capture(
        &self,
        _: &Graph,
        _: &str,
        _: &str,
        inputs: &mut [Output],
        control: &mut Vec<NodeId>,
    ) -> Result<(), GraphError> {
        control.extend(Some(self.pivot).filter(|_| inputs.is_empty()));
        Ok(())
    }
}

impl GradientLocation {
    /// Outside of all loops.
    pub fn outside(scope: &Graph) -> GradientLocation {
        GradientLocation {
            graph: scope.with_own_errors(),
            frame: ContextId::ROOT,
            back: None,
            source: scope.scope_name().into(),
            mirrors: Arc::default(),
        }
    }

    /// In a loop of the forward pass, where `pivot` runs in each iteration.
    pub fn in_same_loop(scope: &Graph, frame: ContextId, pivot: NodeId) -> GradientLocation {
        let graph = scope.with_own_errors().with_capture(Arc::new(SameLoopCapture { pivot }));
        GradientLocation { graph, frame, back: None, source: scope.scope_name().into(), mirrors: Arc::default() }
    }

    /// In the loop that goes back over another.
    pub fn in_loop(&self, scope: &Graph, back: Arc<BackLoop>) -> GradientLocation {
        let graph = scope.with_own_errors().with_capture(back.clone());
        GradientLocation { graph, frame: back.forward, back: Some(back), ..self.clone() }
    }

    pub fn at_scope(&self, scope: &str) -> GradientLocation {
        GradientLocation { graph: self.graph.at_scope(scope), ..self.clone() }
    }

    /// Zeros in the shape of a value of the forward pass (of a variable's handle: of its value).
    pub fn zeros(&self, of: Output) -> Value<'_> {
        let value = self.graph.value(of);
        if value.dtype() == DType::Resource
            && let Some((handle, dtype)) = variable(&self.graph, of)
        {
            let read = self.graph.add_node("ReadVariableOp").input(handle).attr("dtype", dtype).value();
            return read.zeros_like();
        }
        if self.back.is_none() || !value.dtype().has_gradient() {
            return value.zeros_like();
        }
        // The value itself would have to be kept for each iteration.
        let zero = value.number(0.0);
        if value.shape().rank() == Some(0) {
            return zero;
        }
        self.graph.add_node("Fill").input(self.shape_of(of)).input(zero).value()
    }

    /// The shape of a value of the forward pass, as an int32 vector: a constant where it is known.
    pub fn shape_of(&self, of: Output) -> Value<'_> {
        let value = self.graph.value(of);
        match small_dims(&value.shape()).filter(|_| self.back.is_some()) {
            Some(dims) => self.graph.ints(&dims),
            None => value.shape_tensor(),
        }
    }
}

fn small_dims(shape: &PartialShape) -> Option<Vec<i32>> {
    shape.known()?.dims().iter().map(|d| i32::try_from(*d).ok()).collect()
}

/// The variable's handle that `of` passes on, outside of loops and branches, and the type of its value.
pub(super) fn variable(graph: &Graph, mut of: Output) -> Option<(Output, DType)> {
    loop {
        let node = graph.node(of.node).ok()?;
        of = match node.op.kind {
            K::VarHandle => return Some((of, *node.dtype("dtype").ok()?)),
            K::Placeholder => return None,
            K::Identity | K::Enter | K::Exit | K::Switch | K::Merge | K::NextIteration => *node.inputs.first()?,
            K::IdentityN => *node.inputs.get(of.port as usize)?,
            _ => return None,
        };
    }
}
