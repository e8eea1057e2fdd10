//! Processes of a trace folder: reads names and clock from their meta files, and converts their records to events.

use super::clock::SteadyClock;
use super::notices::{file_name, io_warning};
use events::clock::Source;
use events::meta::{self, Entry, MetaReader, NoteKind};
use events::record::Decoder;
use events::{Kind, Record, ring};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;
use std::path::{Path, PathBuf};
use trace_model::{Batch, Event, EventKind, Function, Name, OpenSlice, TrackKey, TrackKind, Warning, WarningKind};

/// Whether a process with this id runs on this machine.
pub(super) fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// First number for processes that reuse the id of an earlier one: Linux assigns no process id above 2^22.
const FIRST_REUSED: u32 = 1 << 22;

/// Number of anchors after which a better rate of a clock is not reported any more.
const MAX_REPORTED_ANCHORS: usize = 4;

#[derive(Default)]
struct Process {
    /// The system's id.
    pid: u32,
    clock: SteadyClock,
    /// Whether ticks are nanoseconds.
    is_ns: bool,
    /// Host and name of the process, to be reported with the rate of its clock.
    host_name: Option<(String, String)>,
    n_reported_anchors: usize,
    /// Whether records of the process were converted.
    has_events: bool,
}

/// A meta file, and the processes that wrote it.
struct MetaFile {
    pid: u32,
    path: PathBuf,
    reader: MetaReader,
    error: Option<String>,
    /// The processes that had this id, the earliest first.
    incarnations: Vec<Incarnation>,
    notes: BTreeMap<(u32, String), Warning>,
}

/// One of the processes with the same id.
struct Incarnation {
    /// The number in the batches: for the first process the system's id, so that a trace usually shows the system's id.
    number: u32,
    /// Start of the process, as the kernel counts it; with the id it identifies the process.
    born: u64,
    /// Ticks of the first anchor: rings that were made later belong to this process.
    first_tick: Option<u64>,
}

/// All processes of a folder.
#[derive(Default)]
pub(crate) struct Processes {
    metas: BTreeMap<u32, MetaFile>,
    by_number: FxHashMap<u32, Process>,
    n_reused: u32,
    /// All rings that are in the meta files.
    pub(crate) threads: BTreeSet<TrackKey>,
}

impl Processes {
    /// Opens the meta file of a process that is not known yet.
    pub(crate) fn discover(&mut self, pid: u32, path: &Path) -> io::Result<()> {
        if let btree_map::Entry::Vacant(entry) = self.metas.entry(pid) {
            let reader = MetaReader::open(path)?;
            let (path, notes) = (path.to_owned(), BTreeMap::new());
            entry.insert(MetaFile { pid, path, reader, error: None, incarnations: Vec::new(), notes });
        }
        Ok(())
    }

    /// Reads new entries of the meta files.
    pub(crate) fn read_meta(&mut self, batch: &mut Batch) {
        let mut entries = Vec::new();
        for meta in self.metas.values_mut() {
            meta.error = meta.reader.poll(&mut entries).err().map(|e| e.to_string());
            for entry in entries.drain(..) {
                if let Entry::Process { born, .. } = &entry {
                    meta.add_incarnation(*born, &mut self.n_reused);
                }
                let number = meta.incarnations.last().map_or(meta.pid, |last| last.number);
                let process = self.by_number.entry(number).or_default();
                process.pid = meta.pid;
                match entry {
                    Entry::Anchor(anchor) => {
                        if let Some(incarnation) = meta.incarnations.last_mut() {
                            incarnation.first_tick.get_or_insert(anchor.ticks);
                        }
                        process.clock.extend(std::iter::once(anchor));
                    }
                    Entry::Thread { ring, tid, name } => {
                        let key = TrackKey { pid: number, ring };
                        self.threads.insert(key);
                        let name = if name.is_empty() { format!("thread {tid}") } else { name };
                        batch.name(Name::Thread { key, name, tid });
                    }
                    Entry::Note { kind, count, source, text } => meta.add_note(kind, count, source, text),
                    entry => {
                        if let Entry::Track { ring, .. } | Entry::Stream { ring, .. } = &entry {
                            self.threads.insert(TrackKey { pid: number, ring: *ring });
                        }
                        process.add_name(number, entry, batch);
                    }
                }
            }
            for incarnation in &meta.incarnations {
                if let Some(process) = self.by_number.get_mut(&incarnation.number) {
                    process.report(incarnation.number, batch);
                    if let Some(first) = process.clock.first_ns() {
                        batch.set_origin(first);
                    }
                }
            }
        }
    }

    /// The id of a process with a meta file that runs on this machine, other than this process.
    pub(crate) fn live_process(&self) -> Option<u32> {
        self.metas.keys().copied().find(|pid| *pid != std::process::id() && is_running(*pid))
    }

    /// The number of the process that had this id when it made a ring at `made`.
    pub(crate) fn process_number(&self, pid: u32, made: u64) -> u32 {
        let incarnations = self.metas.get(&pid).map_or(&[][..], |meta| &meta.incarnations);
        let maker = incarnations.iter().rev().find(|process| process.first_tick.is_some_and(|tick| tick <= made));
        maker.or(incarnations.first()).map_or(pid, |process| process.number)
    }

    /// Whether the rate of the process's clock is known, so that conversions of times are final.
    pub(crate) fn is_clock_ready(&self, pid: u32) -> bool {
        self.by_number.get(&pid).is_some_and(|p| p.is_ns && p.clock.n_anchors() > 0 || p.clock.is_ready())
    }

    /// Appends the records of a ring to its track.
    pub(crate) fn convert(&mut self, key: TrackKey, records: &[Record], decoder: &mut Decoder, batch: &mut Batch) {
        let process = self.by_number.entry(key.pid).or_default();
        process.has_events |= !records.is_empty();
        // Taken out of the batch, since the loop adds arguments to it.
        let mut events = std::mem::take(&mut batch.track(key).events);
        events.reserve(records.len());
        for record in records {
            let Some(event) = decoder.push(*record) else { continue };
            let text = decoder.text();
            let args = match event.kind {
                _ if text.is_empty() => trace_model::NO_ARGS,
                Kind::Slice => batch.args(&slice_args(&text)),
                _ => batch.args(&message_args(&text)),
            };
            let start = process.clock.ns(event.begin);
            let end = if event.dur == 0 { start } else { process.clock.ns(event.begin.saturating_add(event.dur)) };
            let kind = match event.kind {
                Kind::Slice | Kind::LongSlice => EventKind::Slice,
                Kind::Instant | Kind::Text => EventKind::Instant,
                Kind::Counter => EventKind::Counter,
                Kind::FlowOut => EventKind::FlowOut,
                Kind::FlowIn => EventKind::FlowIn,
                Kind::Alloc => EventKind::Alloc,
                Kind::Free => EventKind::Free,
            };
            let (depth, site, node) = (event.depth as u8, event.site.get(), event.node.get());
            let (correlation, arg) = (event.correlation, event.arg);
            events.push(Event { kind, depth, start, end, site, node, correlation, arg, args });
        }
        batch.track(key).events = events;
    }

    /// Converts the open slices of a ring; the times may change with the next anchor.
    pub(crate) fn convert_open(&self, pid: u32, open: &[ring::OpenSlice]) -> Vec<OpenSlice> {
        let Some(process) = self.by_number.get(&pid) else { return Vec::new() };
        let slice = |(depth, open): (usize, &ring::OpenSlice)| {
            let (start, site, node) = (process.clock.provisional_ns(open.begin), open.site.get(), open.node.get());
            OpenSlice { start, site, node, depth: depth.min(255) as u8 }
        };
        open.iter().enumerate().map(slice).collect()
    }

    /// Adds the warnings so far about meta files and clocks.
    pub(crate) fn add_warnings(&self, is_collector_alive: bool, batch: &mut Batch) {
        for meta in self.metas.values() {
            let name = file_name(&meta.path);
            let (places, bytes) = (meta.reader.n_damaged(), meta.reader.skipped_bytes());
            if places > 0 {
                let text = format!(
                    "{name}: {bytes} damaged bytes skipped in {places} places; names or clock anchors may be missing"
                );
                batch.warnings.push(Warning::new(WarningKind::Damage, name.clone(), places, text));
            }
            let n_torn_bytes = meta.reader.unfinished_bytes();
            if n_torn_bytes > 0 && !is_collector_alive {
                let text = format!("{name}: the last entry was cut while it was written ({n_torn_bytes} bytes)");
                batch.warnings.push(Warning::new(WarningKind::TornTail, name.clone(), 1, text));
            }
            let n_unknown = meta.reader.n_unknown();
            if n_unknown > 0 {
                let text = format!("{name}: {n_unknown} entries of a later version were left out");
                batch.warnings.push(Warning::new(WarningKind::UnknownName, name.clone(), n_unknown, text));
            }
            if let Some(error) = &meta.error {
                batch.warnings.push(io_warning(&meta.path, error));
            }
            for note in meta.notes.values() {
                batch.warnings.push(note.clone());
            }
        }
        for process in self.by_number.values() {
            let pid = process.pid;
            if process.has_events && !process.is_ns && !process.clock.is_ready() {
                let text = format!(
                    "process {pid}: the rate of its clock is not in the trace; its times are counter ticks, not ns"
                );
                batch.warnings.push(Warning::new(WarningKind::Clock, format!("process {pid}"), 1, text));
            }
        }
    }
}

/// Returns the arguments for the text of a slice: the text if it is a JSON object. A text that was cut short, or is of
/// another version, becomes a message.
fn slice_args(text: &str) -> String {
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    if is_object { text.to_owned() } else { message_args(text) }
}

/// Returns the arguments for a text: `{"message":"..."}`.
fn message_args(text: &str) -> String {
    serde_json::json!({ "message": text }).to_string()
}

impl MetaFile {
    /// Handles the start of a session: of the last process with this id, or of a new process that reuses the id.
    fn add_incarnation(&mut self, born: u64, n_reused: &mut u32) {
        match self.incarnations.last() {
            None => self.incarnations.push(Incarnation { number: self.pid, born, first_tick: None }),
            Some(last) if last.born == born => {}
            Some(_) => {
                let number = FIRST_REUSED.saturating_add(*n_reused);
                self.incarnations.push(Incarnation { number, born, first_tick: None });
                *n_reused += 1;
            }
        }
    }

    fn add_note(&mut self, kind: NoteKind, count: u64, source: String, text: String) {
        let warning = match kind {
            NoteKind::Lost => WarningKind::Dropped,
            NoteKind::Unavailable => WarningKind::Unavailable,
            NoteKind::Clock => WarningKind::Clock,
        };
        self.notes.insert((kind as u32, source.clone()), Warning::new(warning, source, count, text));
    }
}

impl Process {
    /// Adds the name of an entry to the batch. `pid` is the process's number in the batch.
    fn add_name(&mut self, pid: u32, entry: Entry, batch: &mut Batch) {
        match entry {
            Entry::Process { clock, host, exe, args, .. } => {
                self.is_ns = clock == Source::MonotonicRaw;
                let program = Path::new(&exe).file_name().map_or(exe.clone(), |n| n.to_string_lossy().into_owned());
                let name = std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ");
                self.host_name = Some((host, name));
                self.n_reported_anchors = 0;
            }
            Entry::Site { id, category, name } => batch.name(Name::Site { pid, id, category, name }),
            Entry::Node { id, name, op, device } => batch.name(Name::Node { pid, id, name, op, device }),
            Entry::Track { ring, kind, process, tid, order, name } => {
                let key = TrackKey { pid, ring };
                let kind = match kind {
                    meta::TrackKind::Thread => TrackKind::Thread,
                    meta::TrackKind::Cpu => TrackKind::Cpu,
                    meta::TrackKind::Async => TrackKind::Async,
                };
                batch.name(Name::Track { key, kind, name, tid, device: String::new(), stream: None, order });
                // Tracks of the reporting process belong to its number, not to the first process with its id.
                batch.name(Name::Owner { key, pid: if process == self.pid { pid } else { process } });
            }
            Entry::Stream { ring, stream, order, device, name } => {
                let (key, kind) = (TrackKey { pid, ring }, TrackKind::Stream);
                let stream = (stream != u64::MAX).then_some(stream);
                batch.name(Name::Track { key, kind, name, tid: 0, device, stream, order });
            }
            Entry::Other { pid: other, name } => {
                let host = self.host_name.as_ref().map_or_else(String::new, |(host, _)| host.clone());
                batch.name(Name::Other { pid: other, host, name });
            }
            Entry::Frame { id, address, module } => batch.name(Name::Frame { pid, id, module, address }),
            Entry::Stack { id, parent, frame } => batch.name(Name::Stack { pid, id, parent, frame }),
            Entry::Symbol { frame, line, name, file, .. } => {
                batch.name(Name::Function { pid, frame, function: Function { name, file, line } });
            }
            // `read_meta` handles these.
            Entry::Anchor(_) | Entry::Thread { .. } | Entry::Note { .. } => {}
        }
    }

    /// Adds the process's name to the batch, and adds the name again when the rate of its clock is known better.
    fn report(&mut self, pid: u32, batch: &mut Batch) {
        let n_anchors = self.clock.n_anchors();
        // The first few anchors improve the rate from 10 ppm to below 1; later ones make no visible difference.
        if n_anchors == self.n_reported_anchors || self.n_reported_anchors >= MAX_REPORTED_ANCHORS {
            return;
        }
        if let Some((host, name)) = self.host_name.clone() {
            self.n_reported_anchors = n_anchors;
            batch.name(Name::Process { pid, host, name, ns_per_tick: self.clock.ns_per_tick() });
            if pid != self.pid {
                batch.name(Name::Pid { process: pid, pid: self.pid });
            }
        }
    }
}
