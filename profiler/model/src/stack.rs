//! Call stacks of samples: each once, as its caller's stack and one more frame.

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
