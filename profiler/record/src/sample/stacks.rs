//! Each frame and each stack once: a stack is its caller's stack and one more frame.

use events::meta::Entry;
use rustc_hash::FxHashMap;

/// No caller.
pub(crate) const ROOT: u32 = u32::MAX;
/// Different frames and different stacks of a recording; beyond it a stack ends at its last known part (counted).
const MAX_ROWS: usize = 1 << 21;

#[derive(Default)]
pub(crate) struct Stacks {
    frames: FxHashMap<(u32, u64), u32>,
    stacks: FxHashMap<(u32, u32), u32>,
    /// What was added since they were last taken.
    new: Vec<Entry>,
    pub(crate) cut: u64,
}

impl Stacks {
    /// The frame at an address of a module.
    pub(crate) fn frame(&mut self, module: u32, address: u64, path: &str) -> Option<u32> {
        if let Some(id) = self.frames.get(&(module, address)) {
            return Some(*id);
        }
        if self.frames.len() >= MAX_ROWS {
            return None;
        }
        let id = self.frames.len() as u32;
        self.frames.insert((module, address), id);
        self.new.push(Entry::Frame { id, address, module: path.to_owned() });
        Some(id)
    }

    /// The stack of a caller's stack and one more frame.
    pub(crate) fn push(&mut self, parent: u32, frame: u32) -> Option<u32> {
        if let Some(id) = self.stacks.get(&(parent, frame)) {
            return Some(*id);
        }
        if self.stacks.len() >= MAX_ROWS {
            return None;
        }
        let id = self.stacks.len() as u32;
        self.stacks.insert((parent, frame), id);
        self.new.push(Entry::Stack { id, parent, frame });
        Some(id)
    }

    /// Frames and stacks that the trace does not have yet.
    pub(crate) fn take_new(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.new)
    }

    /// Every frame: module's row, address, id.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u32, u64, u32)> + '_ {
        self.frames.iter().map(|(key, id)| (key.0, key.1, *id))
    }
}
