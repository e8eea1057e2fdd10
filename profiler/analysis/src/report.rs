//! Everything that the analyses report a trace, from one dependency index.

use super::breakdown::{self, Breakdown, DeviceBreakdown};
use super::counters::CounterTotals;
use super::critical::{self, CriticalPath};
use super::deps::Deps;
use super::findings::{Facts, Finding, findings};
use super::memory::{DeviceMemory, memory_timelines};
use super::ops::{self, OpRow, ScopeRow};
use super::roofline::{Roofline, rooflines};
use super::stragglers::{self, Stragglers};
use super::threads::{ThreadTimes, thread_times};
use crate::stalls::{CauseTotal, Stall, around, by_cause, stalls_of};
use crate::stats::{TrackUse, track_use};
use std::ops::Range;
use trace_model::Step;
use trace_store::Store;

/// All analyses of a trace, or of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The range that is analysed.
    pub range: Range<i64>,
    /// The critical path of the range, in parts that follow each other: of its steps; without steps one, of the range.
    pub paths: Vec<CriticalPath>,
    /// The time by what it was spent on, over all processes.
    pub breakdown: Breakdown,
    /// How each device spent its time.
    pub devices: Vec<DeviceBreakdown>,
    /// Longest first.
    pub stalls: Vec<Stall>,
    /// Their sums.
    pub causes: Vec<CauseTotal>,
    /// The op table.
    pub ops: Vec<OpRow>,
    /// The counts of threads; [`OpRow::counts`] has those of each op.
    pub counted: CounterTotals,
    /// One of each device whose ops report their work.
    pub rooflines: Vec<Roofline>,
    /// By name scope.
    pub scopes: Vec<ScopeRow>,
    /// Memory by device, of the whole trace.
    pub memory: Vec<DeviceMemory>,
    /// How busy each track was.
    pub track_use: Vec<TrackUse>,
    /// The time of threads, where their scheduling was recorded.
    pub threads: Vec<ThreadTimes>,
    /// The processes that came last.
    pub stragglers: Stragglers,
    /// The changes to make first.
    pub findings: Vec<Finding>,
}

/// Analyses a range of a trace.
#[must_use]
pub fn analyse(store: &Store, range: Range<i64>) -> Analysis {
    let deps = Deps::new(store, &around(store, &range));
    let paths = ops::of_steps(&deps, &range);
    of_paths(&deps, range, paths)
}

/// Analyses a step, to the end of what devices still did of what it launched.
#[must_use]
pub fn analyse_step(store: &Store, step: &Step) -> Analysis {
    let deps = Deps::new(store, &around(store, &(step.start..step.end)));
    let path = critical::of_step(&deps, step);
    of_paths(&deps, path.range.clone(), vec![path])
}

fn of_paths(deps: &Deps<'_>, range: Range<i64>, paths: Vec<CriticalPath>) -> Analysis {
    let store = deps.store;
    let stalls = stalls_of(deps, range.clone());
    let (counted, ops) = ops::op_table(store, range.clone(), &paths);
    let stragglers = stragglers::of_range(deps, &range);
    let devices = breakdown::of_devices(deps, &range);
    let threads = thread_times(store, &range);
    let facts = Facts {
        store,
        range: range.clone(),
        paths: &paths,
        ops: &ops,
        devices: &devices,
        threads: &threads,
        stragglers: &stragglers,
    };
    Analysis {
        findings: findings(&facts),
        breakdown: breakdown::of_range(deps, range.clone(), None),
        causes: by_cause(&stalls),
        scopes: ops::scope_table(store, range.clone(), &paths),
        memory: memory_timelines(store),
        track_use: track_use(store, range.clone()),
        rooflines: rooflines(store, &range, &counted, &ops),
        devices,
        threads,
        paths,
        stalls,
        ops,
        counted,
        stragglers,
        range,
    }
}
