//! The loop that goes back over the iterations of another, and how values of those iterations come into it.
//!
//! ```text
//! forward   0 -> Enter -> Merge -> Switch -> + 1 ----------> NextIteration        value -> StackPush
//!                                   \-> Exit = count             after the pushes          after + 1
//! back  count -> Enter -> Merge -> Switch -> - 1 ----------> NextIteration        StackPop, after Switch
//!                           \-> >= 1 -> LoopCond                 after the pops
//! ```
//!
//! The forward loop counts its iterations in a variable of its own. A value that the way back needs is pushed to a stack
//! in each iteration, in their order: a push waits for the count of its iteration, and the next one's count for the push.
//! Pops go the other way round, those of a loop within this one as one: its end comes before this one's next count. In a
//! branch of a conditional the stack's handle goes through a `Switch` on the predicate (itself kept on a stack), so that
//! nothing is popped where nothing was pushed. Constants are made anew, invariants enter this loop too, and what only
//! passes on a value is looked through. There is one stack per value, outside of all loops: loops within loops push and
//! pop in opposite orders as a whole.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::error::GradientError;
use engine_core::dtype::DType;
use engine_core::graph::{
    Capture, ContextId, ContextKind, ControlFlowError, Graph, GraphError, LoopVar, Node, NodeId, Nodes, Output,
};
use engine_core::ops::OpKind;
use engine_core::tensor::Tensor;

/// The loop that goes back over another.
pub(super) struct BackLoop {
    /// Adds to this loop's scope; inputs are taken as they are.
    scope: Graph,
    /// The loop that it goes back over.
    pub forward: ContextId,
    /// Itself.
    context: ContextId,
    frame_name: String,
    parallel_iterations: i64,
    /// The loop around it, which goes back over the loop around `forward`.
    around: Option<Arc<BackLoop>>,
    /// Whether it goes on.
    pub condition: Output,
    /// Runs in each of its iterations.
    pivot: NodeId,
    /// Runs in each iteration of `forward`, after the count of that iteration.
    forward_pivot: NodeId,
    /// The two counters: head of the loop variable, and its next value.
    counters: [(NodeId, Output); 2],
    /// What is left of its own counter when it ends.
    end: Output,
    state: Mutex<State>,
}

/// Stacks of gradients, by the stack of the values that they belong to, and what must have run before anything is popped
/// from them: for second derivatives, which go back over loops that push and pop.
#[derive(Default)]
pub(super) struct Mirrors {
    pub stacks: FxHashMap<NodeId, Output>,
    pub done: Vec<NodeId>,
}

#[derive(Default)]
struct State {
    /// Whether it pushes gradients.
    has_mirrors: bool,
    /// What stands here for values of the forward loop's iterations, and for values from outside.
    brought: FxHashMap<Output, Output>,
    pushes: Vec<NodeId>,
    pops: Vec<NodeId>,
}

/// A frame to enter: its name and how many iterations may run at once.
type FrameName = (String, i64);

fn enter(graph: &Graph, value: Output, (name, parallel): (&str, i64), is_constant: bool) -> Result<Output, GraphError> {
    let enter = graph.add_node("Enter").input(value).attr("frame_name", name).attr("is_constant", is_constant);
    enter.attr("parallel_iterations", parallel).output()
}

/// The variable that counts the iterations of the forward loop.
struct ForwardCounter {
    merge: NodeId,
    /// The count after this iteration.
    next: Output,
    /// The count after the last one.
    count: Output,
}

/// Adds a counter to the loop of `context`, into which `entered` goes and which goes on as long as `loop_cond` says;
/// `around` goes back over the loop around it.
fn forward_counter(
    scope: &Graph,
    context: ContextId,
    entered: Output,
    loop_cond: Output,
    around: Option<&BackLoop>,
) -> Result<ForwardCounter, GraphError> {
    let (frame, parallel) = frame_name(scope, context)?;
    // It begins where the loop does: not in a branch that is not taken.
    let anchor = scope.add_node("Identity").name("f_begin").input(entered).build()?;
    let zero = scope.add_node("Const").name("f_zero").attr("value", Tensor::scalar(0i32)).attr("dtype", DType::I32);
    let zero = zero.after(&[anchor]).output()?;
    // In a loop around it, the pushes of one iteration come after those of the one before.
    let order: Vec<NodeId> = around.iter().map(|around| around.forward_pivot).collect();
    let begin = scope.add_node("Enter").name("f_count").input(zero).attr("frame_name", frame.as_str());
    let begin = begin.attr("parallel_iterations", parallel).after(&order).output()?;
    let merge = scope.add_node("Merge").name("f_count").inputs(&[begin, begin]).build()?;
    let switch = scope.add_node("Switch").input(merge).input(loop_cond).build()?;
    let inside = scope.add_node("Identity").input(Output { node: switch, port: 1 }).output()?;
    let one = scope.add_node("Const").attr("value", Tensor::scalar(1i32)).attr("dtype", DType::I32);
    let one = one.after(&[inside.node]).output()?;
    let next = scope.add_node("AddV2").name("f_count/add").input(inside).input(one).output()?;
    let count = scope.add_node("Exit").name("f_count").input(switch).output()?;
    Ok(ForwardCounter { merge, next, count })
}

/// A loop variable that is being built.
pub(super) struct BackVar {
    pub merge: NodeId,
    /// Its value in an iteration.
    pub value: Output,
    /// Its value after the last one.
    pub exit: Output,
}

impl BackLoop {
    /// Begins a loop back over the loop of `context`, which lies in the body that `around` goes back over, or outside of
    /// loops. `place` adds nodes around the new loop.
    pub fn begin(
        root: &Graph,
        place: &Graph,
        (around, mirrors): (Option<&Arc<BackLoop>>, &Mutex<Mirrors>),
        context: ContextId,
        vars: &[LoopVar],
    ) -> Result<BackLoop, GradientError> {
        let Some((var, switch)) = vars.first().and_then(|var| Some((var, var.switch?))) else {
            return Err(not_a_loop(root).into());
        };
        let scope = root.scope(&format!("{}_grad", root.node(var.merge)?.name));
        let loop_cond = scope.node(switch)?.inputs[1];
        let entered = scope.node(var.enter)?.inputs[0];
        let forward = forward_counter(&scope, context, entered, loop_cond, around.map(|around| &**around))?;
        let parallel_iterations = frame_name(&scope, context)?.1;
        let frame_name = format!("{}/while_context", scope.scope_name());
        let frame = (frame_name.as_str(), parallel_iterations);
        let mut count = around.map_or(Ok(forward.count), |around| around.bring(forward.count))?;
        let after = if around.is_none() { mirrors.lock().done.clone() } else { Vec::new() };
        if !after.is_empty() {
            count = scope.add_node("Identity").name("b_begin").input(count).after(&after).output()?;
        }
        let b_enter = enter(&scope, count, frame, false)?;
        let b_merge = scope.add_node("Merge").name("b_count").inputs(&[b_enter, b_enter]).build()?;
        let at = place.at_scope(scope.scope_name());
        let one = enter(&scope, at.constant(Tensor::scalar(1i32)).try_output()?, frame, true)?;
        let goes_on = scope.add_node("GreaterEqual").name("b_count/pred").input(b_merge).input(one).output()?;
        let condition = scope.add_node("LoopCond").name("b_count/cond").input(goes_on).output()?;
        let b_switch = scope.add_node("Switch").input(b_merge).input(condition).build()?;
        let left = scope.add_node("Identity").input(Output { node: b_switch, port: 1 }).output()?;
        let fewer = scope.add_node("Sub").name("b_count/sub").input(left).input(one).output()?;
        let context_of_back = scope.nodes().value_context(b_enter);
        Ok(BackLoop {
            forward: context,
            context: context_of_back,
            parallel_iterations,
            around: around.cloned(),
            condition,
            pivot: left.node,
            forward_pivot: forward.next.node,
            counters: [(forward.merge, forward.next), (b_merge, fewer)],
            end: b_switch.into(),
            state: Mutex::default(),
            scope: scope.clone(),
            frame_name,
        })
    }

    /// Adds a loop variable that begins with `begin` (a value around the loop) and keeps the shape of `like`.
    pub fn variable(&self, name: &str, begin: Output, like: Output) -> Result<BackVar, GraphError> {
        let begin = enter(&self.scope, begin, (&self.frame_name, self.parallel_iterations), false)?;
        let merge = self.scope.add_node("Merge").name(name).inputs(&[begin, begin]).build()?;
        self.scope.set_shape(merge.into(), self.scope.shape(like)?)?;
        let switch = self.scope.add_node("Switch").input(merge).input(self.condition).build()?;
        let exit = self.scope.add_node("Exit").input(switch).output()?;
        Ok(BackVar { merge, value: Output { node: switch, port: 1 }, exit })
    }

    /// Says what a variable is in the next iteration.
    pub fn set_next(&self, merge: NodeId, next: Output) -> Result<(), GraphError> {
        self.close(merge, next, &[])
    }

    fn close(&self, merge: NodeId, next: Output, after: &[NodeId]) -> Result<(), GraphError> {
        let next = self.scope.add_node("NextIteration").input(next).after(after).output()?;
        // What inference does not see: a gradient has its value's shape.
        self.scope.set_shape(next, self.scope.shape(merge.into())?)?;
        self.scope.close_loop(merge, 1, next)
    }

    /// Closes the two counters: after all pushes, and all pops. Its end is a pop of the loop around it, and where it pushed
    /// gradients it is noted.
    pub fn finish(&self, mirrors: &Mutex<Mirrors>) -> Result<(), GraphError> {
        let (pushes, pops) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.pushes), std::mem::take(&mut state.pops))
        };
        for ((merge, next), (name, before)) in self.counters.iter().zip([("f_sync", pushes), ("b_sync", pops)]) {
            let after = match before.is_empty() {
                true => Vec::new(),
                // Those in branches that are not taken are dead, which a trigger does not mind.
                false => vec![self.trigger(name, next.node, &before)?],
            };
            self.close(*merge, *next, &after)?;
        }
        let has_mirrors = self.state.lock().has_mirrors;
        if self.around.is_none() && !has_mirrors {
            return Ok(());
        }
        let end = self.scope.add_node("Exit").name("b_count").input(self.end).build()?;
        match &self.around {
            // The next iteration around it pops from the same stacks: not before this loop is through with them.
            Some(around) => {
                let mut state = around.state.lock();
                state.pops.push(end);
                state.has_mirrors |= has_mirrors;
            }
            None => mirrors.lock().done.push(end),
        }
        Ok(())
    }

    fn trigger(&self, name: &str, pivot: NodeId, before: &[NodeId]) -> Result<NodeId, GraphError> {
        self.scope.add_node("ControlTrigger").name(name).after(&[pivot]).after(before).build()
    }

    /// What stands in this loop for a value of the forward pass, or of the way back around this loop.
    pub fn bring(&self, value: Output) -> Result<Output, GraphError> {
        let frame = {
            let nodes = self.scope.nodes();
            nodes.frame_of(nodes.value_context(value))
        };
        if frame == self.context {
            return Ok(value);
        }
        if let Some(known) = self.state.lock().brought.get(&value) {
            return Ok(*known);
        }
        let brought = match (&self.around, frame == self.forward) {
            (_, true) => self.of_iteration(value)?,
            (Some(around), false) => self.enter(around.bring(value)?)?,
            (None, false) => self.enter(value)?,
        };
        self.state.lock().brought.insert(value, brought);
        Ok(brought)
    }

    /// Whether it goes back over the loop, or is within one that does.
    fn goes_over(&self, frame: ContextId) -> bool {
        frame == self.forward || self.around.as_ref().is_some_and(|around| around.goes_over(frame))
    }

    fn enter(&self, value: Output) -> Result<Output, GraphError> {
        enter(&self.scope, value, (&self.frame_name, self.parallel_iterations), true)
    }

    /// What stands here for a value of an iteration of the forward loop.
    fn of_iteration(&self, value: Output) -> Result<Output, GraphError> {
        let node = self.scope.node(value.node)?;
        match node.op.kind {
            OpKind::Const => {
                let attrs = node.attrs.iter().filter(|(name, _)| ["value", "dtype"].contains(&name.as_str()));
                let new = attrs.fold(self.scope.add_node("Const"), |new, (name, v)| new.attr(name, v.clone()));
                new.after(&[self.pivot]).output()
            }
            OpKind::Enter if node.flag("is_constant").is_ok_and(|c| *c) => match &self.around {
                Some(around) => self.enter(around.bring(node.inputs[0])?),
                None => self.enter(node.inputs[0]),
            },
            OpKind::Identity => self.bring(node.inputs[0]),
            OpKind::IdentityN => self.bring(node.inputs[value.port as usize]),
            OpKind::Switch if self.is_branch(value) => {
                let (data, pred) = (self.bring(node.inputs[0])?, self.bring(node.inputs[1])?);
                let switch = self.scope.add_node("Switch").input(data).input(pred).build()?;
                Ok(Output { node: switch, port: value.port })
            }
            OpKind::Merge => match self.in_body(&node, value) {
                Some(in_body) => self.kept(in_body),
                None => self.kept(value),
            },
            _ => self.kept(value),
        }
    }

    fn is_branch(&self, value: Output) -> bool {
        let nodes = self.scope.nodes();
        matches!(nodes.context(nodes.value_context(value)).kind, ContextKind::Cond(_))
    }

    /// The value of a loop variable in an iteration that takes place: its head also runs when the loop ends.
    fn in_body(&self, merge: &Node, value: Output) -> Option<Output> {
        let nodes = self.scope.nodes();
        let var = nodes.while_context(self.forward)?.vars.iter().find(|var| var.merge == merge.id)?;
        Some(Output { node: var.switch?, port: 1 }).filter(|_| value.port == 0)
    }

    /// The predicates of the branches around a value within its loop, from the outermost in, with the side.
    fn guards(&self, value: Output) -> Vec<(Output, u32)> {
        let nodes = self.scope.nodes();
        let mut guards = Vec::new();
        let mut at = nodes.value_context(value);
        while let ContextKind::Cond(cond) = &nodes.context(at).kind {
            guards.push((cond.pred, u32::from(cond.branch)));
            at = nodes.context(at).parent;
        }
        guards.reverse();
        guards
    }

    /// A value that is pushed to a stack in each iteration, popped from it.
    fn kept(&self, value: Output) -> Result<Output, GraphError> {
        let stack = self.new_stack(self.scope.dtype(value)?)?;
        let mut handle = stack;
        for (name, parallel) in self.forward_frames()? {
            handle = enter(&self.scope, handle, (&name, parallel), true)?;
        }
        let push = self.scope.add_node("StackPushV2").input(handle).input(value);
        let push = push.after(&[self.forward_pivot]).build()?;
        self.state.lock().pushes.push(push);
        self.pop(stack, value)
    }

    fn new_stack(&self, dtype: DType) -> Result<Output, GraphError> {
        let no_limit = self.scope.add_node("Const").name("f_acc/max_size").attr("value", Tensor::scalar(-1i32));
        let no_limit = no_limit.attr("dtype", DType::I32).output()?;
        self.scope.add_node("StackV2").name("f_acc").input(no_limit).attr("elem_type", dtype).output()
    }

    /// The handle of a stack, which is outside of all loops, in this loop.
    fn handle_of(&self, stack: Output) -> Result<Output, GraphError> {
        match &self.around {
            Some(around) => self.enter(around.bring(stack)?),
            None => self.enter(stack),
        }
    }

    /// What each iteration of this loop takes from a stack to which the one that it goes back over pushed where `value`
    /// was alive.
    pub fn pop(&self, stack: Output, value: Output) -> Result<Output, GraphError> {
        let mut handle = self.handle_of(stack)?;
        for (pred, side) in self.guards(value) {
            let switch = self.scope.add_node("Switch").input(handle).input(self.bring(pred)?).build()?;
            handle = Output { node: switch, port: side };
        }
        let pop = self.scope.add_node("StackPopV2").input(handle).attr("elem_type", self.scope.dtype(value)?);
        let pop = pop.after(&[self.pivot]).build()?;
        self.scope.set_shape(pop.into(), self.scope.shape(value)?)?;
        self.state.lock().pops.push(pop);
        Ok(pop.into())
    }

    /// Pushes the gradient of what the forward pass popped, in each iteration, to a stack for it.
    pub fn push_gradient(&self, mirrors: &Mutex<Mirrors>, stack: NodeId, grad: Output) -> Result<(), GraphError> {
        let known = mirrors.lock().stacks.get(&stack).copied();
        let mirror = match known {
            Some(mirror) => mirror,
            None => self.new_stack(self.scope.dtype(grad)?)?,
        };
        mirrors.lock().stacks.insert(stack, mirror);
        let push = self.scope.add_node("StackPushV2").input(self.handle_of(mirror)?).input(grad);
        let push = push.after(&[self.pivot]).build()?;
        let mut state = self.state.lock();
        state.pops.push(push);
        state.has_mirrors = true;
        Ok(())
    }

    /// The frames around the forward loop's body, from the outermost in.
    fn forward_frames(&self) -> Result<Vec<FrameName>, GraphError> {
        let mut frames = Vec::new();
        let mut at = self.forward;
        while at != ContextId::ROOT {
            frames.push(frame_name(&self.scope, at)?);
            let nodes = self.scope.nodes();
            at = nodes.frame_of(nodes.context(at).parent);
        }
        frames.reverse();
        Ok(frames)
    }
}

fn not_a_loop(graph: &Graph) -> GraphError {
    let source = ControlFlowError::OutsideOfLoop;
    GraphError::ControlFlow { node: graph.scope_name().to_owned(), op: "LoopCond", source: source.into() }
}

fn frame_name(graph: &Graph, context: ContextId) -> Result<FrameName, GraphError> {
    let nodes = graph.nodes();
    let of = nodes.while_context(context).ok_or_else(|| not_a_loop(graph))?;
    Ok((of.frame_name.clone(), of.parallel_iterations))
}

impl Capture for BackLoop {
    /// What it brings it brings by itself.
    fn context(&self) -> ContextId {
        ContextId::ROOT
    }

    fn capture(
        &self,
        _: &Graph,
        _: &str,
        op: &str,
        inputs: &mut [Output],
        control: &mut Vec<NodeId>,
    ) -> Result<(), GraphError> {
        let is_of_forward = |o: &Output| {
            let nodes = self.scope.nodes();
            self.goes_over(nodes.frame_of(nodes.value_context(*o)))
        };
        // The shape of a value is found where the value is, and kept instead of it.
        if matches!(op, "Shape" | "Size" | "Rank") && inputs.iter().all(is_of_forward) {
            return Ok(());
        }
        for input in inputs.iter_mut() {
            *input = self.bring(*input)?;
        }
        let is_invariant = |o: &Output| {
            let node = self.scope.node(o.node);
            node.is_ok_and(|n| n.op.kind == OpKind::Enter && n.flag("is_constant").is_ok_and(|c| *c))
        };
        // What depends on nothing of the iteration must not run when the loop ends.
        control.extend(Some(self.pivot).filter(|_| inputs.iter().all(is_invariant)));
        Ok(())
    }
}

/// The stack that a handle is of, outside of loops and branches.
pub(super) fn stack_of(nodes: &Nodes, mut handle: Output) -> Option<NodeId> {
    loop {
        let node = nodes.get(handle.node)?;
        match node.op.kind {
            OpKind::Stack => return Some(node.id),
            OpKind::Enter | OpKind::Switch | OpKind::Identity => handle = *node.inputs.first()?,
            _ => return None,
        }
    }
}
