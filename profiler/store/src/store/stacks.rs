//! Call stacks of samples. A stack is stored as its caller's stack and one more frame.

use rustc_hash::FxHashMap;
use trace_model::{Frame, Function, NO_STACK, Stack};

/// Frames and stacks, which are found by the ids that their producers use.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    /// Rows by (pid, the producer's id).
    frame_rows: FxHashMap<(u32, u32), u32>,
    stack_rows: FxHashMap<(u32, u32), u32>,
}

impl Stacks {
    /// The frames and stacks of a sealed trace, without producers' ids.
    pub(crate) fn from_rows(frames: Vec<Frame>, stacks: Vec<Stack>) -> Stacks {
        Stacks { frames, stacks, ..Stacks::default() }
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(crate) fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    pub(crate) fn add_frame(&mut self, pid: u32, id: u32, module: String, address: u64) {
        let row = self.frames.len() as u32;
        self.frames.push(Frame { module, address, functions: Vec::new() });
        self.frame_rows.insert((pid, id), row);
    }

    pub(crate) fn add_function(&mut self, pid: u32, frame: u32, function: Function) {
        if let Some(row) = self.frame_rows.get(&(pid, frame)) {
            self.frames[*row as usize].functions.push(function);
        }
    }

    /// Adds a stack. In a damaged trace, a stack whose frame is missing is left out, and a stack whose caller is
    /// missing ends with its own frame.
    pub(crate) fn add_stack(&mut self, pid: u32, id: u32, parent: u32, frame: u32) {
        let Some(frame) = self.frame_rows.get(&(pid, frame)).copied() else { return };
        let parent = self.row(pid, parent);
        let row = self.stacks.len() as u32;
        self.stacks.push(Stack { parent, frame });
        self.stack_rows.insert((pid, id), row);
    }

    /// The row of a producer's stack; [`NO_STACK`] if it is unknown.
    pub(crate) fn row(&self, pid: u32, id: u32) -> u32 {
        self.stack_rows.get(&(pid, id)).copied().unwrap_or(NO_STACK)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>() + self.stacks.capacity() * size_of::<Stack>()
    }
}
