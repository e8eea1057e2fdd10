//! Pairs the points of flows by their ids.

use super::ids::{SiteIdx, TrackIdx};
use super::sites::Sites;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use trace_model::{Event, EventKind};

/// The part of a point in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlowPart {
    /// The flow begins here.
    Start,
    /// An arrow ends here and the next one begins.
    Step,
    /// The last arrow ends here.
    Finish,
}

/// Points with the same key belong to one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FlowKey {
    /// Equal ids in different spaces are different.
    pub(super) space: u64,
    pub(super) id: u64,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    key: FlowKey,
    time: i64,
    part: FlowPart,
    track: TrackIdx,
    /// Name of the flow.
    site: SiteIdx,
}

/// A point whose flow has no other point in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnpairedPoint {
    pub(super) id: u64,
    pub(super) part: FlowPart,
    pub(super) track: TrackIdx,
    pub(super) time: i64,
    /// Name of the flow.
    pub(super) site: SiteIdx,
    /// The id space, if other files of the job share it.
    pub(super) space: Option<u64>,
}

/// Points in the order of the file.
#[derive(Default)]
pub(super) struct Flows {
    points: Vec<Point>,
    spaces: IndexSet<Box<[u8]>, FxBuildHasher>,
    /// Hashes of the texts of spaces that the files of a job share.
    shared: FxHashMap<u64, u64>,
    /// Points without another one, set by [`Flows::finish`].
    pub(super) lone: Vec<UnpairedPoint>,
}

impl Flows {
    /// The number of a space of ids, which its text (category, name, scope) identifies.
    pub(super) fn space(&mut self, text: &[u8]) -> u64 {
        let space = self.spaces.get_index_of(text);
        space.unwrap_or_else(|| self.spaces.insert_full(text.into()).0) as u64
    }

    /// As [`Flows::space`], for a space whose ids mean the same in all files of a job.
    pub(super) fn shared_space(&mut self, text: &[u8]) -> u64 {
        let space = self.space(text);
        self.shared.entry(space).or_insert_with(|| FxBuildHasher.hash_one(text));
        space
    }

    pub(super) fn point(&mut self, key: FlowKey, part: FlowPart, track: TrackIdx, time: i64, site: SiteIdx) {
        self.points.push(Point { key, time, part, track, site });
    }

    /// The ends of arrows, two for each, with numbers after `correlations`. Points with one id are chained from its
    /// start on, in order of time; if the id starts again, another flow begins. Points without another one are
    /// [lone](Flows::lone).
    pub(super) fn finish(&mut self, correlations: &mut u32, sites: &mut Sites) -> Vec<(TrackIdx, Event)> {
        let mut points = std::mem::take(&mut self.points);
        // Stable: the file's order decides for points that are equal in all three.
        points.sort_by_key(|p| (p.key, p.time, p.part));
        let mut ends = Vec::new();
        let mut site_for: FxHashMap<SiteIdx, SiteIdx> = FxHashMap::default();
        for group in points.chunk_by(|a, b| a.key == b.key) {
            for chain in chains(group) {
                let mut tail = chain[0];
                if chain.len() == 1 {
                    let Point { key, time, part, track, site } = tail;
                    let space = self.shared.get(&key.space).copied();
                    self.lone.push(UnpairedPoint { id: key.id, part, track, time, site, space });
                }
                for head in &chain[1..] {
                    let site = *site_for.entry(tail.site).or_insert_with(|| {
                        let name = sites.name(tail.site).to_owned();
                        sites.get_or_add("edge", &name)
                    });
                    *correlations = correlations.wrapping_add(1);
                    for (end, kind) in [(&tail, EventKind::FlowOut), (head, EventKind::FlowIn)] {
                        ends.push((end.track, Event { correlation: *correlations, ..site.at(kind, end.time) }));
                    }
                    // Several finishes have the same tail: the launch of a graph has many kernels.
                    if head.part == FlowPart::Step {
                        tail = *head;
                    }
                }
            }
        }
        ends
    }
}

/// Splits the points with one id into chains, each beginning with a start if there is any. Points before the first
/// start belong to it, since a device's clock may be behind its host's.
fn chains(group: &[Point]) -> Vec<Vec<Point>> {
    let mut starts = group.iter().enumerate().filter(|(_, p)| p.part == FlowPart::Start).map(|(i, _)| i);
    let Some(first) = starts.next() else {
        return without_start(group);
    };
    let bounds: Vec<usize> = starts.chain([group.len()]).collect();
    let mut chains = Vec::with_capacity(bounds.len());
    let mut from = first;
    for to in bounds {
        let mut chain = vec![group[from]];
        if from == first {
            chain.extend(&group[..first]);
        }
        chain.extend(&group[from + 1..to]);
        chains.push(chain);
        from = to;
    }
    chains
}

/// The chains of points without a start: each ends with a finish.
fn without_start(group: &[Point]) -> Vec<Vec<Point>> {
    let mut chains: Vec<Vec<Point>> =
        group.split_inclusive(|p| p.part == FlowPart::Finish).map(<[Point]>::to_vec).collect();
    // A lone finish before a chain that lacks one belongs to it: the clocks disagree.
    let is_early = chains.len() > 1
        && chains[0].len() == 1
        && chains.last().and_then(|c| c.last()).is_some_and(|p| p.part == FlowPart::Step);
    if is_early {
        let finish = chains.remove(0);
        if let Some(last) = chains.last_mut() {
            last.extend(finish);
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points such as `s7@1` (part, id, time); gives the arrows as `1>3` and the number of lonely ends.
    fn arrows(text: &str) -> (String, u64) {
        let (mut flows, mut sites) = (Flows::default(), Sites::default());
        for word in text.split_whitespace() {
            let (id, time) = word[1..].split_once('@').unwrap();
            let part = [FlowPart::Start, FlowPart::Step, FlowPart::Finish]["stf".find(&word[..1]).unwrap()];
            let key = FlowKey { space: 0, id: id.parse().unwrap() };
            flows.point(key, part, 0, time.parse().unwrap(), SiteIdx::NONE);
        }
        let mut correlations = 0;
        let ends = flows.finish(&mut correlations, &mut sites);
        let shown = ends.chunks(2).map(|pair| {
            assert_eq!(pair[0].1.correlation, pair[1].1.correlation);
            format!("{}>{}", pair[0].1.start, pair[1].1.start)
        });
        (shown.collect::<Vec<_>>().join(" "), flows.lone.len() as u64)
    }

    #[test]
    fn points_pair_by_id_and_never_by_order() {
        assert_eq!(arrows("f2@5 s1@1 f1@9 s2@3"), ("1>9 3>5".into(), 0));
        assert_eq!(arrows("s1@1 t1@4 t1@2 f1@9"), ("1>2 2>4 4>9".into(), 0));
        assert_eq!(arrows("s1@10 f1@8"), ("10>8".into(), 0), "a kernel before its launch");
        assert_eq!(arrows("s1@1 f1@2 s1@5 f1@6"), ("1>2 5>6".into(), 0), "an id used again");
        assert_eq!(arrows("s1@1 f1@2 f1@3"), ("1>2 1>3".into(), 0), "one launch of two kernels");
        assert_eq!(arrows("t1@1 t1@2 f1@3 t1@7 f1@9"), ("1>2 2>3 7>9".into(), 0), "no starts, as Perfetto has it");
        assert_eq!(arrows("f1@1 t1@2"), ("2>1".into(), 0));
        assert_eq!(arrows("f3@1 s4@1 f3@2"), (String::new(), 3));
    }
}
