//! Reads a gathered folder: the trace folders of many processes and hosts as one trace on the collector's clock.
//!
//! ```text
//! gathered.json          {"version": 1, "clock": ID}: the id of the collector's clock
//! clock-ID.bin           facts about a clock (`clocks::file`)
//! HOST-FOLDER/           a trace folder as it was sent, and source.json: {"host", "clock", "folder"}
//! ```
//!
//! The folder may also have the files of a trace that this machine records into it, and a sealed folder, whose
//! `sources.txt` lists the gathered folders that it includes.
//!
//! Processes keep their ids unless two have the same id. All times of a host are converted by one line, so that the
//! host's events keep their order. The error bound of the line is reported with each process (`ClockOffset`).

use super::clock::SteadyClock;
use super::folder::FolderReader;
use crate::store::Update;
use events::Anchor;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use trace_model::clocks::{ClockFile, Fact, HostClock, KNOT_NS};
use trace_model::layout::{GATHERED_FILE, GatheredInfo, SOURCE_FILE, SourceInfo, read_json};
use trace_model::{Batch, Category, ClockOffset, EventKind, Name, TrackKey, Warning, WarningKind, clocks};

/// First number for processes whose id another process has.
const FIRST_RENUMBERED: u32 = 1 << 23;
/// The time by which a clock's line extends beyond its facts, ns.
const EXTENSION_NS: i64 = 60_000_000_000;
/// Maximum number of ends of messages that wait for their other end.
const MAX_PENDING_ENDS: usize = 1 << 16;

/// A host's clock, and the line that converts its times.
#[derive(Default)]
struct MachineClock {
    file: Option<ClockFile>,
    clock: HostClock,
    line: SteadyClock,
    /// The last knot in the line.
    last_knot: Option<i64>,
    /// First and last of the times that were converted.
    range: Option<(i64, i64)>,
    reported_offset: Option<ClockOffset>,
}

impl MachineClock {
    /// Reads new facts about the clock, and extends the line.
    fn poll(&mut self, path: &Path, live: bool) -> io::Result<()> {
        if self.clock.is_collector() {
            return Ok(());
        }
        if self.file.is_none() {
            match ClockFile::open(path) {
                Ok(file) => self.file = Some(file),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        let facts = self.file.as_mut().map(ClockFile::poll).transpose()?.unwrap_or_default();
        self.add_facts(facts);
        self.extend_line(live);
        Ok(())
    }

    /// Adds facts, and solves for the clock from the earliest fact on.
    fn add_facts(&mut self, facts: Vec<Fact>) {
        if let Some(from) = facts.iter().map(|f| f.at).min() {
            self.clock.add_facts(facts);
            self.clock.solve(from);
        }
    }

    /// Extends the line through the new knots. While the trace is live the last knots are left out, since they may
    /// still move.
    fn extend_line(&mut self, live: bool) {
        let Some(first) = self.clock.knots().next() else { return };
        let last = self.clock.knots().last().unwrap_or(first);
        let mut points = Vec::new();
        if self.last_knot.is_none() {
            points.extend([first.saturating_sub(EXTENSION_NS).max(0), first].map(|at| (at, self.midpoint(at))));
            let soon = first.saturating_add(KNOT_NS / 2);
            points.extend(live.then(|| (soon, self.midpoint(soon))));
            self.last_knot = Some(first);
        }
        let last_knot = self.last_knot.unwrap_or(first);
        let last_settled = if live { last.saturating_sub(KNOT_NS) } else { last };
        points.extend(self.clock.midpoints().filter(|(at, _)| last_knot < *at && *at <= last_settled));
        if !live && last_knot < last {
            let line_end = last.saturating_add(EXTENSION_NS);
            points.push((line_end, self.midpoint(line_end)));
        }
        self.last_knot = points.last().map_or(self.last_knot, |(at, _)| Some((*at).min(last).max(last_knot)));
        let anchor = |(at, to): (i64, i64)| Anchor { ticks: at.max(0).unsigned_abs(), mono_ns: to, real_ns: 0 };
        self.line.extend(points.into_iter().map(anchor));
    }

    /// Returns the middle of the interval of collector times that `at` may stand for.
    fn midpoint(&self, at: i64) -> i64 {
        self.clock.interval(at).map_or(at, |(low, high)| i64::midpoint(low, high))
    }

    /// Whether times can be converted.
    fn is_synchronised(&self) -> bool {
        self.clock.is_collector() || self.line.is_ready()
    }

    /// Converts a time to the collector's clock; leaves it unchanged while the clock is not synchronised.
    fn collector_ns(&mut self, at: i64) -> i64 {
        let (low, high) = self.range.unwrap_or((at, at));
        self.range = Some((low.min(at), high.max(at)));
        if self.clock.is_collector() || !self.line.is_ready() { at } else { self.line.ns(at.max(0).unsigned_abs()) }
    }

    /// The offset of the converted times, and the largest error in their range; `None` without facts about the clock.
    fn offset(&self) -> Option<ClockOffset> {
        if self.clock.is_collector() {
            return Some(ClockOffset::default());
        }
        let (from, to) = self.range?;
        let convert = |at: i64| self.line.provisional_ns(at.max(0).unsigned_abs());
        let max_error = |at: i64| {
            let (low, high) = self.clock.interval(at)?;
            let mapped = convert(at);
            Some(high.saturating_sub(mapped).max(mapped.saturating_sub(low)).max(0).unsigned_abs())
        };
        // Checking the knots suffices: between them the line is straight, and so are the bounds, nearly.
        let knots = self.clock.knots().filter(|at| (from..=to).contains(at));
        let bound_ns = knots.chain([from, to]).map(max_error).try_fold(0, |max, error| Some(error?.max(max)))?;
        Some(ClockOffset { offset_ns: convert(to).saturating_sub(to), drift_ppb: self.clock.drift_ppb(), bound_ns })
    }
}

/// One of the gathered trace folders.
struct Source {
    reader: FolderReader,
    /// Id of the clock of the folder's times.
    clock: String,
    /// Numbers of the processes among all sources, by their numbers in this source.
    process_numbers: BTreeMap<u32, u32>,
    live: bool,
    disk_bytes: u64,
    reported_offset: Option<ClockOffset>,
}

/// One end of a message between processes.
struct MessageEnd {
    /// Id of the clock of `at`.
    clock: String,
    at: i64,
    /// Whether this is the sender's end.
    is_tail: bool,
}

/// A site of flows whose correlation is unique in the entire trace.
struct MessageSite {
    name: String,
    /// Whether both ends have the same `arg`, which then identifies the message too.
    is_arg_shared: bool,
}

/// Identity of a message: name of its site, correlation, and for a transfer between processes its `arg` (step and
/// bytes).
type MessageKey = (String, u32, u64);

/// Reads a gathered folder.
#[derive(Default)]
pub(crate) struct GatheredReader {
    dir: PathBuf,
    /// Id of the collector's clock.
    collector_clock: String,
    sources: BTreeMap<PathBuf, Source>,
    clocks: BTreeMap<String, MachineClock>,
    /// Numbers that processes have already.
    used_numbers: BTreeSet<u32>,
    n_renumbered: u32,
    /// Sources that are still to be polled in this round.
    remaining: VecDeque<PathBuf>,
    /// Whether a source of this round has more than fits into a batch.
    has_more: bool,
    /// Sites of flows whose correlation is unique in the entire trace, by process and id.
    message_sites: FxHashMap<(u32, u32), MessageSite>,
    /// Ends of messages that wait for their other end.
    pending_ends: FxHashMap<MessageKey, MessageEnd>,
    /// Keys of the pending ends, the oldest first.
    pending_keys: VecDeque<MessageKey>,
    /// Facts that messages have proved, each with the clock's id.
    facts: Vec<(String, Fact)>,
    /// Folders that cannot be opened, and why.
    source_errors: BTreeMap<PathBuf, String>,
    /// Gathered folders that are sealed into the trace.
    sealed: BTreeSet<PathBuf>,
    /// The first updates of all sources, whose earliest origin is that of the trace.
    staged_updates: VecDeque<Update>,
    has_origin: bool,
}

impl GatheredReader {
    pub(crate) fn open(dir: &Path) -> io::Result<GatheredReader> {
        let info: GatheredInfo = read_json(&dir.join(GATHERED_FILE))?;
        let mut gathered =
            GatheredReader { dir: dir.to_owned(), collector_clock: info.clock, ..GatheredReader::default() };
        gathered.add_local_source();
        gathered.discover()?;
        Ok(gathered)
    }

    /// Adds the trace that this machine records into the folder itself, if there is one.
    fn add_local_source(&mut self) {
        let Ok(reader) = FolderReader::open(&self.dir) else { return };
        if let Some(sealed) = &reader.staged_store {
            // Processes of the sealed trace keep their numbers.
            let pids: BTreeSet<u32> = reader.positions().iter().map(|ring| ring.pid).collect();
            self.used_numbers.extend(sealed.processes().iter().map(|process| process.pid));
            let numbers = pids.into_iter().map(|pid| (pid, pid)).collect();
            self.sealed = crate::seal::sources_of(&self.dir).into_iter().map(|name| self.dir.join(name)).collect();
            self.add_source(self.dir.clone(), self.collector_clock.clone(), reader, numbers);
        } else {
            self.add_source(self.dir.clone(), self.collector_clock.clone(), reader, BTreeMap::new());
        }
    }

    fn add_source(&mut self, path: PathBuf, clock: String, reader: FolderReader, process_numbers: BTreeMap<u32, u32>) {
        let machine_clock = self.clocks.entry(clock.clone()).or_default();
        if clock == self.collector_clock {
            machine_clock.clock = HostClock::of_this_host();
        }
        self.sources
            .insert(path, Source { reader, clock, process_numbers, live: true, disk_bytes: 0, reported_offset: None });
    }

    /// The reader of the trace that this machine records into the folder itself.
    pub(crate) fn local_folder(&self) -> Option<&FolderReader> {
        self.sources.get(&self.dir).map(|source| &source.reader)
    }

    /// The gathered folders.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        self.sources.keys().filter(|path| **path != self.dir).cloned().collect()
    }

    /// Sets that no process collects any more.
    pub(crate) fn end(&mut self) {
        self.sources.values_mut().for_each(|source| source.reader.end());
    }

    /// New facts about clocks that messages between hosts have proved since the last call, each with the clock's id.
    pub(crate) fn take_facts(&mut self) -> Vec<(String, Fact)> {
        std::mem::take(&mut self.facts)
    }

    /// Finds new sources.
    fn discover(&mut self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let is_handled = self.sources.contains_key(&path) || self.sealed.contains(&path);
            if is_handled || !path.join(SOURCE_FILE).is_file() {
                continue;
            }
            let opened = read_json::<SourceInfo>(&path.join(SOURCE_FILE)).map_err(|e| e.to_string()).and_then(|info| {
                let reader = FolderReader::open_collected(&path).map_err(|e| e.to_string())?;
                Ok((info, reader))
            });
            match opened {
                Ok((info, reader)) => {
                    self.source_errors.remove(&path);
                    self.add_source(path, info.clock, reader, BTreeMap::new());
                }
                // Not final: the first files of the folder may still be on their way.
                Err(error) => {
                    self.source_errors.insert(path, error);
                }
            }
        }
        Ok(())
    }

    /// Returns the next update. Several calls make a round through all sources.
    pub(super) fn poll_staged(&mut self) -> io::Result<Update> {
        if self.remaining.is_empty() {
            self.discover()?;
            self.remaining.extend(self.sources.keys().cloned());
            self.has_more = false;
            self.poll_clocks()?;
        }
        if !self.has_origin {
            self.poll_first_round()?;
        }
        let mut update = match (self.staged_updates.pop_front(), self.remaining.pop_front()) {
            (Some(update), next) => {
                next.into_iter().for_each(|path| self.remaining.push_front(path));
                update
            }
            (None, Some(path)) => self.poll_source(&path)?,
            (None, None) => Update::default(),
        };
        let batch = &mut update.batch;
        self.has_more |= batch.more;
        batch.more = self.has_more || !self.remaining.is_empty() || !self.staged_updates.is_empty();
        batch.live = Some(self.sources.values().any(|s| s.live));
        batch.disk_bytes = self.sources.values().map(|s| s.disk_bytes).sum();
        self.add_warnings(batch);
        Ok(update)
    }

    fn poll_clocks(&mut self) -> io::Result<()> {
        for (id, machine_clock) in &mut self.clocks {
            let live = self.sources.values().any(|s| s.clock == *id && s.reader.is_collector_alive());
            machine_clock.poll(&clocks::file::path(&self.dir, id), live)?;
        }
        Ok(())
    }

    /// Polls every source once, since the trace begins with the earliest event of all.
    fn poll_first_round(&mut self) -> io::Result<()> {
        while let Some(path) = self.remaining.pop_front() {
            let update = self.poll_source(&path)?;
            self.staged_updates.push_back(update);
        }
        let origin = self.staged_updates.iter().filter_map(|update| update.batch.origin).min();
        self.staged_updates.iter_mut().for_each(|update| update.batch.origin = origin);
        self.has_origin = origin.is_some();
        Ok(())
    }

    fn poll_source(&mut self, path: &Path) -> io::Result<Update> {
        let Some(source) = self.sources.get_mut(path) else { return Ok(Update::default()) };
        let Some(machine_clock) = self.clocks.get_mut(&source.clock) else { return Ok(Update::default()) };
        let is_live = source.reader.is_collector_alive();
        if !machine_clock.is_synchronised() && is_live {
            // The first exchange of stamps is expected soon.
            source.live = true;
            return Ok(Update::default());
        }
        let mut update = source.reader.poll_staged()?;
        let batch = &mut update.batch;
        source.live = batch.live.unwrap_or(source.live);
        source.disk_bytes = batch.disk_bytes;
        let numbers = ProcessNumbers {
            used_numbers: &mut self.used_numbers,
            n_renumbered: &mut self.n_renumbered,
            source_numbers: &mut source.process_numbers,
            renumbered: Vec::new(),
        };
        renumber(batch, numbers);
        self.match_messages(path, batch);
        let (Some(source), folder) = (self.sources.get_mut(path), &self.dir) else { return Ok(update) };
        let Some(machine_clock) = self.clocks.get_mut(&source.clock) else { return Ok(update) };
        convert_times(batch, machine_clock);
        let folder_name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        for warning in batch.warnings.iter_mut().filter(|_| !folder_name.is_empty()) {
            warning.source = format!("{folder_name}: {}", warning.source);
            warning.text = format!("{folder_name}: {}", warning.text);
        }
        machine_clock.reported_offset = machine_clock.offset();
        if machine_clock.reported_offset.is_some()
            && (source.reported_offset != machine_clock.reported_offset || !batch.names.is_empty())
        {
            source.reported_offset = machine_clock.reported_offset;
            let clocks = source
                .process_numbers
                .values()
                .map(|pid| Name::Clock { pid: *pid, clock: machine_clock.reported_offset });
            batch.names.extend(clocks);
        }
        Ok(update)
    }

    /// Matches the ends of messages between hosts.
    fn match_messages(&mut self, path: &Path, batch: &Batch) {
        for name in &batch.names {
            if let Name::Site { pid, id, category, name } = name
                && Category::from_name(category).joins_processes()
            {
                let is_arg_shared = Category::from_name(category) == Category::RemoteTransfer;
                self.message_sites.insert((*pid, *id), MessageSite { name: name.clone(), is_arg_shared });
            }
        }
        let Some(clock) = self.sources.get(path).map(|s| s.clock.clone()) else { return };
        for (key, track) in &batch.tracks {
            for event in &track.events {
                let is_tail = match event.kind {
                    EventKind::FlowOut => true,
                    EventKind::FlowIn => false,
                    _ => continue,
                };
                if let Some(site) = self.message_sites.get(&(key.pid, event.site)) {
                    let end = MessageEnd { clock: clock.clone(), at: event.start, is_tail };
                    let arg = if site.is_arg_shared { event.arg } else { 0 };
                    let key = (site.name.clone(), event.correlation, arg);
                    self.add_end(key, end);
                }
            }
        }
    }

    /// Adds an end of a message. Two ends on different hosts prove facts about both clocks.
    fn add_end(&mut self, key: MessageKey, end: MessageEnd) {
        let other = self.pending_ends.remove(&key).filter(|other| other.is_tail != end.is_tail);
        let Some(other) = other else {
            self.pending_keys.push_back(key.clone());
            self.pending_ends.insert(key, end);
            while self.pending_keys.len() > MAX_PENDING_ENDS {
                self.pending_keys.pop_front().and_then(|old| self.pending_ends.remove(&old));
            }
            return;
        };
        if other.clock == end.clock {
            return;
        }
        let (sent, received) = if end.is_tail { (end, other) } else { (other, end) };
        let clock = |end: &MessageEnd| self.clocks.get(&end.clock).map(|m| &m.clock);
        let (Some(sender), Some(receiver)) = (clock(&sent), clock(&received)) else { return };
        let (of_sender, of_receiver) = Fact::from_message((sender, sent.at), (receiver, received.at));
        for (end, fact) in [(sent, of_sender), (received, of_receiver)] {
            let Some(machine_clock) = self.clocks.get_mut(&end.clock).filter(|m| !m.clock.is_collector()) else {
                continue;
            };
            if let Some(fact) = fact {
                machine_clock.add_facts(vec![fact]);
                self.facts.push((end.clock, fact));
            }
        }
    }

    fn add_warnings(&self, batch: &mut Batch) {
        for (path, error) in &self.source_errors {
            let text = format!("{}: {error}", path.display());
            batch.warnings.push(Warning::new(WarningKind::Io, path.display().to_string(), 1, text));
        }
        for (id, machine_clock) in &self.clocks {
            let n_contradictions = machine_clock.clock.n_contradictions();
            if n_contradictions > 0 {
                let text = format!(
                    "clock {id}: it did not hold still in {n_contradictions} places (a suspended or moved machine?); its bound does not hold there"
                );
                batch.warnings.push(Warning::new(WarningKind::Clock, format!("clock {id}"), n_contradictions, text));
            }
            if !machine_clock.is_synchronised() && machine_clock.range.is_some() {
                let text = format!("clock {id}: nothing is known of it; its times are not those of the others");
                batch.warnings.push(Warning::new(WarningKind::Clock, format!("clock {id}"), 1, text));
            }
            let n_damaged = machine_clock.file.as_ref().map_or(0, ClockFile::n_damaged);
            if n_damaged > 0 {
                let text = format!("clock-{id}.bin: {n_damaged} frames do not check and were left out");
                batch.warnings.push(Warning::new(WarningKind::Damage, format!("clock-{id}.bin"), n_damaged, text));
            }
        }
    }
}

/// Converts the times of a batch to the collector's clock.
fn convert_times(batch: &mut Batch, machine_clock: &mut MachineClock) {
    batch.origin = batch.origin.map(|at| machine_clock.collector_ns(at));
    for track in batch.tracks.values_mut() {
        for event in &mut track.events {
            event.start = machine_clock.collector_ns(event.start);
            event.end = machine_clock.collector_ns(event.end).max(event.start);
        }
        for open in track.open.iter_mut().flatten() {
            open.start = machine_clock.collector_ns(open.start);
        }
    }
}

/// Assigns to the processes of one source their numbers among those of all sources.
struct ProcessNumbers<'a> {
    used_numbers: &'a mut BTreeSet<u32>,
    n_renumbered: &'a mut u32,
    source_numbers: &'a mut BTreeMap<u32, u32>,
    /// Processes whose number differs from their id: (number, id).
    renumbered: Vec<(u32, u32)>,
}

impl ProcessNumbers<'_> {
    /// Replaces a process's number in the source by that among all sources.
    fn assign(&mut self, pid: &mut u32) {
        if let Some(number) = self.source_numbers.get(pid) {
            *pid = *number;
            return;
        }
        let mut number = *pid;
        while !self.used_numbers.insert(number) {
            number = FIRST_RENUMBERED.saturating_add(*self.n_renumbered);
            *self.n_renumbered += 1;
        }
        self.source_numbers.insert(*pid, number);
        *pid = number;
    }
}

/// Replaces the numbers of a batch's processes by those among all sources.
fn renumber(batch: &mut Batch, mut numbers: ProcessNumbers<'_>) {
    for name in &mut batch.names {
        match name {
            Name::Process { pid, .. } => {
                let old = *pid;
                numbers.assign(pid);
                if *pid != old {
                    numbers.renumbered.push((*pid, old));
                }
            }
            Name::Pid { process, .. } => {
                numbers.assign(process);
                // The source itself reports the system's id.
                numbers.renumbered.retain(|(number, _)| number != process);
            }
            Name::Thread { key, .. } | Name::Track { key, .. } => numbers.assign(&mut key.pid),
            Name::Owner { key, pid } => {
                numbers.assign(&mut key.pid);
                numbers.assign(pid);
            }
            Name::Other { pid, .. }
            | Name::Frame { pid, .. }
            | Name::Function { pid, .. }
            | Name::Stack { pid, .. }
            | Name::Site { pid, .. }
            | Name::Node { pid, .. }
            | Name::Clock { pid, .. } => numbers.assign(pid),
        }
    }
    let tracks = std::mem::take(&mut batch.tracks);
    for (TrackKey { mut pid, ring }, events) in tracks {
        numbers.assign(&mut pid);
        batch.tracks.insert(TrackKey { pid, ring }, events);
    }
    let pids = numbers.renumbered.iter().map(|(process, pid)| Name::Pid { process: *process, pid: *pid });
    batch.names.extend(pids);
}
