//! A gathered folder: the trace folders of many processes and hosts, read as one trace on the collector's clock.
//!
//! ```text
//! gathered.json          {"version": 1, "clock": ID}: the collector's own clock
//! clock-ID.bin           what is known of a clock (`clocks::file`)
//! HOST-FOLDER/           a trace folder as its senders sent it, and source.json: {"host", "clock", "folder"}
//! ```
//!
//! Next to these may lie the files of a trace that this machine records itself into the folder, and its sealed form, which says of which
//! of the others it holds what they have (`sources.txt`).
//!
//! Processes keep their ids as long as no two have the same; all times of a host go through one line, so that nothing changes its
//! place among the host's own. How wrong that line may be is reported with each process (`store::ClockOffset`).

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

/// Numbers of processes whose own is taken, from here on.
const FIRST_RENAMED: u32 = 1 << 23;
/// How far beyond its facts a clock's line is laid, ns.
const BEYOND_NS: i64 = 60_000_000_000;
/// Ends of messages that wait for their other end.
const MAX_WAITING: usize = 1 << 16;

/// A host's clock and the line that its times go through.
#[derive(Default)]
struct Machine {
    file: Option<ClockFile>,
    clock: HostClock,
    line: SteadyClock,
    /// The last knot that the line has.
    laid: Option<i64>,
    /// Of times that went through the line.
    range: Option<(i64, i64)>,
    reported: Option<ClockOffset>,
}

impl Machine {
    /// Takes in what is new of the clock.
    fn poll(&mut self, path: &Path, live: bool) -> io::Result<()> {
        if self.clock.is_own() {
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
        self.learn(facts);
        self.lay(live);
        Ok(())
    }

    fn learn(&mut self, facts: Vec<Fact>) {
        if let Some(from) = facts.iter().map(|f| f.at).min() {
            self.clock.learn(facts);
            self.clock.solve(from);
        }
    }

    /// Lays the line through the knots that are new; while more come, not through those that may still move much.
    fn lay(&mut self, live: bool) {
        let Some(first) = self.clock.knots().next() else { return };
        let last = self.clock.knots().last().unwrap_or(first);
        let mut points = Vec::new();
        if self.laid.is_none() {
            points.extend([first.saturating_sub(BEYOND_NS).max(0), first].map(|at| (at, self.middle(at))));
            let soon = first.saturating_add(KNOT_NS / 2);
            points.extend(live.then(|| (soon, self.middle(soon))));
            self.laid = Some(first);
        }
        let laid = self.laid.unwrap_or(first);
        let settled = if live { last.saturating_sub(KNOT_NS) } else { last };
        points.extend(self.clock.middles().filter(|(at, _)| laid < *at && *at <= settled));
        if !live && laid < last {
            let beyond = last.saturating_add(BEYOND_NS);
            points.push((beyond, self.middle(beyond)));
        }
        self.laid = points.last().map_or(self.laid, |(at, _)| Some((*at).min(last).max(laid)));
        let anchor = |(at, to): (i64, i64)| Anchor { ticks: at.max(0).unsigned_abs(), mono_ns: to, real_ns: 0 };
        self.line.extend(points.into_iter().map(anchor));
    }

    fn middle(&self, at: i64) -> i64 {
        self.clock.interval(at).map_or(at, |(low, high)| i64::midpoint(low, high))
    }

    fn is_known(&self) -> bool {
        self.clock.is_own() || self.line.is_ready()
    }

    fn map(&mut self, at: i64) -> i64 {
        let (low, high) = self.range.unwrap_or((at, at));
        self.range = Some((low.min(at), high.max(at)));
        if self.clock.is_own() || !self.line.is_ready() { at } else { self.line.ns(at.max(0).unsigned_abs()) }
    }

    /// How its times were moved, and how wrong that may be anywhere in what was mapped.
    fn offset(&self) -> Option<ClockOffset> {
        if self.clock.is_own() {
            return Some(ClockOffset::default());
        }
        let (from, to) = self.range?;
        let line = |at: i64| self.line.at(at.max(0).unsigned_abs());
        let wrong = |at: i64| {
            let (low, high) = self.clock.interval(at)?;
            let here = line(at);
            Some(high.saturating_sub(here).max(here.saturating_sub(low)).max(0).unsigned_abs())
        };
        // Between knots, interval and line are straight, or nearly so: the interval's edges have what the bend adds.
        let knots = self.clock.knots().filter(|at| (from..=to).contains(at));
        let bound_ns = knots.chain([from, to]).map(wrong).try_fold(0, |most, wrong| Some(wrong?.max(most)))?;
        Some(ClockOffset { offset_ns: line(to).saturating_sub(to), drift_ppb: self.clock.drift_ppb(), bound_ns })
    }
}

/// A trace folder of the gathered ones.
struct Source {
    reader: FolderReader,
    clock: String,
    /// Its processes' numbers in the batches: own, merged.
    numbers: BTreeMap<u32, u32>,
    live: bool,
    disk_bytes: u64,
    reported: Option<ClockOffset>,
}

/// One end of a message between processes.
struct MessageEnd {
    clock: String,
    at: i64,
    is_tail: bool,
}

/// A site of arrows that are unique in the whole trace.
struct Edge {
    name: String,
    /// Whether both ends have the same `arg`.
    has_arg: bool,
}

/// What identifies a message: its site's name, its number, and of a value on its way between processes the step and the bytes.
type MessageKey = (String, u32, u64);

/// Reads a gathered folder.
#[derive(Default)]
pub(crate) struct Gathered {
    dir: PathBuf,
    own_clock: String,
    sources: BTreeMap<PathBuf, Source>,
    machines: BTreeMap<String, Machine>,
    taken: BTreeSet<u32>,
    n_renamed: u32,
    /// Sources that this round has still to ask.
    round: VecDeque<PathBuf>,
    /// A source of this round had more than it could give.
    has_more: bool,
    /// Sites of arrows that are unique in the whole trace.
    edges: FxHashMap<(u32, u32), Edge>,
    waiting: FxHashMap<MessageKey, MessageEnd>,
    order: VecDeque<MessageKey>,
    facts: Vec<(String, Fact)>,
    problems: BTreeMap<PathBuf, String>,
    /// What the sealed form holds already.
    sealed: BTreeSet<PathBuf>,
    /// The first batch of each source, until the earliest of their origins is known.
    staged: VecDeque<Update>,
    has_origin: bool,
}

impl Gathered {
    pub(crate) fn open(dir: &Path) -> io::Result<Gathered> {
        let info: GatheredInfo = read_json(&dir.join(GATHERED_FILE))?;
        let mut gathered = Gathered { dir: dir.to_owned(), own_clock: info.clock, ..Gathered::default() };
        gathered.take_own();
        gathered.look()?;
        Ok(gathered)
    }

    /// Takes up what this machine recorded into the folder itself, if it did.
    fn take_own(&mut self) {
        let Ok(reader) = FolderReader::open(&self.dir) else { return };
        if let Some(sealed) = &reader.staged {
            // Its processes keep their numbers.
            let own: BTreeSet<u32> = reader.positions().iter().map(|ring| ring.pid).collect();
            self.taken.extend(sealed.processes().iter().map(|process| process.pid));
            let numbers = own.into_iter().map(|pid| (pid, pid)).collect();
            self.sealed = crate::seal::sources_of(&self.dir).into_iter().map(|name| self.dir.join(name)).collect();
            self.add(self.dir.clone(), self.own_clock.clone(), reader, numbers);
        } else {
            self.add(self.dir.clone(), self.own_clock.clone(), reader, BTreeMap::new());
        }
    }

    fn add(&mut self, path: PathBuf, clock: String, reader: FolderReader, numbers: BTreeMap<u32, u32>) {
        let machine = self.machines.entry(clock.clone()).or_default();
        if clock == self.own_clock {
            machine.clock = HostClock::own();
        }
        self.sources.insert(path, Source { reader, clock, numbers, live: true, disk_bytes: 0, reported: None });
    }

    /// What this machine recorded into the folder itself.
    pub(crate) fn own(&self) -> Option<&FolderReader> {
        self.sources.get(&self.dir).map(|source| &source.reader)
    }

    /// The folders of the others.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        self.sources.keys().filter(|path| **path != self.dir).cloned().collect()
    }

    /// Nobody collects any more.
    pub(crate) fn end(&mut self) {
        self.sources.values_mut().for_each(|source| source.reader.end());
    }

    /// What messages between hosts reported of their clocks since the last call: what was not known before.
    pub(crate) fn take_facts(&mut self) -> Vec<(String, Fact)> {
        std::mem::take(&mut self.facts)
    }

    /// Finds new sources.
    fn look(&mut self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let is_known = self.sources.contains_key(&path) || self.sealed.contains(&path);
            if is_known || !path.join(SOURCE_FILE).is_file() {
                continue;
            }
            let opened = read_json::<SourceInfo>(&path.join(SOURCE_FILE)).map_err(|e| e.to_string()).and_then(|info| {
                let reader = FolderReader::unstaged(&path).map_err(|e| e.to_string())?;
                Ok((info, reader))
            });
            match opened {
                Ok((info, reader)) => {
                    self.problems.remove(&path);
                    self.add(path, info.clock, reader, BTreeMap::new());
                }
                // Its first files may still be on their way.
                Err(problem) => {
                    self.problems.insert(path, problem);
                }
            }
        }
        Ok(())
    }

    /// The next batch; several calls make a round through all sources.
    pub(super) fn poll_staged(&mut self) -> io::Result<Update> {
        if self.round.is_empty() {
            self.look()?;
            self.round.extend(self.sources.keys().cloned());
            self.has_more = false;
            self.poll_clocks()?;
        }
        if !self.has_origin {
            self.stage_first()?;
        }
        let mut update = match (self.staged.pop_front(), self.round.pop_front()) {
            (Some(update), unasked) => {
                unasked.into_iter().for_each(|path| self.round.push_front(path));
                update
            }
            (None, Some(path)) => self.poll_source(&path)?,
            (None, None) => Update::default(),
        };
        let batch = &mut update.batch;
        self.has_more |= batch.more;
        batch.more = self.has_more || !self.round.is_empty() || !self.staged.is_empty();
        batch.live = Some(self.sources.values().any(|s| s.live));
        batch.disk_bytes = self.sources.values().map(|s| s.disk_bytes).sum();
        self.warnings(batch);
        Ok(update)
    }

    fn poll_clocks(&mut self) -> io::Result<()> {
        for (id, machine) in &mut self.machines {
            let live = self.sources.values().any(|s| s.clock == *id && s.reader.collector_lives());
            machine.poll(&clocks::file::path(&self.dir, id), live)?;
        }
        Ok(())
    }

    /// Asks every source once: the trace begins with the earliest of them.
    fn stage_first(&mut self) -> io::Result<()> {
        while let Some(path) = self.round.pop_front() {
            let update = self.poll_source(&path)?;
            self.staged.push_back(update);
        }
        let origin = self.staged.iter().filter_map(|update| update.batch.origin).min();
        self.staged.iter_mut().for_each(|update| update.batch.origin = origin);
        self.has_origin = origin.is_some();
        Ok(())
    }

    fn poll_source(&mut self, path: &Path) -> io::Result<Update> {
        let Some(source) = self.sources.get_mut(path) else { return Ok(Update::default()) };
        let Some(machine) = self.machines.get_mut(&source.clock) else { return Ok(Update::default()) };
        let lives = source.reader.collector_lives();
        if !machine.is_known() && lives {
            // The first exchange is on its way.
            source.live = true;
            return Ok(Update::default());
        }
        let mut update = source.reader.poll_staged()?;
        let batch = &mut update.batch;
        source.live = batch.live.unwrap_or(source.live);
        source.disk_bytes = batch.disk_bytes;
        let numbers = ProcessNumbers {
            taken: &mut self.taken,
            n_renamed: &mut self.n_renamed,
            of_source: &mut source.numbers,
            own: Vec::new(),
        };
        renumber(batch, numbers);
        self.messages(path, batch);
        let (Some(source), folder) = (self.sources.get_mut(path), &self.dir) else { return Ok(update) };
        let Some(machine) = self.machines.get_mut(&source.clock) else { return Ok(update) };
        shift(batch, machine);
        let place = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        for warning in batch.warnings.iter_mut().filter(|_| !place.is_empty()) {
            warning.source = format!("{place}: {}", warning.source);
            warning.text = format!("{place}: {}", warning.text);
        }
        machine.reported = machine.offset();
        if machine.reported.is_some() && (source.reported != machine.reported || !batch.names.is_empty()) {
            source.reported = machine.reported;
            let clocks = source.numbers.values().map(|pid| Name::Clock { pid: *pid, clock: machine.reported });
            batch.names.extend(clocks);
        }
        Ok(update)
    }

    /// Finds both ends of messages between hosts.
    fn messages(&mut self, path: &Path, batch: &Batch) {
        for name in &batch.names {
            if let Name::Site { pid, id, category, name } = name
                && Category::from_name(category).joins_processes()
            {
                let has_arg = Category::from_name(category) == Category::RemoteTransfer;
                self.edges.insert((*pid, *id), Edge { name: name.clone(), has_arg });
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
                if let Some(edge) = self.edges.get(&(key.pid, event.site)) {
                    let end = MessageEnd { clock: clock.clone(), at: event.start, is_tail };
                    let arg = if edge.has_arg { event.arg } else { 0 };
                    let key = (edge.name.clone(), event.correlation, arg);
                    self.message(key, end);
                }
            }
        }
    }

    fn message(&mut self, key: MessageKey, end: MessageEnd) {
        let other = self.waiting.remove(&key).filter(|other| other.is_tail != end.is_tail);
        let Some(other) = other else {
            self.order.push_back(key.clone());
            self.waiting.insert(key, end);
            while self.order.len() > MAX_WAITING {
                self.order.pop_front().and_then(|old| self.waiting.remove(&old));
            }
            return;
        };
        if other.clock == end.clock {
            return;
        }
        let (sent, came) = if end.is_tail { (end, other) } else { (other, end) };
        let clock = |end: &MessageEnd| self.machines.get(&end.clock).map(|m| &m.clock);
        let (Some(sender), Some(receiver)) = (clock(&sent), clock(&came)) else { return };
        let (of_sender, of_receiver) = Fact::of_message((sender, sent.at), (receiver, came.at));
        for (end, fact) in [(sent, of_sender), (came, of_receiver)] {
            let Some(machine) = self.machines.get_mut(&end.clock).filter(|m| !m.clock.is_own()) else { continue };
            if let Some(fact) = fact {
                machine.learn(vec![fact]);
                self.facts.push((end.clock, fact));
            }
        }
    }

    fn warnings(&self, batch: &mut Batch) {
        for (path, problem) in &self.problems {
            let text = format!("{}: {problem}", path.display());
            batch.warnings.push(Warning::new(WarningKind::Io, path.display().to_string(), 1, text));
        }
        for (id, machine) in &self.machines {
            let broken = machine.clock.broken();
            if broken > 0 {
                let text = format!(
                    "clock {id}: it did not hold still in {broken} places (a suspended or moved machine?); its bound does not hold there"
                );
                batch.warnings.push(Warning::new(WarningKind::Clock, format!("clock {id}"), broken, text));
            }
            if !machine.is_known() && machine.range.is_some() {
                let text = format!("clock {id}: nothing is known of it; its times are not those of the others");
                batch.warnings.push(Warning::new(WarningKind::Clock, format!("clock {id}"), 1, text));
            }
            let damaged = machine.file.as_ref().map_or(0, ClockFile::damaged);
            if damaged > 0 {
                let text = format!("clock-{id}.bin: {damaged} frames do not check and were left out");
                batch.warnings.push(Warning::new(WarningKind::Damage, format!("clock-{id}.bin"), damaged, text));
            }
        }
    }
}

/// Moves a batch's times to the collector's clock.
fn shift(batch: &mut Batch, machine: &mut Machine) {
    batch.origin = batch.origin.map(|at| machine.map(at));
    for track in batch.tracks.values_mut() {
        for event in &mut track.events {
            event.start = machine.map(event.start);
            event.end = machine.map(event.end).max(event.start);
        }
        for open in track.open.iter_mut().flatten() {
            open.start = machine.map(open.start);
        }
    }
}

/// Numbers of one source's processes among all sources'.
struct ProcessNumbers<'a> {
    taken: &'a mut BTreeSet<u32>,
    n_renamed: &'a mut u32,
    of_source: &'a mut BTreeMap<u32, u32>,
    /// Those that got another number: merged, own.
    own: Vec<(u32, u32)>,
}

impl ProcessNumbers<'_> {
    fn of(&mut self, pid: &mut u32) {
        if let Some(number) = self.of_source.get(pid) {
            *pid = *number;
            return;
        }
        let mut number = *pid;
        while !self.taken.insert(number) {
            number = FIRST_RENAMED.saturating_add(*self.n_renamed);
            *self.n_renamed += 1;
        }
        self.of_source.insert(*pid, number);
        *pid = number;
    }
}

/// Gives a batch's processes their numbers among all sources'.
fn renumber(batch: &mut Batch, mut numbers: ProcessNumbers<'_>) {
    for name in &mut batch.names {
        match name {
            Name::Process { pid, .. } => {
                let own = *pid;
                numbers.of(pid);
                if *pid != own {
                    numbers.own.push((*pid, own));
                }
            }
            Name::Pid { process, .. } => {
                numbers.of(process);
                // The source reported already which id it is.
                numbers.own.retain(|(number, _)| number != process);
            }
            Name::Thread { key, .. } | Name::Track { key, .. } => numbers.of(&mut key.pid),
            Name::Owner { key, pid } => {
                numbers.of(&mut key.pid);
                numbers.of(pid);
            }
            Name::Other { pid, .. }
            | Name::Frame { pid, .. }
            | Name::Function { pid, .. }
            | Name::Stack { pid, .. }
            | Name::Site { pid, .. }
            | Name::Node { pid, .. }
            | Name::Clock { pid, .. } => numbers.of(pid),
        }
    }
    let tracks = std::mem::take(&mut batch.tracks);
    for (TrackKey { mut pid, ring }, events) in tracks {
        numbers.of(&mut pid);
        batch.tracks.insert(TrackKey { pid, ring }, events);
    }
    let own = numbers.own.iter().map(|(process, pid)| Name::Pid { process: *process, pid: *pid });
    batch.names.extend(own);
}
