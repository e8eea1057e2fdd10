//! Searches for slices: under the pointer, by name, by a query, and for the predecessor and successor of a slice.
//!
//! Walks over lanes are bounded by [`SCAN_LIMIT`] slices, so that no key press takes longer than a few milliseconds.

use std::{cmp::Reverse, ops::Range, sync::Arc};
use trace_model::{Category, SliceRef, TrackId};
use trace_store::{Lane, Residency, Store};

/// Slices that a search on the UI thread reads, at most.
const SCAN_LIMIT: usize = 1 << 20;

/// Slices near the pointer that are compared, at most.
const NEAR_LIMIT: u32 = 4096;

/// Matches of a query that are stored, at most. Further matches are only counted.
const MATCH_LIMIT: usize = 1 << 20;

/// The condition for highlighted slices; all parts that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// A node, or a scope whose nodes match.
    pub node: Option<Arc<str>>,
    /// An op type.
    pub op: Option<Arc<str>>,
    /// Part of a slice's name or op, lower case.
    pub text: String,
}

impl Query {
    /// Whether the query has no condition. Then no slice is highlighted and none is dimmed.
    pub fn is_empty(&self) -> bool {
        self.node.is_none() && self.op.is_none() && self.text.is_empty()
    }
}

/// The slices of one lane that match a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneMatches {
    pub track: u32,
    pub lane: u32,
    /// The matches in order of time.
    pub slices: Vec<SliceRef>,
}

/// The slices that match a query, by lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    pub lanes: Vec<LaneMatches>,
    /// The number of matches, including those beyond [`MATCH_LIMIT`].
    pub count: u64,
}

impl Matches {
    /// The matches in a lane, in order of time.
    pub fn of_lane(&self, track: u32, lane: u32) -> &[SliceRef] {
        self.lanes.iter().find(|l| (l.track, l.lane) == (track, lane)).map_or(&[], |l| &l.slices)
    }

    /// The first match that starts after `time`, or the last one before it.
    pub fn neighbour(&self, time: i64, forward: bool) -> Option<SliceRef> {
        let lane_neighbour = |lane: &LaneMatches| {
            if forward {
                lane.slices.get(lane.slices.partition_point(|s| s.start <= time)).copied()
            } else {
                lane.slices.partition_point(|s| s.start < time).checked_sub(1).map(|i| lane.slices[i])
            }
        };
        let candidates = self.lanes.iter().filter_map(lane_neighbour);
        if forward { candidates.min_by_key(|s| s.start) } else { candidates.max_by_key(|s| s.start) }
    }
}

/// All slices that match. Reads every slice: not for the UI thread. An empty query matches nothing.
pub fn matches(store: &Store, query: &Query) -> Matches {
    let mut out = Matches::default();
    if query.is_empty() {
        return out;
    }
    let nodes: Vec<NodeMatch> = store.nodes().iter().map(|n| node_match(query, &n.name, &n.op)).collect();
    let sites: Vec<bool> = store.sites().iter().map(|s| site_matches(query, is_in_ops(s.category), &s.name)).collect();
    let is_match = |slice: &SliceRef| {
        let is_site_match = sites.get(slice.site as usize).copied().unwrap_or(false);
        match nodes.get(slice.node as usize) {
            Some(node) => node.has_name_and_op && (node.has_text || is_site_match),
            None => query.node.is_none() && is_site_match,
        }
    };
    // In a long remote trace only resident slices are searched: no others are fetched for a search.
    let read_slice =
        if store.residency(&store.range()) == Residency::TooLarge { Lane::slice_in_memory } else { Lane::slice };
    let mut n_stored = 0;
    for track in store.tracks() {
        for (lane_idx, lane) in (0_u32..).zip(&track.lanes) {
            let mut found = LaneMatches { track: track.id.0, lane: lane_idx, slices: Vec::new() };
            for slice in (0..lane.len() as u32).filter_map(|i| read_slice(lane, i)).filter(&is_match) {
                out.count += 1;
                if n_stored < MATCH_LIMIT {
                    n_stored += 1;
                    found.slices.push(slice);
                }
            }
            if !found.slices.is_empty() {
                out.lanes.push(found);
            }
        }
    }
    out
}

/// The parts of a query that a node matches.
struct NodeMatch {
    has_name_and_op: bool,
    has_text: bool,
}

fn node_match(query: &Query, name: &str, op: &str) -> NodeMatch {
    let at_or_below = |scope: &Arc<str>| crate::selection::is_at_or_below(scope, name);
    NodeMatch {
        has_name_and_op: query.node.as_ref().is_none_or(at_or_below) && query.op.as_ref().is_none_or(|o| **o == *op),
        has_text: query.text.is_empty() || contains(name, &query.text) || contains(op, &query.text),
    }
}

/// Whether Ops lists the slices of a category by their names: what ran, other than parts of an op.
fn is_in_ops(category: Category) -> bool {
    use Category::{Collective, Copy, Input, Kernel, Launch, Op, Other, Python, Sync};
    matches!(category, Op | Launch | Kernel | Copy | Collective | Sync | Input | Python | Other)
}

fn site_matches(query: &Query, is_op: bool, name: &str) -> bool {
    query.op.as_ref().is_none_or(|o| is_op && **o == *name) && (query.text.is_empty() || contains(name, &query.text))
}

fn contains(haystack: &str, lower_needle: &str) -> bool {
    haystack.to_lowercase().contains(lower_needle)
}

/// The slice of a lane that covers `time`, or the one nearest to it within `slack_ns`.
pub fn slice_at(store: &Store, track: TrackId, lane: u32, time: i64, slack_ns: i64) -> Option<SliceRef> {
    let lane = store.track(track)?.lanes.get(lane as usize)?;
    let around = time.saturating_sub(slack_ns)..time.saturating_add(slack_ns.max(1));
    let touching = lane.touching(&around);
    let distance = |s: &SliceRef| (s.start - time).max(time - s.end + 1).max(0);
    let candidates = touching.start..touching.end.min(touching.start.saturating_add(NEAR_LIMIT));
    candidates.filter_map(|i| lane.slice(i)).min_by_key(distance)
}

/// The slice whose end made an `op` slice ready: the last slice of the node that the trace names, in the same step,
/// that ended before `slice` began.
pub fn predecessor(store: &Store, slice: &SliceRef) -> Option<SliceRef> {
    let node = slice.correlation;
    if store.category(slice) != Category::Op || node == u32::MAX {
        return None;
    }
    let step = store.step_id_of(slice);
    let is_of_node = |s: &SliceRef| s.node == node && store.category(s) == Category::Op && store.step_id_of(s) == step;
    let not_before = step.and_then(|id| store.step(id, slice.start)).map_or(i64::MIN, |s| s.start);
    let mut budget = SCAN_LIMIT;
    let mut best: Option<SliceRef> = None;
    for lane in store.tracks().iter().flat_map(|t| &t.lanes) {
        let to = lane.touching(&(i64::MIN..slice.start)).end;
        for i in (0..to).rev() {
            let Some(candidate) = lane.slice(i) else { break };
            budget = budget.saturating_sub(1);
            let too_early = best.as_ref().map_or(not_before, |b| b.end.max(not_before));
            if candidate.end < too_early || budget == 0 {
                break;
            }
            if is_of_node(&candidate) && candidate.id != slice.id {
                best = Some(candidate);
                break;
            }
        }
    }
    best
}

/// The first op slice of the same step that the end of this slice made ready.
pub fn successor(store: &Store, slice: &SliceRef) -> Option<SliceRef> {
    if store.category(slice) != Category::Op || slice.node == u32::MAX {
        return None;
    }
    let step = store.step_id_of(slice);
    let step_end = step.and_then(|id| store.step(id, slice.start)).map_or(i64::MAX, |s| s.end);
    let is_of_node =
        |s: &SliceRef| s.correlation == slice.node && store.category(s) == Category::Op && store.step_id_of(s) == step;
    let mut budget = SCAN_LIMIT;
    let mut best: Option<SliceRef> = None;
    for lane in store.tracks().iter().flat_map(|t| &t.lanes) {
        let mut candidates = lane.touching(&(slice.end..step_end)).filter_map(|i| lane.slice(i));
        let found = candidates.find(|s| {
            budget = budget.saturating_sub(1);
            budget == 0 || best.as_ref().is_some_and(|b| s.start >= b.start) || (s.start >= slice.end && is_of_node(s))
        });
        best = found.filter(|s| s.start >= slice.end && is_of_node(s)).or(best);
    }
    best
}

/// The slice of least `rank` among the first match of each lane in the order of `walk`. Reads at most [`SCAN_LIMIT`]
/// slices.
fn best_match<K: Ord, W: Iterator<Item = u32>>(
    store: &Store,
    walk: impl Fn(&Lane) -> W,
    is_match: impl Fn(&SliceRef) -> bool,
    rank: impl Fn(&SliceRef) -> K,
) -> Option<SliceRef> {
    let mut budget = SCAN_LIMIT;
    let first_of_lane = |lane: &Lane| {
        walk(lane).find_map(|i| {
            budget = budget.checked_sub(1)?;
            lane.slice(i).filter(&is_match)
        })
    };
    store.tracks().iter().flat_map(|t| &t.lanes).filter_map(first_of_lane).min_by_key(rank)
}

/// The next or previous slice with the same name on any track, by start.
pub fn same_name(store: &Store, slice: &SliceRef, forward: bool) -> Option<SliceRef> {
    let is_same = |s: &SliceRef| s.site == slice.site && s.node == slice.node && s.id != slice.id;
    let order = |s: &SliceRef| (s.start, s.id);
    if forward {
        let walk = |lane: &Lane| lane.touching(&(slice.start..i64::MAX));
        best_match(store, walk, |s| is_same(s) && order(s) > order(slice), order)
    } else {
        let walk = |lane: &Lane| lane.touching(&(i64::MIN..slice.start.saturating_add(1))).rev();
        best_match(store, walk, |s| is_same(s) && order(s) < order(slice), |s| Reverse(order(s)))
    }
}

/// Self time of a slice, outside the slices nested directly in it, ns.
pub fn self_ns(store: &Store, slice: &SliceRef) -> i64 {
    let inner_lane = store.track(TrackId(slice.id.track)).and_then(|t| t.lanes.get(slice.id.lane as usize + 1));
    let mut spans = Vec::new();
    if let Some(lane) = inner_lane {
        lane.spans(slice.start..slice.end, 64, &mut spans);
    }
    let inside = spans.iter().filter(|s| s.start >= slice.start && s.end <= slice.end);
    let nested: i64 = inside.map(|s| s.busy_ns + s.wait_ns).sum();
    (slice.dur() - nested).max(0)
}

/// The number of slices that touch a range, on all tracks.
pub fn count_in(store: &Store, range: &Range<i64>) -> u64 {
    let lanes = store.tracks().iter().flat_map(|t| &t.lanes);
    lanes.map(|l| l.touching(range)).map(|r| u64::from(r.end - r.start)).sum()
}

/// The first slice of a node or scope at or after `time`, or else its first slice in the trace.
pub fn first_of_node(store: &Store, scope: &str, time: i64) -> Option<SliceRef> {
    let nodes: Vec<bool> = store.nodes().iter().map(|n| crate::selection::is_at_or_below(scope, &n.name)).collect();
    let walk = |lane: &Lane| {
        let from = lane.touching(&(time..i64::MAX)).start;
        (from..lane.len() as u32).chain(0..from)
    };
    let is_match = |s: &SliceRef| nodes.get(s.node as usize).copied().unwrap_or(false);
    best_match(store, walk, is_match, |s| (s.start < time, s.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::{STEP_NS, demo};

    fn named(store: &Store, name: &str, nth: usize) -> SliceRef {
        let lanes = store.tracks().iter().flat_map(|t| &t.lanes);
        let slices = lanes.flat_map(|l| l.slices(&(i64::MIN..i64::MAX)));
        slices.filter(|s| store.slice_name(s) == name && store.category(s) == Category::Op).nth(nth).unwrap()
    }

    #[test]
    fn the_predecessor_is_the_node_in_the_same_step() {
        let store = demo(3);
        for step in 0..3 {
            let add = named(&store, "layer1/Add", step);
            let before = predecessor(&store, &add).unwrap();
            assert_eq!(before, named(&store, "layer1/MatMul", step));
            assert_eq!(before.end, step as i64 * STEP_NS + 70_000);
            assert_eq!(predecessor(&store, &before), None, "nothing made it ready");
            assert_eq!(successor(&store, &before), Some(add));
            assert_eq!(successor(&store, &add), Some(named(&store, "layer2/MatMul", step)));
            assert_eq!(successor(&store, &named(&store, "layer2/MatMul", step)), None);
        }
    }

    #[test]
    fn same_names_in_order_of_time() {
        let store = demo(3);
        let mut at = named(&store, "layer1/Add", 0);
        for step in 1..3 {
            at = same_name(&store, &at, true).unwrap();
            assert_eq!(at, named(&store, "layer1/Add", step));
        }
        assert_eq!(same_name(&store, &at, true), None);
        assert_eq!(same_name(&store, &at, false).unwrap(), named(&store, "layer1/Add", 1));
    }

    #[test]
    fn slices_under_the_pointer() {
        let store = demo(1);
        let at = |time, slack| slice_at(&store, TrackId(2), 0, time, slack).map(|s| store.slice_name(&s).to_owned());
        assert_eq!(at(73_000, 0).as_deref(), Some("layer1/Add"));
        assert_eq!(at(80_000, 0), None, "half open");
        assert_eq!(at(80_000, 100).as_deref(), Some("layer1/Add"));
        assert_eq!(at(81_900, 5_000).as_deref(), Some("layer2/MatMul"), "the nearer one");
        assert_eq!(at(-5, 1), None);
    }

    #[test]
    fn self_time_leaves_out_what_is_nested() {
        let store = demo(1);
        assert_eq!(self_ns(&store, &named(&store, "layer1/MatMul", 0)), 40_000);
        assert_eq!(self_ns(&store, &named(&store, "layer1/Add", 0)), 8_000);
    }

    #[test]
    fn queries_match_by_scope_op_and_text() {
        let store = demo(2);
        let count = |node: Option<&str>, op: Option<&str>, text: &str| {
            let query = Query { node: node.map(Into::into), op: op.map(Into::into), text: text.into() };
            matches(&store, &query).count
        };
        assert_eq!(count(None, None, ""), 0);
        assert_eq!(count(Some("layer1"), None, ""), 6, "product, its shard and sum, twice");
        assert_eq!(count(Some("layer1/Add"), None, ""), 2);
        assert_eq!(count(None, Some("MatMul"), ""), 8);
        assert_eq!(count(None, None, "add"), 2);
        assert_eq!(count(None, None, "idle"), 2);
        assert_eq!(count(Some("layer2"), None, "add"), 0);
        let found = matches(&store, &Query { text: "add".into(), ..Query::default() });
        assert_eq!(found.neighbour(i64::MIN, true).unwrap().start, 72_000);
        assert_eq!(found.neighbour(72_000, true).unwrap().start, 172_000);
        assert_eq!(found.neighbour(172_000, false).unwrap().start, 72_000);
    }

    #[test]
    fn counts_equal_brute_force() {
        let store = demo(5);
        for range in [0..1, 0..500_000, 72_000..80_000, 80_000..81_000, 100..100] {
            let brute = store.tracks().iter().flat_map(|t| &t.lanes).flat_map(|l| l.slices(&(i64::MIN..i64::MAX)));
            let brute = brute.filter(|s| s.start < range.end && s.end > range.start && range.start < range.end).count();
            assert_eq!(count_in(&store, &range), brute as u64, "{range:?}");
        }
    }

    #[test]
    fn the_first_slice_of_a_scope_from_here() {
        let store = demo(3);
        assert_eq!(first_of_node(&store, "layer1", 0).unwrap().start, 20_000);
        assert_eq!(first_of_node(&store, "layer1/Add", 100_000).unwrap().start, 172_000);
        assert_eq!(first_of_node(&store, "layer2", 1 << 40).unwrap().start, 82_000, "none after: the first");
        assert_eq!(first_of_node(&store, "layer3", 0), None);
    }
}
