//! The stage: what an importer has read of one file, in any order: processes, tracks, slices, begins and ends, flows.
//!
//! A store expects each track in order of time; files have events in any order. So a file is read entirely into a stage
//! (48 bytes per event; arguments stay in the file), [ordered](Stage::finish), and then converted to batches.

use super::async_slices::{AsyncKey, AsyncSlices};
use super::flows::Flows;
use super::ids::{NodeIdx, ProcessIdx, SiteIdx, TrackIdx};
use super::marks::{Mark, close};
use super::problems::{Problem, Problems};
use super::sites::Sites;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeMap;
use std::path::PathBuf;
use trace_model::{Args, Event, EventKind, TrackKind};

/// The kind and id of a track in its process, as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TrackOf {
    /// A thread.
    Thread(i64),
    /// A CPU of the machine.
    Cpu(i64),
    /// A device's stream or line.
    Stream(i64, i64),
    /// Asynchronous slices, by their [name](Stage::text_id).
    Async(i64),
    /// Anything with an identity of its own.
    Other(u64),
}

/// A process or a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// The id, if it is a number.
    pub(super) pid: Option<i64>,
    pub(super) name: String,
    pub(super) label: String,
    /// The host, if it is not that of the file.
    pub(super) host: String,
    pub(super) order: i32,
}

/// A track with its events so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    pub(super) process: ProcessIdx,
    pub(super) kind: TrackKind,
    pub(super) name: String,
    pub(super) tid: u32,
    pub(super) device: String,
    pub(super) stream: Option<u64>,
    pub(super) order: i32,
    /// Tracks with the same value are merged into one.
    pub(super) merge: Option<u64>,
    pub(super) slices: Vec<Event>,
    pub(super) marks: Vec<Mark>,
    /// Events other than slices.
    pub(super) points: Vec<Event>,
}

#[derive(Default)]
pub(super) struct Stage {
    /// The file's name, for warnings.
    pub(super) source: String,
    pub(super) path: PathBuf,
    pub(super) host: String,
    /// The rank in a job of several processes.
    pub(super) rank: Option<u32>,
    /// Added to a time gives ns since 1970, if known.
    pub(super) wall_offset: Option<i64>,
    pub(super) processes: Vec<Process>,
    process_of: FxHashMap<i64, ProcessIdx>,
    pub(super) tracks: Vec<Track>,
    track_of: FxHashMap<(ProcessIdx, TrackOf), TrackIdx>,
    /// Tracks of [`Stage::thread_of_any`] by thread.
    unsettled: BTreeMap<i64, TrackIdx>,
    /// The process for threads whose process is unknown.
    pub(super) without_process: Option<ProcessIdx>,
    texts: IndexSet<String, FxBuildHasher>,
    pub(super) sites: Sites,
    /// Graph nodes: name, op, device.
    pub(super) nodes: IndexSet<(String, String, String), FxBuildHasher>,
    pub(super) args: Args,
    pub(super) flows: Flows,
    async_slices: AsyncSlices,
    counters: Vec<(ProcessIdx, Event)>,
    /// Tracks that were merged into others.
    merged: FxHashMap<TrackIdx, TrackIdx>,
    pub(super) problems: Problems,
    /// The last time of all events.
    last: i64,
}

impl Stage {
    pub(super) fn new(source: &str) -> Stage {
        Stage { source: source.to_owned(), last: i64::MIN, ..Stage::default() }
    }

    /// A number for an id that is a text; it differs from all numbers in files.
    pub(super) fn text_id(&mut self, text: &str) -> i64 {
        let known = self.texts.get_index_of(text);
        i64::MIN + known.unwrap_or_else(|| self.texts.insert_full(text.to_owned()).0) as i64
    }

    /// The process with this id, as the file has it or from [`Stage::text_id`].
    pub(super) fn process(&mut self, id: i64) -> ProcessIdx {
        let processes = &mut self.processes;
        *self.process_of.entry(id).or_insert_with(|| {
            let pid = (id >= 0).then_some(id);
            processes.push(Process { pid, ..Process::default() });
            processes.len() as ProcessIdx - 1
        })
    }

    /// A track, which may be new.
    pub(super) fn track(&mut self, process: ProcessIdx, of: TrackOf) -> TrackIdx {
        let tracks = &mut self.tracks;
        *self.track_of.entry((process, of)).or_insert_with(|| {
            tracks.push(Track::new(process, of));
            tracks.len() as TrackIdx - 1
        })
    }

    /// The track of a thread, by the ids of process and thread.
    pub(super) fn thread(&mut self, pid: i64, tid: i64) -> TrackIdx {
        let process = self.process(pid);
        self.track(process, TrackOf::Thread(tid))
    }

    /// The track of a thread whose process is not known yet, until it is [settled](Stage::settle).
    pub(super) fn thread_of_any(&mut self, tid: i64) -> TrackIdx {
        let tracks = &mut self.tracks;
        *self.unsettled.entry(tid).or_insert_with(|| {
            tracks.push(Track::new(ProcessIdx::MAX, TrackOf::Thread(tid)));
            tracks.len() as TrackIdx - 1
        })
    }

    /// The threads whose process is still to be reported.
    pub(super) fn unsettled(&self) -> Vec<i64> {
        self.unsettled.keys().copied().collect()
    }

    /// Sets the process of a thread. Events on the track without a process are moved to the thread's track in the
    /// process.
    pub(super) fn settle(&mut self, tid: i64, process: ProcessIdx) {
        let Some(from) = self.unsettled.remove(&tid) else { return };
        let to = *self.track_of.entry((process, TrackOf::Thread(tid))).or_insert(from);
        self.tracks[from as usize].process = process;
        if to != from {
            self.move_events(from, to);
            let name = std::mem::take(&mut self.tracks[from as usize].name);
            self.name_track(to, &name);
        }
    }

    /// Appends the events of one track to those of another.
    fn move_events(&mut self, from: TrackIdx, to: TrackIdx) {
        let from = &mut self.tracks[from as usize];
        let (slices, points) = (std::mem::take(&mut from.slices), std::mem::take(&mut from.points));
        let marks = std::mem::take(&mut from.marks);
        let to = &mut self.tracks[to as usize];
        to.slices.extend(slices);
        to.points.extend(points);
        to.marks.extend(marks);
    }

    pub(super) fn site(&mut self, category: &str, name: &str) -> SiteIdx {
        self.sites.get_or_add(category, name)
    }

    /// A graph node by its full name, op type and device.
    pub(super) fn node(&mut self, name: &str, op: &str, device: &str) -> NodeIdx {
        self.nodes.insert_full((name.to_owned(), op.to_owned(), device.to_owned())).0 as NodeIdx
    }

    /// Adds a slice. A slice that ends before it begins gets no duration, and is counted.
    pub(super) fn slice(&mut self, track: TrackIdx, slice: Event) {
        if slice.end < slice.start {
            self.problems.count(Problem::NegativeDuration);
        }
        let end = slice.end.max(slice.start);
        self.last = self.last.max(end);
        self.tracks[track as usize].slices.push(Event { end, ..slice });
    }

    /// Adds a begin with its site, or an end: of that site, or without one of the innermost open slice.
    pub(super) fn mark(&mut self, track: TrackIdx, time: i64, is_end: bool, site: Option<SiteIdx>, args: u32) {
        self.last = self.last.max(time);
        let site = site.unwrap_or(SiteIdx::NONE);
        self.tracks[track as usize].marks.push(Mark { time, is_end, site, args });
    }

    /// Adds an event other than a slice.
    pub(super) fn point(&mut self, track: TrackIdx, point: Event) {
        self.last = self.last.max(point.start);
        self.tracks[track as usize].points.push(point);
    }

    /// Adds an instant with arguments.
    pub(super) fn instant(&mut self, track: TrackIdx, time: i64, site: SiteIdx, args: u32) {
        self.point(track, Event { args, ..site.at(EventKind::Instant, time) });
    }

    /// Adds the value of a process's counter.
    pub(super) fn counter(&mut self, process: ProcessIdx, time: i64, site: SiteIdx, value: f64) {
        self.note_time(time);
        self.counters.push((process, Event { arg: value.to_bits(), ..site.at(EventKind::Counter, time) }));
    }

    /// Adds a begin or an end of an asynchronous slice.
    pub(super) fn async_mark(&mut self, key: AsyncKey, time: i64, is_end: bool, site: SiteIdx, args: u32) {
        self.note_time(time);
        self.async_slices.mark(key, Mark { time, is_end, site, args });
    }

    /// Adds an instant of an asynchronous slice.
    pub(super) fn async_instant(&mut self, key: AsyncKey, time: i64, site: SiteIdx, args: u32) {
        self.note_time(time);
        self.async_slices.point(key, Event { args, ..site.at(EventKind::Instant, time) });
    }

    /// Names a track that has no name yet.
    pub(super) fn name_track(&mut self, track: TrackIdx, name: &str) {
        let present = &mut self.tracks[track as usize].name;
        if present.is_empty() {
            name.clone_into(present);
        }
    }

    /// Names a process that has no name yet.
    pub(super) fn name_process(&mut self, process: ProcessIdx, name: &str) {
        let present = &mut self.processes[process as usize].name;
        if present.is_empty() {
            name.clone_into(present);
        }
    }

    /// Extends the range of times.
    fn note_time(&mut self, time: i64) {
        self.last = self.last.max(time);
    }

    /// Whether there are no events.
    pub(super) fn is_empty(&self) -> bool {
        self.tracks.iter().all(|t| t.slices.is_empty() && t.points.is_empty())
    }

    /// The first and the last time of all events; `None` without events.
    pub(super) fn range(&self) -> Option<(i64, i64)> {
        let events = || self.tracks.iter().flat_map(|t| t.slices.iter().chain(&t.points));
        Some((events().map(|e| e.start).min()?, events().map(|e| e.end).max()?))
    }

    /// Pairs begins and ends to slices, and adds the ends of flows to their tracks.
    pub(super) fn finish(&mut self, correlations: &mut u32) {
        let end = self.last;
        for track in &mut self.tracks {
            let marks = std::mem::take(&mut track.marks);
            if !marks.is_empty() {
                close(marks, end, &self.sites, &mut self.problems, &mut track.slices);
            }
        }
        self.merge();
        for (process, name, slices, points) in self.async_slices.finish(end, &self.sites, &mut self.problems) {
            let id = self.text_id(&name);
            let track = self.track(process, TrackOf::Async(id));
            let track = &mut self.tracks[track as usize];
            track.name = name;
            track.slices.extend(slices);
            track.points.extend(points);
        }
        for (track, event) in self.flows.finish(correlations, &mut self.sites) {
            let track = self.merged.get(&track).copied().unwrap_or(track);
            self.tracks[track as usize].points.push(event);
        }
        for lone in &mut self.flows.lone {
            lone.track = self.merged.get(&lone.track).copied().unwrap_or(lone.track);
        }
        self.place_counters();
    }

    /// Merges tracks that are shown as one into the first of them, with their flows.
    fn merge(&mut self) {
        let mut first: FxHashMap<u64, TrackIdx> = FxHashMap::default();
        for idx in 0..self.tracks.len() as TrackIdx {
            let Some(key) = self.tracks[idx as usize].merge else { continue };
            let to = *first.entry(key).or_insert(idx);
            if to != idx {
                self.move_events(idx, to);
                self.merged.insert(idx, to);
            }
        }
    }

    /// A counter is a process's; in a batch it travels with one of its tracks.
    fn place_counters(&mut self) {
        let mut carriers: FxHashMap<ProcessIdx, TrackIdx> = FxHashMap::default();
        for (idx, track) in self.tracks.iter().enumerate() {
            if !(track.slices.is_empty() && track.points.is_empty()) {
                carriers.entry(track.process).or_insert(idx as TrackIdx);
            }
        }
        for (process, event) in std::mem::take(&mut self.counters) {
            let track = match carriers.get(&process) {
                Some(track) => *track,
                None => {
                    let track = self.track(process, TrackOf::Other(0));
                    self.tracks[track as usize].name = "counters".to_owned();
                    *carriers.entry(process).or_insert(track)
                }
            };
            self.tracks[track as usize].points.push(event);
        }
    }
}

impl Track {
    fn new(process: ProcessIdx, of: TrackOf) -> Track {
        let unnamed = |kind, tid| (kind, tid, String::new(), 0);
        let (kind, tid, name, order) = match of {
            TrackOf::Thread(tid) => unnamed(TrackKind::Thread, u32::try_from(tid).unwrap_or(0)),
            TrackOf::Cpu(cpu) => (TrackKind::Cpu, 0, format!("CPU {cpu}"), i32::try_from(cpu).unwrap_or(i32::MAX)),
            TrackOf::Stream(..) => unnamed(TrackKind::Stream, 0),
            TrackOf::Async(_) | TrackOf::Other(_) => unnamed(TrackKind::Async, 0),
        };
        Track { process, kind, name, tid, order, ..Track::default() }
    }
}
