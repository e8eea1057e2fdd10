//! The tables of frames and stacks, each stored once: a stack is its caller's stack and one more frame.

use events::meta::Entry;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;

/// The caller of an outermost frame.
pub(crate) const ROOT: u32 = u32::MAX;
/// The most frames, and the most stacks, of a recording; further frames are left out of stacks and counted.
const MAX_ROWS: usize = 1 << 21;

/// A table of distinct keys by row.
type Rows<K> = IndexSet<K, FxBuildHasher>;

#[derive(Default)]
pub(crate) struct Stacks {
    /// The module's row and the address of each frame.
    frames: Rows<(u32, u64)>,
    /// The caller's stack and the frame of each stack.
    stacks: Rows<(u32, u32)>,
    /// Entries that are not in the meta file yet.
    new: Vec<Entry>,
    /// The number of frames that were left out of stacks because a table was full.
    pub(crate) n_cut: u64,
}

/// Returns the row of a key, and whether the key is new; `None` where the table has no room for a new key.
fn row<K: Hash + Eq>(rows: &mut Rows<K>, key: K) -> Option<(u32, bool)> {
    let (row, is_new) = if rows.len() < MAX_ROWS { rows.insert_full(key) } else { (rows.get_index_of(&key)?, false) };
    Some((row as u32, is_new))
}

impl Stacks {
    /// Returns the row of the frame at an address of a module; `None` where the table is full.
    pub(crate) fn frame(&mut self, module: u32, address: u64, path: &str) -> Option<u32> {
        let (id, is_new) = row(&mut self.frames, (module, address))?;
        self.new.extend(is_new.then(|| Entry::Frame { id, address, module: path.to_owned() }));
        Some(id)
    }

    /// Returns the row of the stack of a caller's stack and one more frame; `None` where the table is full.
    pub(crate) fn push(&mut self, parent: u32, frame: u32) -> Option<u32> {
        let (id, is_new) = row(&mut self.stacks, (parent, frame))?;
        self.new.extend(is_new.then_some(Entry::Stack { id, parent, frame }));
        Some(id)
    }

    /// Takes the frames and stacks that are not in the meta file yet.
    pub(crate) fn take_new(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.new)
    }

    /// Iterates over the frames: the module's row, the address, the frame's id.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u32, u64, u32)> + '_ {
        (0..).zip(&self.frames).map(|(id, (module, address))| (*module, *address, id))
    }
}
