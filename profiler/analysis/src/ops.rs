//! The op table: the time of ops, and how much of it the steps waited for.

use super::activity::Activities;
use super::counters::{self, CounterTotals};
use super::critical::CriticalPath;
use super::deps::Deps;
use super::disjoint::disjoint;
use crate::nesting::self_times;
use crate::stats::{Figures, Group};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{SliceId, SliceRef};
use trace_store::Store;

/// The executions of one name on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// Op type, or the name of the kernel, copy or call.
    pub name: String,
    /// The category as recorded: `op`, `kernel`, ...
    pub category: String,
    /// The node's device, or the track's; empty on a host.
    pub device: String,
    /// Count and times; `share` is the share of the self time of all rows.
    pub figures: Figures,
    /// Time on critical paths, ns.
    pub critical_ns: i64,
    /// Share of the length of all critical paths, 0..=1.
    pub critical_share: f64,
    /// Counts in the self time, in the order of [`CounterTotals::names`]; empty where no counters were recorded.
    pub counts: Vec<u64>,
}

/// The executions of one name scope: of all nodes whose names begin with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScopeRow {
    /// `layer1`, `layer1/dense`, ...
    pub scope: String,
    /// Executions.
    pub count: u64,
    /// Self time, ns.
    pub self_ns: i64,
    /// Time on critical paths, ns.
    pub critical_ns: i64,
}

/// Returns the time on critical paths by slice, ns.
pub(crate) fn critical_ns(paths: &[CriticalPath]) -> FxHashMap<SliceId, i64> {
    let mut on_path: FxHashMap<SliceId, i64> = FxHashMap::default();
    for segment in paths.iter().flat_map(|p| &p.segments) {
        if let Some(slice) = segment.slice.filter(|_| !matches!(segment.kind, super::critical::PathKind::Stall(_))) {
            *on_path.entry(slice).or_default() += segment.dur();
        }
    }
    on_path
}

/// The op table of a range, the most self time first, and the counters' totals. `paths` are the critical paths of the
/// range's steps.
#[must_use]
pub fn op_table(store: &Store, range: Range<i64>, paths: &[CriticalPath]) -> (CounterTotals, Vec<OpRow>) {
    let (activities, on_path) = (Activities::new(store), critical_ns(paths));
    let path_ns: i64 = paths.iter().map(|p| p.range.end - p.range.start).sum();
    let mut devices: FxHashMap<&str, u32> = FxHashMap::default();
    let mut names: Vec<&str> = Vec::new();
    let mut groups: FxHashMap<(u32, u32), (Group, i64)> = FxHashMap::default();
    let mut all_ns = 0;
    for track in store.tracks() {
        self_times(track, &range, |slice, self_ns| {
            if !activities.get(slice).is_work() {
                return;
            }
            let device = device_of(store, slice);
            let device = *devices.entry(device).or_insert_with(|| {
                names.push(device);
                names.len() as u32 - 1
            });
            let inside = slice.end.min(range.end) - slice.start.max(range.start);
            let (group, critical) = groups.entry((slice.site, device)).or_default();
            group.add(Some(slice.dur()), inside, self_ns);
            *critical += on_path.get(&slice.id).copied().unwrap_or(0);
            all_ns += self_ns;
        });
    }
    let (totals, mut counts) = counters::count_by_key(store, &range, |slice| (slice.site, device_of(store, slice)));
    let mut rows: Vec<OpRow> = groups
        .into_iter()
        .filter_map(|((site_row, device), (group, critical_ns))| {
            let site = store.sites().get(site_row as usize)?;
            let figures = group.figures(all_ns);
            let device = names.get(device as usize).map_or("", |name| *name);
            let counts = counts.remove(&(site_row, device)).unwrap_or_else(|| vec![0; totals.names.len()]);
            let device = device.to_owned();
            let (name, category) = (site.name.clone(), site.category_name.clone());
            let critical_share = critical_ns as f64 / path_ns.max(1) as f64;
            Some(OpRow { name, category, device, figures, critical_ns, critical_share, counts })
        })
        .collect();
    rows.sort_by(|a, b| b.figures.self_ns.cmp(&a.figures.self_ns).then_with(|| a.name.cmp(&b.name)));
    (totals, rows)
}

/// Returns the device of a slice's node, else of its track; empty on a host.
pub(super) fn device_of<'a>(store: &'a Store, slice: &SliceRef) -> &'a str {
    let track_device = || store.tracks().get(slice.id.track as usize).map_or("", |t| t.device.as_str());
    store.node_of(slice).map_or_else(track_device, |n| n.device.as_str())
}

/// The table of name scopes of a range, the most self time first. A scope's row includes its inner scopes.
#[must_use]
pub fn scope_table(store: &Store, range: Range<i64>, paths: &[CriticalPath]) -> Vec<ScopeRow> {
    let (activities, on_path) = (Activities::new(store), critical_ns(paths));
    // The times are summed by node first, so that each name is split once.
    let mut nodes: FxHashMap<u32, (u64, i64, i64)> = FxHashMap::default();
    for track in store.tracks() {
        self_times(track, &range, |slice, self_ns| {
            if store.node_of(slice).is_some() && activities.get(slice).is_work() {
                let (count, node_self_ns, critical) = nodes.entry(slice.node).or_default();
                *count += 1;
                *node_self_ns += self_ns;
                *critical += on_path.get(&slice.id).copied().unwrap_or(0);
            }
        });
    }
    let mut scopes: FxHashMap<&str, ScopeRow> = FxHashMap::default();
    for (node, (count, self_ns, critical_ns)) in nodes {
        let Some(name) = store.nodes().get(node as usize).map(|n| n.name.as_str()) else { continue };
        for (end, _) in name.match_indices('/').filter(|(end, _)| *end > 0) {
            let scope = &name[..end];
            let empty = || ScopeRow { scope: scope.to_owned(), ..ScopeRow::default() };
            let row = scopes.entry(scope).or_insert_with(empty);
            row.count += count;
            row.self_ns += self_ns;
            row.critical_ns += critical_ns;
        }
    }
    let mut rows: Vec<ScopeRow> = scopes.into_values().collect();
    rows.sort_by(|a, b| b.self_ns.cmp(&a.self_ns).then_with(|| a.scope.cmp(&b.scope)));
    rows
}

/// The critical paths of the steps that touch a range, cut so that they do not overlap ([`disjoint`]); without steps
/// the path of the range.
#[must_use]
pub fn critical_paths(store: &Store, range: Range<i64>) -> Vec<CriticalPath> {
    step_paths(&Deps::new(store, &crate::stalls::widen_to_steps(store, &range)), &range)
}

pub(crate) fn step_paths(deps: &Deps<'_>, range: &Range<i64>) -> Vec<CriticalPath> {
    let steps = deps.store.steps().par_iter().filter(|s| s.start < range.end && s.end > range.start);
    let paths: Vec<CriticalPath> = steps.map(|step| super::critical::step_path(deps, step)).collect();
    if !paths.is_empty() || range.is_empty() {
        return disjoint(paths, range);
    }
    vec![super::critical::range_path(deps, range.clone())]
}
