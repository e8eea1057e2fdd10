//! Interned names: written once, and referred to by number from then on.

use formats::perfetto::{InternedData, InternedName};
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(super) struct InternTable {
    names: FxHashMap<Box<str>, u64>,
    categories: FxHashMap<Box<str>, u64>,
    annotations: FxHashMap<Box<str>, u64>,
    new: InternedData,
    has_begun: bool,
}

impl InternTable {
    /// Returns whether this is the first call, that is the first packet.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// The names that the next packet has to define.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let new = &self.new;
        let lists = [&new.event_names, &new.event_categories, &new.debug_annotation_names];
        lists.iter().any(|list| !list.is_empty()).then(|| std::mem::take(&mut self.new))
    }

    pub(super) fn name(&mut self, name: &str) -> u64 {
        intern(&mut self.names, name, &mut self.new.event_names)
    }

    pub(super) fn category(&mut self, name: &str) -> u64 {
        intern(&mut self.categories, name, &mut self.new.event_categories)
    }

    pub(super) fn annotation(&mut self, name: &str) -> u64 {
        intern(&mut self.annotations, name, &mut self.new.debug_annotation_names)
    }
}

/// The number of a name; a name without one gets the next, and is added to `new`.
fn intern(numbers: &mut FxHashMap<Box<str>, u64>, name: &str, new: &mut Vec<InternedName>) -> u64 {
    if let Some(iid) = numbers.get(name) {
        return *iid;
    }
    // 0 means that there is no name.
    let iid = numbers.len() as u64 + 1;
    numbers.insert(name.into(), iid);
    new.push(InternedName { iid: Some(iid), name: Some(name.to_owned()) });
    iid
}
