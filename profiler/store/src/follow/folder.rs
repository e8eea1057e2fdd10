//! Reads one machine's trace folder.

use super::files::{ChunkFiles, StagedChunk};
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

/// Events after which a batch ends; a chunk or a ring is not split.
const BATCH_EVENTS: usize = 1 << 16;
/// A collector whose last heartbeat is older than this has ended, ns.
const HEARTBEAT_TIMEOUT_NS: i64 = 2_000_000_000;
/// The time that records wait at most for the second clock anchor of their process, ns. The anchor is written after
/// 10 ms.
const MAX_ANCHOR_WAIT_NS: i64 = 1_000_000_000;

/// Follows the trace folder of one machine.
#[derive(Default)]
pub(crate) struct FolderReader {
    dir: PathBuf,
    control: Option<Control>,
    processes: Processes,
    chunks: ChunkFiles,
    rings: Rings,
    /// Chunks of processes whose clock rate is unknown yet.
    waiting_chunks: Vec<StagedChunk>,
    /// Time since which chunks wait, ns of CLOCK_MONOTONIC_RAW.
    waiting_since_ns: Option<i64>,
    /// Number of records that were read from rings and not from chunks.
    n_recovered: u64,
    is_limit_reached: bool,
    /// Whether all chunks were read. Until then, unfinished last bytes of a file are no damage.
    is_at_end: bool,
    /// The last reported state of the trace; `None` before the first report.
    is_live: Option<bool>,
    /// The sealed folder, if there is one.
    sealed_folder: Option<PathBuf>,
    /// Whether the sealed folder is staged, or has nothing that was not read.
    is_sealed_checked: bool,
    sealed_bytes: u64,
    /// The contents of the sealed folder, which the next update delivers.
    pub(super) staged_store: Option<Box<Store>>,
    /// For a trace that was opened as ended, the last state of its collector, if it left one: no collector is expected.
    pub(super) final_collector: Option<Option<CollectorState>>,
}

impl FolderReader {
    /// Opens a trace folder of one machine; gathered folders in it are ignored.
    pub(super) fn open(trace_dir: &Path) -> Result<FolderReader, OpenError> {
        let mut reader = FolderReader::open_collected(trace_dir)?;
        if let Some(folder) = find_sealed(trace_dir) {
            reader.stage_sealed(&folder).map_err(|e| OpenError::Io(folder, e))?;
        }
        Ok(reader)
    }

    /// Sets that no process collects any more.
    pub(super) fn end(&mut self) {
        self.final_collector = Some(self.control.as_ref().map(Control::collector));
    }

    /// Opens the files that a collector left in a folder, and ignores a sealed folder.
    pub(super) fn open_collected(trace_dir: &Path) -> Result<FolderReader, OpenError> {
        let mut reader = FolderReader { dir: trace_dir.to_owned(), ..FolderReader::default() };
        let has_trace = reader.discover(&mut Batch::new()).map_err(|e| OpenError::Io(trace_dir.to_owned(), e))?;
        if has_trace || find_sealed(trace_dir).is_some() {
            Ok(reader)
        } else {
            Err(OpenError::NoTrace(trace_dir.to_owned()))
        }
    }

    /// Opens the sealed folder for the next update. Rings are read on from where the sealed trace ends.
    fn stage_sealed(&mut self, folder: &Path) -> io::Result<()> {
        let sealed = SealedTrace::open(folder)?;
        self.rings.set_positions(&sealed.rings);
        self.sealed_bytes = std::fs::read_dir(folder)?.filter_map(|e| Some(e.ok()?.metadata().ok()?.len())).sum();
        (self.sealed_folder, self.is_sealed_checked) = (Some(folder.to_owned()), true);
        self.staged_store = Some(Box::new(sealed.store));
        Ok(())
    }

    /// The position in each ring up to which records were read.
    pub(super) fn positions(&self) -> Vec<RingPosition> {
        self.rings.positions()
    }

    /// The id of a process that may still write into the folder, as far as this machine knows.
    pub(super) fn live_process(&self) -> Option<u32> {
        let collector =
            self.final_collector.flatten().filter(|c| !c.finished && c.pid != 0 && c.pid != std::process::id());
        let collector = collector.map(|c| c.pid).filter(|pid| is_running(*pid));
        collector.or_else(|| self.processes.live_process())
    }

    /// The id of a process that was still writing to a ring when the rings were last read.
    pub(super) fn writing_process(&self) -> Option<u32> {
        self.rings.writing_process()
    }

    /// Reads new events, about [`BATCH_EVENTS`] at a time.
    ///
    /// # Errors
    /// Fails if the folder cannot be listed any more.
    pub(super) fn poll_staged(&mut self) -> io::Result<Update> {
        let mut batch = Batch::new();
        if self.staged_store.is_some() {
            batch.more = true;
            return Ok(Update { replacement: self.staged_store.take(), batch });
        }
        self.discover(&mut batch)?;
        let is_collector_alive = self.is_collector_alive();
        let mut staged = std::mem::take(&mut self.waiting_chunks);
        let n_waiting = staged.len();
        let all_read = n_waiting == 0 && self.chunks.read(BATCH_EVENTS, &mut staged);
        let mut n_records: usize = staged.iter().map(|s| s.records.len()).sum();
        let mut peeks = Vec::new();
        let mut all_peeked = false;
        if all_read {
            (peeks, all_peeked) = self.rings.peek(&self.dir, BATCH_EVENTS.saturating_sub(n_records), &mut batch);
            n_records += peeks.iter().map(|peek| peek.records.len()).sum::<usize>();
        }
        self.processes.read_meta(&mut batch);
        let now = events::clock::mono_now();
        let is_in_time = self.waiting_since_ns.is_none_or(|since| now - since < MAX_ANCHOR_WAIT_NS);
        let may_wait = is_collector_alive && is_in_time;
        for chunk in staged {
            self.apply_chunk(chunk, may_wait, &mut batch);
        }
        self.waiting_since_ns = if self.waiting_chunks.is_empty() { None } else { self.waiting_since_ns.or(Some(now)) };
        for peek in &peeks {
            self.apply_peek(peek, is_collector_alive, may_wait, &mut batch);
        }
        self.is_at_end = all_read && self.waiting_chunks.is_empty();
        self.add_warnings(is_collector_alive, &mut batch);
        if all_peeked && self.waiting_chunks.is_empty() {
            self.report_missing_ends(&mut batch);
        }
        batch.disk_bytes = self.chunks.bytes + self.sealed_bytes;
        let is_live = is_collector_alive || self.rings.writing_process().is_some();
        if self.is_live != Some(is_live) {
            self.is_live = Some(is_live);
            batch.live = Some(is_live);
        }
        batch.more = n_records > 0 && !(all_read && all_peeked) && self.waiting_chunks.is_empty();
        if self.is_at_end {
            self.check_sealed()?;
            batch.more |= self.staged_store.is_some();
        }
        Ok(Update::from(batch))
    }

    /// Opens a sealed folder that appeared while the trace was followed, if it has records that were not read before
    /// their files were removed.
    fn check_sealed(&mut self) -> io::Result<()> {
        let Some(folder) = self.sealed_folder.clone().filter(|_| !self.is_sealed_checked) else { return Ok(()) };
        if self.rings.has_read_all(&positions(&folder)?) {
            self.is_sealed_checked = true;
            return Ok(());
        }
        self.stage_sealed(&folder)
    }

    /// Finds new files. Returns whether the folder has any file of a trace.
    fn discover(&mut self, batch: &mut Batch) -> io::Result<bool> {
        let mut has_trace = false;
        let mut warn = |path: &Path, e: io::Error| {
            // Not found: a ring file that its collector has removed since the folder was listed.
            if e.kind() != io::ErrorKind::NotFound {
                batch.warnings.push(io_warning(path, &e.to_string()));
            }
        };
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
            if let Some(pid) = parse_meta_file(name) {
                self.processes.discover(pid, &path).unwrap_or_else(|e| warn(&path, e));
            } else if is_chunk_file(name) {
                self.chunks.discover(&path).unwrap_or_else(|e| warn(&path, e));
            } else if let Some(key) = ring::parse_file_name(name) {
                self.rings.discover(key);
            } else if name == SEALED_FOLDER {
                self.sealed_folder.get_or_insert(path);
            } else if name != events::control::FILE_NAME {
                continue;
            }
            has_trace = true;
        }
        if self.control.is_none() {
            // Without the control file (missing, foreign, read-only) the trace is read as one without a collector.
            self.control = Control::open(&self.dir).ok();
        }
        Ok(has_trace)
    }

    fn collector(&self) -> Option<CollectorState> {
        self.final_collector.unwrap_or_else(|| self.control.as_ref().map(Control::collector))
    }

    pub(super) fn is_collector_alive(&self) -> bool {
        let Some(collector) = self.collector().filter(|_| self.final_collector.is_none()) else { return false };
        let age = events::clock::mono_now().saturating_sub(collector.heartbeat_ns);
        collector.pid != 0 && !collector.finished && (0..HEARTBEAT_TIMEOUT_NS).contains(&age)
    }

    fn apply_chunk(&mut self, chunk: StagedChunk, may_wait: bool, batch: &mut Batch) {
        let header = chunk.header;
        if header.flags & FLAG_LIMIT != 0 {
            self.is_limit_reached = true;
            return;
        }
        let number = self.processes.process_number(header.pid, header.made);
        let has_waiting = self.waiting_chunks.iter().any(|chunk| chunk.header.pid == header.pid);
        if may_wait && (has_waiting || !self.processes.is_clock_ready(number)) {
            self.waiting_chunks.push(chunk);
            return;
        }
        // Records that were read from rings before are in chunks now: only those after the last chunk are recovered.
        self.n_recovered = 0;
        let key = TrackKey { pid: number, ring: header.ring };
        let ring = self.rings.ring(key, header.made);
        if header.flags & FLAG_FLIGHT != 0 {
            ring.skip_to(header.first);
        }
        let records = if chunk.is_damaged {
            ring.count_missing(header.first, u64::from(header.count));
            &[]
        } else {
            ring.unread_part(header.first, &chunk.records)
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

    /// Applies the records of a ring that are not in chunks yet.
    fn apply_peek(&mut self, peek: &ring::RingContents, is_collector_alive: bool, may_wait: bool, batch: &mut Batch) {
        let key = TrackKey { pid: self.processes.process_number(peek.info.pid, peek.info.made), ring: peek.info.ring };
        if may_wait && !self.processes.is_clock_ready(key.pid) {
            return;
        }
        let ring = self.rings.ring(key, peek.info.made);
        ring.dropped = ring.dropped.max(peek.dropped);
        // The collector drained records since the chunks were read: the next poll finds them in a chunk.
        let was_drained = is_collector_alive && peek.first > ring.next && !peek.overwrites;
        if peek.overwrites {
            ring.skip_to(peek.first);
        }
        if !was_drained && !peek.damaged {
            let records = ring.unread_part(peek.first, &peek.records);
            self.n_recovered += records.len() as u64;
            self.processes.convert(key, records, &mut ring.decoder, batch);
        }
        let open = self.processes.convert_open(key.pid, &peek.open);
        let name = (!ring.is_named).then(|| (peek.info.name.clone(), peek.info.tid));
        ring.is_named = true;
        let track = batch.track(key);
        track.dropped = Some(self.rings.dropped(key));
        track.open = Some(if peek.finished { Vec::new() } else { open });
        // In case the meta file lacks the name.
        if let Some((name, tid)) = name.filter(|(name, _)| !name.is_empty()) {
            batch.name(Name::Thread { key, name, tid });
        }
    }

    /// Adds all warnings so far; the store has one for each kind and source.
    fn add_warnings(&mut self, is_collector_alive: bool, batch: &mut Batch) {
        for file in self.chunks.files() {
            let name = file_name(&file.path);
            let damage = file.scanner.damage();
            if damage.places > 0 {
                let (n, bytes, at) = (damage.places, damage.bytes, damage.first_at);
                let text = format!("{name}: {bytes} damaged bytes skipped in {n} places, the first at byte {at}");
                batch.warnings.push(Warning::new(WarningKind::Damage, name.clone(), n, text));
            }
            let n_torn_bytes = file.scanner.n_unfinished_bytes() as u64;
            if n_torn_bytes > 0 && !is_collector_alive && self.is_at_end {
                let text = format!("{name}: the last chunk was cut while it was written ({n_torn_bytes} bytes)");
                batch.warnings.push(Warning::new(WarningKind::TornTail, name.clone(), 1, text));
            }
            if let Some(error) = &file.error {
                batch.warnings.push(io_warning(&file.path, error));
            }
        }
        self.rings.add_warnings(batch);
        self.processes.add_warnings(is_collector_alive, batch);
        let control = self.control.as_ref();
        let lost = control.map(Control::lost).unwrap_or_default();
        if lost.events > 0 {
            let text = format!(
                "{} events of {} threads were not recorded: they could get no buffer (too many threads, or disk full)",
                lost.events, lost.threads
            );
            batch.warnings.push(Warning::new(WarningKind::Dropped, "threads without a buffer", lost.events, text));
        }
        if self.is_limit_reached {
            let text =
                format!("the trace reached its size limit ({} bytes): recording was switched off", self.chunks.bytes);
            batch.warnings.push(Warning::new(WarningKind::SizeLimit, self.dir.display().to_string(), 1, text));
        }
        let collector = self.collector();
        let ended_early = collector.is_some_and(|c| c.pid != 0 && !c.finished) && !is_collector_alive;
        if ended_early && self.n_recovered > 0 {
            let n = self.n_recovered;
            let text = format!("the collector ended early: {n} events were read from the threads' buffers");
            batch.warnings.push(Warning::new(WarningKind::Recovered, self.dir.display().to_string(), n, text));
        }
    }

    /// Adds warnings for rings without an end: a collector that finished has written the last chunk of each ring, or
    /// left the ring's file.
    fn report_missing_ends(&self, batch: &mut Batch) {
        let has_finished = self.collector().is_some_and(|c| c.finished);
        if !has_finished || self.is_limit_reached {
            return;
        }
        for key in self.rings.rings_without_end(&self.processes.threads) {
            let source = format!("end of ring {} of process {}", key.ring, key.pid);
            let text = format!("the {source} is missing from the files");
            batch.warnings.push(Warning::new(WarningKind::Damage, source, 1, text));
        }
    }
}
