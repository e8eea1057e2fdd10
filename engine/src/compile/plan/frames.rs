//! The frames of a plan with loops or branches: which node runs where, and what the executor must know of it.
//!
//! A static frame is a loop as the graph shows it; a step has an instance of it for each iteration of the frame around.
//! Nodes of one frame are numbered one after the other, and so are their slots, so that an iteration's tables hold
//! no more than its frame's nodes.

use rustc_hash::FxHashMap;

use crate::compile::CompileError;
use crate::compile::{Source, WorkGraph, WorkId, WorkNode};
use engine_core::graph::ControlFlowError;
use engine_core::ops::OpKind;

/// How the executor treats a node's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FlowKind {
    /// The kernel computes.
    Compute,
    /// There is nothing to compute: the node is only waited for.
    NoOp,
    /// The kernel computes, though an input be dead: it sends or receives that too.
    Transfer,
    /// The value passes as it is.
    Forward,
    Switch,
    /// A switch with as many sides as outputs.
    SwitchN,
    Merge,
    /// A `Merge` whose second output, the position of the value that came first, is used.
    IndexedMerge,
    Enter,
    ConstantEnter,
    Exit,
    NextIteration,
    ControlTrigger,
}

/// A static frame.
#[derive(Debug, Clone)]
pub(crate) struct FrameSpec {
    pub name: String,
    /// A hash of the name that is the same in every process.
    pub name_hash: u64,
    pub parent: u32,
    /// Its position among the frames that its parent's nodes enter.
    pub child_idx: u32,
    /// Frames that its nodes enter.
    pub n_children: u32,
    pub first_node: u32,
    pub n_nodes: u32,
    pub first_slot: u32,
    pub n_slots: u32,
    pub parallel_iterations: u32,
    /// `Enter`s that lead into it.
    pub n_enters: u32,
    /// Its `Exit` nodes.
    pub exits: Vec<u32>,
    /// Whether values may be left in slots when an iteration ends: something uses a variable before its loop's head.
    pub leaves_values: bool,
}

/// The control-flow part of a plan.
#[derive(Debug)]
pub(crate) struct FlowPlan {
    /// The root frame first; each comes after its parent.
    pub frames: Box<[FrameSpec]>,
    /// By node: of an `Enter` the frame, of an `Exit` its position among its frame's exits.
    pub args: Box<[u32]>,
    /// All nodes, each after those that it waits for, back edges aside.
    pub order: Box<[u32]>,
}

/// The frames of a graph, while it is compiled.
pub(super) struct Frames {
    specs: Vec<FrameSpec>,
    by_name: FxHashMap<(u32, String), u32>,
    /// By [`WorkId`]: the frame that the node runs in.
    of_node: Vec<u32>,
}

impl FlowKind {
    pub(super) fn of(node: &WorkNode) -> FlowKind {
        match node.kind() {
            OpKind::NoOp => FlowKind::NoOp,
            OpKind::Switch => FlowKind::Switch,
            OpKind::SwitchN => FlowKind::SwitchN,
            OpKind::Merge => FlowKind::Merge,
            OpKind::Enter if node.def.flag("is_constant").is_ok_and(|c| *c) => FlowKind::ConstantEnter,
            OpKind::Enter => FlowKind::Enter,
            OpKind::Exit => FlowKind::Exit,
            OpKind::NextIteration => FlowKind::NextIteration,
            OpKind::ControlTrigger => FlowKind::ControlTrigger,
            OpKind::LoopCond | OpKind::Identity => FlowKind::Forward,
            OpKind::Send | OpKind::Recv => FlowKind::Transfer,
            _ => FlowKind::Compute,
        }
    }

    pub fn is_enter(self) -> bool {
        matches!(self, FlowKind::Enter | FlowKind::ConstantEnter)
    }
}

impl Frames {
    /// The frames of the graph; `None` where it has no control flow.
    ///
    /// # Errors
    /// Nodes do not fit into frames.
    pub fn of(graph: &WorkGraph, order: &[WorkId]) -> Result<Option<Frames>, CompileError> {
        if !graph.iter().any(|(_, node)| node.kind().is_control_flow()) {
            return Ok(None);
        }
        let mut frames =
            Frames { specs: vec![FrameSpec::root()], by_name: FxHashMap::default(), of_node: vec![0; graph.n_ids()] };
        for id in order {
            if let Some(node) = graph.get(*id) {
                let fail = |source: ControlFlowError| CompileError::ControlFlow {
                    node: node.name().to_string(),
                    op: node.op(),
                    source: source.into(),
                };
                frames.place(graph, *id, node).map_err(fail)?;
            }
        }
        frames.check_back_edges(graph)?;
        for (source, name) in graph.fetches.iter().zip(&graph.fetch_names) {
            if frames.value_frame(graph, *source) != 0 {
                let source = ControlFlowError::FetchedInside;
                return Err(CompileError::ControlFlow { node: name.clone(), op: "fetch", source: source.into() });
            }
        }
        Ok(Some(frames))
    }

    /// A loop closes where it begins.
    fn check_back_edges(&self, graph: &WorkGraph) -> Result<(), CompileError> {
        for (id, node) in graph.iter().filter(|(_, node)| FlowKind::of(node) == FlowKind::Merge) {
            let mut inputs = node.inputs.iter().filter_map(|source| source.node());
            let frame = self.of_node[id.index()];
            if let Some(next) = inputs.find(|next| self.value_frame(graph, Source::Port(*next, 0)) != frame) {
                let (next_frame, frame) = (self.text(self.of_node[next.index()]), self.text(frame));
                let next = graph.get(next).map(|n| n.name().to_string()).unwrap_or_default();
                let source = ControlFlowError::WrongLoop { next, next_frame, frame };
                return Err(CompileError::ControlFlow {
                    node: node.name().to_string(),
                    op: node.op(),
                    source: source.into(),
                });
            }
        }
        Ok(())
    }

    fn place(&mut self, graph: &WorkGraph, id: WorkId, node: &WorkNode) -> Result<(), ControlFlowError> {
        let data = node.inputs.iter().copied();
        let control = node.control_inputs.iter().map(|before| Source::Port(*before, 0));
        let mut found: Option<(Source, u32)> = None;
        for source in data.chain(control) {
            if source.node().is_some_and(|from| graph.is_back_edge(from, id)) {
                continue;
            }
            let frame = self.value_frame(graph, source);
            match found {
                None => found = Some((source, frame)),
                Some((_, known)) if known == frame => {}
                Some((_, known))
                    if matches!(source, Source::Feed(_)) || matches!(found, Some((Source::Feed(_), _))) =>
                {
                    return Err(ControlFlowError::FedInside { frame: self.text(known.max(frame)) });
                }
                Some((first, known)) => {
                    let name =
                        |source: Source| source.node().and_then(|id| graph.get(id)).map(|n| n.name().to_string());
                    return Err(ControlFlowError::MixedFrames {
                        a: name(first).unwrap_or_default(),
                        a_frame: self.text(known),
                        b: name(source).unwrap_or_default(),
                        b_frame: self.text(frame),
                    });
                }
            }
        }
        let frame = found.map_or(0, |(_, frame)| frame);
        self.of_node[id.index()] = frame;
        match FlowKind::of(node) {
            FlowKind::Enter | FlowKind::ConstantEnter => self.enter(frame, node),
            FlowKind::Exit | FlowKind::NextIteration if frame == 0 => match found {
                Some((Source::Feed(_), _)) => Err(ControlFlowError::FedInside { frame: "a loop".to_owned() }),
                _ => Err(ControlFlowError::OutsideOfLoop),
            },
            _ => Ok(()),
        }
    }

    fn enter(&mut self, parent: u32, node: &WorkNode) -> Result<(), ControlFlowError> {
        let name = node.def.text("frame_name").unwrap_or_default();
        let parallel = node.def.int("parallel_iterations").copied().unwrap_or(1);
        if name.is_empty() {
            return Err(ControlFlowError::NoFrameName);
        }
        if parallel < 1 {
            return Err(ControlFlowError::ParallelIterations(parallel));
        }
        let key = (parent, name);
        let frame = match self.by_name.get(&key) {
            Some(frame) => *frame,
            None => {
                let frame = self.specs.len() as u32;
                let child_idx = self.specs[parent as usize].n_children;
                self.specs[parent as usize].n_children += 1;
                self.specs.push(FrameSpec {
                    name: key.1.clone(),
                    name_hash: hash(key.1.as_bytes()),
                    parent,
                    child_idx,
                    parallel_iterations: parallel.min(i64::from(u32::MAX)) as u32,
                    ..FrameSpec::root()
                });
                self.by_name.insert(key, frame);
                frame
            }
        };
        self.specs[frame as usize].n_enters += 1;
        Ok(())
    }

    /// The frame that a value is in.
    fn value_frame(&self, graph: &WorkGraph, source: Source) -> u32 {
        let Some((id, node)) = source.node().and_then(|id| Some((id, graph.get(id)?))) else { return 0 };
        let frame = self.of_node[id.index()];
        match FlowKind::of(node) {
            FlowKind::Enter | FlowKind::ConstantEnter => self.entered(frame, node),
            FlowKind::Exit => self.specs[frame as usize].parent,
            _ => frame,
        }
    }

    fn entered(&self, parent: u32, node: &WorkNode) -> u32 {
        let name = node.def.text("frame_name").unwrap_or_default();
        self.by_name.get(&(parent, name)).copied().unwrap_or(parent)
    }

    fn text(&self, frame: u32) -> String {
        match frame {
            0 => "the root frame".to_owned(),
            frame => format!("frame {}", self.specs[frame as usize].name),
        }
    }

    /// The nodes in the order of their numbers: by frame.
    pub fn sorted(&self, order: &[WorkId]) -> Vec<WorkId> {
        let mut sorted = order.to_vec();
        sorted.sort_by_key(|id| self.of_node[id.index()]);
        sorted
    }

    /// The plan's part, for nodes that are numbered in `sorted` order. `topological` is the order that they came in,
    /// `first_slot` each node's first slot and one more.
    pub fn finish(
        mut self,
        graph: &WorkGraph,
        topological: &[WorkId],
        sorted: &[WorkId],
        number: &[u32],
        first_slot: &[u32],
    ) -> FlowPlan {
        let mut args = Vec::with_capacity(sorted.len());
        let uses = graph.uses();
        for (i, id) in sorted.iter().enumerate() {
            let Some(node) = graph.get(*id) else { continue };
            let frame = self.of_node[id.index()];
            let kind = FlowKind::of(node);
            let arg = match kind {
                FlowKind::Enter | FlowKind::ConstantEnter => self.entered(frame, node),
                FlowKind::Exit => {
                    self.specs[frame as usize].exits.push(i as u32);
                    self.specs[frame as usize].exits.len() as u32 - 1
                }
                _ => 0,
            };
            if kind == FlowKind::Enter {
                let is_head = |u: &crate::compile::Use| graph.kind(u.consumer) == OpKind::Merge;
                self.specs[arg as usize].leaves_values |= !uses.of_node(*id).iter().all(is_head);
            }
            args.push(arg);
            let spec = &mut self.specs[frame as usize];
            if spec.n_nodes == 0 {
                (spec.first_node, spec.first_slot) = (i as u32, first_slot[i]);
            }
            spec.n_nodes = i as u32 + 1 - spec.first_node;
            spec.n_slots = first_slot[i + 1] - spec.first_slot;
        }
        let order = topological.iter().map(|id| number[id.index()]).collect();
        FlowPlan { frames: self.specs.into(), args: args.into(), order }
    }
}

impl FrameSpec {
    fn root() -> FrameSpec {
        FrameSpec {
            name: String::new(),
            name_hash: 0,
            parent: 0,
            child_idx: 0,
            n_children: 0,
            first_node: 0,
            n_nodes: 0,
            first_slot: 0,
            n_slots: 0,
            parallel_iterations: 1,
            n_enters: 0,
            exits: Vec::new(),
            leaves_values: false,
        }
    }
}

/// FNV-1a, the same everywhere and for ever: frames are known by it across processes.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// The identity of a frame's instance in a step, the same on all devices and workers; 0 is the root.
pub(crate) fn frame_id(parent: u64, iteration: u64, name_hash: u64) -> u64 {
    let mut text = [0u8; 24];
    text[..8].copy_from_slice(&parent.to_le_bytes());
    text[8..16].copy_from_slice(&iteration.to_le_bytes());
    text[16..].copy_from_slice(&name_hash.to_le_bytes());
    hash(&text).max(1)
}
