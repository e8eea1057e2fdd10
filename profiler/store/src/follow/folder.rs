//! Reads one machine's trace folder.

use super::files::{ChunkFiles, Staged};
use super::notices::{file_name, io_warning};
use super::process::{Processes, is_running};
use super::rings::Rings;
use crate::seal::{SealedTrace, positions};
use crate::store::{Store, Update};
use events::control::{CollectorState, Control};
use events::ring;
use std::io;
use std::path::{Path, PathBuf};
use trace_model::chunks::{FLAG_FLIGHT, FLAG_LAST, FLAG_LIMIT};
use trace_model::layout::{OpenError, SEALED_FOLDER, find_sealed, is_chunk_file, parse_meta_file};
use trace_model::{Batch, Name, RingPosition, TrackKey, Warning, WarningKind};

/// Events of a batch, about (a chunk or a ring more).
const BATCH_EVENTS: usize = 1 << 16;
/// A collector that has not given a sign for so long is gone.
const HEARTBEAT_NS: i64 = 2_000_000_000;
/// How long records wait for their process's second clock anchor (it comes after 10 ms).
const HOLD_NS: i64 = 1_000_000_000;

/// Follows the trace folder of one machine.
#[derive(Default)]
pub(crate) struct FolderReader {
    dir: PathBuf,
    control: Option<Control>,
    processes: Processes,
    chunks: ChunkFiles,
    rings: Rings,
    /// Chunks whose process has no clock rate yet, and since when they wait.
    waiting: Vec<Staged>,
    waiting_since: Option<i64>,
    recovered: u64,
    limit_reached: bool,
    /// Whether all there is was read: before that a file's last bytes say nothing of its end.
    at_end: bool,
    live: Option<bool>,
    /// The sealed form that was found, and whether it was looked at.
    sealed: Option<(PathBuf, bool)>,
    sealed_bytes: u64,
    /// A sealed trace that the store has to take over first.
    pub(super) staged: Option<Box<Store>>,
    /// The collector as it was when the trace was opened for good: nobody collects any more.
    pub(super) ended: Option<Option<CollectorState>>,
}

impl FolderReader {
    /// Opens a trace folder as one of this machine's, whatever others' lie within it.
    pub(super) fn open(trace_dir: &Path) -> Result<FolderReader, OpenError> {
        let mut reader = FolderReader::unstaged(trace_dir)?;
        if let Some(folder) = find_sealed(trace_dir) {
            reader.stage(&folder).map_err(|e| OpenError::Io(folder, e))?;
        }
        Ok(reader)
    }

    /// Nobody collects any more.
    pub(super) fn end(&mut self) {
        self.ended = Some(self.control.as_ref().map(Control::collector));
    }

    /// Opens what a collector left in a folder, whatever sealed form there is.
    pub(super) fn unstaged(trace_dir: &Path) -> Result<FolderReader, OpenError> {
        let mut reader = FolderReader { dir: trace_dir.to_owned(), ..FolderReader::default() };
        let found = reader.look(&mut Batch::new()).map_err(|e| OpenError::Io(trace_dir.to_owned(), e))?;
        if found || find_sealed(trace_dir).is_some() {
            Ok(reader)
        } else {
            Err(OpenError::NoTrace(trace_dir.to_owned()))
        }
    }

    /// Stages the sealed form, and takes up reading where it ends.
    fn stage(&mut self, folder: &Path) -> io::Result<()> {
        let sealed = SealedTrace::open(folder)?;
        self.rings.set_positions(&sealed.rings);
        self.sealed_bytes = std::fs::read_dir(folder)?.filter_map(|e| Some(e.ok()?.metadata().ok()?.len())).sum();
        self.sealed = Some((folder.to_owned(), true));
        self.staged = Some(Box::new(sealed.store));
        Ok(())
    }

    /// How far each ring was read.
    pub(super) fn positions(&self) -> Vec<RingPosition> {
        self.rings.positions()
    }

    /// A process that may still write into the folder, as far as can be seen from here.
    pub(super) fn lives(&self) -> Option<u32> {
        let collector = self.ended.flatten().filter(|c| !c.finished && c.pid != 0 && c.pid != std::process::id());
        let collector = collector.map(|c| c.pid).filter(|pid| is_running(*pid));
        collector.or_else(|| self.processes.any_alive())
    }

    /// A process that still writes to a ring, as it was when the rings were read last.
    pub(super) fn writes(&self) -> Option<u32> {
        self.rings.any_alive()
    }

    /// Reads what is new, about 65,536 events of it.
    ///
    /// # Errors
    /// That the folder cannot be listed any more.
    pub(super) fn poll_staged(&mut self) -> io::Result<Update> {
        let mut batch = Batch::new();
        if self.staged.is_some() {
            batch.more = true;
            return Ok(Update { replacement: self.staged.take(), batch });
        }
        self.look(&mut batch)?;
        let collector_lives = self.collector_lives();
        let mut staged = std::mem::take(&mut self.waiting);
        let waited = staged.len();
        let all_read = waited == 0 && self.chunks.read(BATCH_EVENTS, &mut staged);
        let mut n_records: usize = staged.iter().map(|s| s.records.len()).sum();
        let mut looks = Vec::new();
        let mut all_looked = false;
        if all_read {
            (looks, all_looked) = self.rings.look(&self.dir, BATCH_EVENTS.saturating_sub(n_records), &mut batch);
            n_records += looks.iter().map(|l| l.records.len()).sum::<usize>();
        }
        self.processes.read_meta(&mut batch);
        let now = events::clock::mono_now();
        let patience = self.waiting_since.is_none_or(|since| now - since < HOLD_NS);
        let hold = collector_lives && patience;
        for chunk in staged {
            self.take_chunk(chunk, hold, &mut batch);
        }
        self.waiting_since = if self.waiting.is_empty() { None } else { self.waiting_since.or(Some(now)) };
        for look in &looks {
            self.take_look(look, collector_lives, hold, &mut batch);
        }
        self.at_end = all_read && self.waiting.is_empty();
        self.warnings(collector_lives, &mut batch);
        if all_looked && self.waiting.is_empty() {
            self.missing_ends(&mut batch);
        }
        batch.disk_bytes = self.chunks.bytes + self.sealed_bytes;
        let live = collector_lives || self.rings.any_alive().is_some();
        if self.live != Some(live) {
            self.live = Some(live);
            batch.live = Some(live);
        }
        batch.more = n_records > 0 && !(all_read && all_looked) && self.waiting.is_empty();
        if self.at_end {
            self.look_at_sealed()?;
            batch.more |= self.staged.is_some();
        }
        Ok(Update::from(batch))
    }

    /// The trace was sealed while it was followed: nothing new, unless some of it was removed before it was read here.
    fn look_at_sealed(&mut self) -> io::Result<()> {
        let Some((folder, false)) = &self.sealed else { return Ok(()) };
        let folder = folder.clone();
        if self.rings.have_all(&positions(&folder)?) {
            self.sealed = Some((folder, true));
            return Ok(());
        }
        self.stage(&folder)
    }

    /// Finds new files. True if there is any of a trace.
    fn look(&mut self, batch: &mut Batch) -> io::Result<bool> {
        let mut found = false;
        let mut failed = |path: &Path, e: io::Error| {
            // Removed between listing and opening: a ring that its collector is done with.
            if e.kind() != io::ErrorKind::NotFound {
                batch.warnings.push(io_warning(path, &e.to_string()));
            }
        };
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
            if let Some(pid) = parse_meta_file(name) {
                self.processes.discover(pid, &path).unwrap_or_else(|e| failed(&path, e));
            } else if is_chunk_file(name) {
                self.chunks.discover(&path).unwrap_or_else(|e| failed(&path, e));
            } else if let Some(key) = ring::parse_file_name(name) {
                self.rings.discover(key);
            } else if name == SEALED_FOLDER {
                self.sealed.get_or_insert((path, false));
            } else if name != events::control::FILE_NAME {
                continue;
            }
            found = true;
        }
        if self.control.is_none() {
            // Without it (missing, foreign, read-only) the trace is read as one that nobody writes.
            self.control = Control::open(&self.dir).ok();
        }
        Ok(found)
    }

    fn collector(&self) -> Option<CollectorState> {
        self.ended.unwrap_or_else(|| self.control.as_ref().map(Control::collector))
    }

    pub(super) fn collector_lives(&self) -> bool {
        let Some(collector) = self.collector().filter(|_| self.ended.is_none()) else { return false };
        let age = events::clock::mono_now().saturating_sub(collector.heartbeat_ns);
        collector.pid != 0 && !collector.finished && (0..HEARTBEAT_NS).contains(&age)
    }

    fn take_chunk(&mut self, chunk: Staged, hold: bool, batch: &mut Batch) {
        let header = chunk.header;
        if header.flags & FLAG_LIMIT != 0 {
            self.limit_reached = true;
            return;
        }
        let number = self.processes.number(header.pid, header.made);
        let waits_before = self.waiting.iter().any(|h| h.header.pid == header.pid);
        if hold && (waits_before || !self.processes.clock_is_ready(number)) {
            self.waiting.push(chunk);
            return;
        }
        // What was read from the rings before is in chunks by now: only what comes after the last chunk is recovered.
        self.recovered = 0;
        let key = TrackKey { pid: number, ring: header.ring };
        let ring = self.rings.ring(key, header.made);
        if header.flags & FLAG_FLIGHT != 0 {
            ring.skip_to(header.first);
        }
        let records = if chunk.bad {
            ring.miss(header.first, u64::from(header.count));
            &[]
        } else {
            ring.new_part(header.first, &chunk.records)
        };
        ring.dropped = ring.dropped.max(header.dropped);
        let is_last = header.flags & FLAG_LAST != 0;
        ring.is_complete |= is_last;
        self.processes.convert(key, records, &mut ring.decoder, batch);
        let track = batch.track(key);
        track.dropped = Some(self.rings.dropped(key));
        if is_last {
            track.open = Some(Vec::new());
        }
    }

    /// Takes what a look into a ring has shown beyond the chunks.
    fn take_look(&mut self, look: &ring::Peek, collector_lives: bool, hold: bool, batch: &mut Batch) {
        let key = TrackKey { pid: self.processes.number(look.info.pid, look.info.made), ring: look.info.ring };
        if hold && !self.processes.clock_is_ready(key.pid) {
            return;
        }
        let ring = self.rings.ring(key, look.info.made);
        ring.dropped = ring.dropped.max(look.dropped);
        // Drained since the chunks were read: the next poll finds the missing part there.
        let too_late = collector_lives && look.first > ring.next && !look.overwrites;
        if look.overwrites {
            ring.skip_to(look.first);
        }
        if !too_late && !look.damaged {
            let records = ring.new_part(look.first, &look.records);
            self.recovered += records.len() as u64;
            self.processes.convert(key, records, &mut ring.decoder, batch);
        }
        let open = self.processes.convert_open(key.pid, &look.open);
        let name = (!ring.named).then(|| (look.info.name.clone(), look.info.tid));
        ring.named = true;
        let track = batch.track(key);
        track.dropped = Some(self.rings.dropped(key));
        track.open = Some(if look.finished { Vec::new() } else { open });
        // For traces whose meta file lacks it.
        if let Some((name, tid)) = name.filter(|(name, _)| !name.is_empty()) {
            batch.name(Name::Thread { key, name, tid });
        }
    }

    /// What the user has to know so far; the store keeps one line of each.
    fn warnings(&mut self, collector_lives: bool, batch: &mut Batch) {
        for file in self.chunks.files() {
            let name = file_name(&file.path);
            let damage = file.scanner.damage();
            if damage.places > 0 {
                let (n, bytes, at) = (damage.places, damage.bytes, damage.first_at);
                let text = format!("{name}: {bytes} damaged bytes skipped in {n} places, the first at byte {at}");
                batch.warnings.push(Warning::new(WarningKind::Damage, name.clone(), n, text));
            }
            let torn = file.scanner.unfinished() as u64;
            if torn > 0 && !collector_lives && self.at_end {
                let text = format!("{name}: the last chunk was cut while it was written ({torn} bytes)");
                batch.warnings.push(Warning::new(WarningKind::TornTail, name.clone(), 1, text));
            }
            if let Some(error) = &file.error {
                batch.warnings.push(io_warning(&file.path, error));
            }
        }
        self.rings.warnings(batch);
        self.processes.warnings(collector_lives, batch);
        let control = self.control.as_ref();
        let lost = control.map(Control::lost).unwrap_or_default();
        if lost.events > 0 {
            let text = format!(
                "{} events of {} threads were not recorded: they could get no buffer (too many threads, or disk full)",
                lost.events, lost.threads
            );
            batch.warnings.push(Warning::new(WarningKind::Dropped, "threads without a buffer", lost.events, text));
        }
        if self.limit_reached {
            let text =
                format!("the trace reached its size limit ({} bytes): recording was switched off", self.chunks.bytes);
            batch.warnings.push(Warning::new(WarningKind::SizeLimit, self.dir.display().to_string(), 1, text));
        }
        let collector = self.collector();
        let ended_early = collector.is_some_and(|c| c.pid != 0 && !c.finished) && !collector_lives;
        if ended_early && self.recovered > 0 {
            let n = self.recovered;
            let text = format!("the collector ended early: {n} events were read from the threads' buffers");
            batch.warnings.push(Warning::new(WarningKind::Recovered, self.dir.display().to_string(), n, text));
        }
    }

    /// A collector that finished has written the last chunk of each ring, or left the ring's file.
    fn missing_ends(&self, batch: &mut Batch) {
        let finished = self.collector().is_some_and(|c| c.finished);
        if !finished || self.limit_reached {
            return;
        }
        for key in self.rings.cut_short(&self.processes.threads) {
            let source = format!("end of ring {} of process {}", key.ring, key.pid);
            let text = format!("the {source} is missing from the files");
            batch.warnings.push(Warning::new(WarningKind::Damage, source, 1, text));
        }
    }
}
