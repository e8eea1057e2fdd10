//! Live bytes over the events by where they were allocated: what a chart of stacked areas shows, at any zoom.
//!
//! The changes of the live bytes are stored in the order of events, with the sums before every [`CHECKPOINT`]th one, so
//! that a part is read without what is before it.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{
    lifetimes::Allocation,
    live::{bytes, reserved_change},
    model::Device,
};
use crate::stacks::{FrameId, StackId, Stacks};

/// Groups with sums of their own; the sum of all others comes after them.
const MAX_GROUPS: usize = 11;
/// Changes between two stored sums.
const CHECKPOINT: usize = 4096;

/// Bytes by group, the others last.
type Sums = [i64; MAX_GROUPS + 1];

/// What allocations are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// By the innermost frame of the user's code ([`Stacks::user_frame`]).
    Frame,
    /// By the entire stack.
    Stack,
}

/// Allocations from one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryGroup {
    /// The frame; `None` for allocations without a stack.
    pub frame: Option<FrameId>,
    /// The stack of the largest of them.
    pub stack: StackId,
    /// The most bytes that were live at once.
    pub most_bytes: u64,
}

/// Several events as one: the moment among them with most live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryColumn {
    /// The event after which it is; `None` before the first one.
    pub event: Option<u32>,
    /// Live bytes then, as the program asked for them.
    pub allocated: u64,
    /// The most bytes that the allocator has from CUDA during the events.
    pub reserved: u64,
    /// The live bytes by group ([`HistoryGroups::list`]), those of all other groups last.
    pub by_group: [u64; MAX_GROUPS + 1],
}

/// A change of the live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    bytes: i64,
    event: u32,
    stack: StackId,
}

/// The live bytes of a device over its events.
#[derive(Debug)]
pub struct History {
    /// What was live before the first event.
    before: Vec<(StackId, i64)>,
    /// In the order of events.
    changes: Vec<Change>,
    /// Bytes that the allocator has from CUDA before the first event, and after each event that changes them.
    reserved_before: u64,
    reserved: Vec<(u32, u64)>,
}

/// The places of a history with the most bytes.
#[derive(Debug)]
pub struct HistoryGroups {
    groups: Vec<HistoryGroup>,
    /// The group of each stack, by the stack's number: an index of `groups`, or [`OTHERS`].
    of_stack: Vec<u8>,
    /// The sums before each [`CHECKPOINT`]th change.
    checkpoints: Vec<Sums>,
}

impl HistoryGroups {
    /// The groups with sums of their own, those with the most bytes at once first.
    pub fn list(&self) -> &[HistoryGroup] {
        &self.groups
    }

    /// The group of a stack: an index of the list, or its length for all others.
    pub fn of(&self, stack: StackId) -> usize {
        usize::from(self.number(stack)).min(self.groups.len())
    }

    fn number(&self, stack: StackId) -> u8 {
        self.of_stack.get(stack.0 as usize).copied().unwrap_or(OTHERS)
    }

    fn add(&self, sums: &mut Sums, stack: StackId, bytes: i64) {
        if let Some(sum) = sums.get_mut(usize::from(self.number(stack))) {
            *sum = sum.wrapping_add(bytes);
        }
    }

    fn add_all(&self, sums: &mut Sums, changes: &[Change]) {
        changes.iter().for_each(|change| self.add(sums, change.stack, change.bytes));
    }

    /// The sums with those of the others directly after the last group.
    fn by_group(&self, sums: &Sums) -> [u64; MAX_GROUPS + 1] {
        let mut out = [0; MAX_GROUPS + 1];
        for (group, sum) in sums.iter().enumerate() {
            out[group.min(self.groups.len())] += bytes(*sum);
        }
        out
    }
}

impl History {
    /// The history of a device, from its [`super::lifetimes()`].
    pub fn new(device: &Device, allocations: &[Allocation]) -> Self {
        let before = allocations.iter().filter(|one| one.begin.is_none());
        let (reserved_before, reserved) = reserved_over(device);
        Self {
            before: before.map(|one| (one.stack, one.size as i64)).collect(),
            changes: in_order(device.events.len(), allocations),
            reserved_before,
            reserved,
        }
    }

    /// The places with the most bytes at once.
    pub fn groups(&self, stacks: &Stacks, grouping: Grouping) -> HistoryGroups {
        let (groups, of_stack) = self.group_stacks(stacks, grouping);
        let mut found = HistoryGroups { groups, of_stack, checkpoints: Vec::new() };
        let mut sums = Sums::default();
        self.before.iter().for_each(|(stack, bytes)| found.add(&mut sums, *stack, *bytes));
        found.checkpoints.push(sums);
        for chunk in self.changes.chunks(CHECKPOINT) {
            found.add_all(&mut sums, chunk);
            found.checkpoints.push(sums);
        }
        found
    }

    /// One column from each event of `edges` up to the next of them, which must not descend. A column without events has
    /// what is live then. It takes as long as reading the changes in them twice.
    pub fn columns(&self, groups: &HistoryGroups, edges: &[u32]) -> Vec<HistoryColumn> {
        let Some(first) = edges.first() else { return Vec::new() };
        let mut at = self.changes.partition_point(|change| change.event < *first);
        let mut sums = self.sums_before(groups, at);
        let mut reserved = Reserved::before(self, *first);
        let mut columns = Vec::with_capacity(edges.len().saturating_sub(1));
        for pair in edges.windows(2) {
            let changes = self.changes.get(at..).unwrap_or_default();
            let changes = &changes[..changes.partition_point(|change| change.event < pair[1])];
            let (event, n_until) = highest(changes, total(&sums));
            let (until, after) = changes.split_at(n_until);
            groups.add_all(&mut sums, until);
            columns.push(HistoryColumn {
                event: event.or(pair[0].checked_sub(1)),
                allocated: bytes(total(&sums)),
                reserved: reserved.most_until(pair[1]),
                by_group: groups.by_group(&sums),
            });
            groups.add_all(&mut sums, after);
            at += changes.len();
        }
        columns
    }

    fn sums_before(&self, groups: &HistoryGroups, at: usize) -> Sums {
        let checkpoint = at / CHECKPOINT;
        let Some(stored) = groups.checkpoints.get(checkpoint) else { return Sums::default() };
        let mut sums = *stored;
        groups.add_all(&mut sums, self.changes.get(checkpoint * CHECKPOINT..at).unwrap_or_default());
        sums
    }

    /// The groups with the most bytes at once, and the group of each stack.
    fn group_stacks(&self, stacks: &Stacks, grouping: Grouping) -> (Vec<HistoryGroup>, Vec<u8>) {
        let used = self.before.iter().map(|(stack, _)| *stack).chain(self.changes.iter().map(|change| change.stack));
        let n_stacks = used.map(|stack| stack.0 as usize + 1).max().unwrap_or(0);
        // Every group gets a number first.
        let mut numbers: FxHashMap<Option<FrameId>, usize> = FxHashMap::default();
        let number = |stack: u32| match grouping {
            Grouping::Frame => {
                let next = numbers.len();
                *numbers.entry(stacks.user_frame(StackId(stack))).or_insert(next)
            }
            Grouping::Stack => stack as usize,
        };
        let number_of: Vec<usize> = (0..n_stacks as u32).map(number).collect();
        let n_groups = number_of.iter().max().map_or(0, |last| last + 1);
        let mut live = vec![Live::default(); n_groups];
        let before = self.before.iter().copied();
        for (stack, bytes) in before.chain(self.changes.iter().map(|change| (change.stack, change.bytes))) {
            live[number_of[stack.0 as usize]].add(stack, bytes);
        }
        let mut order: Vec<usize> = (0..n_groups).filter(|number| live[*number].most > 0).collect();
        order.sort_by_key(|number| Reverse(live[*number].most));
        order.truncate(MAX_GROUPS);
        let mut rank = vec![OTHERS; n_groups];
        for (index, number) in (0..).zip(&order) {
            rank[*number] = index;
        }
        let group = |number: &usize| {
            let Live { most, stack, .. } = live[*number];
            HistoryGroup { frame: stacks.user_frame(stack), stack, most_bytes: bytes(most) }
        };
        (order.iter().map(group).collect(), number_of.iter().map(|number| rank[*number]).collect())
    }
}

/// The live bytes of a group while the changes are read.
#[derive(Debug, Clone, Copy)]
struct Live {
    now: i64,
    most: i64,
    /// The largest allocation, and its stack.
    largest: i64,
    stack: StackId,
}

impl Default for Live {
    fn default() -> Self {
        Self { now: 0, most: 0, largest: 0, stack: StackId(0) }
    }
}

impl Live {
    fn add(&mut self, stack: StackId, bytes: i64) {
        self.now = self.now.wrapping_add(bytes);
        self.most = self.most.max(self.now);
        if bytes > self.largest {
            (self.largest, self.stack) = (bytes, stack);
        }
    }
}

/// The group of all stacks that have none of their own.
const OTHERS: u8 = MAX_GROUPS as u8;

fn total(sums: &Sums) -> i64 {
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}

/// The event after which the sum of the changes is the highest, and the number of changes until then; `None` and 0 where
/// it is never higher than before them.
fn highest(changes: &[Change], before: i64) -> (Option<u32>, usize) {
    let (mut sum, mut best) = (before, (before, None, 0));
    for (index, change) in changes.iter().enumerate() {
        sum = sum.wrapping_add(change.bytes);
        // Changes of one event are one.
        let is_last = changes.get(index + 1).is_none_or(|next| next.event != change.event);
        if is_last && sum > best.0 {
            best = (sum, Some(change.event), index + 1);
        }
    }
    (best.1, best.2)
}

/// The beginnings and ends of allocations in the order of events.
fn in_order(n_events: usize, allocations: &[Allocation]) -> Vec<Change> {
    let changes = || {
        allocations.iter().flat_map(move |one| {
            let (stack, size) = (one.stack, one.size as i64);
            let begin = one.begin.map(|event| Change { bytes: size, event, stack });
            let end = one.end.map(|event| Change { bytes: size.wrapping_neg(), event, stack });
            [begin, end].into_iter().flatten().filter(move |change| (change.event as usize) < n_events)
        })
    };
    // A counting sort: there may be tens of millions of them.
    let mut next = vec![0_usize; n_events + 1];
    changes().for_each(|change| next[change.event as usize + 1] += 1);
    for event in 0..n_events {
        next[event + 1] += next[event];
    }
    let mut sorted = vec![Change { bytes: 0, event: 0, stack: StackId(0) }; next.last().copied().unwrap_or(0)];
    for change in changes() {
        let position = &mut next[change.event as usize];
        sorted[*position] = change;
        *position += 1;
    }
    sorted
}

/// The reserved bytes before the first event, and after each event that changes them.
fn reserved_over(device: &Device) -> (u64, Vec<(u32, u64)>) {
    let now = device.segments.iter().fold(0_i64, |sum, segment| sum.wrapping_add(segment.size as i64));
    let changes = || (0_u32..).zip(device.events.iter().map(|event| reserved_change(event.action, event.size)));
    // The segments are those at the end.
    let before = changes().fold(now, |sum, (_, change)| sum.wrapping_sub(change));
    let mut sum = before;
    let after = changes().filter(|(_, change)| *change != 0).map(|(event, change)| {
        sum = sum.wrapping_add(change);
        (event, bytes(sum))
    });
    let after = after.collect();
    (bytes(before), after)
}

/// The reserved bytes while columns are read.
struct Reserved<'a> {
    rest: &'a [(u32, u64)],
    now: u64,
}

impl<'a> Reserved<'a> {
    fn before(history: &'a History, event: u32) -> Self {
        let n_before = history.reserved.partition_point(|(at, _)| *at < event);
        let now = n_before.checked_sub(1).map_or(history.reserved_before, |last| history.reserved[last].1);
        Self { rest: &history.reserved[n_before..], now }
    }

    /// The most until an event, and those then become the current ones.
    fn most_until(&mut self, event: u32) -> u64 {
        let (these, rest) = self.rest.split_at(self.rest.partition_point(|(at, _)| *at < event));
        let most = these.iter().map(|(_, bytes)| *bytes).fold(self.now, u64::max);
        (self.rest, self.now) = (rest, these.last().map_or(self.now, |(_, bytes)| *bytes));
        most
    }
}
