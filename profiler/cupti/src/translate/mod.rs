//! Turns records into tracks: the work of devices on their streams, the calls on their threads, NVTX ranges, and the
//! flows from calls to their work.
//!
//! Records come a buffer at a time, and related records may come in any order and in different buffers. So each buffer
//! is read twice: first the contexts, events and correlations that other records refer to, then the rest. A record
//! whose counterpart has not come yet waits in a bounded table, whose evictions are counted.
//!
//! Slices have the categories of an imported trace of PyTorch's profiler (`kernel`, `copy`, `launch`, `sync`), so that
//! the analyses treat both alike.

mod open_ranges;
mod ranges;
mod tracks;
mod work;

use crate::buffer::UnreadCounts;
use crate::library::{CUSTOM_CORRELATION, Library};
use crate::recent::RecentMap;
use crate::record::{Object, Record, Span, StreamLocation};
use crate::words;
use events::clock::{self, TicksToNs};
use events::track::TrackSlice;
use events::{Kind, NodeId, SiteId};
use open_ranges::{MarkerAttrs, NvtxRanges};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use tracks::{TrackKey, Tracks};

/// Counts of the records that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Kernels, graphs, copies and memsets.
    pub works: u64,
    /// Calls of runtime and driver.
    pub calls: u64,
    /// Ranges and marks of NVTX.
    pub ranges: u64,
    /// Flows from a call to its work.
    pub flows: u64,
    /// Waits of streams and of the host.
    pub waits: u64,
    /// Work items whose launching call is not in the trace.
    pub without_call: u64,
    /// Records without a time, left out.
    pub without_time: u64,
    /// The number of works that begin before their launching call, an error of the device's clock.
    pub n_early: u64,
    /// The largest time by which a work begins before its launching call, ns.
    pub max_early_ns: i64,
    /// Ranges that began and did not end.
    pub unended: u64,
    /// Records that could not be read.
    pub unread: UnreadCounts,
    /// Slices without a track (too many tracks, or recording has stopped).
    pub no_track: u64,
    /// Records that CUPTI dropped because no buffer was free.
    pub dropped: u64,
}

/// `CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB`: the marker has a colour.
const COLOR_ARGB: u32 = 2;
/// Maximum number of calls and node ids that are stored for their work, and of work that waits for its call (each).
const MAX_PENDING: usize = 1 << 18;
/// CUDA events whose last recording is stored, at most.
const MAX_EVENTS: usize = 1 << 16;

/// The last recording of a CUDA event: the call's correlation id and the stream.
#[derive(Clone, Copy)]
struct EventRecording {
    correlation: u32,
    stream: u32,
}

/// The key by which a synchronisation names its CUDA event.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum EventKey {
    /// The id of one recording.
    Sync(u64),
    /// Context and event handle; a handle is recorded again and again, and its last recording counts.
    Handle(u32, u32),
}

/// The thread and begin of a call, from which a flow starts.
#[derive(Clone, Copy)]
struct Launch {
    thread: u32,
    start: u64,
}

/// Writes the records of a process to tracks of the running session.
#[derive(Default)]
pub(crate) struct Translator {
    tracks: Tracks,
    ranges: NvtxRanges,
    clock: TicksToNs,
    sites: FxHashMap<(&'static str, String), SiteId>,
    contexts: FxHashMap<u32, u32>,
    events: RecentMap<EventKey, EventRecording, MAX_EVENTS>,
    nodes: RecentMap<u32, NodeId, MAX_PENDING>,
    launches: RecentMap<u32, Launch, MAX_PENDING>,
    /// Stream and begin of the work whose call has not come yet, by correlation id.
    pending_work: RecentMap<u32, Vec<(StreamLocation, u64)>, MAX_PENDING>,
    report: Report,
}

impl Translator {
    pub(crate) fn new() -> Translator {
        // The clock's rate needs an anchor earlier than that of the first buffer.
        Translator { clock: TicksToNs::from_anchors(&[clock::anchor()]), ..Translator::default() }
    }

    pub(crate) fn report(&self) -> Report {
        let n_evicted = self.pending_work.n_evicted + self.ranges.open.n_evicted;
        let (no_track, without_call) = (self.tracks.n_refused, self.report.without_call + n_evicted);
        Report { no_track, without_call, ..self.report.clone() }
    }

    pub(crate) fn translate(&mut self, records: &[Record], unread: &UnreadCounts, library: &dyn Library) {
        self.report.unread.add(unread);
        self.clock.push(clock::anchor());
        for record in records {
            self.store_references(record, library);
        }
        let mut calls = Vec::new();
        for record in records {
            match record {
                Record::Kernel(kernel) => self.write_kernel(kernel, library),
                Record::Memory { .. } => self.write_memory(record),
                Record::Graph { span, location, correlation, graph } => {
                    self.write_graph(*span, *location, *correlation, *graph);
                }
                Record::Synchronization { .. } => self.write_synchronization(record),
                Record::Overhead { overhead_kind, span, object, correlation } => {
                    self.write_overhead(*overhead_kind, *span, *object, *correlation);
                }
                Record::Call { .. } => calls.push(record),
                Record::Marker { .. } => self.write_marker(record, library),
                _ => {}
            }
        }
        self.write_calls(calls, library);
    }

    /// Ends the translation: counts works whose call has not come, and closes ranges and tracks.
    pub(crate) fn finish(&mut self) {
        self.report.without_call += self.pending_work.drain().map(|(_, works)| works.len() as u64).sum::<u64>();
        self.close_ranges();
        self.tracks.close();
    }

    /// Stores the contexts, names, events and correlations that other records refer to.
    fn store_references(&mut self, record: &Record, library: &dyn Library) {
        match *record {
            Record::Context { context, device } => _ = self.contexts.insert(context, device),
            Record::Device { device, name } => {
                if let Some(name) = library.text(name) {
                    self.tracks.name_device(device, name);
                }
            }
            Record::Kernel(crate::record::Kernel { location, .. })
            | Record::Memory { location, .. }
            | Record::Graph { location, .. } => _ = self.contexts.insert(location.context, location.device),
            Record::Event { correlation, context, stream, event, sync_id } => {
                let recording = EventRecording { correlation, stream };
                self.events.set(EventKey::Handle(context, event), recording);
                if let Some(id) = sync_id {
                    self.events.set(EventKey::Sync(id), recording);
                }
            }
            Record::External { kind: CUSTOM_CORRELATION, id, correlation } => {
                // The lower half: see [`crate::Library::push`].
                self.nodes.set(correlation, NodeId::new(id as u32));
            }
            Record::MarkerData { flags, id, payload, color, category } => {
                let color = (flags & COLOR_ARGB != 0).then_some(color);
                self.ranges.data.set(id, MarkerAttrs { color, category, payload });
            }
            Record::Name { object, name } => {
                if let Some(name) = library.text(name) {
                    self.tracks.name_object(object, name);
                }
            }
            _ => {}
        }
    }

    /// The site with this category and name.
    fn site(&mut self, category: &'static str, name: &str) -> SiteId {
        match self.sites.entry((category, name.to_owned())) {
            Entry::Occupied(site) => *site.get(),
            Entry::Vacant(entry) => *entry.insert(events::site(category, name)),
        }
    }

    fn node(&self, correlation: u32) -> NodeId {
        self.nodes.get(correlation).copied().unwrap_or(NodeId::NONE)
    }

    /// Whether a record has a time; counts records without one.
    fn is_timed(&mut self, span: Span) -> bool {
        let is_timed = span.start != 0 && span.end != 0;
        self.report.without_time += u64::from(!is_timed);
        is_timed
    }

    /// Writes calls to their threads' tracks, each at the depth of its nesting.
    fn write_calls(&mut self, mut calls: Vec<&Record>, library: &dyn Library) {
        let sort_key = |record: &Record| match record {
            Record::Call { span, thread, .. } => (*thread, span.start, std::cmp::Reverse(span.end)),
            _ => (0, 0, std::cmp::Reverse(0)),
        };
        calls.sort_by_key(|record| sort_key(record));
        let mut open_ends: Vec<u64> = Vec::new();
        let mut previous_thread = None;
        for record in calls {
            let Record::Call { is_runtime, span, id, thread, correlation, result, .. } = *record else { continue };
            if previous_thread != Some(thread) {
                (previous_thread, open_ends) = (Some(thread), Vec::new());
            }
            open_ends.retain(|end| *end > span.start);
            let depth = open_ends.len() as u32;
            open_ends.push(span.end);
            if !self.is_timed(span) {
                continue;
            }
            let interface = if is_runtime { "cuda" } else { "cu" };
            let name = library.call_name(is_runtime, id).unwrap_or_else(|| format!("{interface} call {id}"));
            let name = words::strip_version(&name);
            let (site, node) = (self.site(words::call_category(name), name), self.node(correlation));
            let args = if result == 0 { String::new() } else { format!("{{\"return value\":{result}}}") };
            let slice = TrackSlice { depth, node, ..slice(span, site, correlation, &args) };
            self.tracks.write(TrackKey::Calls(thread), |track| track.slice(slice));
            self.report.calls += 1;
            self.add_launch(correlation, Launch { thread, start: span.start });
        }
    }

    /// Stores a call, and writes the flows to its work that came before it.
    fn add_launch(&mut self, correlation: u32, launch: Launch) {
        // A driver's call within a runtime's has the same correlation: the outer call comes first and stays.
        self.launches.entry(correlation, || launch);
        for (location, start) in self.pending_work.take(correlation).unwrap_or_default() {
            self.write_flow(correlation, launch, location, start);
        }
    }

    /// Writes the flow from a call to its work; work whose call has not come yet waits for it.
    fn add_work(&mut self, correlation: u32, location: StreamLocation, start: u64) {
        self.report.works += 1;
        if correlation == 0 {
            return;
        }
        match self.launches.get(correlation).copied() {
            Some(launch) => self.write_flow(correlation, launch, location, start),
            None => self.pending_work.entry(correlation, Vec::new).push((location, start)),
        }
    }

    fn write_flow(&mut self, correlation: u32, launch: Launch, location: StreamLocation, start: u64) {
        let site = self.site("cuda", "launch");
        let point =
            |kind, time| move |track: &mut events::Track| track.point(kind, time, site, NodeId::NONE, correlation, "");
        self.tracks.write(TrackKey::Calls(launch.thread), point(Kind::FlowOut, launch.start));
        self.tracks.write(TrackKey::Stream(location), point(Kind::FlowIn, start));
        self.report.flows += 1;
        if start < launch.start {
            let early_ns = self.clock.ns(launch.start).saturating_sub(self.clock.ns(start));
            self.report.n_early += 1;
            self.report.max_early_ns = self.report.max_early_ns.max(early_ns);
        }
    }

    fn write_overhead(&mut self, overhead_kind: u32, span: Span, object: Object, correlation: u32) {
        if !self.is_timed(span) {
            return;
        }
        let site = self.site("overhead", words::overhead(overhead_kind));
        let args = match object {
            Object::Thread { thread, .. } => format!("{{\"thread\":{thread}}}"),
            _ => String::new(),
        };
        let slice = slice(span, site, correlation, &args);
        self.tracks.write(TrackKey::Overhead, |track| track.slice(slice));
    }
}

/// A slice at depth 0 without a node.
fn slice(span: Span, site: SiteId, correlation: u32, args: &str) -> TrackSlice<'_> {
    let (begin, end) = (span.start, span.end.max(span.start));
    TrackSlice { depth: 0, begin, end, site, node: NodeId::NONE, correlation, arg: 0, args }
}
