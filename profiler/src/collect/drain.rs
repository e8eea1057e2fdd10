//! One drain after another: rings to a sink, in the order peek, write, consume.

use super::CollectorOptions;
use super::sink::Sink;
use crate::chunks::{self, ChunkHeader, FLAG_LAST, FLAG_LIMIT};
use events::ring::{self, RingError, RingReader};
use events::{Kind, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A batch is written when it reaches this size, so that memory is bounded whatever the rings hold: this and the largest ring.
const BATCH_BYTES: usize = 4 << 20;
/// The fill of a ring that a drain should find.
const AIM: f64 = 0.25;
/// The shortest pause between drains.
const MIN_PAUSE: Duration = Duration::from_micros(500);
/// The pause after a failed write.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// Passes between two looks into the folder even if it seems unchanged (its time stamp is coarse).
const LOOK_EVERY: u32 = 10;

/// What a collector did.
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
    /// The collector thread's own CPU time, ns; 0 where the system does not tell.
    pub cpu_ns: u64,
}

/// A ring with what was last told about it.
struct Source {
    reader: RingReader,
    dropped_told: u64,
}

/// What a pass took from a ring: it is consumed after the write.
struct Taken {
    key: (u32, u32),
    records: u64,
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
    batch: Vec<u8>,
    taken: Vec<Taken>,
    records: Vec<Record>,
    batch_slices: u64,
    batch_records: u64,
    last_pass_ns: i64,
    /// Drops of rings that are gone.
    dropped_before: u64,
    report: CollectorReport,
}

impl<S: Sink> Drain<S> {
    pub(crate) fn new(dir: &Path, claim: events::control::Collector, sink: S, options: CollectorOptions) -> Drain<S> {
        Drain {
            dir: dir.to_owned(),
            claim,
            sink,
            options,
            rings: BTreeMap::new(),
            refused: BTreeSet::new(),
            looked: None,
            passes_until_look: 0,
            batch: Vec::new(),
            taken: Vec::new(),
            records: Vec::new(),
            batch_slices: 0,
            batch_records: 0,
            last_pass_ns: events::clock::mono_now(),
            dropped_before: 0,
            report: CollectorReport { bytes: chunks::FILE_HEADER as u64, ..CollectorReport::default() },
        }
    }

    pub(crate) fn report(&self) -> CollectorReport {
        let dropped: u64 = self.rings.values().map(|s| s.reader.dropped()).sum();
        let lost = self.claim.control().lost().events;
        CollectorReport { dropped: self.dropped_before + dropped + lost, ..self.report }
    }

    /// Drains every ring once. Gives back how long to wait before the next time.
    pub(crate) fn pass(&mut self) -> Duration {
        self.claim.heartbeat();
        self.report.passes += 1;
        if self.report.limit_reached {
            return self.options.interval;
        }
        self.look();
        let now = events::clock::mono_now();
        let since = Duration::from_nanos(now.saturating_sub(self.last_pass_ns).max(0).unsigned_abs());
        self.last_pass_ns = now;
        let mut fullest = 0.0f64;
        let keys: Vec<(u32, u32)> = self.rings.keys().copied().collect();
        for key in keys {
            fullest = fullest.max(self.take(key, now));
            if self.batch.len() >= BATCH_BYTES && !self.write() {
                return ERROR_PAUSE;
            }
            if self.report.limit_reached {
                return self.options.interval;
            }
        }
        if !self.write() {
            return ERROR_PAUSE;
        }
        pause(self.options.interval, since, fullest)
    }

    /// Drains until nothing is left, removes what ended, and marks the trace as finished.
    pub(crate) fn finish(mut self) -> CollectorReport {
        // Two passes: a ring that was made or finished during the first is complete in the second.
        for _ in 0..2 {
            self.looked = None;
            self.pass();
        }
        let report = self.report();
        if report.write_errors == 0 || self.rings.values().all(|s| s.reader.pending() == 0) {
            self.claim.finish();
        }
        report
    }

    /// Finds new rings.
    fn look(&mut self) {
        let changed = std::fs::metadata(&self.dir).and_then(|m| m.modified()).ok();
        if changed.is_some() && changed == self.looked && self.passes_until_look > 0 {
            self.passes_until_look -= 1;
            return;
        }
        self.looked = changed;
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
                    self.rings.insert(key, Source { reader, dropped_told: 0 });
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

    /// Adds what a ring holds to the batch. Gives back how full it was, 0..=1.
    fn take(&mut self, key: (u32, u32), now: i64) -> f64 {
        let Some(source) = self.rings.get_mut(&key) else { return 0.0 };
        let reader = &mut source.reader;
        // Asked before the look: what follows the answer is complete.
        let last = reader.is_finished();
        let first = reader.consumed();
        let dropped = reader.dropped();
        self.records.clear();
        if reader.peek(&mut self.records).damaged {
            // Positions that make no sense: begin again where the producer says it is; the gap in the numbers tells.
            self.records.clear();
            reader.drain(&mut self.records);
            self.records.clear();
            self.report.bad_rings += 1;
            return 0.0;
        }
        if self.records.is_empty() && dropped == source.dropped_told && !last {
            return 0.0;
        }
        let info = reader.info();
        let fill = self.records.len() as f64 / f64::from(info.capacity);
        let header = ChunkHeader {
            pid: key.0,
            ring: key.1,
            made: info.made,
            first,
            dropped,
            written_ns: now,
            ..ChunkHeader::default()
        };
        let n_chunks = self.records.len().div_ceil(chunks::MAX_RECORDS).max(1);
        for i in 0..n_chunks {
            let from = i * chunks::MAX_RECORDS;
            let part = &self.records[from..self.records.len().min(from + chunks::MAX_RECORDS)];
            let flags = if last && i + 1 == n_chunks { FLAG_LAST } else { 0 };
            chunks::append_chunk(ChunkHeader { first: first + from as u64, flags, ..header }, part, &mut self.batch);
        }
        self.batch_records += self.records.len() as u64;
        self.batch_slices += self.records.iter().filter(|r| r.site >> 28 == Kind::Slice as u32).count() as u64;
        self.taken.push(Taken { key, records: self.records.len() as u64, dropped, last });
        fill
    }

    /// Writes the batch, then gives the records' room back. False if writing failed: everything stays in the rings.
    fn write(&mut self) -> bool {
        if self.report.bytes + self.batch.len() as u64 > self.options.max_bytes {
            self.reach_limit();
        }
        let written = self.batch.is_empty() || self.sink.append(&self.batch).is_ok();
        if written {
            self.report.bytes += self.batch.len() as u64;
            self.report.records += self.batch_records;
            self.report.slices += self.batch_slices;
            for taken in std::mem::take(&mut self.taken) {
                self.consume(&taken);
            }
        } else {
            self.report.write_errors += 1;
            self.taken.clear();
        }
        self.batch.clear();
        (self.batch_records, self.batch_slices) = (0, 0);
        written
    }

    fn consume(&mut self, taken: &Taken) {
        let Some(source) = self.rings.get_mut(&taken.key) else { return };
        source.reader.consume(taken.records);
        source.dropped_told = taken.dropped;
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
        self.batch.clear();
        self.taken.clear();
        (self.batch_records, self.batch_slices) = (0, 0);
        let header = ChunkHeader { written_ns: events::clock::mono_now(), flags: FLAG_LIMIT, ..ChunkHeader::default() };
        chunks::append_chunk(header, &[], &mut self.batch);
    }
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
