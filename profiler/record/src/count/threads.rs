//! Turns readings of the kernel's counters into points of each thread's counters.
//!
//! Values are sums since the counting began, and are linear between two points. Each stretch in which the thread ran
//! has a point at its begin and one at its end, so that a counter rises only while its thread has a CPU. A counter that
//! did not change gets no points.
//!
//! The kernel has one group of counters for each thread and CPU. While the thread runs, the `enabled` time of all its
//! groups grows, and the `running` time of the group of its CPU: where the sum of the latter stays behind, the
//! processor counted other events for a while.

use super::kinds::Kind;
use crate::collect::{TrackNo, Tracks};
use crate::proc;
use crate::sample::parse::{Event, Origin, Reading, Record};
use events::meta::TrackKind;
use events::{Kind as EventKind, SiteId};
use rustc_hash::FxHashMap;
use trace_model::scheduling::Comm;

/// The category of the counters of one thread.
pub(crate) const CATEGORY: &str = "thread counter";
/// The order of tracks of counters, after those of samples.
const ORDER: i32 = 1_000_002;
/// The most threads that are distinguished; records of further threads are counted as lost.
const MAX_THREADS: usize = 1 << 16;
/// The most stretches on a CPU between two readings; further stretches extend the last one.
const MAX_STRETCHES: usize = 64;
/// The running time of a group that readings may not have reported yet, ns.
const UNREAD_NS: u64 = 2_000_000;

/// The state of one thread.
#[derive(Default)]
struct Thread {
    name: Vec<u8>,
    track: Option<TrackNo>,
    /// Whether the thread has ended; the reading of its last values may still come.
    has_ended: bool,
    /// The begin of the current stretch on a CPU, ns; `None` while the thread is off the CPU.
    running_since: Option<u64>,
    /// Begin and end of each stretch on a CPU since the last reading, ns.
    stretches: Vec<(u64, u64)>,
    /// The time of the last reading, ns.
    last_reading: u64,
    /// The time that the thread ran with its counters on, ns.
    enabled: u64,
    /// The time that each group (of a CPU) counted, ns, by the leader's id.
    running: FxHashMap<u64, u64>,
    /// The last value of each of the kernel's counters, by id.
    values: FxHashMap<u64, u64>,
    /// The totals over all CPUs, by kind.
    counters: Vec<Total>,
}

/// A counter's total, and the time of its last point, ns.
#[derive(Clone, Copy, Default)]
struct Total {
    value: u64,
    last_point: Option<u64>,
}

impl Thread {
    fn end_stretch(&mut self, time: u64) {
        let Some(since) = self.running_since.take() else { return };
        let is_full = self.stretches.len() >= MAX_STRETCHES;
        match self.stretches.last_mut().filter(|_| is_full) {
            Some(last) => last.1 = time,
            None => self.stretches.push((since, time)),
        }
    }

    /// The time that the counters were on, and the time that they counted, ns.
    fn times(&self) -> (u64, u64) {
        (self.enabled, self.running.values().sum())
    }

    /// The factor by which counts are scaled up, where the processor counted other events for more than a twentieth of
    /// the time.
    fn scale(&self) -> Option<f64> {
        let (enabled, running) = self.times();
        let unread = UNREAD_NS * self.running.len() as u64;
        (running > 0 && enabled > running + running / 20 + unread).then(|| enabled as f64 / running as f64)
    }

    /// Takes the stretches on a CPU since the last reading, the current one up to `time`.
    fn take_stretches(&mut self, time: u64, running_ns: u64) -> Vec<(u64, u64)> {
        let mut stretches = std::mem::take(&mut self.stretches);
        if let Some(since) = &mut self.running_since {
            stretches.push((*since, time));
            *since = time;
        } else if stretches.is_empty() {
            // No switch was reported: the thread ran for `running_ns` before the reading.
            stretches.push((time.saturating_sub(running_ns).max(self.last_reading), time));
        }
        self.last_reading = time;
        stretches
    }
}

impl Total {
    /// Adds `increase` linearly over the stretches; returns the points (time, value).
    fn rise(&mut self, increase: u64, stretches: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let length = |(begin, end): &(u64, u64)| end.saturating_sub(*begin);
        let total = stretches.iter().map(length).sum::<u64>();
        let (before, mut elapsed, mut points) = (self.value, 0, Vec::new());
        for (i, stretch) in stretches.iter().enumerate() {
            elapsed += length(stretch);
            let is_last = i + 1 == stretches.len();
            let increase_so_far = if is_last { increase } else { share(increase, elapsed, total) };
            if before + increase_so_far == self.value {
                continue;
            }
            if self.last_point != Some(stretch.0) {
                points.push((stretch.0, self.value));
            }
            self.value = before + increase_so_far;
            self.last_point = Some(stretch.1);
            points.push((stretch.1, self.value));
        }
        points
    }
}

/// Returns the share `part / total` of `amount`.
fn share(amount: u64, part: u64, total: u64) -> u64 {
    // At most `amount`, since `part` is at most `total`.
    (u128::from(amount) * u128::from(part) / u128::from(total.max(1))) as u64
}

/// The counters of all threads.
pub(crate) struct Threads {
    kinds: Vec<Kind>,
    /// Rows of `kinds` by the ids of the kernel's counters.
    row_by_counter: FxHashMap<u64, usize>,
    /// Whether any kind is a hardware counter; only hardware counters may have to take turns.
    has_hardware: bool,
    threads: FxHashMap<u32, Thread>,
    sites: Vec<SiteId>,
    pub(crate) n_readings: u64,
    pub(crate) n_unreported: u64,
    /// The sums of [`Thread::times`] at the readings whose counts were scaled.
    scaled: (u64, u64),
}

impl Threads {
    pub(crate) fn new(kinds: Vec<Kind>, row_by_counter: FxHashMap<u64, usize>, has_hardware: bool) -> Threads {
        let (threads, sites) = (FxHashMap::default(), Vec::new());
        Threads { kinds, row_by_counter, has_hardware, threads, sites, n_readings: 0, n_unreported: 0, scaled: (0, 0) }
    }

    /// Handles the next record; records must come in order of time.
    pub(crate) fn handle_record(&mut self, record: &Record, tracks: &mut Tracks) {
        let origin = record.origin;
        match &record.event {
            Event::Reading(reading) => self.read(origin, reading, tracks),
            Event::SwitchIn => {
                if let Some(thread) = self.thread(origin.tid) {
                    thread.running_since = Some(origin.time);
                }
            }
            Event::SwitchOut { .. } => {
                if let Some(thread) = self.thread(origin.tid) {
                    thread.end_stretch(origin.time);
                }
            }
            Event::Comm { name, is_exec } => self.rename(origin, name, *is_exec, tracks),
            Event::Fork { tid, parent, .. } => {
                let name = self.threads.get(parent).map_or(Vec::new(), |parent| parent.name.clone());
                // The id may have been that of an earlier thread.
                self.threads.remove(tid);
                if let Some(thread) = self.thread(*tid) {
                    thread.name = name;
                }
            }
            Event::Exit { tid } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.has_ended = true;
                }
            }
            _ => {}
        }
    }

    /// The share of the time, 0 to 1, in which scaled counters counted; `None` where no counters had to take turns.
    pub(crate) fn counted_share(&self) -> Option<f64> {
        let (enabled, running) = self.scaled;
        (enabled > 0).then(|| running as f64 / enabled as f64)
    }

    fn thread(&mut self, tid: u32) -> Option<&mut Thread> {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) {
            self.threads.retain(|_, thread| !thread.has_ended);
            if self.threads.len() >= MAX_THREADS {
                self.n_unreported += 1;
                return None;
            }
        }
        Some(self.threads.entry(tid).or_default())
    }

    fn rename(&mut self, origin: Origin, name: &[u8], is_exec: bool, tracks: &mut Tracks) {
        let Some(thread) = self.thread(origin.tid) else { return };
        name.clone_into(&mut thread.name);
        if is_exec {
            thread.running_since.get_or_insert(origin.time);
        }
        if let Some(track) = thread.track {
            let title = title(Comm::new(name), origin.tid);
            tracks.rename(track, TrackKind::Thread, origin.pid, origin.tid, ORDER, &title);
        }
    }

    fn read(&mut self, origin: Origin, reading: &Reading, tracks: &mut Tracks) {
        let (n_kinds, has_hardware) = (self.kinds.len(), self.has_hardware);
        if self.sites.is_empty() {
            self.sites = self.kinds.iter().map(|kind| tracks.site(CATEGORY, kind.name())).collect();
        }
        let Some((group, _)) = reading.values.first() else { return };
        if self.thread(origin.tid).is_none() {
            return;
        }
        let Some(thread) = self.threads.get_mut(&origin.tid) else { return };
        thread.counters.resize(n_kinds, Total::default());
        thread.enabled = thread.enabled.max(reading.enabled);
        let before = thread.running.insert(*group, reading.running).unwrap_or(0);
        let stretches = thread.take_stretches(origin.time, reading.running.saturating_sub(before));
        let scale = thread.scale().filter(|_| has_hardware);
        if scale.is_some() {
            let (enabled, running) = thread.times();
            self.scaled = (self.scaled.0 + enabled, self.scaled.1 + running);
        }
        self.n_readings += 1;
        for (id, value) in &reading.values {
            let Some(kind) = self.row_by_counter.get(id) else { continue };
            let increase = value.saturating_sub(thread.values.insert(*id, *value).unwrap_or(0));
            let increase = scale.map_or(increase, |scale| (increase as f64 * scale).round() as u64);
            for (time, value) in thread.counters[*kind].rise(increase, &stretches) {
                let track = *thread.track.get_or_insert_with(|| track(origin, &thread.name, tracks));
                let at = tracks.ticks_at(time.cast_signed());
                tracks.add_point(EventKind::Counter, track, at, self.sites[*kind], 0, (value as f64).to_bits());
            }
        }
    }
}

fn track(origin: Origin, name: &[u8], tracks: &mut Tracks) -> TrackNo {
    let name = if name.is_empty() { proc::name(origin.tid) } else { Comm::new(name) };
    tracks.add_track(TrackKind::Thread, origin.pid, origin.tid, ORDER, &title(name, origin.tid))
}

fn title(name: Comm, tid: u32) -> String {
    format!("{} {tid}", name.text()).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Collector, CollectorOptions};
    use events::clock::Source;
    use parking_lot::Mutex;
    use std::sync::Arc;

    const FAULTS: usize = 0;
    const CYCLES: usize = 1;

    fn origin(time: u64) -> Origin {
        Origin { pid: 70, tid: 71, time, cpu: 0 }
    }

    fn on(time: u64) -> Record {
        Record { origin: origin(time), event: Event::SwitchIn }
    }

    fn off(time: u64) -> Record {
        Record { origin: origin(time), event: Event::SwitchOut { is_preempted: false } }
    }

    /// A reading on a CPU, of which the counters' ids are 10 times its number and 1, 2, 3.
    fn reading(time: u64, cpu: u64, (enabled, running): (u64, u64), faults: u64, cycles: u64) -> Record {
        let values = vec![(cpu * 10 + 1, 5), (cpu * 10 + 2, faults), (cpu * 10 + 3, cycles)];
        let event = Event::Reading(Reading { enabled, running, values });
        Record { origin: Origin { cpu: cpu as u32, ..origin(time) }, event }
    }

    /// The points (ns from `zero`, value) of a counter, and the share that was counted.
    fn points(records: impl Fn(u64) -> Vec<Record>, counter: usize) -> (Vec<(i64, f64)>, Option<f64>) {
        let dir = tempfile::tempdir().unwrap();
        let mut tracks = Tracks::create(dir.path(), 1, "kernel", Source::MonotonicRaw).unwrap();
        let zero = tracks.now();
        let kinds: super::super::CounterSet = "page-faults,cycles".parse().unwrap();
        let row_by_counter = [(12, FAULTS), (13, CYCLES), (22, FAULTS), (23, CYCLES)];
        let mut threads = Threads::new(kinds.kinds().collect(), row_by_counter.into_iter().collect(), true);
        for record in records(zero) {
            threads.handle_record(&record, &mut tracks);
        }
        let tracks = Arc::new(Mutex::new(tracks));
        let collector = Collector::start_with(dir.path(), CollectorOptions::default(), Some(tracks)).unwrap();
        collector.stop();
        let store = trace_store::testkit::read(dir.path());
        let found =
            store.counters().iter().find(|c| store.sites()[c.site as usize].name == threads.kinds[counter].name());
        let zero = zero as i64 - store.origin_ns();
        let points = found.map_or(Vec::new(), |c| {
            let thread = c.track.and_then(|id| store.track(id)).unwrap();
            assert_eq!((thread.tid, store.processes()[c.process as usize].pid), (71, 70));
            c.time.iter().zip(&c.value).map(|(t, v)| (t - zero, *v)).collect()
        });
        (points, threads.counted_share())
    }

    #[test]
    fn a_count_rises_while_the_thread_has_a_cpu() {
        let records = |zero| {
            vec![
                on(zero + 100),
                reading(zero + 1_100, 1, (1_000, 1_000), 10, 4_000),
                off(zero + 1_600),
                on(zero + 9_600),
                // Half of what came since ran before the sleep.
                reading(zero + 10_100, 1, (2_000, 2_000), 20, 4_000),
                reading(zero + 11_100, 1, (3_000, 3_000), 20, 4_000),
                reading(zero + 12_100, 1, (4_000, 4_000), 21, 9_000),
            ]
        };
        let want =
            [(100, 0.0), (1_100, 10.0), (1_600, 15.0), (9_600, 15.0), (10_100, 20.0), (11_100, 20.0), (12_100, 21.0)];
        assert_eq!(points(records, FAULTS), (want.to_vec(), None));
        let want = [(100, 0.0), (1_100, 4_000.0), (11_100, 4_000.0), (12_100, 9_000.0)];
        assert_eq!(points(records, CYCLES).0, want);
    }

    #[test]
    fn a_thread_on_several_cpus_has_their_sum() {
        let records = |zero| {
            vec![
                on(zero),
                reading(zero + 1_000, 1, (1_000, 1_000), 7, 0),
                off(zero + 1_000),
                on(zero + 2_000),
                reading(zero + 3_000, 2, (2_000, 1_000), 5, 0),
                off(zero + 3_000),
                on(zero + 4_000),
                reading(zero + 5_000, 1, (3_000, 2_000), 8, 0),
                // Its last values, after it ended: of each CPU.
                Record { origin: origin(zero + 5_500), event: Event::Exit { tid: 71 } },
                reading(zero + 5_500, 1, (3_500, 2_500), 9, 0),
                reading(zero + 5_500, 2, (3_500, 1_000), 5, 0),
            ]
        };
        let want = [(0, 0.0), (1_000, 7.0), (2_000, 7.0), (3_000, 12.0), (4_000, 12.0), (5_000, 13.0), (5_500, 14.0)];
        assert_eq!(points(records, FAULTS), (want.to_vec(), None));
    }

    #[test]
    fn counters_that_took_turns_are_scaled() {
        const MS: u64 = 1_000_000;
        let records = |zero| {
            let at = |ms: u64, running: u64, cycles| reading(zero + ms * MS, 1, (ms * MS, running * MS), 0, cycles);
            vec![on(zero), at(10, 5, 1_000), at(20, 10, 3_000)]
        };
        let (points, share) = points(records, CYCLES);
        assert_eq!(points, [(0, 0.0), (10 * MS as i64, 2_000.0), (20 * MS as i64, 6_000.0)]);
        assert_eq!(share, Some(0.5));
    }
}
