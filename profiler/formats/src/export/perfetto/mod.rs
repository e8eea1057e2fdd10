//! Writes Perfetto's protobuf traces, as its user interface opens them.
//!
//! * Threads and processes are Perfetto's threads and processes; other tracks (streams, CPUs, waits) are tracks of
//!   their process. Properties without a field in Perfetto are in the track's description ([`extra_properties`]), which our
//!   importer reads.
//! * The slices of a Perfetto track nest. Slices that overlap go to child tracks of the same name ([`nest`]): nothing
//!   is dropped, and the user interface shows the tracks as one.
//! * Flows connect slices: an end goes to the innermost slice that runs at its time ([`arrows`]). If none does, an
//!   instant is written for it.
//! * Names are interned ([`intern`]); all packets are one sequence, in order of time.
//! * Numbers of slices become arguments. Warnings are not written.

mod args;
mod arrows;
mod extra_properties;
mod intern;
mod nest;

pub(crate) use extra_properties::ExtraProperties;

use super::rows::{counter_names, instant_args, memory_args, open_names, site_names, slice_args, thread_ids};
use arrows::{Arrow, Arrows};
use formats::perfetto::{
    CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use intern::InternTable;
use nest::{Next, TrackEvents};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Write};
use trace_model::{InstantEvent, OpenSlice, SliceRef};
use trace_store::{Store, Track};

/// `trusted_packet_sequence_id` of all packets.
const SEQUENCE: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED` of `sequence_flags`: interned names are defined from this packet on.
const STATE_CLEARED: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE` of `sequence_flags`: the packet uses interned names.
const NEEDS_STATE: u32 = 2;
/// `TYPE_SLICE_BEGIN` and the other values of `TrackEvent.type`.
const BEGIN: u32 = 1;
const END: u32 = 2;
const INSTANT: u32 = 3;
const COUNTER: u32 = 4;
/// `EXPLICIT` of `child_ordering`: by the children's `sibling_order_rank`.
const EXPLICIT: u32 = 3;
/// Linux's `PID_MAX_LIMIT`: process ids above it are free for processes whose id another one has.
const MAX_PID: i32 = 1 << 22;
/// Events between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;
/// Field number of `Trace.packet`.
const PACKET_FIELD: u32 = 1;

pub(super) fn write(store: &Store, out: &mut dyn Write, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
    let first = i128::from(store.origin_ns()) + i128::from(store.range().start);
    let mut writer = Writer {
        store,
        out,
        packet: Vec::new(),
        interned: InternTable::default(),
        // Perfetto has no negative times.
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
    interned: InternTable,
    /// Added to a time for the timestamp, ns.
    shift: i128,
    next_uuid: u64,
    /// Of each process the uuid of its track, and the id that is written.
    processes: Vec<u64>,
    pids: Vec<i32>,
    /// Of each track the uuids of the tracks for its sets of nested slices.
    tracks: Vec<Vec<u64>>,
}

/// Name, category and arguments of an event, before they are interned.
struct EventText<'a> {
    name: &'a str,
    category: &'a str,
    args: Option<String>,
}

impl Writer<'_> {
    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.interned_data = self.interned.take_new();
        packet.sequence_flags = Some(if self.interned.begin() { STATE_CLEARED | NEEDS_STATE } else { NEEDS_STATE });
        self.packet.clear();
        prost::encoding::message::encode(PACKET_FIELD, &packet, &mut self.packet);
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
        let (mut taken, mut free) = (HashSet::new(), MAX_PID);
        for process in self.store.processes() {
            let recorded = i32::try_from(process.pid).ok().filter(|pid| taken.insert(*pid));
            let pid = recorded.unwrap_or_else(|| {
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
                description: Some(ExtraProperties::process(&process.host).text()),
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
                description: Some(ExtraProperties::new(track).text()),
                ..Default::default()
            })?;
            self.tracks.push(vec![uuid]);
        }
        Ok(())
    }

    /// The uuid of the track for the `n`-th set of nested slices of a track.
    fn track_of_set(&mut self, track: &Track, n: usize) -> io::Result<u64> {
        let row = track.id.0 as usize;
        while self.tracks[row].len() <= n {
            let uuid = self.describe(TrackDescriptor {
                name: Some(track.name.clone()),
                parent_uuid: Some(self.tracks[row][0]),
                description: Some(ExtraProperties::overlapping().text()),
                ..Default::default()
            })?;
            self.tracks[row].push(uuid);
        }
        Ok(self.tracks[row][n])
    }

    /// Writes the events of all tracks, in order of time.
    fn events(&mut self, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
        let arrows = Arrows::new(self.store);
        let mut streams: Vec<TrackEvents<'_>> =
            self.store.tracks().iter().map(|t| TrackEvents::new(t, &arrows)).collect();
        let mut heads: BinaryHeap<_> =
            streams.iter_mut().enumerate().filter_map(|(i, s)| Some(Reverse((s.next_key()?, i)))).collect();
        let range = self.store.range();
        let length = (range.end.saturating_sub(range.start)).max(1) as f64;
        for n in 0u64.. {
            let Some(Reverse(((time, _), row))) = heads.pop() else { break };
            if n.is_multiple_of(REPORT_EVERY) {
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
        let uuid = self.track_of_set(track, next.set())?;
        let (time, mut event) = match next {
            Next::Begin(slice, _) => (slice.start, self.begin(slice, arrows.at_begin(slice.id))),
            Next::End { time, slice, .. } => (*time, end_event(arrows.at_end(*slice))),
            Next::Instant(instant) => (instant.time, self.instant(instant)),
            Next::Open(open, _) => (open.start, self.open(open)),
            Next::Arrow(time, arrow) => {
                let (name, category) = site_names(self.store, arrow.site);
                let event = self.named_event(INSTANT, EventText { name, category, args: None });
                (*time, with_arrows(event, &[*arrow]))
            }
        };
        event.track_uuid = Some(uuid);
        self.write_event(time, event)
    }

    /// Writes an event at a time.
    fn write_event(&mut self, time: i64, event: TrackEvent) -> io::Result<()> {
        // Not negative: the shift moves the first time to 0 or later.
        let timestamp = u64::try_from(self.shift + i128::from(time)).unwrap_or(0);
        self.packet(TracePacket { timestamp: Some(timestamp), track_event: Some(event), ..TracePacket::default() })
    }

    fn named_event(&mut self, kind: u32, text: EventText<'_>) -> TrackEvent {
        let args: Value = text.args.and_then(|args| serde_json::from_str(&args).ok()).unwrap_or_default();
        let annotations = args::annotations(&args, &mut self.interned);
        let category = (!text.category.is_empty()).then(|| self.interned.category(text.category));
        TrackEvent {
            r#type: Some(kind),
            name_iid: Some(self.interned.name(text.name)),
            category_iids: category.into_iter().collect(),
            debug_annotations: annotations,
            ..TrackEvent::default()
        }
    }

    fn begin(&mut self, slice: &SliceRef, arrows: &[Arrow]) -> TrackEvent {
        let store = self.store;
        let (_, category) = site_names(store, slice.site);
        let args = slice_args(store, slice);
        let event = self.named_event(BEGIN, EventText { name: store.slice_name(slice), category, args });
        with_arrows(event, arrows)
    }

    fn instant(&mut self, instant: &InstantEvent) -> TrackEvent {
        let store = self.store;
        let (name, category) = site_names(store, instant.site);
        self.named_event(INSTANT, EventText { name, category, args: instant_args(store, instant) })
    }

    fn open(&mut self, open: &OpenSlice) -> TrackEvent {
        let (name, category) = open_names(self.store, open);
        self.named_event(BEGIN, EventText { name, category, args: None })
    }

    fn counters(&mut self) -> io::Result<()> {
        for counter in self.store.counters() {
            let (title, category) = counter_names(self.store, counter);
            let uuid = self.describe(TrackDescriptor {
                name: Some(title),
                parent_uuid: self.processes.get(counter.process as usize).copied(),
                counter: Some(CounterDescriptor::default()),
                description: Some(ExtraProperties::counter(category).text()),
                ..Default::default()
            })?;
            for (time, value) in counter.time.iter().zip(&counter.value) {
                let event = TrackEvent {
                    r#type: Some(COUNTER),
                    track_uuid: Some(uuid),
                    double_counter_value: Some(*value),
                    ..TrackEvent::default()
                };
                self.write_event(*time, event)?;
            }
        }
        Ok(())
    }

    fn memory(&mut self) -> io::Result<()> {
        for event in self.store.memory() {
            let Some(uuid) = self.tracks.get(event.track.0 as usize).map(|sets| sets[0]) else { continue };
            let args = Some(memory_args(self.store, event));
            let instant = self.named_event(INSTANT, EventText { name: "[memory]", category: "alloc", args });
            self.write_event(event.time, TrackEvent { track_uuid: Some(uuid), ..instant })?;
        }
        Ok(())
    }
}

/// The end of a slice, with the flows that belong to it.
fn end_event(arrows: &[Arrow]) -> TrackEvent {
    with_arrows(TrackEvent { r#type: Some(END), ..TrackEvent::default() }, arrows)
}

/// Adds flows to an event: a flow that begins here to `flow_ids`, one that ends here to `terminating_flow_ids`.
fn with_arrows(mut event: TrackEvent, arrows: &[Arrow]) -> TrackEvent {
    for arrow in arrows {
        let ids = if arrow.leaves { &mut event.flow_ids } else { &mut event.terminating_flow_ids };
        ids.push(arrow.id);
    }
    event
}
