//! What is known of each process: names and clock, from its meta file; and its records as events.

use super::clock::SteadyClock;
use super::{file_name, io_notice, notice};
use crate::batch::{Batch, Event, EventKind, Name, OpenEvent, TrackKey};
use crate::store::WarningKind;
use events::clock::Source;
use events::meta::{Entry, MetaReader};
use events::record::Decoder;
use events::ring::OpenSlice;
use events::{Kind, Record};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;
use std::path::{Path, PathBuf};

/// The process of a meta file's name.
pub(crate) fn parse_file_name(name: &str) -> Option<u32> {
    name.strip_prefix("meta-")?.strip_suffix(".bin")?.parse().ok()
}

#[derive(Default)]
struct Process {
    clock: SteadyClock,
    /// Ticks are nanoseconds.
    is_ns: bool,
    /// What the process said of itself, to be told with the rate of its clock.
    host_name: Option<(String, String)>,
    told_anchors: usize,
    converted: bool,
}

struct Meta {
    pid: u32,
    path: PathBuf,
    reader: MetaReader,
    error: Option<String>,
}

/// All processes of a folder.
#[derive(Default)]
pub(crate) struct Processes {
    metas: BTreeMap<u32, Meta>,
    by_pid: FxHashMap<u32, Process>,
    /// All rings that were ever announced.
    pub(crate) threads: BTreeSet<TrackKey>,
}

impl Processes {
    /// Opens the meta file of a process that is not known yet.
    pub(crate) fn discover(&mut self, pid: u32, path: &Path) -> io::Result<()> {
        if let btree_map::Entry::Vacant(place) = self.metas.entry(pid) {
            let reader = MetaReader::open(path)?;
            place.insert(Meta { pid, path: path.to_owned(), reader, error: None });
        }
        Ok(())
    }

    /// Reads what is new in the meta files.
    pub(crate) fn read_meta(&mut self, batch: &mut Batch) {
        let mut entries = Vec::new();
        for meta in self.metas.values_mut() {
            meta.error = meta.reader.poll(&mut entries).err().map(|e| e.to_string());
            let process = self.by_pid.entry(meta.pid).or_default();
            let mut anchors = Vec::new();
            for entry in entries.drain(..) {
                match entry {
                    Entry::Anchor(anchor) => anchors.push(anchor),
                    Entry::Thread { ring, tid, name } => {
                        let key = TrackKey { pid: meta.pid, ring };
                        self.threads.insert(key);
                        let name = if name.is_empty() { format!("thread {tid}") } else { name };
                        batch.name(Name::Thread { key, name, tid });
                    }
                    other => process.name(meta.pid, other, batch),
                }
            }
            process.clock.extend(anchors.into_iter());
            process.tell(meta.pid, batch);
            if let Some(first) = process.clock.first_ns() {
                batch.set_origin(first);
            }
        }
    }

    /// Another process than this, still running here, that has announced itself.
    pub(crate) fn any_alive(&self) -> Option<u32> {
        self.metas.keys().copied().find(|pid| *pid != std::process::id() && super::is_running(*pid))
    }

    /// Whether times of the process can be converted for good.
    pub(crate) fn clock_is_ready(&self, pid: u32) -> bool {
        self.by_pid.get(&pid).is_some_and(|p| p.is_ns && p.clock.n_anchors() > 0 || p.clock.is_ready())
    }

    /// Appends the records of a ring to its track.
    pub(crate) fn convert(&mut self, key: TrackKey, records: &[Record], decoder: &mut Decoder, batch: &mut Batch) {
        let process = self.by_pid.entry(key.pid).or_default();
        process.converted |= !records.is_empty();
        let events = &mut batch.track(key).events;
        events.reserve(records.len());
        for record in records {
            let Some(event) = decoder.push(*record) else { continue };
            let start = process.clock.ns(event.begin);
            let end = if event.dur == 0 { start } else { process.clock.ns(event.begin.saturating_add(event.dur)) };
            let kind = match event.kind {
                Kind::Slice | Kind::LongSlice => EventKind::Slice,
                Kind::Instant => EventKind::Instant,
                Kind::Counter => EventKind::Counter,
                Kind::FlowOut => EventKind::FlowOut,
                Kind::FlowIn => EventKind::FlowIn,
                Kind::Alloc => EventKind::Alloc,
                Kind::Free => EventKind::Free,
            };
            events.push(Event {
                kind,
                depth: event.depth as u8,
                start,
                end,
                site: event.site.get(),
                node: event.node.get(),
                correlation: event.correlation,
                arg: event.arg,
                args: crate::batch::NO_ARGS,
            });
        }
    }

    pub(crate) fn convert_open(&self, pid: u32, open: &[OpenSlice]) -> Vec<OpenEvent> {
        let Some(process) = self.by_pid.get(&pid) else { return Vec::new() };
        let open = open.iter();
        open.map(|o| OpenEvent { start: process.clock.at(o.begin), site: o.site.get(), node: o.node.get() }).collect()
    }

    /// Names a thread as its ring does, for traces whose meta file lacks it.
    pub(crate) fn name_thread(&self, key: TrackKey, name: String, tid: u32, batch: &mut Batch) {
        if !name.is_empty() {
            batch.name(Name::Thread { key, name, tid });
        }
    }

    pub(crate) fn notices(&self, collector_lives: bool, batch: &mut Batch) {
        for meta in self.metas.values() {
            let name = file_name(&meta.path);
            let (places, bytes) = (meta.reader.damaged(), meta.reader.skipped_bytes());
            if places > 0 {
                let text = format!(
                    "{name}: {bytes} damaged bytes skipped in {places} places; names or clock anchors may be missing"
                );
                batch.notice(notice(WarningKind::Damage, name.clone(), places, text));
            }
            let torn = meta.reader.unfinished_bytes();
            if torn > 0 && !collector_lives {
                let text = format!("{name}: the last entry was cut while it was written ({torn} bytes)");
                batch.notice(notice(WarningKind::TornTail, name.clone(), 1, text));
            }
            let unknown = meta.reader.unknown();
            if unknown > 0 {
                let text = format!("{name}: {unknown} entries of a later version were left out");
                batch.notice(notice(WarningKind::UnknownName, name.clone(), unknown, text));
            }
            if let Some(error) = &meta.error {
                batch.notice(io_notice(&meta.path, error));
            }
        }
        for (pid, process) in &self.by_pid {
            if process.converted && !process.is_ns && !process.clock.is_ready() {
                let text = format!(
                    "process {pid}: the rate of its clock is not in the trace; its times are counter ticks, not ns"
                );
                batch.notice(notice(WarningKind::Clock, format!("process {pid}"), 1, text));
            }
        }
    }
}

impl Process {
    fn name(&mut self, pid: u32, entry: Entry, batch: &mut Batch) {
        match entry {
            Entry::Process { clock, host, exe, args, .. } => {
                self.is_ns = clock == Source::MonotonicRaw;
                let program = Path::new(&exe).file_name().map_or(exe.clone(), |n| n.to_string_lossy().into_owned());
                let name = std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ");
                self.host_name = Some((host, name));
                self.told_anchors = 0;
            }
            Entry::Site { id, category, name } => batch.name(Name::Site { pid, id, category, name }),
            Entry::Node { id, name, op, device } => batch.name(Name::Node { pid, id, name, op, device }),
            // The caller's.
            Entry::Anchor(_) | Entry::Thread { .. } => {}
        }
    }

    /// Tells the process's name, and again when the rate of its clock is known better.
    fn tell(&mut self, pid: u32, batch: &mut Batch) {
        let anchors = self.clock.n_anchors();
        // The first few anchors improve the rate from 10 ppm to below 1; later ones change nothing that is shown.
        if anchors == self.told_anchors || self.told_anchors >= 4 {
            return;
        }
        if let Some((host, name)) = self.host_name.clone() {
            self.told_anchors = anchors;
            batch.name(Name::Process { pid, host, name, ns_per_tick: self.clock.ns_per_tick() });
        }
    }
}
