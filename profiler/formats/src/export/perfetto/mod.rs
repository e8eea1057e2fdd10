//! Perfetto's protobuf traces, as its user interface opens them.
//!
//! * Threads and processes are what they are; all else (streams, CPUs, waits) is a track of its process. What Perfetto has
//!   no field for stands in a track's description ([`about`]), from which our importer takes it back.
//! * A Perfetto track holds slices that nest. What overlaps goes to child tracks of the same name ([`nest`]): nothing is
//!   dropped, and the user interface shows them as one.
//! * Arrows connect slices: an end goes to the innermost slice that runs at its time ([`arrows`]). Where none does, it is an
//!   instant.
//! * Names are interned ([`intern`]), all packets are one sequence, in order of time.
//! * Not kept: numbers of slices that mean nothing to Perfetto are arguments; warnings.

mod about;
mod args;
mod arrows;
mod intern;
mod nest;

pub(crate) use about::About;

use super::rows::{counter_names, instant_args, memory_args, open_names, site_names, slice_args, thread_ids};
use arrows::{Arrow, Arrows};
use formats::perfetto::{
    CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use intern::Interned;
use nest::{Nested, Next};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Write};
use trace_model::{InstantEvent, OpenSlice, SliceRef};
use trace_store::{Store, Track};

/// The writer of all packets.
const SEQUENCE: u32 = 1;
/// `sequence_flags`: names are known from here on, and are needed.
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;
/// `TrackEvent.type`.
const BEGIN: u32 = 1;
const END: u32 = 2;
const INSTANT: u32 = 3;
const COUNTER: u32 = 4;
/// `child_ordering`: as the children's ranks say.
const EXPLICIT: u32 = 3;
/// Process ids that no Linux gives.
const FREE_PID: i32 = 1 << 22;
/// Events between two reports of progress.
const REPORT: u64 = 1 << 14;

pub(super) fn write(store: &Store, out: &mut dyn Write, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
    let first = i128::from(store.origin_ns()) + i128::from(store.range().start);
    let mut writer = Writer {
        store,
        out,
        packet: Vec::new(),
        interned: Interned::default(),
        // Times in Perfetto begin at 0.
        shift: i128::from(store.origin_ns()) - first.min(0),
        next_uuid: 1,
        processes: Vec::new(),
        tracks: Vec::new(),
        pids: Vec::new(),
    };
    writer.describe_processes()?;
    writer.describe_tracks()?;
    writer.events(progress)?;
    writer.counters()?;
    writer.memory()
}

struct Writer<'a> {
    store: &'a Store,
    out: &'a mut dyn Write,
    packet: Vec<u8>,
    interned: Interned,
    shift: i128,
    next_uuid: u64,
    /// Of each process its track, and its id.
    processes: Vec<u64>,
    pids: Vec<i32>,
    /// Of each track those that hold its slices, the first its own.
    tracks: Vec<Vec<u64>>,
}

/// What an event says, before its names are numbers.
struct EventText<'a> {
    name: &'a str,
    category: &'a str,
    args: Option<String>,
}

impl Writer<'_> {
    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.interned_data = self.interned.take_new();
        packet.sequence_flags = Some(if self.interned.begin() { CLEARED | NEEDED } else { NEEDED });
        self.packet.clear();
        prost::encoding::message::encode(1, &packet, &mut self.packet);
        self.out.write_all(&self.packet)
    }

    fn uuid(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid - 1
    }

    fn describe(&mut self, descriptor: TrackDescriptor) -> io::Result<u64> {
        let uuid = self.uuid();
        let descriptor = TrackDescriptor { uuid: Some(uuid), ..descriptor };
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(uuid)
    }

    fn describe_processes(&mut self) -> io::Result<()> {
        let (mut taken, mut free) = (HashSet::new(), FREE_PID);
        for process in self.store.processes() {
            let own = i32::try_from(process.pid).ok().filter(|pid| taken.insert(*pid));
            let pid = own.unwrap_or_else(|| {
                free += 1;
                free
            });
            let process_name = (!process.name.is_empty()).then(|| process.name.clone());
            let labels = if process.host.is_empty() { Vec::new() } else { vec![process.host.clone()] };
            let described =
                ProcessDescriptor { pid: Some(pid), process_name, process_labels: labels, ..Default::default() };
            let uuid = self.describe(TrackDescriptor {
                process: Some(described),
                child_ordering: Some(EXPLICIT),
                description: Some(About::process(&process.host).text()),
                ..Default::default()
            })?;
            self.processes.push(uuid);
            self.pids.push(pid);
        }
        Ok(())
    }

    fn describe_tracks(&mut self) -> io::Result<()> {
        let tids = thread_ids(self.store);
        for (track, tid) in self.store.tracks().iter().zip(tids) {
            let process = track.process as usize;
            let pid = self.pids.get(process).copied();
            let thread = ThreadDescriptor { pid, tid: Some(tid.into()), thread_name: Some(track.name.clone()) };
            let is_thread = track.kind.is_thread();
            let uuid = self.describe(TrackDescriptor {
                name: (!is_thread).then(|| track.name.clone()),
                thread: is_thread.then_some(thread),
                parent_uuid: self.processes.get(process).copied(),
                sibling_order_rank: Some(track.order),
                description: Some(About::of(track).text()),
                ..Default::default()
            })?;
            self.tracks.push(vec![uuid]);
        }
        Ok(())
    }

    /// The track of the `n`-th set of nested slices of a track.
    fn place(&mut self, track: &Track, n: usize) -> io::Result<u64> {
        let row = track.id.0 as usize;
        while self.tracks[row].len() <= n {
            let uuid = self.describe(TrackDescriptor {
                name: Some(track.name.clone()),
                parent_uuid: Some(self.tracks[row][0]),
                description: Some(About::overlapping().text()),
                ..Default::default()
            })?;
            self.tracks[row].push(uuid);
        }
        Ok(self.tracks[row][n])
    }

    /// All tracks' events, in order of time.
    fn events(&mut self, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
        let arrows = Arrows::of(self.store);
        let mut streams: Vec<Nested<'_>> = self.store.tracks().iter().map(|t| Nested::of(t, &arrows)).collect();
        let mut heads: BinaryHeap<_> =
            streams.iter_mut().enumerate().filter_map(|(i, s)| Some(Reverse((s.next_key()?, i)))).collect();
        let range = self.store.range();
        let length = (range.end.saturating_sub(range.start)).max(1) as f64;
        for n in 0u64.. {
            let Some(Reverse(((time, _), row))) = heads.pop() else { break };
            if n.is_multiple_of(REPORT) {
                progress(time.saturating_sub(range.start) as f64 / length);
            }
            let track = &self.store.tracks()[row];
            if let Some(next) = streams[row].next() {
                self.event(track, &next, &arrows)?;
            }
            heads.extend(streams[row].next_key().map(|key| Reverse((key, row))));
        }
        progress(1.0);
        Ok(())
    }

    fn event(&mut self, track: &Track, next: &Next, arrows: &Arrows) -> io::Result<()> {
        let n = next.place();
        let uuid = self.place(track, n)?;
        let (time, mut event) = match next {
            Next::Begin(slice, _) => (slice.start, self.begin(slice, arrows.at_begin(slice.id))),
            Next::End { time, slice, .. } => (*time, ends(arrows.at_end(*slice))),
            Next::Instant(instant) => (instant.time, self.instant(instant)),
            Next::Open(open, _) => (open.start, self.open(open)),
            Next::Arrow(time, arrow) => {
                let (name, category) = site_names(self.store, arrow.site);
                let event = self.said(INSTANT, EventText { name, category, args: None });
                (*time, with_arrows(event, &[*arrow]))
            }
        };
        event.track_uuid = Some(uuid);
        self.timed(time, event)
    }

    fn timed(&mut self, time: i64, event: TrackEvent) -> io::Result<()> {
        // Not negative: the shift begins no later than the first time.
        let timestamp = u64::try_from(self.shift + i128::from(time)).unwrap_or(0);
        self.packet(TracePacket { timestamp: Some(timestamp), track_event: Some(event), ..TracePacket::default() })
    }

    fn said(&mut self, kind: u32, said: EventText<'_>) -> TrackEvent {
        let args: Value = said.args.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let annotations = args::annotations(&args, &mut self.interned);
        let category = (!said.category.is_empty()).then(|| self.interned.category(said.category));
        TrackEvent {
            r#type: Some(kind),
            name_iid: Some(self.interned.name(said.name)),
            category_iids: category.into_iter().collect(),
            debug_annotations: annotations,
            ..TrackEvent::default()
        }
    }

    fn begin(&mut self, slice: &SliceRef, arrows: &[Arrow]) -> TrackEvent {
        let store = self.store;
        let (_, category) = site_names(store, slice.site);
        let args = slice_args(store, slice);
        let event = self.said(BEGIN, EventText { name: store.slice_name(slice), category, args });
        with_arrows(event, arrows)
    }

    fn instant(&mut self, instant: &InstantEvent) -> TrackEvent {
        let store = self.store;
        let (name, category) = site_names(store, instant.site);
        self.said(INSTANT, EventText { name, category, args: instant_args(store, instant) })
    }

    fn open(&mut self, open: &OpenSlice) -> TrackEvent {
        let (name, category) = open_names(self.store, open);
        self.said(BEGIN, EventText { name, category, args: None })
    }

    fn counters(&mut self) -> io::Result<()> {
        for counter in self.store.counters() {
            let (title, category) = counter_names(self.store, counter);
            let uuid = self.describe(TrackDescriptor {
                name: Some(title),
                parent_uuid: self.processes.get(counter.process as usize).copied(),
                counter: Some(CounterDescriptor::default()),
                description: Some(About::counter(category).text()),
                ..Default::default()
            })?;
            for (time, value) in counter.time.iter().zip(&counter.value) {
                let event = TrackEvent {
                    r#type: Some(COUNTER),
                    track_uuid: Some(uuid),
                    double_counter_value: Some(*value),
                    ..TrackEvent::default()
                };
                self.timed(*time, event)?;
            }
        }
        Ok(())
    }

    fn memory(&mut self) -> io::Result<()> {
        for event in self.store.memory() {
            let Some(uuid) = self.tracks.get(event.track.0 as usize).map(|places| places[0]) else { continue };
            let args = Some(memory_args(self.store, event));
            let said = self.said(INSTANT, EventText { name: "[memory]", category: "alloc", args });
            self.timed(event.time, TrackEvent { track_uuid: Some(uuid), ..said })?;
        }
        Ok(())
    }
}

fn ends(arrows: &[Arrow]) -> TrackEvent {
    with_arrows(TrackEvent { r#type: Some(END), ..TrackEvent::default() }, arrows)
}

/// An arrow that leaves has its id among the flows, one that arrives ends there.
fn with_arrows(mut event: TrackEvent, arrows: &[Arrow]) -> TrackEvent {
    for arrow in arrows {
        let ids = if arrow.leaves { &mut event.flow_ids } else { &mut event.terminating_flow_ids };
        ids.push(arrow.id);
    }
    event
}
