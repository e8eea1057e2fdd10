//! Which loop each node of a graph is in, found from `Enter` and `Exit` (white paper section 4.4).

use rustc_hash::FxHashMap;

use crate::compile::CompileError;
use crate::compile::{WorkGraph, WorkId};
use engine_core::graph::Attr;
use engine_core::ops::OpKind;

/// The number of a frame; 0 is outside of all loops.
pub(super) type Frame = u32;
/// Outside of all loops.
pub(super) const ROOT: Frame = 0;

/// A loop.
pub(super) struct FrameInfo {
    /// Its `frame_name`.
    pub name: String,
    /// The loop around it.
    pub parent: Frame,
    /// What says whether it goes on.
    pub condition: Option<WorkId>,
    /// Iterations that may run at once.
    pub parallel_iterations: i64,
}

/// The frames of a graph.
pub(super) struct Frames {
    of_node: Vec<Frame>,
    pub frames: Vec<FrameInfo>,
}

impl Frames {
    /// # Errors
    /// Nodes wait for each other.
    pub fn of(graph: &WorkGraph) -> Result<Frames, CompileError> {
        let root = FrameInfo { name: String::new(), parent: ROOT, condition: None, parallel_iterations: 1 };
        let mut frames = Frames { of_node: vec![ROOT; graph.n_ids()], frames: vec![root] };
        let mut by_name: FxHashMap<(Frame, String), Frame> = FxHashMap::default();
        for id in graph.order()? {
            let Some(node) = graph.get(id) else { continue };
            let before = node.before().filter(|before| !graph.is_back_edge(*before, id));
            // Constants of a loop may be outside of it; whatever is inside decides.
            let around = before.map(|before| frames.of_output(graph, before)).max_by_key(|frame| frames.depth(*frame));
            let around = around.unwrap_or(ROOT);
            let frame = match node.kind() {
                OpKind::Enter => {
                    let name = match node.def.attrs.get("frame_name") {
                        Some(Attr::Str(name)) => String::from_utf8_lossy(name).into_owned(),
                        _ => String::new(),
                    };
                    let next = frames.frames.len() as Frame;
                    let found = *by_name.entry((around, name.clone())).or_insert(next);
                    if found == next {
                        let parallel_iterations = match node.def.attrs.get("parallel_iterations") {
                            Some(Attr::Int(n)) => *n,
                            _ => 10,
                        };
                        frames.frames.push(FrameInfo { name, parent: around, condition: None, parallel_iterations });
                    }
                    found
                }
                _ => around,
            };
            frames.of_node[id.index()] = frame;
            if node.kind() == OpKind::LoopCond {
                frames.frames[frame as usize].condition = Some(id);
            }
        }
        Ok(frames)
    }

    fn depth(&self, mut frame: Frame) -> usize {
        let mut depth = 0;
        while frame != ROOT {
            frame = self.frames[frame as usize].parent;
            depth += 1;
        }
        depth
    }

    /// The frame that a node runs in. An `Enter` runs in the loop that it enters.
    pub fn of_node(&self, id: WorkId) -> Frame {
        self.of_node.get(id.index()).copied().unwrap_or(ROOT)
    }

    /// The frame that a node's outputs, and control edges from it, are in.
    pub fn of_output(&self, graph: &WorkGraph, id: WorkId) -> Frame {
        let frame = self.of_node(id);
        if graph.kind(id) == OpKind::Exit { self.frames[frame as usize].parent } else { frame }
    }

    /// Notes the frame of a node that was added.
    pub fn put(&mut self, id: WorkId, frame: Frame) {
        if self.of_node.len() <= id.index() {
            self.of_node.resize(id.index() + 1, ROOT);
        }
        self.of_node[id.index()] = frame;
    }
}
