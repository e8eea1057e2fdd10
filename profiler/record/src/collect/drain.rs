//! Drains rings into a sink, pass by pass, in the order peek, write, consume.

use super::flight::FlightClock;
use super::sink::Sink;
use super::tracks::Tracks;
use events::ring::{self, RingError, RingReader};
use events::{Kind, Record};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use trace_model::chunks::{self, ChunkHeader, FLAG_FLIGHT, FLAG_LAST, FLAG_LIMIT};

/// The number of records at which a batch is written: bounds the memory (to this and one chunk), keeps the batch in the
/// processor's cache until it is written, and frees the rings early.
const BATCH_RECORDS: usize = 1 << 15;
/// The records that are copied, then checksummed and counted at a time, while they are in the first-level cache.
const PIECE_RECORDS: usize = 1 << 9;
/// The fill of the fullest ring at which a drain aims.
const TARGET_FILL: f64 = 0.25;
/// The shortest pause while rings fill quickly, and the pause after a failed write.
const MIN_PAUSE: Duration = Duration::from_micros(500);
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// Passes after which the folder is listed even if it seems unchanged: not every file system updates its time stamp.
const LIST_EVERY: u32 = 10;
/// The resolution of a folder's time stamp (the kernel's clock tick), at most: a younger stamp may hide a later change.
const STAMP_RESOLUTION: Duration = Duration::from_millis(20);

/// The options of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorOptions {
    /// The time between two drains; shorter while rings fill quickly.
    pub interval: Duration,
    /// The size of the trace, bytes, at which recording is switched off and the trace ends with a note.
    pub max_bytes: u64,
}

impl Default for CollectorOptions {
    /// 20 ms, 4 GiB (134 million records).
    fn default() -> Self {
        CollectorOptions { interval: Duration::from_millis(20), max_bytes: 4 << 30 }
    }
}

/// Counts of a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectorReport {
    /// Slices written.
    pub slices: u64,
    /// Records written, the slices included.
    pub records: u64,
    /// Records that were dropped because a ring was full, counted by the producers.
    pub dropped: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Writes that failed; their records stayed in the rings.
    pub write_errors: u64,
    /// Ring files that cannot be read, and occurrences of damaged positions in a ring.
    pub bad_rings: u64,
    /// Rings that were opened.
    pub rings: u64,
    /// Drains of all rings.
    pub passes: u64,
    /// Whether the size limit ended the trace.
    pub limit_reached: bool,
    /// The collector thread's CPU time, ns; 0 where the system does not report it.
    pub cpu_ns: u64,
}

/// The process id and the number of a ring.
type RingKey = (u32, u32);

/// A ring, and its dropped records at the last write.
struct Source {
    reader: RingReader,
    reported_drops: u64,
}

/// The part of a ring that is in the batch, to be consumed after the write.
struct DrainedPart {
    key: RingKey,
    /// The sequence number after the last record of the part.
    end: u64,
    dropped: u64,
    is_last: bool,
}

pub(crate) struct Drain<S> {
    dir: PathBuf,
    claim: events::control::Collector,
    sink: S,
    options: CollectorOptions,
    rings: BTreeMap<RingKey, Source>,
    /// The rings that are not opened again: their files cannot be read, or were read and cannot be removed.
    ignored: BTreeSet<RingKey>,
    /// The folder's time stamp at the last listing; `None` where the folder must be listed again.
    listed_at: Option<SystemTime>,
    passes_until_listing: u32,
    /// Tracks that have no ring.
    tracks: Option<Arc<Mutex<Tracks>>>,
    /// The chunks to write; a chunk's header is as long as two records.
    batch: Vec<Record>,
    drained: Vec<DrainedPart>,
    /// The number of records of each of `tracks` in the batch.
    track_records: Vec<usize>,
    n_batch_slices: u64,
    n_batch_records: u64,
    last_pass_ns: i64,
    /// Determines the age of a flight recorder's records.
    flight_clock: FlightClock,
    /// Whether this pass writes the contents of flight recorders.
    is_dumping: bool,
    /// The number of records that removed rings had dropped.
    n_dropped_by_removed: u64,
    report: CollectorReport,
}

impl<S: Sink> Drain<S> {
    pub(crate) fn new(
        dir: &Path,
        claim: events::control::Collector,
        sink: S,
        options: CollectorOptions,
        tracks: Option<Arc<Mutex<Tracks>>>,
    ) -> Drain<S> {
        Drain {
            dir: dir.to_owned(),
            claim,
            sink,
            options,
            rings: BTreeMap::new(),
            ignored: BTreeSet::new(),
            listed_at: None,
            passes_until_listing: 0,
            tracks,
            batch: Vec::new(),
            drained: Vec::new(),
            track_records: Vec::new(),
            n_batch_slices: 0,
            n_batch_records: 0,
            last_pass_ns: events::clock::mono_now(),
            flight_clock: FlightClock::new(),
            is_dumping: false,
            n_dropped_by_removed: 0,
            report: CollectorReport { bytes: chunks::FILE_HEADER as u64, ..CollectorReport::default() },
        }
    }

    pub(crate) fn report(&self) -> CollectorReport {
        let n_dropped_by_tracks = self.tracks.as_ref().map_or(0, |t| t.lock().dropped());
        let dropped = n_dropped_by_tracks + self.rings.values().map(|s| s.reader.dropped()).sum::<u64>();
        let lost = self.claim.control().lost().events;
        CollectorReport { dropped: self.n_dropped_by_removed + dropped + lost, ..self.report }
    }

    /// Drains every ring once; returns the pause before the next pass.
    pub(crate) fn pass(&mut self) -> Duration {
        self.claim.heartbeat();
        self.report.passes += 1;
        if self.report.limit_reached {
            return self.options.interval;
        }
        // Read before the folder is listed, so that the listing finds all rings with records from before the request
        // for a dump.
        let (n_requested, n_done) = self.claim.control().dumps();
        if n_requested != n_done {
            self.is_dumping = true;
            self.listed_at = None;
        }
        self.list_rings();
        let now = events::clock::mono_now();
        let elapsed = Duration::from_nanos(now.saturating_sub(self.last_pass_ns).max(0).unsigned_abs());
        self.last_pass_ns = now;
        let mut fullest = 0.0f64;
        let keys: Vec<RingKey> = self.rings.keys().copied().collect();
        for key in keys {
            let Some(fill) = self.drain_ring(key, now) else { return ERROR_PAUSE };
            fullest = fullest.max(fill);
            if self.report.limit_reached {
                return self.options.interval;
            }
        }
        self.drain_tracks(now, false);
        if !self.write() {
            return ERROR_PAUSE;
        }
        if self.is_dumping {
            self.claim.mark_dump_done(n_requested);
            self.is_dumping = false;
        }
        pause(self.options.interval, elapsed, fullest)
    }

    /// Drains the rings to their ends, removes the files of rings that ended, and marks the trace as finished.
    pub(crate) fn finish(mut self) -> CollectorReport {
        // A ring that was created or finished during the first pass is complete in the second.
        for _ in 0..2 {
            self.listed_at = None;
            // The last contents of flight recorders are written too.
            self.is_dumping = true;
            self.pass();
        }
        if !self.report.limit_reached {
            self.drain_tracks(events::clock::mono_now(), true);
            self.write();
        }
        let report = self.report();
        if report.write_errors == 0 || self.rings.values().all(|s| s.reader.pending() == 0) {
            self.claim.finish();
        }
        report
    }

    fn list_rings(&mut self) {
        let changed = std::fs::metadata(&self.dir).and_then(|m| m.modified()).ok();
        if changed.is_some() && changed == self.listed_at && self.passes_until_listing > 0 {
            self.passes_until_listing -= 1;
            return;
        }
        self.listed_at = changed.filter(|at| at.elapsed().is_ok_and(|age| age > STAMP_RESOLUTION));
        self.passes_until_listing = LIST_EVERY;
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let Some(key) = entry.file_name().to_str().and_then(ring::parse_file_name) else { continue };
            if self.rings.contains_key(&key) || self.ignored.contains(&key) {
                continue;
            }
            match RingReader::open(&entry.path()) {
                Ok(reader) => {
                    self.report.rings += 1;
                    self.rings.insert(key, Source { reader, reported_drops: 0 });
                }
                // The ring is being created, was removed, or no file can be opened now: it is tried again with the next
                // listing.
                Err(RingError::NotReady | RingError::Io(_)) => {}
                Err(RingError::Foreign(_) | RingError::Damaged(_)) => {
                    self.report.bad_rings += 1;
                    self.ignored.insert(key);
                }
            }
        }
    }

    /// Adds a ring's records to the batch, and writes the batch whenever it is full. Returns the ring's fill, 0..=1;
    /// `None` where writing failed.
    fn drain_ring(&mut self, key: RingKey, now: i64) -> Option<f64> {
        let source = self.rings.get_mut(&key)?;
        let reader = &mut source.reader;
        // Read before the positions, since the positions of a finished ring are final.
        let is_last = reader.is_finished();
        if reader.overwrites() {
            return self.drain_flight_ring(key, now, is_last);
        }
        let dropped = reader.dropped();
        let pending = reader.pending();
        if reader.is_damaged() {
            // Impossible positions: continue at the producer's. The gap in the sequence numbers shows the loss.
            reader.drain(&mut Vec::new());
            self.report.bad_rings += 1;
            return Some(0.0);
        }
        if pending == 0 && dropped == source.reported_drops && !is_last {
            return Some(0.0);
        }
        let info = reader.info();
        let fill = pending as f64 / f64::from(info.capacity);
        let header = header(key, info.made, dropped, now);
        let mut n_left = pending;
        loop {
            let n = self.drain_chunk(key, header, n_left, is_last)?;
            n_left -= n;
            if self.batch.len() >= BATCH_RECORDS && !self.write() {
                return None;
            }
            if n_left == 0 || n == 0 || self.report.limit_reached {
                return Some(fill);
            }
        }
    }

    /// Adds one chunk of a ring that has `n_left` records outside the batch; returns the number of records in the
    /// chunk.
    fn drain_chunk(&mut self, key: RingKey, header: ChunkHeader, n_left: u64, is_last: bool) -> Option<u64> {
        let reader = &self.rings.get(&key)?.reader;
        // Records that are in the batch already are not consumed yet.
        let first = self.drained.iter().rfind(|part| part.key == key).map_or(reader.consumed(), |part| part.end);
        let skip = first - reader.consumed();
        let at = chunks::begin_chunk(&mut self.batch);
        let max = n_left.min(BATCH_RECORDS.min(chunks::MAX_RECORDS) as u64) as usize;
        let (mut n, mut crc) = (0, 0);
        while n < max {
            let from = self.batch.len();
            n += reader.peek_part(skip + n as u64, PIECE_RECORDS.min(max - n), &mut self.batch).records;
            let piece = &self.batch[from..];
            if piece.is_empty() {
                break;
            }
            crc = crc32c::crc32c_append(crc, bytemuck::cast_slice(piece));
            self.n_batch_slices += n_slices(piece);
        }
        let n = n as u64;
        let is_final = is_last && n == n_left;
        let header = ChunkHeader { first, flags: if is_final { FLAG_LAST } else { 0 }, ..header };
        chunks::end_chunk_with_crc(header, crc, at, &mut self.batch);
        self.n_batch_records += n;
        self.drained.push(DrainedPart { key, end: first + n, dropped: header.dropped, is_last: is_final });
        Some(n)
    }

    /// Adds the records of a flight recorder's ring to the batch, where a dump was requested or the ring's thread has
    /// ended.
    fn drain_flight_ring(&mut self, key: RingKey, now: i64, is_last: bool) -> Option<f64> {
        if !self.is_dumping && !is_last {
            return Some(0.0);
        }
        let retention_ns = self.claim.control().retention_ns();
        let reader = &self.rings.get(&key)?.reader;
        let snapshot = reader.snapshot();
        let (made, dropped) = (reader.info().made, reader.dropped());
        let from = self.flight_clock.first_within(retention_ns, &snapshot.records);
        let records = &snapshot.records[from..];
        let n_chunks = records.len().div_ceil(chunks::MAX_RECORDS).max(usize::from(is_last));
        for i in 0..n_chunks {
            let begin = i * chunks::MAX_RECORDS;
            let part = &records[begin..records.len().min(begin + chunks::MAX_RECORDS)];
            let is_final = is_last && i + 1 == n_chunks;
            let first = snapshot.first + (from + begin) as u64;
            let flags = FLAG_FLIGHT | if is_final { FLAG_LAST } else { 0 };
            let header = ChunkHeader { first, flags, ..header(key, made, dropped, now) };
            let at = chunks::begin_chunk(&mut self.batch);
            self.batch.extend_from_slice(part);
            chunks::end_chunk(header, at, &mut self.batch);
            self.n_batch_records += part.len() as u64;
            self.n_batch_slices += n_slices(part);
            self.drained.push(DrainedPart { key, end: first + part.len() as u64, dropped, is_last: is_final });
            if self.batch.len() >= BATCH_RECORDS && !self.write() {
                return None;
            }
        }
        Some(0.0)
    }

    /// Adds the records of the tracks without a ring to the batch.
    fn drain_tracks(&mut self, now: i64, is_last: bool) {
        if let Some(tracks) = &self.tracks {
            let mut tracks = tracks.lock();
            self.track_records = tracks.append_chunks(is_last, now, &mut self.batch);
            self.n_batch_records += self.track_records.iter().sum::<usize>() as u64;
            self.n_batch_slices += tracks.take_n_slices();
        }
    }

    /// Writes the batch, then consumes its records in the rings. Returns false where writing failed: the records stay
    /// in the rings.
    fn write(&mut self) -> bool {
        let bytes = size_of_val(self.batch.as_slice()) as u64;
        if self.report.bytes + bytes > self.options.max_bytes {
            self.reach_limit();
        }
        let bytes: &[u8] = bytemuck::cast_slice(&self.batch);
        let is_written = bytes.is_empty() || self.sink.append(bytes).is_ok();
        if is_written {
            self.report.bytes += bytes.len() as u64;
            self.report.records += self.n_batch_records;
            self.report.slices += self.n_batch_slices;
            for part in std::mem::take(&mut self.drained) {
                self.consume(&part);
            }
            if let Some(tracks) = &self.tracks {
                tracks.lock().remove_written(&self.track_records);
            }
        } else {
            self.report.write_errors += 1;
        }
        self.clear_batch();
        is_written
    }

    fn clear_batch(&mut self) {
        self.batch.clear();
        self.drained.clear();
        self.track_records.clear();
        (self.n_batch_records, self.n_batch_slices) = (0, 0);
    }

    fn consume(&mut self, part: &DrainedPart) {
        let Some(source) = self.rings.get_mut(&part.key) else { return };
        source.reader.consume_to(part.end);
        source.reported_drops = part.dropped;
        if part.is_last
            && let Some(source) = self.rings.remove(&part.key)
        {
            self.n_dropped_by_removed += source.reader.dropped();
            // A file that cannot be removed has no unread records, and is not opened again.
            if source.reader.retire().is_err() {
                self.ignored.insert(part.key);
            }
        }
    }

    /// Ends the trace: replaces the batch by a note, and switches recording off in all programs of the folder.
    fn reach_limit(&mut self) {
        self.report.limit_reached = true;
        self.claim.control().switch(false);
        self.clear_batch();
        let header = ChunkHeader { written_ns: events::clock::mono_now(), flags: FLAG_LIMIT, ..ChunkHeader::default() };
        let at = chunks::begin_chunk(&mut self.batch);
        chunks::end_chunk(header, at, &mut self.batch);
    }
}

/// Returns the header of a ring's chunks.
fn header((pid, ring): RingKey, made: u64, dropped: u64, written_ns: i64) -> ChunkHeader {
    ChunkHeader { pid, ring, made, dropped, written_ns, ..ChunkHeader::default() }
}

fn n_slices(records: &[Record]) -> u64 {
    records.iter().filter(|r| r.site >> 28 == Kind::Slice as u32).count() as u64
}

/// Returns the pause after which the fullest ring will be filled to [`TARGET_FILL`], at most `interval`; in `elapsed`
/// the ring filled to `fullest`.
fn pause(interval: Duration, elapsed: Duration, fullest: f64) -> Duration {
    if fullest <= TARGET_FILL {
        return interval;
    }
    if fullest > 2.0 * TARGET_FILL {
        return Duration::ZERO;
    }
    elapsed.min(interval).mul_f64(TARGET_FILL / fullest).clamp(MIN_PAUSE.min(interval), interval)
}
