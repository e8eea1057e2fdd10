//! Call stacks of samples: each once, as its caller's stack and one more frame.

use rustc_hash::FxHashMap;

/// No caller; no stack.
pub const NO_STACK: u32 = u32::MAX;

/// A function, or one inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled.
    pub name: String,
    /// Its source file, empty where unknown.
    pub file: String,
    /// The line, 0 where unknown.
    pub line: u32,
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file of code, `[kernel]`, or empty.
    pub module: String,
    /// The address in it.
    pub address: u64,
    /// Its functions, the one that was called first, then those inlined into it; empty where no name is known.
    pub functions: Vec<Function>,
}

impl Frame {
    /// What to call it: its innermost function, else the place.
    #[must_use]
    pub fn name(&self) -> String {
        match self.functions.last() {
            Some(function) => function.name.clone(),
            None => {
                let module = self.module.rsplit('/').next().unwrap_or_default();
                format!("{}+{:#x}", if module.is_empty() { "?" } else { module }, self.address)
            }
        }
    }
}

/// A stack: the stack of its caller and one more frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Row of the caller's stack, or [`NO_STACK`].
    pub parent: u32,
    /// Row of the frames.
    pub frame: u32,
}

/// Rows for what producers number themselves.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    frame_of: FxHashMap<(u32, u32), u32>,
    stack_of: FxHashMap<(u32, u32), u32>,
}

impl Stacks {
    /// Those of a sealed trace, which no producer numbers any more.
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

    /// A stack whose caller or frame is missing (damage) ends there.
    pub(crate) fn add_stack(&mut self, pid: u32, id: u32, parent: u32, frame: u32) {
        let Some(frame) = self.frame_of.get(&(pid, frame)).copied() else { return };
        let parent = self.row(pid, parent);
        let row = self.stacks.len() as u32;
        self.stacks.push(Stack { parent, frame });
        self.stack_of.insert((pid, id), row);
    }

    pub(crate) fn row(&self, pid: u32, id: u32) -> u32 {
        self.stack_of.get(&(pid, id)).copied().unwrap_or(NO_STACK)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>() + self.stacks.capacity() * size_of::<Stack>()
    }
}
