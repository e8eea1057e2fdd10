//! Kineto writes a device as a process of its own. Here its streams belong to the process that launched their work, so that
//! a launch finds its kernel; and ops learn in which step they ran.

use super::kineto;
use crate::import::ids::ProcessIdx;
use crate::import::stage::Stage;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_model::{Category, TrackKind};

/// Streams come behind threads.
const FIRST_STREAM: i32 = 1 << 24;

pub(super) fn finish(stage: &mut Stage) {
    join_streams(stage);
    number_steps(stage);
}

fn join_streams(stage: &mut Stage) {
    if !stage.tracks.iter().any(|t| t.kind == TrackKind::Stream) {
        return;
    }
    let mut launched_by: FxHashMap<u32, ProcessIdx> = FxHashMap::default();
    for track in stage.tracks.iter().filter(|t| t.kind == TrackKind::Thread) {
        let launches = track.slices.iter().filter(|s| stage.sites.means(s.site) == Category::Launch);
        launched_by.extend(launches.map(|s| (s.correlation, track.process)));
    }
    let launchers: FxHashSet<ProcessIdx> = launched_by.values().copied().collect();
    // A device's process may have tracks that are no streams: synchronisations of the entire device, frames of a thread that Kineto takes for thread 0.
    let is_device: Vec<bool> = stage.processes.iter().map(|p| kineto::is_device(&p.label)).collect();
    synchronisations(stage, &is_device);
    let of_threads: FxHashSet<ProcessIdx> = stage
        .tracks
        .iter()
        .filter(|t| t.kind == TrackKind::Thread && !t.slices.is_empty() && !is_device[t.process as usize])
        .map(|t| t.process)
        .collect();
    for track in stage.tracks.iter_mut().filter(|t| t.kind == TrackKind::Stream) {
        let launcher = track.slices.iter().find_map(|s| launched_by.get(&s.correlation));
        let only = if launchers.len() == 1 { launchers.iter().next() } else { None };
        if let Some(owner) = launcher.or(only)
            && !of_threads.contains(&track.process)
        {
            track.process = *owner;
        }
        let number = i32::try_from(track.stream.unwrap_or(0)).unwrap_or(i32::MAX).min(FIRST_STREAM);
        track.order = FIRST_STREAM + number;
    }
}

/// The track of a device that has nothing but synchronisations of the whole device is no thread.
fn synchronisations(stage: &mut Stage, is_device: &[bool]) {
    let streams = stage.tracks.iter().filter(|t| t.kind == TrackKind::Stream);
    let names: FxHashMap<ProcessIdx, String> = streams.map(|t| (t.process, t.device.clone())).collect();
    let sites = &stage.sites;
    let threads = stage.tracks.iter_mut().filter(|t| t.kind == TrackKind::Thread && is_device[t.process as usize]);
    for track in threads {
        let has_only = track.slices.iter().all(|s| sites.means(s.site) == Category::Sync);
        if let Some(name) = names.get(&track.process).filter(|_| has_only && !track.slices.is_empty()) {
            (track.kind, track.device, track.tid) = (TrackKind::Stream, name.clone(), 0);
        }
    }
}

/// An op's `arg` has the step's id in its upper half.
fn number_steps(stage: &mut Stage) {
    let mut steps: Vec<(ProcessIdx, i64, i64, u32)> = Vec::new();
    for track in &stage.tracks {
        let found = track.slices.iter().filter(|s| stage.sites.means(s.site) == Category::Step);
        steps.extend(found.map(|s| (track.process, s.start, s.end, s.correlation)));
    }
    if steps.is_empty() {
        return;
    }
    steps.sort_unstable();
    for track in &mut stage.tracks {
        let process = track.process;
        for slice in track.slices.iter_mut().filter(|s| stage.sites.means(s.site) == Category::Op) {
            let after = steps.partition_point(|(p, start, ..)| (*p, *start) <= (process, slice.start));
            if let Some((p, _, end, id)) = after.checked_sub(1).map(|at| steps[at])
                && p == process
                && slice.start < end
            {
                slice.arg = u64::from(id) << 32;
            }
        }
    }
}
