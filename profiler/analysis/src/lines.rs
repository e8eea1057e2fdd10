//! Lines: the nested slices of each track, flattened into pieces that follow each other.
//!
//! A piece is a part of a slice in which no slice nested in it ran. Pieces of a line never overlap, so that a binary
//! search finds the piece that ran just before a time.

use super::activity::{Activities, Activity};
use super::search::partition_point_near;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use trace_model::{Category, SliceId, SliceRef, TrackId, TrackKind};
use trace_store::{Store, Track};

/// A part of a slice that no nested slice covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub start: i64,
    pub end: i64,
    /// Index of [`Line::slices`].
    pub slice: u32,
    pub activity: Activity,
}

/// The kind of worker on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A thread that runs graph nodes.
    Worker,
    /// Any other thread.
    Host,
    /// A stream or a copy engine.
    Device,
}

/// The flattened slices of a thread, a stream or a copy engine.
pub(crate) struct Line {
    pub track: TrackId,
    pub process: u32,
    pub kind: LineKind,
    /// The slices, sorted by start, outer before inner.
    pub slices: Vec<SliceRef>,
    pub pieces: Vec<Piece>,
}

/// A piece: index of the line, and index of the piece in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceId {
    pub line: u32,
    pub piece: u32,
}

impl Line {
    pub(crate) fn slice(&self, piece: &Piece) -> &SliceRef {
        &self.slices[piece.slice as usize]
    }

    /// Index of the last piece that starts before `time`.
    pub(crate) fn row_before(&self, time: i64) -> Option<u32> {
        (self.pieces.partition_point(|p| p.start < time) as u32).checked_sub(1)
    }

    /// As [`Line::row_before`], with a search that begins at `piece`: fast where the result is a few pieces away.
    pub(crate) fn row_before_near(&self, piece: u32, time: i64) -> Option<u32> {
        (partition_point_near(&self.pieces, piece as usize, |p| p.start < time) as u32).checked_sub(1)
    }

    /// Index of the last piece of work before this piece.
    pub(crate) fn work_before(&self, piece: u32) -> Option<u32> {
        (0..piece).rev().find(|i| self.pieces[*i as usize].activity.is_work())
    }

    /// Whether only the scheduling of the line's thread is recorded.
    pub(crate) fn is_only_scheduled(&self) -> bool {
        self.pieces.iter().find(|p| p.activity.is_work()).is_some_and(|p| p.activity == Activity::Running)
    }

    /// The range from the start of the first work to the end of the last; `None` without work.
    pub(crate) fn extent(&self) -> Option<Range<i64>> {
        let mut work = self.pieces.iter().filter(|p| p.activity.is_work());
        let first = work.next()?;
        Some(first.start..work.next_back().unwrap_or(first).end)
    }
}

/// The lines of all tracks, and the slices on devices' tracks that report waits.
pub(crate) struct Lines {
    /// In the order of the tracks; tracks of no thread and no device (CPUs, links, asynchronous operations) have empty
    /// lines.
    pub lines: Vec<Line>,
    /// Slices of category `sync` on devices' tracks: the records of waits.
    pub syncs: Vec<SliceRef>,
    /// Slices with a piece of activity [`Activity::Enclosing`], which are never culprits: they enclose too much to
    /// explain anything.
    enclosing: FxHashSet<SliceId>,
}

impl Lines {
    /// Flattens the slices that touch the range.
    pub(crate) fn new(store: &Store, activities: &Activities<'_>, range: &Range<i64>) -> Lines {
        let (shared, running) = (slices_by_thread(store, activities, range), running_by_thread(store, range));
        let inputs = LineInputs { shared, running, steps: steps_by_process(store, range) };
        let flattened = store.tracks().par_iter().map(|track| flatten_track(activities, track, range, &inputs));
        let (lines, syncs): (Vec<Line>, Vec<Vec<SliceRef>>) = flattened.unzip();
        let enclosing = lines.iter().flat_map(|line| {
            line.pieces.iter().filter(|p| p.activity == Activity::Enclosing).map(|p| line.slice(p).id)
        });
        let enclosing = enclosing.collect();
        Lines { lines, syncs: syncs.concat(), enclosing }
    }

    /// Returns the slice if it can be a culprit; `None` for a slice that encloses much other work.
    pub(crate) fn culprit(&self, slice: SliceId) -> Option<SliceId> {
        (!self.enclosing.contains(&slice)).then_some(slice)
    }

    pub(crate) fn line(&self, line: u32) -> &Line {
        &self.lines[line as usize]
    }

    pub(crate) fn piece(&self, piece_id: PieceId) -> &Piece {
        &self.lines[piece_id.line as usize].pieces[piece_id.piece as usize]
    }

    pub(crate) fn slice(&self, piece_id: PieceId) -> &SliceRef {
        self.lines[piece_id.line as usize].slice(self.piece(piece_id))
    }
}

fn is_device(kind: TrackKind) -> bool {
    matches!(kind, TrackKind::Stream | TrackKind::Copy)
}

/// The slices of threads that have several tracks (of the program, the scheduler, a device library's calls), by process
/// and thread id; with the track whose line they join: the first of the thread's tracks that has work.
type SlicesByThread = FxHashMap<(u32, u32), (Option<u32>, Vec<SliceRef>)>;

fn slices_by_thread(store: &Store, activities: &Activities<'_>, range: &Range<i64>) -> SlicesByThread {
    let mut n_tracks: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let threads = || store.tracks().iter().filter(|t| t.tid != 0 && is_thread(t.kind));
    for track in threads() {
        *n_tracks.entry((track.process, track.tid)).or_default() += 1;
    }
    let mut slices_by_thread = SlicesByThread::default();
    for track in threads().filter(|t| n_tracks[&(t.process, t.tid)] > 1) {
        let (line, slices) = slices_by_thread.entry((track.process, track.tid)).or_default();
        let n_before = slices.len();
        slices
            .extend(track.lanes.iter().flat_map(|l| l.slices(range)).filter(|s| activities.get(s) != Activity::Frame));
        if line.is_none() && slices[n_before..].iter().any(|s| activities.get(s).is_work()) {
            *line = Some(track.id.0);
        }
    }
    slices_by_thread
}

/// The slices of CPUs' tracks in which each thread ran, by process and thread id.
type RunningByThread = FxHashMap<(u32, u32), Vec<SliceRef>>;

fn running_by_thread(store: &Store, range: &Range<i64>) -> RunningByThread {
    let mut running = RunningByThread::default();
    let rows = || (0..).zip(store.processes());
    let processes: FxHashMap<(&str, u32), u32> = rows().map(|(row, p)| ((p.host.as_str(), p.pid), row)).collect();
    for track in store.tracks().iter().filter(|track| track.kind == TrackKind::Cpu) {
        let Some(host) = store.processes().get(track.process as usize).map(|p| p.host.as_str()) else { continue };
        let slices = track.lanes.iter().flat_map(|lane| lane.slices(range));
        for slice in slices.filter(|slice| store.category(slice) == Category::Running) {
            let process = u32::try_from(slice.arg).ok().and_then(|pid| processes.get(&(host, pid)));
            if let Some(process) = process {
                running.entry((*process, slice.correlation)).or_default().push(slice);
            }
        }
    }
    running
}

fn is_thread(kind: TrackKind) -> bool {
    matches!(kind, TrackKind::Thread | TrackKind::Worker)
}

/// The steps that touch a range, by process, sorted by start.
type StepsByProcess = FxHashMap<u32, Vec<Range<i64>>>;

fn steps_by_process(store: &Store, range: &Range<i64>) -> StepsByProcess {
    let mut steps = StepsByProcess::default();
    for step in store.steps().iter().filter(|s| s.start < range.end && s.end > range.start) {
        if let Some(track) = store.tracks().get(step.slice.track as usize) {
            steps.entry(track.process).or_default().push(step.start..step.end);
        }
    }
    steps.values_mut().for_each(|steps| steps.sort_unstable_by_key(|step| step.start));
    steps
}

/// Whether each slice of a host's thread (sorted by start, outer before inner) encloses much other work, so that its
/// self time does not say what ran. Such a slice has nested slices, and is a label or covers half of a step or of the
/// thread's lifetime.
fn are_enclosing(activities: &Activities<'_>, slices: &[SliceRef], steps: &[Range<i64>]) -> Vec<bool> {
    let (begin, end) = (slices.first().map_or(0, |s| s.start), slices.iter().map(|s| s.end).max().unwrap_or(0));
    let is_half_of_step = |slice: &SliceRef| {
        let n_begun = steps.partition_point(|step| step.start <= slice.start);
        let is_half = |step: &Range<i64>| {
            let inside = slice.end.min(step.end) - slice.start.max(step.start);
            step.start < step.end && 2 * inside >= step.end - step.start
        };
        steps[n_begun.saturating_sub(1)..].iter().take(2).any(is_half)
    };
    let is_enclosing = |(i, slice): (usize, &SliceRef)| {
        let has_nested = slices.get(i + 1).is_some_and(|next| next.start < slice.end && next.end <= slice.end);
        let is_half_of_thread = || 2 * slice.dur() >= end - begin;
        activities.get(slice) == Activity::Host
            && has_nested
            && (activities.is_label(slice) || is_half_of_thread() || is_half_of_step(slice))
    };
    slices.iter().enumerate().map(is_enclosing).collect()
}

/// The inputs of a line in addition to its track.
struct LineInputs {
    /// The slices of threads with several tracks.
    shared: SlicesByThread,
    running: RunningByThread,
    steps: StepsByProcess,
}

/// The line of a track, and the slices of a device's track that report waits.
fn flatten_track(
    activities: &Activities<'_>,
    track: &Track,
    range: &Range<i64>,
    inputs: &LineInputs,
) -> (Line, Vec<SliceRef>) {
    let (id, process) = (track.id, track.process);
    let mut kind = if is_device(track.kind) { LineKind::Device } else { LineKind::Host };
    let (mut slices, mut syncs): (Vec<SliceRef>, Vec<SliceRef>) = (Vec::new(), Vec::new());
    // A thread with several tracks has one line.
    let shared = if is_thread(track.kind) { inputs.shared.get(&(process, track.tid)) } else { None };
    let is_line = match shared {
        Some((line, _)) => line.is_none_or(|line| line == id.0),
        None => is_device(track.kind) || is_thread(track.kind),
    };
    let other_slices = shared.iter().flat_map(|(_, slices)| slices).filter(|s| s.id.track != id.0).copied();
    let track_slices = track.lanes.iter().flat_map(|l| l.slices(range));
    for slice in track_slices.chain(other_slices).filter(|_| is_line) {
        match (activities.get(&slice), kind) {
            (Activity::Frame, _) => continue,
            (Activity::Sync, LineKind::Device) => syncs.push(slice),
            (activity, LineKind::Device) if !activity.is_device() && !is_device_op(activity) => continue,
            (Activity::Op | Activity::Shard, LineKind::Host) => {
                kind = LineKind::Worker;
                slices.push(slice);
            }
            _ => slices.push(slice),
        }
    }
    if kind == LineKind::Worker {
        // Host slices of a worker only enclose the ops that the worker runs.
        slices.retain(|s| activities.get(s) != Activity::Host);
    }
    let mut has_work = slices.iter().any(|s| activities.get(s).is_work());
    if let Some(running) = inputs.running.get(&(process, track.tid)).filter(|_| !has_work && !slices.is_empty()) {
        slices.extend(running);
        has_work = true;
    }
    // Of many ranks the spare room would be a third of all that the analyses hold.
    slices.shrink_to_fit();
    slices.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end), s.id.lane));
    let mut pieces = if has_work { flatten(activities, &slices) } else { Vec::new() };
    // Frames were left out above, so a frame here is a slice of a CPU's track, in which the thread ran.
    pieces.iter_mut().filter(|p| p.activity == Activity::Frame).for_each(|p| p.activity = Activity::Running);
    if kind == LineKind::Host && !pieces.is_empty() {
        let is_enclosing =
            are_enclosing(activities, &slices, inputs.steps.get(&process).map_or(&[][..], Vec::as_slice));
        let pieces = pieces.iter_mut().filter(|p| p.activity == Activity::Host && is_enclosing[p.slice as usize]);
        pieces.for_each(|p| p.activity = Activity::Enclosing);
    }
    if kind == LineKind::Device {
        // An op on a device's track is the device's kernel.
        pieces
            .iter_mut()
            .filter(|p| matches!(p.activity, Activity::Op | Activity::HostOp))
            .for_each(|p| p.activity = Activity::Kernel);
    }
    pieces.shrink_to_fit();
    (Line { track: id, process, kind, slices, pieces }, syncs)
}

/// Whether an activity other than [`Activity::is_device`] counts on a device's track: ops, and the wait for input.
fn is_device_op(activity: Activity) -> bool {
    matches!(activity, Activity::Op | Activity::HostOp | Activity::Input)
}

/// A slice that has begun and not ended at the sweep's position.
struct OpenSlice {
    end: i64,
    slice: u32,
    activity: Activity,
}

/// A sweep over slices by start, outer before inner. Where slices overlap without nesting, the time belongs to the
/// slice that began last.
#[derive(Default)]
struct Flattener {
    pieces: Vec<Piece>,
    open: Vec<OpenSlice>,
    /// The position of the sweep.
    position: i64,
}

impl Flattener {
    /// Moves the sweep to `to`. Up to `to` the innermost open slice ran.
    fn advance(&mut self, to: i64) {
        while let Some(top) = self.open.last() {
            let end = top.end.min(to);
            if self.position < end {
                let (slice, activity) = (top.slice, top.activity);
                match self.pieces.last_mut() {
                    Some(last) if last.end == self.position && last.slice == slice => last.end = end,
                    _ => self.pieces.push(Piece { start: self.position, end, slice, activity }),
                }
                self.position = end;
            }
            if top.end > to {
                break;
            }
            self.open.pop();
        }
        self.position = to;
    }

    fn push(&mut self, index: u32, slice: &SliceRef, activity: Activity) {
        self.advance(slice.start);
        let mut next = OpenSlice { end: slice.end, slice: index, activity };
        // Host code that is nested in the making of input counts as input, and host code nested in the profiler's work
        // as the profiler's.
        if let Some(outer) = self.open.last().filter(|o| matches!(o.activity, Activity::Input | Activity::Profiler))
            && matches!(activity, Activity::Host | Activity::HostOp)
        {
            (next.slice, next.activity) = (outer.slice, outer.activity);
        }
        if slice.start == slice.end {
            let (start, end) = (slice.start, slice.end);
            self.pieces.push(Piece { start, end, slice: next.slice, activity: next.activity });
        } else {
            self.open.push(next);
        }
    }
}

/// Flattens slices that are sorted by start, outer before inner.
pub(crate) fn flatten(activities: &Activities<'_>, slices: &[SliceRef]) -> Vec<Piece> {
    let pieces = Vec::with_capacity(slices.len());
    let mut sweep = Flattener { pieces, open: Vec::new(), position: i64::MIN };
    for (index, slice) in slices.iter().enumerate() {
        sweep.push(index as u32, slice, activities.get(slice));
    }
    sweep.advance(i64::MAX);
    sweep.pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_from_near_finds_what_the_search_of_all_finds() {
        let pieces = [0, 4, 4, 9, 10, 17, 23, 23, 40];
        let piece = |start: i64| Piece { start, end: start + 1, slice: 0, activity: Activity::Op };
        let pieces = pieces.map(piece).to_vec();
        let line = Line { track: TrackId(0), process: 0, kind: LineKind::Worker, slices: Vec::new(), pieces };
        for time in -1..45 {
            for from in 0..=line.pieces.len() as u32 {
                assert_eq!(line.row_before_near(from, time), line.row_before(time), "{time} from {from}");
            }
        }
    }
}
