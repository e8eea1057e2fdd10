//! Names that are written once, and then reported by number.

use formats::perfetto::{InternedData, InternedName};
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(super) struct Interned {
    names: FxHashMap<Box<str>, u64>,
    categories: FxHashMap<Box<str>, u64>,
    annotations: FxHashMap<Box<str>, u64>,
    new: InternedData,
    has_begun: bool,
}

impl Interned {
    /// Whether this is the first packet.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// What has to stand in the next packet.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let new = &self.new;
        let lists = [&new.event_names, &new.event_categories, &new.debug_annotation_names];
        lists.iter().any(|list| !list.is_empty()).then(|| std::mem::take(&mut self.new))
    }

    pub(super) fn name(&mut self, name: &str) -> u64 {
        number(&mut self.names, name, &mut self.new.event_names)
    }

    pub(super) fn category(&mut self, name: &str) -> u64 {
        number(&mut self.categories, name, &mut self.new.event_categories)
    }

    pub(super) fn annotation(&mut self, name: &str) -> u64 {
        number(&mut self.annotations, name, &mut self.new.debug_annotation_names)
    }
}

fn number(known: &mut FxHashMap<Box<str>, u64>, name: &str, new: &mut Vec<InternedName>) -> u64 {
    if let Some(iid) = known.get(name) {
        return *iid;
    }
    // 0 means none.
    let iid = known.len() as u64 + 1;
    known.insert(name.into(), iid);
    new.push(InternedName { iid: Some(iid), name: Some(name.to_owned()) });
    iid
}
