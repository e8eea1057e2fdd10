//! Call stacks of samples. A stack is its caller's stack and one more frame.

/// The row that stands for no caller, or no stack.
pub const NO_STACK: u32 = u32::MAX;

/// A function, or one inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Demangled name.
    pub name: String,
    /// Source file, empty if unknown.
    pub file: String,
    /// Line, 0 if unknown.
    pub line: u32,
}

/// A location in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The executable or library, `[kernel]`, or empty.
    pub module: String,
    /// The address in the module.
    pub address: u64,
    /// The functions at the address: the one that was called, then those inlined into it; empty if no name is known.
    pub functions: Vec<Function>,
}

impl Frame {
    /// The innermost function, else module and address.
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
