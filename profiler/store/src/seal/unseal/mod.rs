//! Writes a store as the files that a collector leaves: meta files with names and clock of each process, and chunk
//! files.
//!
//! A sealed trace is sent in this form to a collector on another machine, which accepts growing folders only. Ticks are
//! nanoseconds of the trace's clock. Only slices that had not ended are lost, since these files cannot express them.

use crate::store::{Store, Track};
use events::clock::Source;
use events::meta::{self, Entry, NoteKind};
use events::record::{MAX_DEPTH, MAX_TEXT, TEXT_BYTES, site_word};
use events::{Anchor, Kind, NodeId, Record, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use trace_model::chunks::{ChunkHeader, FLAG_LAST};
use trace_model::{Category, Counter, NO_ARGS, NO_NODE, NO_STACK, SliceRef, TrackId, TrackKind, WarningKind, chunks};

/// Number of records of a ring that make a chunk.
const CHUNK_RECORDS: usize = 1 << 12;
/// The ring number of the tracks that the store itself makes, from the waits that rings report.
const STORE_RING: u32 = u32::MAX;

/// Writes a store into an empty folder.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn unseal(store: &Store, dir: &Path) -> io::Result<()> {
    let mut writer = Writer::create(store, dir)?;
    let (store_tracks, ring_tracks): (Vec<&Track>, _) = store.tracks().iter().partition(|t| t.key.ring == STORE_RING);
    for track in ring_tracks.into_iter().chain(store_tracks) {
        writer.add_track(track);
    }
    let range = store.range();
    let range = range.start..range.end.saturating_add(1);
    for part in store.parts(range.clone()) {
        for track in store.tracks() {
            writer.write_slices(track, &part, part.start == range.start)?;
        }
    }
    writer.write_side_tables()?;
    writer.finish()
}

/// A process that has tracks, with the entries of its meta file.
struct Process {
    /// Entries that are written at the end, since processes with the same id share a file, one after another.
    entries: Vec<Entry>,
    /// The system's id, which the files have.
    pid: u32,
    /// Distinguishes processes with the same id.
    made: u64,
    /// Rows of the sites that the entries name.
    sites: FxHashSet<u32>,
    /// Rows of the nodes that the entries name.
    nodes: FxHashSet<u32>,
    has_stacks: bool,
}

/// A ring whose records are written as chunks.
struct Ring {
    /// Number of the process in the store's keys.
    process: u32,
    ring: u32,
    /// Sequence number of the next record.
    next: u64,
    dropped: u64,
    /// Records that are not written yet.
    pending: Vec<Record>,
}

struct Writer<'a> {
    store: &'a Store,
    dir: PathBuf,
    processes: BTreeMap<u32, Process>,
    rings: Vec<Ring>,
    /// Rows in `rings`, by track.
    ring_rows: FxHashMap<TrackId, usize>,
    out: BufWriter<File>,
}

impl<'a> Writer<'a> {
    fn create(store: &'a Store, dir: &Path) -> io::Result<Writer<'a>> {
        let origin = store.origin_ns();
        let numbers: BTreeMap<u32, &Track> = store.tracks().iter().rev().map(|t| (t.key.pid, t)).collect();
        let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
        let mut named_rows: FxHashSet<u32> = FxHashSet::default();
        for (i, (number, track)) in (0i64..).zip(&numbers) {
            // The row with this number. A later process that reused an id has another number: the row of its tracks.
            let has_number = |row: &usize| store.processes()[*row].pid == *number;
            let row = (0..store.processes().len()).find(has_number).unwrap_or(track.process as usize);
            let process = store.processes().get(row);
            let pid = process.map_or(*number, |p| p.pid);
            named_rows.insert(row as u32);
            let (host, exe) = process.map_or_else(Default::default, |p| (p.host.clone(), p.name.clone()));
            let born = i.unsigned_abs() + 1;
            let (clock, args) = (Source::MonotonicRaw, Vec::new());
            let mut entries = vec![Entry::Process { pid, start_ns: 0, clock, host, exe, args, born }];
            for time in [origin + i, origin.saturating_add(store.range().end).max(origin + i) + 1] {
                entries.push(Entry::Anchor(Anchor {
                    ticks: time.max(0).unsigned_abs(),
                    mono_ns: time.max(0),
                    real_ns: 0,
                }));
            }
            let made = (origin + i).max(0).unsigned_abs();
            let (sites, nodes) = Default::default();
            processes.insert(*number, Process { entries, pid, made, sites, nodes, has_stacks: false });
        }
        let first = processes.values().next().map_or(0, |p| p.pid);
        let mut out = BufWriter::new(File::create_new(dir.join(format!("chunks-{first}.bin")))?);
        out.write_all(&chunks::file_header(first, origin))?;
        let mut writer =
            Writer { store, dir: dir.to_owned(), processes, rings: Vec::new(), ring_rows: FxHashMap::default(), out };
        writer.add_other_entries(&named_rows);
        Ok(writer)
    }

    /// Adds to the first process the names of the processes without tracks, and the trace's warnings.
    fn add_other_entries(&mut self, named_rows: &FxHashSet<u32>) {
        let Some(reporter) = self.processes.values_mut().next() else { return };
        for (_, process) in (0u32..).zip(self.store.processes()).filter(|(row, _)| !named_rows.contains(row)) {
            reporter.entries.push(Entry::Other { pid: process.pid, name: process.name.clone() });
        }
        for warning in self.store.warnings() {
            let kind = match warning.kind {
                WarningKind::Unavailable => NoteKind::Unavailable,
                WarningKind::Clock => NoteKind::Clock,
                _ => NoteKind::Lost,
            };
            let (source, text) = (warning.source.clone(), warning.text.clone());
            reporter.entries.push(Entry::Note { kind, count: warning.count, source, text });
        }
    }

    /// Adds a ring for a track, and the entry that describes it.
    fn add_track(&mut self, track: &Track) {
        if track.key.ring == STORE_RING {
            // A reader makes this track again from records of any ring of the process.
            let any_ring = self.rings.iter().position(|ring| ring.process == track.key.pid);
            self.ring_rows.extend(any_ring.map(|ring| (track.id, ring)));
            return;
        }
        let ring = track.key.ring;
        self.ring_rows.insert(track.id, self.rings.len());
        let (process, dropped) = (track.key.pid, track.dropped);
        self.rings.push(Ring { process, ring, next: 0, dropped, pending: Vec::new() });
        let Some(process) = self.processes.get_mut(&track.key.pid) else { return };
        let (order, name) = (track.order, track.name.clone());
        let owner = self.store.processes().get(track.process as usize).map_or(process.pid, |p| p.pid);
        let kind = match track.kind {
            TrackKind::Thread | TrackKind::Worker => meta::TrackKind::Thread,
            TrackKind::Cpu => meta::TrackKind::Cpu,
            TrackKind::Stream | TrackKind::Copy => {
                let (stream, device) = (track.stream.unwrap_or(u64::MAX), track.device.clone());
                return process.entries.push(Entry::Stream { ring, stream, order, device, name });
            }
            _ => meta::TrackKind::Async,
        };
        process.entries.push(Entry::Track { ring, kind, process: owner, tid: track.tid, order, name });
    }

    /// Returns the process that writes a track.
    fn process(&mut self, track: TrackId) -> Option<&mut Process> {
        let key = self.store.track(track)?.key;
        self.processes.get_mut(&key.pid)
    }

    /// Returns the id of a site, and adds its name to the track's process once.
    fn site(&mut self, track: TrackId, site: u32) -> SiteId {
        let info = self.store.sites().get(site as usize);
        if let Some(process) = self.process(track)
            && process.sites.insert(site)
            && let Some(info) = info
        {
            let (category, name) = (info.category_name.clone(), info.name.clone());
            process.entries.push(Entry::Site { id: site, category, name });
        }
        SiteId::from_bits(site)
    }

    /// Returns the id of a node, and adds its name to the track's process once.
    fn node(&mut self, track: TrackId, node: u32) -> u32 {
        let info = self.store.nodes().get(node as usize);
        if let Some(process) = self.process(track)
            && let Some(info) = info
            && process.nodes.insert(node)
        {
            let (name, op, device) = (info.name.clone(), info.op.clone(), info.device.clone());
            process.entries.push(Entry::Node { id: node, name, op, device });
        }
        if info.is_some() { node } else { NodeId::NONE.get() }
    }

    fn ticks(&self, time: i64) -> u64 {
        self.store.origin_ns().saturating_add(time).max(0).unsigned_abs()
    }

    /// Appends the records of a text, and then those of its event, to the ring of a track.
    fn push(&mut self, track: TrackId, text: &str, event: &[Record]) -> io::Result<()> {
        let Some(ring) = self.ring_rows.get(&track).copied() else { return Ok(()) };
        let pending = &mut self.rings[ring].pending;
        let text = &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)];
        pending.extend(text.chunks(TEXT_BYTES).map(Record::from_text));
        pending.extend_from_slice(event);
        if pending.len() >= CHUNK_RECORDS { self.flush(ring, 0) } else { Ok(()) }
    }

    /// Writes the pending records of a ring as a chunk.
    fn flush(&mut self, ring: usize, flags: u32) -> io::Result<()> {
        let ring = &mut self.rings[ring];
        let Some(process) = self.processes.get(&ring.process) else { return Ok(()) };
        let header = ChunkHeader {
            pid: process.pid,
            ring: ring.ring,
            made: process.made,
            first: ring.next,
            dropped: ring.dropped,
            written_ns: self.store.origin_ns(),
            flags,
            ..ChunkHeader::default()
        };
        let mut batch = Vec::with_capacity(ring.pending.len() + 2);
        let first_record = chunks::begin_chunk(&mut batch);
        batch.append(&mut ring.pending);
        ring.next += (batch.len() - first_record) as u64;
        chunks::end_chunk(header, first_record, &mut batch);
        self.out.write_all(bytemuck::cast_slice(&batch))
    }

    /// Writes the slices of a track that begin in a part of the trace, in order. The first part includes the slices
    /// that begin before it.
    fn write_slices(&mut self, track: &Track, part: &std::ops::Range<i64>, is_first: bool) -> io::Result<()> {
        let touching = track.lanes.iter().flat_map(|lane| lane.slices(part));
        let mut slices: Vec<SliceRef> = touching.filter(|s| is_first || s.start >= part.start).collect();
        slices.sort_by_key(|s| (s.start, s.id.lane, s.id.ordinal));
        slices.iter().try_for_each(|slice| self.write_slice(track.id, slice))
    }

    fn write_slice(&mut self, track: TrackId, slice: &SliceRef) -> io::Result<()> {
        let (site, node) = (self.site(track, slice.site), self.node(track, slice.node));
        let correlation = match self.store.category(slice) {
            Category::Op => self.node(track, slice.correlation),
            _ => slice.correlation,
        };
        let begin = self.ticks(slice.start);
        let depth = slice.id.lane.min(MAX_DEPTH);
        let word_of = |kind| site_word(kind, depth, site);
        let record = Record { begin, dur: 0, site: word_of(Kind::Slice), node, correlation, arg: slice.arg };
        let ticks = slice.dur().max(0).unsigned_abs();
        let store = self.store;
        let args = if slice.args == NO_ARGS { None } else { store.args().get(slice.args) };
        let text = args.as_deref().unwrap_or_default();
        match u32::try_from(ticks).ok().filter(|dur| *dur != u32::MAX) {
            Some(dur) => self.push(track, text, &[Record { dur, ..record }]),
            None => {
                let long = Record { site: word_of(Kind::LongSlice), arg: ticks, ..record };
                self.push(track, text, &[long, Record { dur: u32::MAX, ..record }])
            }
        }
    }

    /// Returns a record without a duration; `fields` has its node, correlation and `arg`.
    fn point(&mut self, track: TrackId, kind: Kind, site: u32, time: i64, fields: Record) -> Record {
        let site = self.site(track, site);
        Record { begin: self.ticks(time), dur: 0, site: site_word(kind, 0, site), ..fields }
    }

    /// Writes all rows that are not slices.
    fn write_side_tables(&mut self) -> io::Result<()> {
        let store = self.store;
        // Instants and flows of transfers are written by `write_transfers`, which knows their nodes.
        let is_transfer = |site: u32| store.sites().get(site as usize).is_some_and(|s| s.category.is_transfer());
        let empty = Record { node: NO_NODE, ..Record::default() };
        for track in store.tracks() {
            for instant in track.instants.iter().filter(|i| !is_transfer(i.site)) {
                self.write_instant(track.id, instant)?;
            }
        }
        for counter in store.counters() {
            self.write_counter(counter)?;
        }
        for flow in store.flows().filter(|flow| !is_transfer(flow.site)) {
            for (end, kind) in [(flow.from, Kind::FlowOut), (flow.to, Kind::FlowIn)] {
                let Some(end) = end else { continue };
                let fields = Record { correlation: flow.correlation, ..empty };
                let record = self.point(end.track, kind, flow.site, end.time, fields);
                self.push(end.track, "", &[record])?;
            }
        }
        for event in store.memory() {
            let kind = if event.bytes < 0 { Kind::Free } else { Kind::Alloc };
            let node = self.node(event.track, event.node);
            let fields = Record { node, arg: event.bytes.unsigned_abs(), ..empty };
            let record = self.point(event.track, kind, event.site, event.time, fields);
            self.push(event.track, "", &[record])?;
        }
        self.write_transfers()
    }

    fn write_instant(&mut self, track: TrackId, instant: &trace_model::InstantEvent) -> io::Result<()> {
        let store = self.store;
        let is_sample = store.sites().get(instant.site as usize).is_some_and(|s| s.category == Category::Sample);
        let mut arg = instant.arg;
        if is_sample {
            self.add_stacks(track);
            arg = if arg == u64::from(NO_STACK) { u64::from(u32::MAX) } else { arg };
        }
        let args = if instant.args == NO_ARGS { None } else { store.args().get(instant.args) };
        let text = args.as_deref().map(message_or_args).unwrap_or_default();
        let fields = Record { node: NO_NODE, arg, ..Record::default() };
        let record = self.point(track, Kind::Instant, instant.site, instant.time, fields);
        self.push(track, &text, &[record])
    }

    /// Adds all call stacks with their frames to the track's process, once.
    fn add_stacks(&mut self, track: TrackId) {
        let store = self.store;
        let Some(process) = self.process(track).filter(|p| !p.has_stacks) else { return };
        process.has_stacks = true;
        for (id, frame) in (0..).zip(store.frames()) {
            process.entries.push(Entry::Frame { id, address: frame.address, module: frame.module.clone() });
            for (inlined, f) in (0..).zip(&frame.functions) {
                let (name, file) = (f.name.clone(), f.file.clone());
                process.entries.push(Entry::Symbol { frame: id, inlined, line: f.line, name, file });
            }
        }
        let stacks = (0..).zip(store.stacks());
        process.entries.extend(stacks.map(|(id, s)| Entry::Stack { id, parent: s.parent, frame: s.frame }));
    }

    /// Writes the values of a counter. The counter of a process is written to the ring of any of the process's tracks.
    fn write_counter(&mut self, counter: &Counter) -> io::Result<()> {
        let process_track = || self.store.tracks().iter().find(|t| t.process == counter.process).map(|t| t.id);
        let Some(track) = counter.track.or_else(process_track) else { return Ok(()) };
        for (time, value) in counter.time.iter().zip(&counter.value) {
            let fields = Record { node: NO_NODE, arg: value.to_bits(), ..Record::default() };
            let record = self.point(track, Kind::Counter, counter.site, *time, fields);
            self.push(track, "", &[record])?;
        }
        Ok(())
    }

    fn write_transfers(&mut self) -> io::Result<()> {
        let store = self.store;
        let mut site_rows: FxHashMap<(bool, &str), u32> = FxHashMap::default();
        for (row, site) in (0..).zip(store.sites()).filter(|(_, s)| s.category.is_transfer()) {
            site_rows.insert((site.category == Category::RemoteTransfer, &site.name), row);
        }
        for transfer in store.transfers() {
            let arg = u64::from(transfer.step_id) << 32 | u64::from(transfer.bytes);
            let stamps = [
                ("enqueue", Kind::Instant, transfer.enqueued, transfer.from, transfer.sender),
                ("send", Kind::Instant, transfer.sent, transfer.from, transfer.sender),
                ("edge", Kind::FlowOut, transfer.left, transfer.from, transfer.sender),
                ("arrive", Kind::Instant, transfer.arrived, transfer.to, transfer.receiver),
                ("edge", Kind::FlowIn, transfer.unblocked, transfer.to, transfer.receiver),
            ];
            let is_remote = transfer.scope == u32::MAX;
            for (name, kind, time, track, node) in stamps {
                let site = site_rows.get(&(is_remote, name));
                let (Some(time), Some(track), Some(site)) = (time, track, site) else { continue };
                let fields =
                    Record { node: self.node(track, node), correlation: transfer.number, arg, ..Record::default() };
                let record = self.point(track, kind, *site, time, fields);
                self.push(track, "", &[record])?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        for ring in 0..self.rings.len() {
            self.flush(ring, FLAG_LAST)?;
        }
        for process in self.processes.into_values() {
            let mut meta = meta::Writer::create(&self.dir, process.pid)?;
            meta.append_all(process.entries.into_iter());
            if meta.lost() > 0 {
                return Err(io::Error::other(format!("{} names could not be written", meta.lost())));
            }
        }
        self.out.flush()
    }
}

/// Returns the message if the arguments have only that, as the store makes them for a log message; else the arguments.
fn message_or_args(args: &str) -> String {
    let object: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(args).ok();
    let message = object.as_ref().filter(|object| object.len() == 1).and_then(|object| object.get("message")?.as_str());
    message.unwrap_or(args).to_owned()
}

#[cfg(test)]
mod tests;
