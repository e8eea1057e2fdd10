//! The CPU that each thread ran on, where the kernel's scheduling was recorded. The slices of the CPUs' tracks name the
//! threads.

use super::find;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{Category, SliceRef, TrackKind};
use trace_store::{Store, Track};

/// Slices of CPUs that are read for the shares of one slice, at most.
const MAX_CPU_SLICES: usize = 100_000;

/// Whether a track holds only a thread's waits for a CPU: between them the thread ran.
pub fn is_scheduling(store: &Store, track: &Track) -> bool {
    let mut lanes = track.lanes.iter().filter(|lane| !lane.is_empty());
    let (Some(lane), None) = (lanes.next(), lanes.next()) else { return false };
    let is_off = |at: u32| lane.slice_in_memory(at).is_some_and(|slice| store.category(&slice) == Category::OffCpu);
    track.tid > 0 && track.kind != TrackKind::Cpu && is_off(0) && is_off(lane.len() as u32 - 1)
}

/// The number of the CPU that a track's thread ran on at a time, within `slack_ns`, and the CPU's slice.
pub fn cpu_run_at(store: &Store, track: &Track, time: i64, slack_ns: i64) -> Option<(usize, SliceRef)> {
    cpu_tracks(store).filter(|cpu| host_of(store, cpu) == host_of(store, track)).find_map(|cpu| {
        let run = find::slice_at(store, cpu.id, 0, time, slack_ns)?;
        let is_of_thread = store.category(&run) == Category::Running && run.correlation == track.tid;
        is_of_thread.then(|| (cpu_number(cpu), run))
    })
}

/// The number in the name of a CPU's track, or else the track's id.
pub fn cpu_number(track: &Track) -> usize {
    let digits = track.name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(track.id.0 as usize)
}

/// The numbers of the CPUs that a slice's thread ran on, each with its time in ns, longest first. `None` where
/// scheduling was not recorded, or there are too many slices to read.
pub fn shares(store: &Store, slice: &SliceRef) -> Option<Vec<(usize, i64)>> {
    let thread = store.tracks().get(slice.id.track as usize).filter(|t| t.tid > 0 && t.kind != TrackKind::Cpu)?;
    let range: Range<i64> = slice.start..slice.end;
    let (mut ns_by_cpu, mut n_slices, mut n_cpus): (FxHashMap<usize, i64>, usize, usize) = (FxHashMap::default(), 0, 0);
    for cpu in cpu_tracks(store).filter(|cpu| host_of(store, cpu) == host_of(store, thread)) {
        n_cpus += 1;
        for lane in &cpu.lanes {
            let touching = lane.touching(&range);
            n_slices += touching.len();
            if n_slices > MAX_CPU_SLICES {
                return None;
            }
            let runs = lane.slices(&range).filter(|s| store.category(s) == Category::Running);
            for run in runs.filter(|s| s.correlation == thread.tid) {
                *ns_by_cpu.entry(cpu_number(cpu)).or_default() += run.end.min(range.end) - run.start.max(range.start);
            }
        }
    }
    let mut shares: Vec<(usize, i64)> = ns_by_cpu.into_iter().filter(|(_, ns)| *ns > 0).collect();
    shares.sort_by_key(|(cpu, ns)| (std::cmp::Reverse(*ns), *cpu));
    (n_cpus > 0).then_some(shares)
}

/// The tracks of CPUs.
pub fn cpu_tracks(store: &Store) -> impl Iterator<Item = &Track> {
    store.tracks().iter().filter(|track| track.kind == TrackKind::Cpu)
}

/// The host of a track's process; empty where unknown.
pub fn host_of<'a>(store: &'a Store, track: &Track) -> &'a str {
    store.processes().get(track.process as usize).map_or("", |process| &process.host)
}

#[cfg(test)]
pub(in crate::timeline) mod tests {
    use super::*;
    use crate::timeline::testing::{batch_of, slice, store_of};
    use trace_model::{Event, NO_NODE, Name, TrackKey};

    /// Thread 41 runs an op from 0 to 100 µs: on CPU 0 to 40, then on CPU 1 from 60; another thread has CPU 0 from 40
    /// on.
    pub fn two_cpus() -> Store {
        let mut batch = batch_of(&[("op", "MatMul"), ("running", "demo"), ("running", "other")]);
        let key = |ring| TrackKey { pid: 1, ring };
        batch.name(Name::Thread { key: key(0), name: "worker".into(), tid: 41 });
        for (ring, cpu) in [(1, 0), (2, 1)] {
            let (kind, device) = (TrackKind::Cpu, String::new());
            let name = format!("CPU {cpu}");
            batch.name(Name::Track { key: key(ring), kind, name, tid: 0, device, stream: None, order: 0 });
        }
        let run = |from: i64, to: i64, site, thread| Event {
            correlation: thread,
            ..slice(from * 1_000, to * 1_000, site, NO_NODE, 0)
        };
        batch.track(key(0)).events.push(slice(0, 100_000, 0, NO_NODE, 0));
        batch.track(key(1)).events.extend([run(0, 40, 1, 41), run(40, 100, 2, 99)]);
        batch.track(key(2)).events.push(run(60, 100, 1, 41));
        store_of(batch)
    }

    #[test]
    fn a_thread_runs_on_one_cpu_and_then_on_another() {
        let store = two_cpus();
        let thread = store.tracks().iter().find(|t| t.name == "worker").unwrap().id.0;
        let worker = &store.tracks()[thread as usize];
        let at = |time| cpu_run_at(&store, worker, time, 1).map(|(cpu, run)| (cpu, run.start));
        assert_eq!((at(20_000), at(50_000), at(70_000)), (Some((0, 0)), None, Some((1, 60_000))));
        assert!(!is_scheduling(&store, worker), "its ops are known");
        let op = store.tracks()[thread as usize].lanes[0].slice(0).unwrap();
        assert_eq!(shares(&store, &op), Some(vec![(0, 40_000), (1, 40_000)]));
        let run = store.tracks().iter().find(|t| t.name == "CPU 0").unwrap().lanes[0].slice(0).unwrap();
        assert_eq!(shares(&store, &run), None, "a CPU runs on none");
        assert_eq!(shares(&crate::timeline::testing::demo(1), &op), None, "no CPUs were recorded");
    }
}
