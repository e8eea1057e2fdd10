//! The loops and branches of a graph, and which of them each node is in.

use rustc_hash::FxHashMap;

use super::{GraphError, NodeId, Output};

/// A loop or a branch of a graph; [`ContextId::ROOT`] is neither.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ContextId(pub u32);

impl ContextId {
    /// Outside of all loops and branches.
    pub const ROOT: ContextId = ContextId(0);
}

/// A loop or a branch.
#[derive(Debug, Clone)]
pub struct ControlFlowContext {
    /// The context that it lies in.
    pub parent: ContextId,
    /// Which of the two it is.
    pub kind: ContextKind,
    /// Values from outside and what stands for them inside: outputs of constant `Enter`s or of `Switch`es.
    pub captures: FxHashMap<Output, Output>,
}

/// What a context is.
#[derive(Debug, Clone)]
pub enum ContextKind {
    /// No loop and no branch.
    Root,
    /// The body of a loop, with its predicate.
    While(WhileContext),
    /// One side of a conditional.
    Cond(CondContext),
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct WhileContext {
    /// The frame's name.
    pub frame_name: String,
    /// How many iterations may run at once.
    pub parallel_iterations: i64,
    /// The variables, in the order in which their `Merge`s were added.
    pub vars: Vec<LoopVar>,
    /// Constant `Enter`s: values from outside that do not change.
    pub invariants: Vec<NodeId>,
    /// The predicate, once it is there.
    pub loop_cond: Option<NodeId>,
}

/// A loop variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopVar {
    /// Where it comes in.
    pub enter: NodeId,
    /// The head.
    pub merge: NodeId,
    /// What decides whether it goes round again.
    pub switch: Option<NodeId>,
    /// Where it goes round.
    pub next: Option<NodeId>,
    /// Where it leaves; one that nobody uses may be missing.
    pub exit: Option<NodeId>,
}

/// One side of a conditional.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CondContext {
    /// The predicate; `Identity` nodes between it and the `Switch`es are looked through.
    pub pred: Output,
    /// The value of the predicate for which this side runs.
    pub branch: bool,
}

/// The contexts of a graph and of its nodes.
#[derive(Debug, Clone)]
pub(super) struct Contexts {
    pub list: Vec<ControlFlowContext>,
    /// The context that each node runs in.
    pub of_node: Vec<ContextId>,
    pub frames: FxHashMap<String, ContextId>,
    /// The branches, by the context of their `Switch`es, predicate and side.
    pub branches: FxHashMap<(ContextId, Output, bool), ContextId>,
    /// What each `Enter` leads into, and each loop's `Merge` and `Switch` to their variable.
    pub entered: FxHashMap<NodeId, ContextId>,
    /// Imported nodes whose inputs are in different loops.
    pub misplaced: FxHashMap<NodeId, GraphError>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        let root =
            ControlFlowContext { parent: ContextId::ROOT, kind: ContextKind::Root, captures: FxHashMap::default() };
        Contexts {
            list: vec![root],
            of_node: Vec::new(),
            frames: FxHashMap::default(),
            branches: FxHashMap::default(),
            entered: FxHashMap::default(),
            misplaced: FxHashMap::default(),
        }
    }
}

impl Contexts {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn get(&self, id: ContextId) -> &ControlFlowContext {
        self.list.get(id.0 as usize).unwrap_or(&self.list[0])
    }

    pub fn while_mut(&mut self, id: ContextId) -> Option<&mut WhileContext> {
        match &mut self.list.get_mut(id.0 as usize)?.kind {
            ContextKind::While(of) => Some(of),
            _ => None,
        }
    }

    pub fn while_of(&self, id: ContextId) -> Option<&WhileContext> {
        match &self.get(id).kind {
            ContextKind::While(of) => Some(of),
            _ => None,
        }
    }

    pub fn of_node(&self, node: NodeId) -> ContextId {
        self.of_node.get(node.index()).copied().unwrap_or_default()
    }

    /// The loop around a context, itself included; the root where there is none.
    pub fn frame_of(&self, mut id: ContextId) -> ContextId {
        while matches!(self.get(id).kind, ContextKind::Cond(_)) {
            id = self.get(id).parent;
        }
        id
    }

    /// Whether `inner` is `outer` or lies in it.
    pub fn is_within(&self, mut inner: ContextId, outer: ContextId) -> bool {
        while inner != outer && inner != ContextId::ROOT {
            inner = self.get(inner).parent;
        }
        inner == outer
    }

    /// The innermost context that both lie in.
    pub fn common(&self, mut a: ContextId, b: ContextId) -> ContextId {
        while !self.is_within(b, a) {
            a = self.get(a).parent;
        }
        a
    }

    /// How messages call a context's frame.
    pub fn frame_text(&self, id: ContextId) -> String {
        match self.while_of(self.frame_of(id)) {
            Some(of) => format!("frame {}", of.frame_name),
            None => "the root frame".to_owned(),
        }
    }

    /// Takes back the node that came last, which steers nothing.
    pub fn forget_last(&mut self) {
        self.of_node.pop();
    }

    /// Takes back what came after the first `n_nodes` nodes and `n_contexts` contexts.
    pub fn truncate(&mut self, n_nodes: usize, n_contexts: usize) {
        self.of_node.truncate(n_nodes);
        self.list.truncate(n_contexts);
        let is_old = |node: &NodeId| node.index() < n_nodes;
        let is_known = |id: &ContextId| (id.0 as usize) < n_contexts;
        self.frames.retain(|_, id| is_known(id));
        self.branches.retain(|_, id| is_known(id));
        self.entered.retain(|node, _| is_old(node));
        self.misplaced.retain(|node, _| is_old(node));
        for context in &mut self.list {
            context.captures.retain(|_, inner| is_old(&inner.node));
            let ContextKind::While(of) = &mut context.kind else { continue };
            of.vars.retain(|var| is_old(&var.merge));
            of.invariants.retain(is_old);
            of.loop_cond = of.loop_cond.filter(is_old);
            for var in &mut of.vars {
                var.switch = var.switch.filter(is_old);
                var.next = var.next.filter(is_old);
                var.exit = var.exit.filter(is_old);
            }
        }
    }

    pub fn add(&mut self, parent: ContextId, kind: ContextKind) -> ContextId {
        let id = ContextId(self.list.len() as u32);
        self.list.push(ControlFlowContext { parent, kind, captures: FxHashMap::default() });
        id
    }
}
