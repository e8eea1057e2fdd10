//! The rewritable graph of one signature: nodes by number, edges as sources, feeds and fetches as edges.
//!
//! Nodes lie in one array and are numbered for good; a removed node leaves a gap. What a node *is* (name, op, attributes,
//! output types and shapes) is an [`Arc<Node>`], shared with the session's graph until a pass makes another; what it is
//! *connected to* lies here, so that rewiring copies nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::compile::CompileError;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node, NodeId, Output, Port};
use engine_core::ops::{self, OpKind};
use engine_core::shape::PartialShape;

/// The number of a node in a [`WorkGraph`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WorkId(pub u32);

impl WorkId {
    /// The number, for indexing.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// An output of a node.
    Port(WorkId, u32),
    /// A feed, by its position in the signature.
    Feed(u32),
}

impl Source {
    /// The node, where it is one's output.
    #[inline]
    pub fn node(self) -> Option<WorkId> {
        match self {
            Source::Port(node, _) => Some(node),
            Source::Feed(_) => None,
        }
    }
}

impl From<WorkId> for Source {
    /// The node's first output.
    fn from(node: WorkId) -> Source {
        Source::Port(node, 0)
    }
}

/// A node of a [`WorkGraph`].
#[derive(Debug, Clone)]
pub struct WorkNode {
    /// Name, op, attributes, the device asked for, types and shapes of the outputs. Its `id`, `inputs` and
    /// `control_inputs` mean nothing here but for the number of inputs.
    pub def: Arc<Node>,
    /// Where the inputs come from.
    pub inputs: SmallVec<[Source; 3]>,
    /// The nodes that must have run before, besides those.
    pub control_inputs: SmallVec<[WorkId; 2]>,
    /// The node of the session's graph that this is, as it is there; `None` where a pass made or changed it.
    pub origin: Option<NodeId>,
    /// The device that it runs on, by its number in the session; 0 before placement.
    pub device: u32,
}

impl WorkNode {
    /// The node's full name.
    pub fn name(&self) -> &Arc<str> {
        &self.def.name
    }

    /// The op's name.
    pub fn op(&self) -> &'static str {
        self.def.op.name
    }

    /// The part that it plays in the graph.
    pub fn kind(&self) -> OpKind {
        self.def.op.kind
    }

    /// Whether it has state or effects.
    pub fn is_stateful(&self) -> bool {
        self.def.op.is_stateful()
    }

    /// Whether equal inputs give equal outputs, so that it may be computed once, or before any step.
    pub fn is_pure(&self) -> bool {
        !self.is_stateful() && !self.kind().is_control_flow() && self.kind() != OpKind::PlaceholderWithDefault
    }

    /// Types and shapes of the outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.def.outputs
    }

    /// The nodes that it waits for: those of its inputs, then those of its control edges.
    pub fn before(&self) -> impl Iterator<Item = WorkId> + '_ {
        self.inputs.iter().filter_map(|source| source.node()).chain(self.control_inputs.iter().copied())
    }
}

/// A value that the caller of a step gives.
#[derive(Debug, Clone)]
pub struct WorkFeed {
    /// `name:port` of the output that it stands for.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, as far as known.
    pub shape: PartialShape,
}

/// A mutable copy of the part of a graph that one signature needs.
#[derive(Debug, Clone, Default)]
pub struct WorkGraph {
    nodes: Vec<Option<WorkNode>>,
    by_name: FxHashMap<Arc<str>, WorkId>,
    /// What the caller gives.
    pub feeds: Vec<WorkFeed>,
    /// Where the fetched values come from.
    pub fetches: Vec<Source>,
    /// `name:port` of each fetch, as the caller asked for it.
    pub fetch_names: Vec<String>,
    /// Nodes that shall run, whoever uses them.
    pub targets: Vec<WorkId>,
    /// The `_Send` of each `_Recv`: what it waits for, without an edge.
    pub senders: FxHashMap<WorkId, WorkId>,
}

/// What a pass wants to add.
pub struct NewNode<'a> {
    /// Its name; where that is taken, a number is appended.
    pub name: &'a str,
    /// Its op.
    pub op: &'a str,
    /// Attributes; the op's defaults are filled in.
    pub attrs: BTreeMap<String, Attr>,
    /// Where the inputs come from.
    pub inputs: SmallVec<[Source; 3]>,
    /// The nodes that must have run before, besides those.
    pub control_inputs: SmallVec<[WorkId; 2]>,
    /// Types and shapes of the outputs.
    pub outputs: Vec<Port>,
    /// The device that it runs on.
    pub device: u32,
}

impl WorkGraph {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// One more than the largest number that a node has or had: the length of tables by [`WorkId`].
    pub fn n_ids(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes, by number.
    pub fn iter(&self) -> impl Iterator<Item = (WorkId, &WorkNode)> {
        self.nodes.iter().enumerate().filter_map(|(i, node)| Some((WorkId(i as u32), node.as_ref()?)))
    }

    /// The numbers of all nodes.
    pub fn ids(&self) -> Vec<WorkId> {
        self.iter().map(|(id, _)| id).collect()
    }

    /// The node, unless it was removed.
    #[inline]
    pub fn get(&self, id: WorkId) -> Option<&WorkNode> {
        self.nodes.get(id.index()).and_then(Option::as_ref)
    }

    /// The node, for rewiring, unless it was removed. Its name must stay ([`WorkGraph::redefine`]).
    #[inline]
    pub fn get_mut(&mut self, id: WorkId) -> Option<&mut WorkNode> {
        self.nodes.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<WorkId> {
        self.by_name.get(name).copied()
    }

    /// The part that the node plays, [`OpKind::Compute`] where it was removed.
    pub fn kind(&self, id: WorkId) -> OpKind {
        self.get(id).map_or(OpKind::Compute, WorkNode::kind)
    }

    /// The node's op, `""` where it was removed.
    #[inline]
    pub fn op(&self, id: WorkId) -> &'static str {
        self.get(id).map_or("", WorkNode::op)
    }

    /// The element type and shape of a value.
    pub fn port(&self, source: Source) -> Option<(DType, &PartialShape)> {
        match source {
            Source::Port(node, port) => self.get(node)?.outputs().get(port as usize).map(|p| (p.dtype, &p.shape)),
            Source::Feed(i) => self.feeds.get(i as usize).map(|f| (f.dtype, &f.shape)),
        }
    }

    /// Adds a node. Its name must be free ([`WorkGraph::free_name`]); one that is taken shows in [`super::passes::verify`].
    pub fn add(&mut self, node: WorkNode) -> WorkId {
        let id = WorkId(self.nodes.len() as u32);
        self.by_name.insert(node.def.name.clone(), id);
        self.nodes.push(Some(node));
        id
    }

    /// Adds a node that the session's graph does not have.
    ///
    /// # Errors
    /// There is no such op.
    pub fn add_new(&mut self, new: NewNode<'_>) -> Result<WorkId, CompileError> {
        let name = self.free_name(new.name);
        let Some(op) = ops::lookup(new.op) else {
            return Err(CompileError::Pass { pass: "add", problem: format!("node {name}: unknown op {}", new.op) });
        };
        let mut attrs = new.attrs;
        for attr in &op.attrs {
            if let (false, Some(default)) = (attrs.contains_key(attr.name), &attr.default) {
                attrs.insert(attr.name.to_owned(), default.clone());
            }
        }
        let nowhere = Output { node: NodeId(u32::MAX), port: 0 };
        let def = Node {
            id: NodeId(u32::MAX),
            name,
            op,
            attrs,
            inputs: vec![nowhere; new.inputs.len()],
            control_inputs: Vec::new(),
            device: "".into(),
            outputs: new.outputs,
        };
        let NewNode { inputs, control_inputs, device, .. } = new;
        Ok(self.add(WorkNode { def: Arc::new(def), inputs, control_inputs, origin: None, device }))
    }

    /// Makes the node another one, of the same name or a free one, with the edges it has.
    pub fn redefine(&mut self, id: WorkId, def: Arc<Node>) {
        if let Some(node) = self.nodes.get_mut(id.index()).and_then(Option::as_mut) {
            self.by_name.remove(&node.def.name);
            self.by_name.insert(def.name.clone(), id);
            node.def = def;
            node.origin = None;
        }
    }

    /// Makes the node one of another op with other inputs; name, devices, control inputs and outputs stay.
    ///
    /// # Errors
    /// There is no such op.
    pub fn turn_into(
        &mut self,
        id: WorkId,
        op: &str,
        attrs: BTreeMap<String, Attr>,
        inputs: SmallVec<[Source; 3]>,
    ) -> Result<(), CompileError> {
        let Some(known) = ops::lookup(op) else {
            return Err(CompileError::Pass { pass: "turn_into", problem: format!("unknown op {op}") });
        };
        let Some(node) = self.get(id) else { return Ok(()) };
        let mut def = Node { op: known, attrs, ..Node::clone(&node.def) };
        for attr in &known.attrs {
            if let (false, Some(default)) = (def.attrs.contains_key(attr.name), &attr.default) {
                def.attrs.insert(attr.name.to_owned(), default.clone());
            }
        }
        def.inputs = vec![Output { node: def.id, port: 0 }; inputs.len()];
        self.redefine(id, Arc::new(def));
        if let Some(node) = self.get_mut(id) {
            node.inputs = inputs;
        }
        Ok(())
    }

    /// Takes a node out. What still refers to it shows in [`super::passes::verify`].
    pub fn remove(&mut self, id: WorkId) -> Option<WorkNode> {
        let node = self.nodes.get_mut(id.index())?.take()?;
        if self.by_name.get(&node.def.name) == Some(&id) {
            self.by_name.remove(&node.def.name);
        }
        Some(node)
    }

    /// `name`, or where a node has it `name_1`, `name_2`, ...
    pub fn free_name(&self, name: &str) -> Arc<str> {
        if !self.by_name.contains_key(name) {
            return name.into();
        }
        let mut n = 1usize;
        loop {
            let candidate = format!("{name}_{n}");
            if !self.by_name.contains_key(candidate.as_str()) {
                return candidate.into();
            }
            n += 1;
        }
    }

    /// Lets input `i` of a node come from elsewhere.
    pub fn set_input(&mut self, node: WorkId, i: usize, source: Source) {
        if let Some(input) = self.get_mut(node).and_then(|n| n.inputs.get_mut(i)) {
            *input = source;
        }
    }

    /// Lets `node` run after `before`.
    pub fn add_control(&mut self, node: WorkId, before: WorkId) {
        if let Some(n) = self.get_mut(node)
            && !n.control_inputs.contains(&before)
        {
            n.control_inputs.push(before);
        }
    }

    /// Whether the edge from `from` into `to` is a loop's back edge: nothing waits for it in the first iteration.
    pub fn is_back_edge(&self, from: WorkId, to: WorkId) -> bool {
        self.kind(from).closes_loop(self.kind(to))
    }

    /// All nodes, each after those that it waits for, transfers included, back edges of loops aside; otherwise by number.
    ///
    /// # Errors
    /// Nodes wait for each other.
    pub fn order(&self) -> Result<Vec<WorkId>, CompileError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.len());
        let mut stack = Vec::new();
        for (root, _) in self.iter() {
            stack.push(root);
            // Depth first without recursion: a node is left when it comes up again.
            while let Some(&id) = stack.last() {
                let Some(node) = self.get(id).filter(|_| marks[id.index()] != Mark::Done) else {
                    stack.pop();
                    continue;
                };
                if marks[id.index()] == Mark::Open {
                    marks[id.index()] = Mark::Done;
                    order.push(id);
                    stack.pop();
                    continue;
                }
                marks[id.index()] = Mark::Open;
                let sender = self.senders.get(&id).copied();
                for before in node.before().chain(sender).filter(|before| !self.is_back_edge(*before, id)) {
                    match marks.get(before.index()) {
                        Some(Mark::New) => stack.push(before),
                        Some(Mark::Open) => return Err(CompileError::Cycle { node: node.name().to_string() }),
                        Some(Mark::Done) | None => {}
                    }
                }
            }
        }
        Ok(order)
    }

    /// Who uses what, as it is now.
    pub fn uses(&self) -> Uses {
        Uses::of(self)
    }

    /// Removes the nodes that neither a fetch nor a target needs; gives their number.
    pub fn sweep(&mut self) -> usize {
        let mut is_needed = vec![false; self.nodes.len()];
        let fetched = self.fetches.iter().filter_map(|source| source.node());
        let mut stack: Vec<WorkId> = fetched.chain(self.targets.iter().copied()).collect();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut is_needed[id.index()], true)
                && let Some(node) = self.get(id)
            {
                stack.extend(node.before());
            }
        }
        let unneeded: Vec<WorkId> = self.iter().map(|(id, _)| id).filter(|id| !is_needed[id.index()]).collect();
        unneeded.iter().filter(|id| self.remove(**id).is_some()).count()
    }
}

/// The consumers of every node, grouped: a snapshot.
pub struct Uses {
    first: Vec<u32>,
    uses: Vec<Use>,
    is_fetched: Vec<bool>,
}

/// A use of a node's output, or of its having run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The node that uses it.
    pub consumer: WorkId,
    /// The consumer's input and the producer's output; `None`: a control edge.
    pub edge: Option<(u32, u32)>,
}

impl Uses {
    fn of(graph: &WorkGraph) -> Uses {
        let mut first = vec![0u32; graph.nodes.len() + 1];
        for (_, node) in graph.iter() {
            node.before().for_each(|before| first[before.index() + 1] += 1);
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut next = first.clone();
        let none = Use { consumer: WorkId(0), edge: None };
        let mut uses = vec![none; first.last().copied().unwrap_or(0) as usize];
        let mut put = |from: WorkId, one: Use| {
            uses[next[from.index()] as usize] = one;
            next[from.index()] += 1;
        };
        for (consumer, node) in graph.iter() {
            for (i, source) in node.inputs.iter().enumerate() {
                if let Source::Port(from, port) = source {
                    put(*from, Use { consumer, edge: Some((i as u32, *port)) });
                }
            }
            node.control_inputs.iter().for_each(|from| put(*from, Use { consumer, edge: None }));
        }
        let mut is_fetched = vec![false; graph.nodes.len()];
        graph.fetches.iter().filter_map(|source| source.node()).for_each(|id| is_fetched[id.index()] = true);
        graph.targets.iter().for_each(|id| is_fetched[id.index()] = true);
        Uses { first, uses, is_fetched }
    }

    /// The uses of a node's outputs and of its having run.
    pub fn of_node(&self, id: WorkId) -> &[Use] {
        &self.uses[self.first[id.index()] as usize..self.first[id.index() + 1] as usize]
    }

    /// Whether the node is a target, or one of its outputs is fetched.
    pub fn is_wanted(&self, id: WorkId) -> bool {
        self.is_fetched[id.index()]
    }
}

/// The two ends of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The `_Send`.
    pub send: WorkId,
    /// The `_Recv`.
    pub recv: WorkId,
}
