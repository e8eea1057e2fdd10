//! Which values are dead together: fused, they must be, for a node runs either whole or not at all.
//!
//! A value is live where all the branches that it came through are taken: each is a tag, and a value's tags are those of
//! all that its node waits for. Values with equal tags are dead together. A merge's value has a tag of its own, a loop
//! variable's that of its loop.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::{Source, WorkGraph, WorkId};
use crate::compile::CompileError;
use engine_core::graph::Attr;
use engine_core::ops::OpKind as K;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Tag {
    /// The side of the switches on a predicate.
    Branch(Source, u32),
    /// The value of a node that says itself when it is live.
    Own(WorkId),
    /// The iterations of a loop.
    Frame(String),
}

/// A set of tags, by number; 0 is empty.
pub(super) type TagSet = u32;

/// The tags of all nodes.
pub(super) struct Liveness {
    of: Vec<TagSet>,
    sets: Vec<Vec<Tag>>,
    by_set: FxHashMap<Vec<Tag>, TagSet>,
    unions: BTreeMap<(TagSet, TagSet), TagSet>,
}

impl Liveness {
    /// Of a graph in an order in which each node comes after those that it waits for.
    pub fn of(graph: &WorkGraph, order: &[WorkId]) -> Result<Liveness, CompileError> {
        let (sets, by_set) = (vec![Vec::new()], FxHashMap::from_iter([(Vec::new(), 0)]));
        let mut this = Liveness { of: vec![0; graph.n_ids()], sets, by_set, unions: BTreeMap::new() };
        for id in order {
            this.of[id.index()] = this.of_node(graph, *id);
        }
        Ok(this)
    }

    /// The tags of a node's outputs, a switch's aside.
    pub fn get(&self, id: WorkId) -> TagSet {
        self.of[id.index()]
    }

    fn of_node(&mut self, graph: &WorkGraph, id: WorkId) -> TagSet {
        let Some(node) = graph.get(id) else { return 0 };
        let own = match node.kind() {
            K::ControlTrigger => return 0,
            K::Exit => Some(Tag::Own(id)),
            K::Merge if !node.inputs.iter().any(|s| s.node().is_some_and(|n| graph.is_back_edge(n, id))) => {
                Some(Tag::Own(id))
            }
            K::Recv => match graph.senders.get(&id) {
                Some(sender) => return self.get(*sender),
                None => Some(Tag::Own(id)),
            },
            K::Merge => frame_of(graph, id).map(Tag::Frame).or(Some(Tag::Own(id))),
            _ => None,
        };
        let is_loop = matches!(own, Some(Tag::Frame(_)));
        let mut all = own.map_or(0, |tag| self.set(vec![tag]));
        if all != 0 && !is_loop {
            return all;
        }
        for source in &node.inputs {
            if !source.node().is_some_and(|from| graph.is_back_edge(from, id)) {
                let of = self.of_source(graph, *source);
                all = self.union(all, of);
            }
        }
        for before in &node.control_inputs {
            all = self.union(all, self.get(*before));
        }
        all
    }

    fn of_source(&mut self, graph: &WorkGraph, source: Source) -> TagSet {
        let Source::Port(id, port) = source else { return 0 };
        let of = self.get(id);
        match graph.get(id).filter(|node| node.kind().is_switch()).and_then(|node| node.inputs.get(1)) {
            Some(predicate) => {
                let branch = self.set(vec![Tag::Branch(*predicate, port)]);
                self.union(of, branch)
            }
            None => of,
        }
    }

    fn union(&mut self, a: TagSet, b: TagSet) -> TagSet {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let mut tags = [self.sets[a as usize].as_slice(), &self.sets[b as usize]].concat();
        tags.sort();
        tags.dedup();
        let set = self.set(tags);
        self.unions.insert(key, set);
        set
    }

    fn set(&mut self, tags: Vec<Tag>) -> TagSet {
        if let Some(known) = self.by_set.get(&tags) {
            return *known;
        }
        let set = self.sets.len() as TagSet;
        self.sets.push(tags.clone());
        self.by_set.insert(tags, set);
        set
    }
}

/// The frame that a loop's merge is in.
fn frame_of(graph: &WorkGraph, merge: WorkId) -> Option<String> {
    let enters = graph.get(merge)?.inputs.iter().filter_map(|source| graph.get(source.node()?));
    enters
        .filter_map(|enter| match enter.def.attrs.get("frame_name") {
            Some(Attr::Str(name)) => Some(String::from_utf8_lossy(name).into_owned()),
            _ => None,
        })
        .next()
}
