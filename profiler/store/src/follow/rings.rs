//! Rings of a trace folder: the position up to which each was read, its missing records, and the records in its file.

use super::notices::io_warning;
use super::process::is_running;
use events::Record;
use events::record::Decoder;
use events::ring::{self, RingContents, RingError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_model::{Batch, RingPosition, TrackKey, Warning, WarningKind};

/// The state of reading a ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Sequence number of the next record.
    pub(crate) next: u64,
    /// Number of records that are missing, because they are damaged or were never found.
    missing: u64,
    /// Number of records of a flight recorder that were overwritten.
    overwritten: u64,
    /// Number of records for which the ring had no room.
    pub(crate) dropped: u64,
    pub(crate) decoder: Decoder,
    /// Whether the thread's name was reported.
    pub(crate) is_named: bool,
    /// Whether the last record was read.
    pub(crate) is_complete: bool,
}

impl Ring {
    /// Returns the part of `records`, which begin at number `first`, that was not read before. Counts the records that
    /// are missing before `first`.
    pub(crate) fn unread_part<'a>(&mut self, first: u64, records: &'a [Record]) -> &'a [Record] {
        self.missing += first.saturating_sub(self.next);
        let n_read = self.next.saturating_sub(first).min(records.len() as u64) as usize;
        self.next = self.next.max(first.saturating_add(records.len() as u64));
        &records[n_read..]
    }

    /// Counts unread records before number `first` as overwritten by a flight recorder.
    pub(crate) fn skip_to(&mut self, first: u64) {
        self.overwritten += first.saturating_sub(self.next);
        self.next = self.next.max(first);
    }

    /// Counts `n` records from number `first` on as missing, except those that were read before.
    pub(crate) fn count_missing(&mut self, first: u64, n: u64) {
        let end = first.saturating_add(n);
        self.missing += end.saturating_sub(self.next);
        self.next = self.next.max(end);
    }
}

/// The state of reading a ring's file.
#[derive(Debug, Default)]
struct RingFile {
    /// Whether the file has nothing more to read: it is removed, invalid, or finished and read.
    is_exhausted: bool,
    /// Whether the file was removed.
    is_removed: bool,
    /// Whether the thread has ended.
    is_finished: bool,
    /// Whether the positions in the file make no sense.
    is_damaged: bool,
    problem: Option<String>,
}

/// All rings of a folder.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    /// Rings by number and time of creation, since a number is reused after its file was removed.
    by_key: BTreeMap<(TrackKey, u64), Ring>,
    files: BTreeMap<(u32, u32), RingFile>,
    /// The number of files that were read in this pass through all files.
    n_peeked: usize,
}

impl Rings {
    /// Adds a ring file that is in the folder.
    pub(crate) fn discover(&mut self, key: (u32, u32)) {
        let file = self.files.entry(key).or_default();
        // A removed file that is there again is a new ring, which reuses the number.
        if file.is_removed {
            *file = RingFile::default();
        }
    }

    /// The ring with this number that was made at `made`.
    pub(crate) fn ring(&mut self, key: TrackKey, made: u64) -> &mut Ring {
        self.by_key.entry((key, made)).or_default()
    }

    /// The number of records for which the rings with this number had no room.
    pub(crate) fn dropped(&self, key: TrackKey) -> u64 {
        self.by_key.range((key, 0)..=(key, u64::MAX)).map(|(_, ring)| ring.dropped).sum()
    }

    /// Reads ring files without consuming their records, up to about `budget` records. Also returns whether all were
    /// read.
    pub(crate) fn peek(&mut self, dir: &Path, budget: usize, batch: &mut Batch) -> (Vec<RingContents>, bool) {
        let mut peeks = Vec::new();
        let mut n_records = 0;
        for (key, file) in self.files.iter_mut().skip(self.n_peeked) {
            if n_records > budget {
                return (peeks, false);
            }
            self.n_peeked += 1;
            if file.is_exhausted {
                continue;
            }
            let path = ring::path(dir, key.0, key.1);
            match ring::peek(&path) {
                Ok(peek) if (peek.info.pid, peek.info.ring) == *key => {
                    file.is_damaged |= peek.damaged;
                    // A finished ring that no collector drains does not change: it need not be read each time.
                    file.is_exhausted = file.is_finished && peek.finished;
                    file.is_finished = peek.finished;
                    n_records += peek.records.len();
                    peeks.push(peek);
                }
                Ok(_) => file.reject("its header names another ring"),
                Err(RingError::NotReady) => {}
                Err(RingError::Io(e)) if e.kind() == std::io::ErrorKind::NotFound => {
                    file.is_exhausted = true;
                    file.is_removed = true;
                }
                Err(RingError::Io(e)) => batch.warnings.push(io_warning(&path, &e.to_string())),
                Err(e @ (RingError::Foreign(_) | RingError::Damaged(_))) => file.reject(&e.to_string()),
            }
        }
        self.n_peeked = 0;
        (peeks, true)
    }

    /// Returns the rings, including `threads`, whose end is neither in a chunk nor in a file. For a trace that its
    /// collector finished.
    pub(crate) fn rings_without_end(&self, threads: &BTreeSet<TrackKey>) -> Vec<TrackKey> {
        let has_end = |key: &TrackKey| {
            let has_file = self.files.get(&(key.pid, key.ring)).is_some_and(|f| !f.is_removed);
            has_file || self.by_key.range((*key, 0)..=(*key, u64::MAX)).next_back().is_some_and(|(_, r)| r.is_complete)
        };
        let read_rings = self.by_key.keys().map(|(key, _)| *key);
        let mut keys: Vec<TrackKey> = read_rings.chain(threads.iter().copied()).filter(|key| !has_end(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The id of a process on this machine that still writes to a ring.
    pub(crate) fn writing_process(&self) -> Option<u32> {
        let mut open_files = self.files.iter().filter(|(_, f)| !f.is_exhausted && !f.is_finished);
        open_files.find(|(key, _)| is_running(key.0)).map(|(key, _)| key.0)
    }

    /// The position in each ring up to which records were read.
    pub(crate) fn positions(&self) -> Vec<RingPosition> {
        let position = |((key, made), ring): (&(TrackKey, u64), &Ring)| RingPosition {
            pid: key.pid,
            ring: key.ring,
            made: *made,
            next: ring.next,
            dropped: ring.dropped,
        };
        self.by_key.iter().map(position).collect()
    }

    /// Continues reading where a sealed trace ends.
    pub(crate) fn set_positions(&mut self, positions: &[RingPosition]) {
        for position in positions {
            let key = TrackKey { pid: position.pid, ring: position.ring };
            let ring = self.ring(key, position.made);
            ring.next = ring.next.max(position.next);
            ring.dropped = ring.dropped.max(position.dropped);
            // The sealed trace has the end of the ring, or a warning that the end is missing.
            (ring.is_complete, ring.is_named) = (true, true);
        }
    }

    /// Whether all records up to these positions were read.
    pub(crate) fn has_read_all(&self, positions: &[RingPosition]) -> bool {
        positions.iter().all(|position| {
            let key = TrackKey { pid: position.pid, ring: position.ring };
            position.next == 0 || self.by_key.get(&(key, position.made)).is_some_and(|r| r.next >= position.next)
        })
    }

    /// Adds the warnings so far about rings and their files.
    pub(crate) fn add_warnings(&self, batch: &mut Batch) {
        for ((pid, ring), file) in &self.files {
            let source = format!("ring-{pid}-{ring}.ring");
            if let Some(problem) = &file.problem {
                let text = format!("{source}: {problem}; what it held is missing");
                batch.warnings.push(Warning::new(WarningKind::Damage, source, 1, text));
            } else if file.is_damaged {
                let text = format!("{source}: its positions make no sense; what it held is missing");
                batch.warnings.push(Warning::new(WarningKind::Damage, source, 1, text));
            }
        }
        for ((key, _), ring) in &self.by_key {
            if ring.missing > 0 {
                let (n, source) = (ring.missing, format!("ring {} of process {}", key.ring, key.pid));
                let text = format!("{source}: {n} records are missing from the files");
                batch.warnings.push(Warning::new(WarningKind::Damage, source, n, text));
            }
            if ring.overwritten > 0 {
                let (n, source) = (ring.overwritten, format!("ring {} of process {}", key.ring, key.pid));
                let text =
                    format!("{source}: a flight recorder, which kept the newest; {n} older records were written over");
                batch.warnings.push(Warning::new(WarningKind::Evicted, source, n, text));
            }
            if ring.decoder.n_unknown() > 0 {
                let (n, source) = (ring.decoder.n_unknown(), format!("ring {} of process {}", key.ring, key.pid));
                let text = format!("{source}: {n} records are of a later version and were left out");
                batch.warnings.push(Warning::new(WarningKind::UnknownName, source, n, text));
            }
        }
    }
}

impl RingFile {
    fn reject(&mut self, problem: &str) {
        self.is_exhausted = true;
        self.problem = Some(problem.to_owned());
    }
}
