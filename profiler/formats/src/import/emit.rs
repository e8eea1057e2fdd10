//! Converts a stage to batches for the store, one track after another.

use super::align::Shift;
use super::ids::{ProcessIdx, SiteIdx};
use super::lanes::arrange;
use super::stage::{Stage, Track};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_model::{Batch, Category, Event, EventKind, FIRST_SYNTHETIC_PID, NO_ARGS, NO_NODE, Name, TrackKey};

/// Events of a batch, at most.
const BATCH_EVENTS: usize = 1 << 16;

/// Ids of processes that are in use, over all files.
#[derive(Default)]
pub(super) struct Pids {
    used: FxHashSet<u32>,
    n_made_up: u32,
}

impl Pids {
    /// A process's recorded id, or a made-up one if it has none or another process uses it.
    fn assign(&mut self, recorded: Option<i64>) -> u32 {
        if let Some(pid) = recorded.and_then(|pid| u32::try_from(pid).ok())
            && self.used.insert(pid)
        {
            return pid;
        }
        loop {
            let pid = FIRST_SYNTHETIC_PID.wrapping_add(self.n_made_up);
            self.n_made_up += 1;
            if self.used.insert(pid) {
                return pid;
            }
        }
    }
}

/// A process, with the ids that the batches have.
#[derive(Default)]
struct Target {
    pid: u32,
    /// Ids of the stage's sites and nodes: the store expects them to be numbered from 0 in each process.
    sites: FxHashMap<u32, u32>,
    nodes: FxHashMap<u32, u32>,
    n_tracks: u32,
}

/// A stage that is converted to batches.
pub(super) struct Emitter {
    stage: Stage,
    /// Shift of all times.
    shift: Shift,
    targets: Vec<Target>,
    /// Id in the batches of each process id in the file; 0 is the process of threads without a known one.
    pid_of: FxHashMap<u64, u32>,
    /// Tracks in reverse order: the last one is next.
    tracks: Vec<Track>,
    /// Tracks for the slices for which the current track has no lanes, ordered and in reverse: the last one is next.
    further: Vec<Track>,
    /// Process and key of the current track, and its remaining events.
    current: Option<(ProcessIdx, TrackKey, std::vec::IntoIter<Event>)>,
    is_begun: bool,
}

impl Emitter {
    /// An emitter for a stage, whose times are shifted by `shift`.
    pub(super) fn new(mut stage: Stage, shift: Shift, pids: &mut Pids) -> Emitter {
        let target = |p: &super::stage::Process| Target { pid: pids.assign(p.pid), ..Target::default() };
        let targets: Vec<Target> = stage.processes.iter().map(target).collect();
        let file_pids = stage.processes.iter().map(|p| p.pid.and_then(|pid| u64::try_from(pid).ok()));
        let pid_of = file_pids.zip(&targets).filter_map(|(pid, target)| Some((pid?, target.pid)));
        let others = stage.without_process.map(|row| (0, targets[row as usize].pid));
        let pid_of = pid_of.chain(others).collect();
        let mut tracks = std::mem::take(&mut stage.tracks);
        // In the order of the file's processes, and of their tracks.
        tracks.sort_by_key(|t| (t.process, t.order));
        tracks.reverse();
        Emitter { stage, shift, targets, pid_of, tracks, further: Vec::new(), current: None, is_begun: false }
    }

    /// Adds at most [`BATCH_EVENTS`] events to a batch; returns false when there are no more.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> bool {
        if !self.is_begun {
            self.is_begun = true;
            self.processes(batch);
        }
        let mut room = BATCH_EVENTS;
        while room > 0 {
            if self.current.is_none() {
                match self.further.pop() {
                    Some(track) => self.set_current(track, batch),
                    None => {
                        let Some(track) = self.tracks.pop() else { return false };
                        self.begin(track, batch);
                    }
                }
            }
            let Some((process, key, mut events)) = self.current.take() else { continue };
            let n = room.min(events.len());
            for event in events.by_ref().take(n) {
                let event = self.translate(process, event, batch);
                batch.track(key).events.push(event);
            }
            room -= n;
            if events.len() > 0 {
                self.current = Some((process, key, events));
            }
        }
        true
    }

    fn processes(&self, batch: &mut Batch) {
        batch.warnings.extend(self.stage.problems.warnings(&self.stage.source));
        for (process, target) in self.stage.processes.iter().zip(&self.targets) {
            let mut name = process.name.clone();
            if name.is_empty() {
                name = process.pid.map_or("process".to_owned(), |pid| format!("process {pid}"));
            }
            if !process.label.is_empty() {
                name = format!("{name} ({})", process.label);
            }
            // The id in the file, if the batches have another one.
            if let Some(pid) = process.pid.filter(|pid| *pid != i64::from(target.pid)) {
                name = format!("{name} (process {pid})");
            }
            let host = match self.stage.rank {
                _ if !process.host.is_empty() => process.host.clone(),
                Some(rank) if self.stage.host.is_empty() => format!("rank {rank}"),
                Some(rank) => format!("{}, rank {rank}", self.stage.host),
                None => self.stage.host.clone(),
            };
            batch.name(Name::Process { pid: target.pid, host, name, ns_per_tick: 1.0 });
        }
    }

    fn begin(&mut self, mut track: Track, batch: &mut Batch) {
        if track.slices.is_empty() && track.points.is_empty() {
            return;
        }
        for (n, slices) in arrange(&mut track.slices).into_iter().enumerate().rev() {
            let name = match n {
                0 => format!("{} (more)", track.name),
                n => format!("{} (more {})", track.name, n + 1),
            };
            let (points, marks, device) = (Vec::new(), Vec::new(), track.device.clone());
            self.further.push(Track { name, slices, points, marks, device, merge: None, ..track });
        }
        track.points.sort_by_key(|e| e.start);
        self.set_current(track, batch);
    }

    /// Makes a track, whose events are in order, the current one.
    fn set_current(&mut self, mut track: Track, batch: &mut Batch) {
        let mut events = track.slices;
        events.append(&mut track.points);
        let target = &mut self.targets[track.process as usize];
        let key = TrackKey { pid: target.pid, ring: target.n_tracks };
        target.n_tracks += 1;
        let (kind, tid, device, stream) = (track.kind, track.tid, track.device, track.stream);
        let name = match (track.name.is_empty(), stream, tid) {
            (false, ..) => track.name,
            (true, Some(stream), _) => format!("{device} stream {stream}"),
            (true, None, 0) => "events".to_owned(),
            (true, None, tid) => format!("thread {tid}"),
        };
        batch.name(Name::Track { key, kind, name, tid, device, stream, order: track.order });
        self.current = Some((track.process, key, events.into_iter()));
    }

    /// An event with the ids of its process, the arguments of its batch, and shifted times.
    fn translate(&mut self, process: ProcessIdx, event: Event, batch: &mut Batch) -> Event {
        let (stage, target) = (&self.stage, &mut self.targets[process as usize]);
        let next = target.sites.len() as u32;
        let site = *target.sites.entry(event.site).or_insert_with(|| {
            if let Some(site) = stage.sites.get(SiteIdx(event.site)) {
                let (category, name) = (site.category.clone(), site.name.clone());
                batch.name(Name::Site { pid: target.pid, id: next, category, name });
            }
            next
        });
        let next = target.nodes.len() as u32;
        let node = match stage.nodes.get_index(event.node as usize) {
            None => NO_NODE,
            Some((name, op, device)) => *target.nodes.entry(event.node).or_insert_with(|| {
                let (name, op, device) = (name.clone(), op.clone(), device.clone());
                batch.name(Name::Node { pid: target.pid, id: next, name, op, device });
                next
            }),
        };
        let args = if event.args == NO_ARGS { NO_ARGS } else { batch.args.push_row(&self.stage.args, event.args) };
        // No format says which node made an op ready.
        let means = if event.kind == EventKind::Slice { stage.sites.means(event.site) } else { Category::Other };
        let correlation = if means == Category::Op { NO_NODE } else { event.correlation };
        // The `arg` of a thread that runs on a CPU is its process.
        let is_running = means == Category::Running;
        let arg =
            if is_running { self.pid_of.get(&event.arg).map_or(event.arg, |pid| u64::from(*pid)) } else { event.arg };
        let (start, end) = (self.shift.apply(event.start), self.shift.apply(event.end));
        Event { site, node, correlation, arg, args, start, end, ..event }
    }
}
