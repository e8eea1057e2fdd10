//! The time of a step by activity: input, host, device compute, exposed and overlapped communication, copies, idle.
//!
//! Each moment belongs to the first of compute, communication, copy, input and host that runs in it; else it is idle.
//! So the parts add up to the range. Communication and copies are *exposed* while no compute runs, else *overlapped*.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::LineKind;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::TrackId;
use trace_store::Store;

/// The time of a range by activity. All times are ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// The range. All times except the overlapped ones add up to its length.
    pub range: Range<i64>,
    /// A device computes: kernels, and ops of a graph.
    pub compute_ns: i64,
    /// Devices or processes exchange data, and nothing computes.
    pub communication_exposed_ns: i64,
    /// Devices or processes exchange data, and something computes.
    pub communication_overlapped_ns: i64,
    /// Memory is copied, and nothing computes or communicates.
    pub copy_exposed_ns: i64,
    /// Memory is copied, and something computes or communicates.
    pub copy_overlapped_ns: i64,
    /// Only input is made.
    pub input_ns: i64,
    /// Only hosts run: launches, framework code, allocations.
    pub host_ns: i64,
    /// Nothing that was recorded runs.
    pub idle_ns: i64,
}

impl Breakdown {
    /// The range's length.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        self.range.end - self.range.start
    }
}

/// The times of a device from its first work to its last. While only hosts run, the device is idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceBreakdown {
    /// Row of the processes.
    pub process: u32,
    /// The device, as its tracks name it.
    pub device: String,
    /// The device's times.
    pub times: Breakdown,
    /// Track, busy ns and idle ns of each stream of the device, from the stream's first work to its last.
    pub streams: Vec<(TrackId, i64, i64)>,
}

// Classes of activity, in order of precedence.
const COMPUTE: usize = 0;
const COMMUNICATION: usize = 1;
const COPY: usize = 2;
const INPUT: usize = 3;
const HOST: usize = 4;

fn class_of(activity: Activity) -> Option<usize> {
    Some(match activity {
        Activity::Op | Activity::Shard | Activity::Kernel => COMPUTE,
        Activity::Collective => COMMUNICATION,
        Activity::Copy => COPY,
        Activity::Input => INPUT,
        Activity::HostOp | Activity::Host | Activity::Enclosing | Activity::Running => HOST,
        Activity::Call | Activity::Launch | Activity::Memory | Activity::Profiler => HOST,
        Activity::Sync | Activity::Idle | Activity::Asleep | Activity::Runnable | Activity::Frame => return None,
    })
}

/// Whether a device computes.
pub(crate) fn is_compute(activity: Activity) -> bool {
    class_of(activity) == Some(COMPUTE)
}

/// The breakdown of a range over all processes, or over one.
#[must_use]
pub fn breakdown(store: &Store, range: Range<i64>, process: Option<u32>) -> Breakdown {
    compute_breakdown(&Deps::new(store, &range), range, process)
}

pub(crate) fn compute_breakdown(deps: &Deps<'_>, range: Range<i64>, process: Option<u32>) -> Breakdown {
    let lines = deps.lines.lines.iter().enumerate().filter(|(_, l)| process.is_none_or(|p| l.process == p));
    let mut sweep = Sweep::new(range);
    for (line, _) in lines {
        sweep.add_line(deps, line, |_| true);
    }
    let is_in_process = |track: Option<TrackId>, process: u32| {
        track.and_then(|track| deps.store.track(track)).is_some_and(|track| track.process == process)
    };
    for transfer in deps.store.transfers() {
        if let (Some(sent), Some(arrived)) = (transfer.sent.or(transfer.left), transfer.arrived)
            && process.is_none_or(|p| is_in_process(transfer.from, p) || is_in_process(transfer.to, p))
        {
            sweep.add(COMMUNICATION, sent..arrived);
        }
    }
    sweep.breakdown()
}

/// Returns the breakdown of each device that has streams, cut to the range, since the index may have slices outside it.
pub(crate) fn device_breakdowns(deps: &Deps<'_>, range: &Range<i64>) -> Vec<DeviceBreakdown> {
    let mut devices: Vec<(u32, &str, Vec<usize>)> = Vec::new();
    let mut rows: FxHashMap<(u32, &str), usize> = FxHashMap::default();
    for (row, line) in deps.lines.lines.iter().enumerate() {
        if line.kind != LineKind::Device || line.pieces.is_empty() {
            continue;
        }
        let device = deps.store.track(line.track).map_or("", |t| t.device.as_str());
        let device = *rows.entry((line.process, device)).or_insert_with(|| {
            devices.push((line.process, device, Vec::new()));
            devices.len() - 1
        });
        devices[device].2.push(row);
    }
    let break_down_device = |(process, device, lines): (u32, &str, Vec<usize>)| {
        let clip = |e: Range<i64>| e.start.max(range.start)..e.end.min(range.end);
        let extent = |l: &usize| deps.lines.lines[*l].extent().map(clip).filter(|extent| !extent.is_empty());
        let extents = || lines.iter().filter_map(extent);
        let range = extents().map(|e| e.start).min()?..extents().map(|e| e.end).max()?;
        let mut sweep = Sweep::new(range);
        let mut streams = Vec::new();
        for line in &lines {
            sweep.add_line(deps, *line, Activity::is_work);
            let Some(extent) = extent(line) else { continue };
            let line = &deps.lines.lines[*line];
            let work = line.pieces.iter().filter(|p| p.activity.is_work());
            let busy = work.map(|p| (p.end.min(extent.end) - p.start.max(extent.start)).max(0)).sum();
            streams.push((line.track, busy, extent.end - extent.start - busy));
        }
        Some(DeviceBreakdown { process, device: device.to_owned(), times: sweep.breakdown(), streams })
    };
    devices.into_iter().filter_map(break_down_device).collect()
}

/// The starts and ends of activities in a range.
struct Sweep {
    range: Range<i64>,
    /// (time, class, change of the number of activities: +1 or -1).
    edges: Vec<(i64, usize, i32)>,
}

impl Sweep {
    fn new(range: Range<i64>) -> Sweep {
        Sweep { range, edges: Vec::new() }
    }

    fn add(&mut self, class: usize, span: Range<i64>) {
        let (start, end) = (span.start.max(self.range.start), span.end.min(self.range.end));
        if start < end {
            self.edges.extend([(start, class, 1), (end, class, -1)]);
        }
    }

    fn add_line(&mut self, deps: &Deps<'_>, line: usize, is_counted: impl Fn(Activity) -> bool) {
        let pieces = &deps.lines.lines[line].pieces;
        let first = pieces.partition_point(|p| p.end <= self.range.start);
        let end = self.range.end;
        for piece in pieces[first..].iter().take_while(|p| p.start < end).filter(|p| is_counted(p.activity)) {
            if let Some(class) = class_of(piece.activity) {
                self.add(class, piece.start..piece.end);
            }
        }
    }

    fn breakdown(mut self) -> Breakdown {
        self.edges.sort_unstable();
        let range = self.range;
        let (mut n_open, mut last_time) = ([0i32; 5], range.start);
        let mut times = Breakdown { range, ..Breakdown::default() };
        for (time, class, change) in self.edges {
            times.add(&n_open, time - last_time);
            last_time = time;
            n_open[class] += change;
        }
        times.add(&n_open, times.range.end - last_time);
        times
    }
}

impl Breakdown {
    /// Adds `ns` in which `n_open` activities of each class ran.
    fn add(&mut self, n_open: &[i32; 5], ns: i64) {
        let [compute, communication, copy, input, host] = n_open.map(|n| n > 0);
        if compute && communication {
            self.communication_overlapped_ns += ns;
        }
        if copy && (compute || communication) {
            self.copy_overlapped_ns += ns;
        }
        let part = match () {
            () if compute => &mut self.compute_ns,
            () if communication => &mut self.communication_exposed_ns,
            () if copy => &mut self.copy_exposed_ns,
            () if input => &mut self.input_ns,
            () if host => &mut self.host_ns,
            () => &mut self.idle_ns,
        };
        *part += ns;
    }
}
