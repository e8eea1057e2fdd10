//! Reads stacks: lists of dictionaries with `name`, `filename` and `line`.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::{
    fields::{Budget, Fields},
    stacks::{FrameId, StackId, Stacks, StoredFrame},
    texts::Texts,
    tree::Tree,
    value::Value,
};

/// Collects the stacks of a tree. A list that many events refer to is read once.
pub(crate) struct StackReader {
    fields: Fields<3>,
    frames: Vec<StoredFrame>,
    items: Vec<FrameId>,
    ends: Vec<usize>,
    by_list: FxHashMap<Value, StackId>,
    by_dict: FxHashMap<Value, FrameId>,
    frame_numbers: HashMap<StoredFrame, FrameId>,
    stack_numbers: HashMap<Box<[FrameId]>, StackId>,
}

impl StackReader {
    /// The stack without frames.
    pub const EMPTY: StackId = StackId(0);

    pub fn new(tree: &Tree) -> Self {
        Self {
            fields: Fields::new(tree, ["name", "filename", "line"]),
            frames: Vec::new(),
            items: Vec::new(),
            ends: vec![0],
            by_list: FxHashMap::default(),
            by_dict: FxHashMap::default(),
            frame_numbers: HashMap::new(),
            stack_numbers: HashMap::from([(Box::default(), Self::EMPTY)]),
        }
    }

    /// The stack of a list of frames; the empty one where it is no list.
    pub fn read(&mut self, tree: &Tree, list: Value, budget: &mut Budget) -> StackId {
        if let Some(id) = self.by_list.get(&list) {
            return *id;
        }
        let Some(items) = tree.list(list) else { return Self::EMPTY };
        let frames: Box<[FrameId]> =
            budget.take(items).iter().filter_map(|item| self.read_frame(tree, *item)).collect();
        let id = match self.stack_numbers.get(&frames) {
            Some(id) => *id,
            None => {
                let id = StackId(self.ends.len() as u32);
                self.items.extend(&frames);
                self.ends.push(self.items.len());
                self.stack_numbers.insert(frames, id);
                id
            }
        };
        self.by_list.insert(list, id);
        id
    }

    fn read_frame(&mut self, tree: &Tree, dict: Value) -> Option<FrameId> {
        if let Some(id) = self.by_dict.get(&dict) {
            return Some(*id);
        }
        let [function, file, line] = self.fields.of(tree, dict)?;
        let text = |value| tree.text_id(value).unwrap_or(Texts::EMPTY);
        let line = tree.int(line).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let frame = StoredFrame { function: text(function), file: text(file), line };
        let id = *self.frame_numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            FrameId(self.frames.len() as u32 - 1)
        });
        self.by_dict.insert(dict, id);
        Some(id)
    }

    /// The stacks, with the texts that they refer to.
    pub fn finish(self, texts: Texts) -> Stacks {
        Stacks { texts, frames: self.frames, items: self.items, ends: self.ends }
    }
}
