//! The results of all analyses of a trace, computed from one dependency index.

use super::breakdown::{self, Breakdown, DeviceBreakdown};
use super::communication::{self, Communication};
use super::counters::CounterTotals;
use super::critical::{self, CriticalPath};
use super::deps::Deps;
use super::findings::{Facts, Finding, findings};
use super::kernels::{KernelKindRow, kernel_kinds};
use super::memory::{DeviceMemory, memory_timelines};
use super::ops::{self, OpRow, ScopeRow};
use super::roofline::{Roofline, rooflines};
use super::stragglers::{self, Stragglers};
use super::threads::{ThreadTimes, thread_times};
use crate::stalls::{CauseTotal, Stall, by_cause, stalls_of, widen_to_steps};
use crate::stats::{TrackUse, track_use};
use crate::torch::{ModuleRow, OpShapeRow, torch_tables};
use crate::whatif::WhatIf;
use std::ops::Range;
use trace_model::Step;
use trace_store::Store;

/// All analyses of a trace, or of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The range that is analysed.
    pub range: Range<i64>,
    /// The critical paths of the range's steps, by start, without overlaps; in a trace without steps the one path of
    /// the range.
    pub paths: Vec<CriticalPath>,
    /// The time by activity, over all processes.
    pub breakdown: Breakdown,
    /// How each device spent its time.
    pub devices: Vec<DeviceBreakdown>,
    /// The stalls that touch the range, the longest first.
    pub stalls: Vec<Stall>,
    /// Number and total duration of the stalls of each cause, the largest total first.
    pub causes: Vec<CauseTotal>,
    /// The op table.
    pub ops: Vec<OpRow>,
    /// The hardware and kernel counters of all threads; [`OpRow::counts`] has those of each op.
    pub counted: CounterTotals,
    /// The roofline of each device whose ops report their work.
    pub rooflines: Vec<Roofline>,
    /// The table of name scopes.
    pub scopes: Vec<ScopeRow>,
    /// The devices' work by kind.
    pub kernels: Vec<KernelKindRow>,
    /// The tree of the model's modules, in traces of PyTorch that have them.
    pub modules: Vec<ModuleRow>,
    /// Ops by the shapes of their inputs, in traces of PyTorch that have them.
    pub op_shapes: Vec<OpShapeRow>,
    /// Memory over time by device, of the entire trace.
    pub memory: Vec<DeviceMemory>,
    /// How busy each track was.
    pub track_use: Vec<TrackUse>,
    /// How each thread spent its time, where scheduling was recorded.
    pub threads: Vec<ThreadTimes>,
    /// The processes that came last to collectives and steps.
    pub stragglers: Stragglers,
    /// What each collective cost, how fast it was, and which rank came last, and why.
    pub communication: Communication,
    /// The changes to make first.
    pub findings: Vec<Finding>,
}

/// Analyses a range of a trace.
#[must_use]
pub fn analyse(store: &Store, range: Range<i64>) -> Analysis {
    let deps = Deps::new(store, &widen_to_steps(store, &range));
    let paths = ops::step_paths(&deps, &range);
    analyse_paths(&deps, range, paths)
}

/// Analyses a step, to the end of the last device work that it launched.
#[must_use]
pub fn analyse_step(store: &Store, step: &Step) -> Analysis {
    let deps = Deps::new(store, &widen_to_steps(store, &(step.start..step.end)));
    let path = critical::step_path(&deps, step);
    analyse_paths(&deps, path.range.clone(), vec![path])
}

fn analyse_paths(deps: &Deps<'_>, range: Range<i64>, paths: Vec<CriticalPath>) -> Analysis {
    let store = deps.store;
    let stalls = stalls_of(deps, range.clone());
    let (counted, ops) = ops::op_table(store, range.clone(), &paths);
    let stragglers = stragglers::find_stragglers(deps, &range);
    let devices = breakdown::device_breakdowns(deps, &range);
    let communication = communication::communication(deps, &range, &devices);
    let threads = thread_times(store, &range);
    let torch = torch_tables(store, &range);
    let what_if = WhatIf::new(deps, &paths);
    let facts = Facts {
        store,
        what_if: what_if.as_ref(),
        range: range.clone(),
        paths: &paths,
        ops: &ops,
        devices: &devices,
        threads: &threads,
        communication: &communication,
    };
    Analysis {
        findings: findings(&facts),
        breakdown: breakdown::compute_breakdown(deps, range.clone(), None),
        causes: by_cause(&stalls),
        scopes: ops::scope_table(store, range.clone(), &paths),
        kernels: kernel_kinds(store, &range, &torch.launchers),
        modules: torch.modules,
        op_shapes: torch.op_shapes,
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
        communication,
        range,
    }
}
