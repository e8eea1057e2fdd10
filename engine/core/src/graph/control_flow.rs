//! Which loop or branch each node is in: contexts, derived from the graph's structure as it grows.
//!
//! A loop is a frame: `Enter` leads into it, `Exit` out of it, `NextIteration` to the `Merge` at its head, and a
//! `Switch` on the `LoopCond` decides. A branch is what lies between a `Switch` (on another predicate) and a `Merge`.
//! Contexts nest. Every node is given one when it comes into the graph, from the contexts of its inputs, so that
//! imported graphs and built ones are alike. What does not fit (inputs from different frames, a loop's op outside
//! of a loop) is refused there, except in an import: a graph may hold nodes that no step needs.
//!
//! ```text
//!            +---------------------------- frame -----------------------------+
//! x -> Enter -> Merge -> Switch(LoopCond) -true--> body -> NextIteration -> Merge
//!                  \-> predicate -^       -false-> Exit -> y
//! ```

use super::contexts::{CondContext, ContextId, ContextKind, ControlFlowContext, LoopVar, WhileContext};
use super::{Attr, ControlFlowError, GraphError, Node, NodeId, Nodes, Output};
use crate::ops::OpKind;

impl Nodes {
    /// The context that the value of an output is in: of an `Enter` the loop it leads into, of an `Exit` what is around
    /// the loop, of a `Switch` the branch.
    pub fn value_context(&self, output: Output) -> ContextId {
        let at = self.contexts.of_node(output.node);
        let Some(node) = self.get(output.node).filter(|_| self.contexts.len() > 1) else { return at };
        match node.op.kind {
            OpKind::Enter => self.contexts.entered.get(&node.id).copied().unwrap_or(at),
            OpKind::Exit => self.contexts.get(self.contexts.frame_of(at)).parent,
            OpKind::Switch => {
                let pred = node.inputs.get(1).map_or(output, |pred| self.predicate(*pred));
                self.contexts.branches.get(&(at, pred, output.port == 1)).copied().unwrap_or(at)
            }
            _ => at,
        }
    }

    /// The context that a node runs in: an `Enter` outside of its loop, an `Exit` inside, a `Switch` outside of its
    /// branches, a `Merge` after them.
    pub fn context_of(&self, node: NodeId) -> ContextId {
        self.contexts.of_node(node)
    }

    /// The loop around a context, itself included; the root where there is none.
    pub fn frame_of(&self, context: ContextId) -> ContextId {
        self.contexts.frame_of(context)
    }

    /// The loop that a context is, where it is one.
    pub fn while_context(&self, context: ContextId) -> Option<&WhileContext> {
        self.contexts.while_of(context)
    }

    /// The outermost branch within `outer` that a value is in.
    pub fn side_within(&self, value: Output, outer: ContextId) -> Option<CondContext> {
        let mut at = self.value_context(value);
        while at != outer && at != ContextId::ROOT {
            let context = self.contexts.get(at);
            match &context.kind {
                ContextKind::Cond(cond) if context.parent == outer => return Some(*cond),
                _ => at = context.parent,
            }
        }
        None
    }

    /// A context.
    pub fn context(&self, id: ContextId) -> &ControlFlowContext {
        self.contexts.get(id)
    }

    /// The context that a control edge from `node` is in.
    pub(crate) fn control_context(&self, id: NodeId) -> ContextId {
        match self.get(id).map(|node| node.op.kind) {
            Some(OpKind::Switch) => self.contexts.of_node(id),
            _ => self.value_context(Output { node: id, port: 0 }),
        }
    }

    /// Gives a node, which is about to be added, its context. With `defers_errors`, why it does not fit is noted in
    /// [`Nodes::misplaced`] instead of refused.
    pub(super) fn place(&mut self, node: &Node, defers_errors: bool) -> Result<(), GraphError> {
        let at = match self.contexts.len() == 1 && !node.op.kind.is_control_flow() {
            true => Ok(ContextId::ROOT),
            false => self.find_context(node).and_then(|at| self.note(node, at).map(|()| at)),
        };
        let at = match at {
            Err(error) if defers_errors => {
                self.misplace(node.id, error);
                ContextId::ROOT
            }
            found => found?,
        };
        self.contexts.of_node.push(at);
        Ok(())
    }

    /// Notes why a node can never run; the first reason stays.
    pub(super) fn misplace(&mut self, id: NodeId, error: GraphError) {
        self.contexts.misplaced.entry(id).or_insert(error);
    }

    /// Why a node can never run: it does not fit into the graph's loops.
    pub fn misplaced(&self, id: NodeId) -> Option<&GraphError> {
        self.contexts.misplaced.get(&id)
    }

    /// The context that the inputs are in.
    fn find_context(&self, node: &Node) -> Result<ContextId, GraphError> {
        let data = node.inputs.iter().map(|input| (input.node, self.value_context(*input)));
        let control = node.control_inputs.iter().map(|id| (*id, self.control_context(*id)));
        let mut found: Option<(NodeId, ContextId)> = None;
        let is_merge = node.op.kind == OpKind::Merge;
        for (i, (from, context)) in data.chain(control).enumerate() {
            let Some((first, so_far)) = found else {
                found = Some((from, context));
                continue;
            };
            if self.contexts.frame_of(context) != self.contexts.frame_of(so_far) {
                return Err(self.mixed_frames(node, (first, so_far), (from, context)));
            }
            let joined = match is_merge && i < node.inputs.len() {
                true => self.contexts.common(so_far, context),
                false if self.contexts.is_within(context, so_far) => context,
                false => so_far,
            };
            found = Some((first, joined));
        }
        Ok(found.map_or(ContextId::ROOT, |(_, context)| context))
    }

    fn mixed_frames(&self, node: &Node, a: (NodeId, ContextId), b: (NodeId, ContextId)) -> GraphError {
        let name = |id: NodeId| self.get(id).map(|n| n.name.to_string()).unwrap_or_default();
        let source = ControlFlowError::MixedFrames {
            a: name(a.0),
            a_frame: self.contexts.frame_text(a.1),
            b: name(b.0),
            b_frame: self.contexts.frame_text(b.1),
        };
        GraphError::ControlFlow { node: node.name.to_string(), op: node.op.name, source: source.into() }
    }

    /// Notes what a control-flow op says about contexts. `at` is where it runs.
    fn note(&mut self, node: &Node, at: ContextId) -> Result<(), GraphError> {
        let fail = |source: ControlFlowError| GraphError::ControlFlow {
            node: node.name.to_string(),
            op: node.op.name,
            source: source.into(),
        };
        let frame = self.contexts.frame_of(at);
        let is_root = frame == ContextId::ROOT;
        match node.op.kind {
            OpKind::Enter => self.note_enter(node, at).map_err(fail)?,
            OpKind::Exit | OpKind::NextIteration | OpKind::LoopCond if is_root => {
                return Err(fail(ControlFlowError::OutsideOfLoop));
            }
            OpKind::LoopCond => {
                if let Some(of) = self.contexts.while_mut(frame) {
                    of.loop_cond = Some(node.id);
                }
            }
            OpKind::Switch => self.note_switch(node, at),
            OpKind::Merge => {
                let enter = node.inputs.first().map_or(node.id, |input| input.node);
                if self.contexts.entered.get(&enter) == Some(&at)
                    && let Some(of) = self.contexts.while_mut(at)
                {
                    of.vars.push(LoopVar { enter, merge: node.id, switch: None, next: None, exit: None });
                }
            }
            OpKind::Exit => {
                let switch = node.inputs.first().map(|input| input.node);
                let of = self.contexts.while_mut(frame);
                let var = of.and_then(|of| of.vars.iter_mut().find(|var| var.switch.is_some() && var.switch == switch));
                if let Some(var) = var {
                    var.exit.get_or_insert(node.id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn note_enter(&mut self, node: &Node, at: ContextId) -> Result<(), ControlFlowError> {
        let frame_name = node.text("frame_name").unwrap_or_default();
        let parallel_iterations = node.int("parallel_iterations").copied().unwrap_or(1);
        if frame_name.is_empty() {
            return Err(ControlFlowError::NoFrameName);
        }
        if parallel_iterations < 1 {
            return Err(ControlFlowError::ParallelIterations(parallel_iterations));
        }
        let id = match self.contexts.frames.get(&frame_name).copied() {
            Some(id) => {
                let parent = self.contexts.get(id).parent;
                if self.contexts.frame_of(parent) != self.contexts.frame_of(at) {
                    let text = |id| self.contexts.frame_text(id);
                    return Err(ControlFlowError::TwoParents { frame: frame_name, a: text(parent), b: text(at) });
                }
                if self.contexts.is_within(at, parent) {
                    self.contexts.list[id.0 as usize].parent = at;
                }
                id
            }
            None => {
                let of = WhileContext {
                    frame_name: frame_name.clone(),
                    parallel_iterations,
                    vars: Vec::new(),
                    invariants: Vec::new(),
                    loop_cond: None,
                };
                let id = self.contexts.add(at, ContextKind::While(of));
                self.contexts.frames.insert(frame_name, id);
                id
            }
        };
        self.contexts.entered.insert(node.id, id);
        if let (Some(Attr::Bool(true)), Some(input)) = (node.attrs.get("is_constant"), node.inputs.first()) {
            self.contexts.list[id.0 as usize].captures.entry(*input).or_insert(node.id.into());
            if let Some(of) = self.contexts.while_mut(id) {
                of.invariants.push(node.id);
            }
        }
        Ok(())
    }

    /// The predicate itself where `pred` is only another name of it.
    fn predicate(&self, mut pred: Output) -> Output {
        while let Some(node) = self.get(pred.node).filter(|node| node.op.kind == OpKind::Identity)
            && self.contexts.of_node(node.id) == self.value_context(node.inputs[0])
        {
            pred = node.inputs[0];
        }
        pred
    }

    fn note_switch(&mut self, node: &Node, at: ContextId) {
        let (Some(data), Some(pred)) = (node.inputs.first().copied(), node.inputs.get(1).copied()) else { return };
        if self.get(pred.node).is_some_and(|n| n.op.kind == OpKind::LoopCond) {
            let of = self.contexts.while_mut(at);
            if let Some(var) = of.and_then(|of| of.vars.iter_mut().find(|var| var.merge == data.node)) {
                var.switch.get_or_insert(node.id);
            }
            return;
        }
        let pred = self.predicate(pred);
        for branch in [false, true] {
            let id = match self.contexts.branches.get(&(at, pred, branch)).copied() {
                Some(id) => id,
                None => {
                    let id = self.contexts.add(at, ContextKind::Cond(CondContext { pred, branch }));
                    self.contexts.branches.insert((at, pred, branch), id);
                    id
                }
            };
            let inner = Output { node: node.id, port: u32::from(branch) };
            self.contexts.list[id.0 as usize].captures.entry(data).or_insert(inner);
        }
    }

    /// Lets input `i` of a loop's `Merge` come from its `NextIteration`, which is in the graph only now.
    pub(super) fn close_loop(&mut self, merge: NodeId, i: usize, next: Output) -> Result<(), GraphError> {
        let old = self.get(merge).cloned().ok_or(GraphError::ForeignNode { id: merge })?;
        let from = self.get(next.node).cloned().ok_or(GraphError::ForeignNode { id: next.node })?;
        let fail = |source: ControlFlowError| GraphError::ControlFlow {
            node: old.name.to_string(),
            op: old.op.name,
            source: source.into(),
        };
        let (frame, at) = (self.contexts.of_node(merge), self.contexts.of_node(next.node));
        let is_loop = old.op.kind == OpKind::Merge && i < old.inputs.len();
        let is_next = from.op.kind == OpKind::NextIteration;
        if !is_loop || !is_next || self.contexts.frame_of(frame) == ContextId::ROOT {
            return Err(fail(ControlFlowError::OutsideOfLoop));
        }
        if self.contexts.frame_of(frame) != self.contexts.frame_of(at) {
            let (next_frame, frame) = (self.contexts.frame_text(at), self.contexts.frame_text(frame));
            return Err(fail(ControlFlowError::WrongLoop { next: from.name.to_string(), next_frame, frame }));
        }
        let (expected, got) = (&old.outputs[0], &from.outputs[0]);
        if expected.dtype != got.dtype {
            return Err(GraphError::InputType {
                node: old.name.to_string(),
                op: old.op.name,
                input: "inputs",
                from: from.name.to_string(),
                expected: expected.dtype,
                got: got.dtype,
            });
        }
        if crate::ops::flow::common_of(&expected.shape, &got.shape) != expected.shape {
            let (before, after) = (expected.shape.to_string(), got.shape.to_string());
            return Err(fail(ControlFlowError::ShapeVaries { before, after }));
        }
        let mut new = (*old).clone();
        new.inputs[i] = next;
        self.nodes[merge.index()] = std::sync::Arc::new(new);
        let of = self.contexts.while_mut(frame);
        if let Some(var) = of.and_then(|of| of.vars.iter_mut().find(|var| var.merge == merge)) {
            var.next = Some(next.node);
        }
        Ok(())
    }
}
