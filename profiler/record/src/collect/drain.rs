//! One drain after another: rings to a sink, in the order peek, write, consume.

use super::flight::Past;
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

/// A batch is written when it holds this many records, so that memory is bounded whatever the rings hold (this and one chunk), it
/// stays in the processor's cache until it is written, and room comes back soon.
const BATCH_RECORDS: usize = 1 << 15;
/// Records that are copied, summed and counted at a time, so that the last two find them in the nearest cache.
const PIECE_RECORDS: usize = 1 << 9;
/// The fill of a ring that a drain should find.
const AIM: f64 = 0.25;
const MIN_PAUSE: Duration = Duration::from_micros(500);
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// Passes between two looks into the folder even if it seems unchanged: not every file system keeps its time stamp.
const LOOK_EVERY: u32 = 10;
/// A folder's time stamp goes on in steps of at most this, the kernel's clock tick: what came in the step of a look may have been missed.
const STAMP: Duration = Duration::from_millis(20);

/// How to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorOptions {
    /// Time between two drains; less when rings fill quickly.
    pub interval: Duration,
    /// Size at which the trace stops: recording is switched off and the trace says so.
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
    /// Records that the rings could not take, counted by the producers.
    pub dropped: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Writes that failed; their records stayed in the rings.
    pub write_errors: u64,
    /// Ring files that cannot be read, or whose positions made no sense.
    pub bad_rings: u64,
    /// Rings seen.
    pub rings: u64,
    /// Drains.
    pub passes: u64,
    /// Whether the size limit ended the trace.
    pub limit_reached: bool,
    /// The collector thread's own CPU time, ns; 0 where the system does not say.
    pub cpu_ns: u64,
}

/// A ring with its drops as they were last reported.
struct Source {
    reader: RingReader,
    reported_drops: u64,
}

/// A pass' part of a ring: it is consumed after the write.
struct Drained {
    key: (u32, u32),
    /// Number of the record after the last that was taken.
    end: u64,
    dropped: u64,
    last: bool,
}

pub(crate) struct Drain<S> {
    dir: PathBuf,
    claim: events::control::Collector,
    sink: S,
    options: CollectorOptions,
    rings: BTreeMap<(u32, u32), Source>,
    /// Ring files that will never be readable.
    refused: BTreeSet<(u32, u32)>,
    looked: Option<SystemTime>,
    passes_until_look: u32,
    /// Tracks of the collector's own.
    tracks: Option<Arc<Mutex<Tracks>>>,
    /// Chunks; a header lies in the place of two records.
    batch: Vec<Record>,
    taken: Vec<Drained>,
    /// Records of each of `tracks` in the batch.
    track_records: Vec<usize>,
    batch_slices: u64,
    batch_records: u64,
    last_pass_ns: i64,
    /// The clock's reading when it began: with a later one it says how old a record is.
    past: Past,
    /// Whether the contents of flight recorders are to be written in this pass.
    dumps: bool,
    /// Drops of rings that are gone.
    dropped_before: u64,
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
            refused: BTreeSet::new(),
            looked: None,
            passes_until_look: 0,
            tracks,
            batch: Vec::new(),
            taken: Vec::new(),
            track_records: Vec::new(),
            batch_slices: 0,
            batch_records: 0,
            last_pass_ns: events::clock::mono_now(),
            past: Past::new(),
            dumps: false,
            dropped_before: 0,
            report: CollectorReport { bytes: chunks::FILE_HEADER as u64, ..CollectorReport::default() },
        }
    }

    pub(crate) fn report(&self) -> CollectorReport {
        let outside = self.tracks.as_ref().map_or(0, |t| t.lock().dropped());
        let dropped = outside + self.rings.values().map(|s| s.reader.dropped()).sum::<u64>();
        let lost = self.claim.control().lost().events;
        CollectorReport { dropped: self.dropped_before + dropped + lost, ..self.report }
    }

    /// Drains every ring once. Returns how long to wait before the next time.
    pub(crate) fn pass(&mut self) -> Duration {
        self.claim.heartbeat();
        self.report.passes += 1;
        if self.report.limit_reached {
            return self.options.interval;
        }
        // Asked before the look: what was recorded before the request lies in a ring that the look finds.
        let (asked, done) = self.claim.control().dumps();
        if asked != done {
            self.dumps = true;
            self.looked = None;
        }
        self.look();
        let now = events::clock::mono_now();
        let since = Duration::from_nanos(now.saturating_sub(self.last_pass_ns).max(0).unsigned_abs());
        self.last_pass_ns = now;
        let mut fullest = 0.0f64;
        let keys: Vec<(u32, u32)> = self.rings.keys().copied().collect();
        for key in keys {
            let Some(fill) = self.take(key, now) else { return ERROR_PAUSE };
            fullest = fullest.max(fill);
            if self.report.limit_reached {
                return self.options.interval;
            }
        }
        self.take_tracks(now, false);
        if !self.write() {
            return ERROR_PAUSE;
        }
        if self.dumps {
            self.claim.dump_done(asked);
            self.dumps = false;
        }
        pause(self.options.interval, since, fullest)
    }

    /// Drains until nothing is left, removes what ended, and marks the trace as finished.
    pub(crate) fn finish(mut self) -> CollectorReport {
        // Two passes: a ring that was made or finished during the first is complete in the second.
        for _ in 0..2 {
            self.looked = None;
            // What flight recorders hold at the end stays too.
            self.dumps = true;
            self.pass();
        }
        if !self.report.limit_reached {
            self.take_tracks(events::clock::mono_now(), true);
            self.write();
        }
        let report = self.report();
        if report.write_errors == 0 || self.rings.values().all(|s| s.reader.pending() == 0) {
            self.claim.finish();
        }
        report
    }

    fn look(&mut self) {
        let changed = std::fs::metadata(&self.dir).and_then(|m| m.modified()).ok();
        if changed.is_some() && changed == self.looked && self.passes_until_look > 0 {
            self.passes_until_look -= 1;
            return;
        }
        self.looked = changed.filter(|at| at.elapsed().is_ok_and(|age| age > STAMP));
        self.passes_until_look = LOOK_EVERY;
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let Some(key) = entry.file_name().to_str().and_then(ring::parse_file_name) else { continue };
            if self.rings.contains_key(&key) || self.refused.contains(&key) {
                continue;
            }
            match RingReader::open(&entry.path()) {
                Ok(reader) => {
                    self.report.rings += 1;
                    self.rings.insert(key, Source { reader, reported_drops: 0 });
                }
                // It is being made, or gone again, or handles ran out: next time.
                Err(RingError::NotReady | RingError::Io(_)) => {}
                Err(RingError::Foreign(_) | RingError::Damaged(_)) => {
                    self.report.bad_rings += 1;
                    self.refused.insert(key);
                }
            }
        }
    }

    /// Adds what a ring holds to the batch, writing it whenever it is full. Returns how full the ring was, 0..=1; `None` when
    /// writing failed.
    fn take(&mut self, key: (u32, u32), now: i64) -> Option<f64> {
        let source = self.rings.get_mut(&key)?;
        let reader = &mut source.reader;
        // Asked before the look: what follows the answer is complete.
        let last = reader.is_finished();
        if reader.overwrites() {
            return self.take_flight(key, now, last);
        }
        let dropped = reader.dropped();
        let pending = reader.pending();
        if reader.is_damaged() {
            // Positions that make no sense: begin again where the producer says it is; the gap in the numbers says.
            reader.drain(&mut Vec::new());
            self.report.bad_rings += 1;
            return Some(0.0);
        }
        if pending == 0 && dropped == source.reported_drops && !last {
            return Some(0.0);
        }
        let info = reader.info();
        let fill = pending as f64 / f64::from(info.capacity);
        let header = header(key, info.made, dropped, now);
        let mut left = pending;
        loop {
            let n = self.take_chunk(key, header, left, last)?;
            left -= n;
            if self.batch.len() >= BATCH_RECORDS && !self.write() {
                return None;
            }
            if left == 0 || n == 0 || self.report.limit_reached {
                return Some(fill);
            }
        }
    }

    /// Adds one chunk of a ring that has `left` more records than are in the batch. Returns how many it took.
    fn take_chunk(&mut self, key: (u32, u32), header: ChunkHeader, left: u64, last: bool) -> Option<u64> {
        let reader = &self.rings.get(&key)?.reader;
        // What the batch holds already is not consumed yet.
        let first = self.taken.iter().rfind(|t| t.key == key).map_or(reader.consumed(), |t| t.end);
        let skip = first - reader.consumed();
        let at = chunks::begin_chunk(&mut self.batch);
        let max = left.min(BATCH_RECORDS.min(chunks::MAX_RECORDS) as u64) as usize;
        let (mut n, mut crc) = (0, 0);
        while n < max {
            let from = self.batch.len();
            n += reader.peek_part(skip + n as u64, PIECE_RECORDS.min(max - n), &mut self.batch).records;
            let piece = &self.batch[from..];
            if piece.is_empty() {
                break;
            }
            crc = crc32c::crc32c_append(crc, bytemuck::cast_slice(piece));
            self.batch_slices += n_slices(piece);
        }
        let n = n as u64;
        let ends = last && n == left;
        let header = ChunkHeader { first, flags: if ends { FLAG_LAST } else { 0 }, ..header };
        chunks::end_summed_chunk(header, crc, at, &mut self.batch);
        self.batch_records += n;
        self.taken.push(Drained { key, end: first + n, dropped: header.dropped, last: ends });
        Some(n)
    }

    /// Adds what a flight recorder's ring holds to the batch, where a dump was asked for or its thread has ended.
    fn take_flight(&mut self, key: (u32, u32), now: i64, last: bool) -> Option<f64> {
        if !self.dumps && !last {
            return Some(0.0);
        }
        let keep_ns = self.claim.control().keep_ns();
        let reader = &self.rings.get(&key)?.reader;
        let snapshot = reader.snapshot();
        let (made, dropped) = (reader.info().made, reader.dropped());
        let from = self.past.first_within(keep_ns, &snapshot.records);
        let records = &snapshot.records[from..];
        let n_chunks = records.len().div_ceil(chunks::MAX_RECORDS).max(usize::from(last));
        for i in 0..n_chunks {
            let begin = i * chunks::MAX_RECORDS;
            let part = &records[begin..records.len().min(begin + chunks::MAX_RECORDS)];
            let ends = last && i + 1 == n_chunks;
            let first = snapshot.first + (from + begin) as u64;
            let flags = FLAG_FLIGHT | if ends { FLAG_LAST } else { 0 };
            let header = ChunkHeader { first, flags, ..header(key, made, dropped, now) };
            let at = chunks::begin_chunk(&mut self.batch);
            self.batch.extend_from_slice(part);
            chunks::end_chunk(header, at, &mut self.batch);
            self.batch_records += part.len() as u64;
            self.batch_slices += n_slices(part);
            self.taken.push(Drained { key, end: first + part.len() as u64, dropped, last: ends });
            if self.batch.len() >= BATCH_RECORDS && !self.write() {
                return None;
            }
        }
        Some(0.0)
    }

    /// Adds the records of the collector's own tracks to the batch.
    fn take_tracks(&mut self, now: i64, last: bool) {
        if let Some(tracks) = &self.tracks {
            let mut tracks = tracks.lock();
            self.track_records = tracks.append_chunks(last, now, &mut self.batch);
            self.batch_records += self.track_records.iter().sum::<usize>() as u64;
            self.batch_slices += tracks.take_n_slices();
        }
    }

    /// Writes the batch, then gives the records' room back. False if writing failed: everything stays in the rings.
    fn write(&mut self) -> bool {
        let bytes = size_of_val(self.batch.as_slice()) as u64;
        if self.report.bytes + bytes > self.options.max_bytes {
            self.reach_limit();
        }
        let bytes: &[u8] = bytemuck::cast_slice(&self.batch);
        let written = bytes.is_empty() || self.sink.append(bytes).is_ok();
        if written {
            self.report.bytes += bytes.len() as u64;
            self.report.records += self.batch_records;
            self.report.slices += self.batch_slices;
            for taken in std::mem::take(&mut self.taken) {
                self.consume(&taken);
            }
            if let Some(tracks) = &self.tracks {
                tracks.lock().forget(&self.track_records);
            }
        } else {
            self.report.write_errors += 1;
        }
        self.clear_batch();
        written
    }

    fn clear_batch(&mut self) {
        self.batch.clear();
        self.taken.clear();
        self.track_records.clear();
        (self.batch_records, self.batch_slices) = (0, 0);
    }

    fn consume(&mut self, taken: &Drained) {
        let Some(source) = self.rings.get_mut(&taken.key) else { return };
        source.reader.consume_to(taken.end);
        source.reported_drops = taken.dropped;
        if taken.last
            && let Some(source) = self.rings.remove(&taken.key)
        {
            self.dropped_before += source.reader.dropped();
            // A file that cannot be removed is empty: a reader finds nothing new in it, and it is not opened again.
            if source.reader.retire().is_err() {
                self.refused.insert(taken.key);
            }
        }
    }

    /// Ends the trace: the batch becomes a notice, and recording is switched off in all programs of the folder.
    fn reach_limit(&mut self) {
        self.report.limit_reached = true;
        self.claim.control().switch(false);
        self.clear_batch();
        let header = ChunkHeader { written_ns: events::clock::mono_now(), flags: FLAG_LIMIT, ..ChunkHeader::default() };
        let at = chunks::begin_chunk(&mut self.batch);
        chunks::end_chunk(header, at, &mut self.batch);
    }
}

/// The header of a ring's chunks.
fn header((pid, ring): (u32, u32), made: u64, dropped: u64, written_ns: i64) -> ChunkHeader {
    ChunkHeader { pid, ring, made, dropped, written_ns, ..ChunkHeader::default() }
}

fn n_slices(records: &[Record]) -> u64 {
    records.iter().filter(|r| r.site >> 28 == Kind::Slice as u32).count() as u64
}

/// How long to wait so that the fullest ring is a quarter full at the next drain, at most `interval`.
fn pause(interval: Duration, since: Duration, fullest: f64) -> Duration {
    if fullest <= AIM {
        return interval;
    }
    if fullest > 2.0 * AIM {
        return Duration::ZERO;
    }
    since.min(interval).mul_f64(AIM / fullest).clamp(MIN_PAUSE.min(interval), interval)
}
