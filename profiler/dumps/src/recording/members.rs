//! The ranks of process groups, and what each recorded in them.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::model::Recording;
use crate::texts::TextId;

/// A recording with its entries by process group, so that none is looked at once for each group.
pub(super) struct Source<'a> {
    recording: &'a Recording,
    /// The indices of the entries.
    by_group: FxHashMap<&'a str, Vec<u32>>,
}

impl<'a> Source<'a> {
    pub fn new(recording: &'a Recording) -> Self {
        let mut by_id: FxHashMap<TextId, Vec<u32>> = FxHashMap::default();
        for (index, entry) in recording.entries.iter().enumerate() {
            // There are as many as values in a file: below the limit of the tree.
            by_id.entry(entry.group).or_default().push(index as u32);
        }
        let named = by_id.into_iter().map(|(id, entries)| (recording.stacks.text(id), entries));
        Self { recording, by_group: named.collect() }
    }
}

/// The groups by name and ranks, with whether the ranks are inferred.
pub(super) fn memberships<'a>(by_rank: &BTreeMap<u32, Source<'a>>) -> BTreeMap<(&'a str, Vec<u32>), bool> {
    let mut groups = BTreeMap::new();
    let mut inferred: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (rank, source) in by_rank {
        let recording = source.recording;
        let configured =
            |name: &str| recording.groups.get(name).filter(|group| group.ranks.binary_search(rank).is_ok());
        for name in source.by_group.keys().filter(|name| configured(name).is_none()) {
            inferred.entry(name).or_default().insert(*rank);
        }
        // A rank that called nothing in a group is a member nevertheless. Gloo's recorder has its groups under no name.
        for name in recording.groups.keys().filter(|name| !name.is_empty()) {
            if let Some(group) = configured(name) {
                groups.insert((name.as_str(), group.ranks.clone()), false);
            }
        }
    }
    for (name, ranks) in inferred {
        let of_name = groups.range((name, Vec::new())..).take_while(|((own, _), _)| *own == name);
        let is_part = |members: &[u32]| ranks.iter().all(|rank| members.binary_search(rank).is_ok());
        let is_known = of_name.map(|((_, members), _)| members).any(|members| is_part(members));
        if !is_known {
            groups.insert((name, ranks.into_iter().collect()), true);
        }
    }
    groups
}

/// A rank in a group.
pub(super) struct Member<'a> {
    pub rank: u32,
    pub recording: Option<&'a Recording>,
    /// The indices of its entries of the group.
    pub all: Vec<u32>,
    /// Those of its collectives, by number and part.
    pub entries: BTreeMap<(u64, u32), u32>,
    /// The number of the latest collective that it called.
    pub last: i64,
}

impl<'a> Member<'a> {
    pub fn new(rank: u32, source: Option<&Source<'a>>, name: &str, ranks: &[u32]) -> Self {
        let recording = source.map(|source| source.recording);
        let mut new = Self { rank, recording, all: Vec::new(), entries: BTreeMap::new(), last: -1 };
        let Some(source) = source else { return new };
        let configured = source.recording.groups.get(name).filter(|group| group.ranks.binary_search(&rank).is_ok());
        if configured.is_some_and(|group| group.ranks != ranks) {
            // Its group of that name is another one.
            return new;
        }
        new.all = source.by_group.get(name).cloned().unwrap_or_default();
        let mut parts: BTreeMap<u64, u32> = BTreeMap::new();
        for index in &new.all {
            let Some(entry) = source.recording.entries.get(*index as usize) else { continue };
            let status = source.recording.status.get(&entry.pg_id);
            new.last = new.last.max(status.map_or(-1, |status| status.enqueued));
            if !entry.is_p2p {
                let seq = entry.collective_seq_id;
                let part = parts.entry(seq).or_default();
                new.entries.insert((seq, *part), *index);
                *part += 1;
                new.last = new.last.max(i64::try_from(seq).unwrap_or(i64::MAX));
            }
        }
        new
    }
}
