//! Stacks of a dump and their frames, each stored once.

use crate::texts::{TextId, Texts};

/// A stack of a dump. The first one has no frames: it stands for a stack that was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub(crate) u32);

/// A frame of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub(crate) u32);

/// A frame: a function and where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame<'a> {
    /// The function, as Python or the unwinder of C++ calls it.
    pub function: &'a str,
    /// The path of its source.
    pub file: &'a str,
    /// The line that it was in, counted from 1; 0 where unknown.
    pub line: u32,
}

/// A frame as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StoredFrame {
    pub function: TextId,
    pub file: TextId,
    pub line: u32,
}

/// The stacks, frames and texts of a dump.
#[derive(Debug)]
pub struct Stacks {
    pub(crate) texts: Texts,
    pub(crate) frames: Vec<StoredFrame>,
    /// The frames of each stack, one after the other.
    pub(crate) items: Vec<FrameId>,
    /// Where each stack ends among the items; it begins where the one before it ends.
    pub(crate) ends: Vec<usize>,
}

/// Parts of the paths of frames that belong to PyTorch and to Python.
const TORCH: &[&str] = &["/torch/", "torch/csrc/", "aten/src/", "<frozen "];
const LIBRARIES: &[&str] = &["/site-packages/", "/dist-packages/", "/lib/python3"];

impl Stacks {
    /// A text of the dump.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id)
    }

    /// A frame.
    pub fn frame(&self, id: FrameId) -> Frame<'_> {
        match self.frames.get(id.0 as usize) {
            Some(frame) => Frame { function: self.text(frame.function), file: self.text(frame.file), line: frame.line },
            None => Frame { function: "", file: "", line: 0 },
        }
    }

    /// The frames of a stack, the innermost one first.
    pub fn frames(&self, id: StackId) -> &[FrameId] {
        let number = id.0 as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.items.get(start..*end)).unwrap_or_default()
    }

    /// The innermost frame of the user's own code: of Python, and outside of PyTorch, of Python's library and of installed
    /// packages. Where there is none, the innermost one outside of PyTorch, else the innermost one at all.
    pub fn user_frame(&self, id: StackId) -> Option<FrameId> {
        let frames = self.frames(id);
        let is_outside = |id: &&FrameId, parts: &[&str]| {
            let file = self.frame(**id).file;
            file.ends_with(".py") && !parts.iter().any(|part| file.contains(part))
        };
        let outside_torch = || frames.iter().filter(|id| is_outside(id, TORCH));
        let user = outside_torch().find(|id| is_outside(id, LIBRARIES));
        user.or_else(|| outside_torch().next()).or(frames.first()).copied()
    }
}
