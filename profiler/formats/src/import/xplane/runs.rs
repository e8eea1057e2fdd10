//! Joins the runs of programs on TensorCores with the calls that launched them.
//!
//! A host's event and a run on a line of modules belong together if device, queue, run and kind of core are equal, as in
//! XLA's `tsl/profiler/utils/preprocess_xplane.h`. The call and the work in the run get one correlation, as a CUDA
//! graph's launch and its kernels have. The callback at a run's end is the end of an arrow from the run.

use super::super::flows::{FlowKey, FlowPart};
use super::super::ids::{SiteIdx, TrackIdx};
use super::super::stage::Stage;
use super::stats::{StatName, Stats};
use rustc_hash::FxHashMap;

/// The bits of a run's number that both sides report.
const RUN_ID_MASK: u64 = (1 << 27) - 1;

/// The space of the arrows' ids. Those of the other arrows are XLA's kinds of context, which are small numbers.
const FLOW_SPACE: u64 = u64::MAX;

/// What identifies a run: device, queue, number, kind of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RunKey {
    device: u64,
    queue: u64,
    run: u64,
    core_type: u64,
}

impl RunKey {
    /// The run of an event on a device, or of a host's event, which says the device itself.
    pub(super) fn of(device: Option<u64>, stats: Stats<'_>) -> Option<RunKey> {
        Some(RunKey {
            device: device.or_else(|| stats.integer(StatName::DeviceOrdinal))?,
            queue: stats.integer(StatName::QueueId)?,
            run: stats.integer(StatName::RunId)? & RUN_ID_MASK,
            core_type: stats.integer(StatName::CoreType).unwrap_or(0),
        })
    }
}

/// A run on a TensorCore.
struct Run {
    key: RunKey,
    plane: i64,
    start: i64,
    end: i64,
}

/// The runs, launches and callbacks of a file.
#[derive(Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Tracks with work, by plane.
    work: Vec<(i64, TrackIdx)>,
    launches: FxHashMap<RunKey, (TrackIdx, usize)>,
    callbacks: Vec<(RunKey, TrackIdx, i64, SiteIdx)>,
}

impl Runs {
    pub(super) fn add_run(&mut self, key: RunKey, plane: i64, (start, end): (i64, i64)) {
        self.runs.push(Run { key, plane, start, end });
    }

    pub(super) fn add_work(&mut self, plane: i64, track: TrackIdx) {
        self.work.push((plane, track));
    }

    /// Adds the launch that is the last slice of a track so far.
    pub(super) fn add_launch(&mut self, key: RunKey, track: TrackIdx, stage: &Stage) {
        let last = stage.tracks[track as usize].slices.len().saturating_sub(1);
        self.launches.entry(key).or_insert((track, last));
    }

    pub(super) fn add_callback(&mut self, key: RunKey, track: TrackIdx, time: i64, site: SiteIdx) {
        self.callbacks.push((key, track, time, site));
    }

    /// Sets the correlations, and adds the arrows to callbacks.
    pub(super) fn finish(self, stage: &mut Stage) {
        let mut ends: FxHashMap<RunKey, (u64, TrackIdx, i64)> = FxHashMap::default();
        for (number, run) in (1..).zip(&self.runs) {
            let launch = self.launches.get(&run.key);
            for (_, track) in self.work.iter().filter(|(plane, _)| *plane == run.plane) {
                // The slices are in the order of the file, which is that of time for all known writers.
                let slices = &mut stage.tracks[*track as usize].slices;
                let first = slices.partition_point(|slice| slice.start < run.start);
                let inside = slices[first..].iter_mut().take_while(|slice| slice.start < run.end);
                let mut last = None;
                for slice in inside.filter(|slice| slice.end <= run.end) {
                    if launch.is_some() {
                        slice.correlation = number;
                    }
                    last = last.max(Some(slice.end));
                }
                if let Some(end) = last {
                    ends.insert(run.key, (u64::from(number), *track, end));
                }
            }
            if let Some((track, row)) = launch
                && let Some(slice) = stage.tracks[*track as usize].slices.get_mut(*row)
            {
                slice.correlation = number;
            }
        }
        for (key, track, time, site) in self.callbacks {
            if let Some((number, work, end)) = ends.get(&key).copied() {
                let key = FlowKey { space: FLOW_SPACE, id: number };
                stage.flows.point(key, FlowPart::Start, work, end, site);
                stage.flows.point(key, FlowPart::Finish, track, time, site);
            }
        }
    }
}
