//! Call stacks of samples. A stack is its caller's stack and one more frame, and is stored once.

use rustc_hash::FxHashMap;
use trace_model::{Frame, Function, NO_STACK, Stack};

/// Frames and stacks, and the rows of the ids that producers give them.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    /// Rows by (pid, the producer's id).
    frame_of: FxHashMap<(u32, u32), u32>,
    stack_of: FxHashMap<(u32, u32), u32>,
}

impl Stacks {
    /// The frames and stacks of a sealed trace, without producers' ids.
    pub(crate) fn of_rows(frames: Vec<Frame>, stacks: Vec<Stack>) -> Stacks {
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
        self.frame_of.insert((pid, id), row);
    }

    pub(crate) fn add_function(&mut self, pid: u32, frame: u32, function: Function) {
        if let Some(row) = self.frame_of.get(&(pid, frame)) {
            self.frames[*row as usize].functions.push(function);
        }
    }

    /// Adds a stack. Because of damage the frame may be missing: the stack is left out then; or the caller: the stack
    /// ends.
    pub(crate) fn add_stack(&mut self, pid: u32, id: u32, parent: u32, frame: u32) {
        let Some(frame) = self.frame_of.get(&(pid, frame)).copied() else { return };
        let parent = self.row(pid, parent);
        let row = self.stacks.len() as u32;
        self.stacks.push(Stack { parent, frame });
        self.stack_of.insert((pid, id), row);
    }

    /// The row of a producer's stack; [`NO_STACK`] if it is unknown.
    pub(crate) fn row(&self, pid: u32, id: u32) -> u32 {
        self.stack_of.get(&(pid, id)).copied().unwrap_or(NO_STACK)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>() + self.stacks.capacity() * size_of::<Stack>()
    }
}
