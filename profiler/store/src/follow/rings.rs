//! Rings of a trace folder: up to which record each was read, which are missing, which are still in its file.

use super::notices::io_warning;
use super::process::is_running;
use events::Record;
use events::record::Decoder;
use events::ring::{self, Peek, RingError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_model::{Batch, RingPosition, TrackKey, Warning, WarningKind};

/// The state of reading a ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Sequence number of the next record.
    pub(crate) next: u64,
    /// Records that are missing, because they are damaged or were never found.
    missing: u64,
    /// Records of a flight recorder that were overwritten.
    overwritten: u64,
    /// Records that the ring could not take.
    pub(crate) dropped: u64,
    pub(crate) decoder: Decoder,
    /// Whether the thread's name was reported.
    pub(crate) named: bool,
    /// Whether the last record was read.
    pub(crate) is_complete: bool,
}

impl Ring {
    /// The records that were not read before, of those from number `first` on. Counts records that are missing before
    /// them.
    pub(crate) fn new_part<'a>(&mut self, first: u64, records: &'a [Record]) -> &'a [Record] {
        self.missing += first.saturating_sub(self.next);
        let n_known = self.next.saturating_sub(first).min(records.len() as u64) as usize;
        self.next = self.next.max(first.saturating_add(records.len() as u64));
        &records[n_known..]
    }

    /// Counts records before number `first` that were not read as overwritten by a flight recorder.
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
    /// Whether there is nothing more to read: the file is gone, invalid, or finished and read.
    is_over: bool,
    /// Whether the file was removed.
    is_gone: bool,
    /// Whether the thread has ended.
    finished: bool,
    /// Whether the positions in the file make no sense.
    damaged: bool,
    problem: Option<String>,
}

/// All rings of a folder.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    /// By number and time of creation: a number is reused after its file was removed.
    by_key: BTreeMap<(TrackKey, u64), Ring>,
    files: BTreeMap<(u32, u32), RingFile>,
    /// The number of files that were read in this pass.
    n_peeked: usize,
}

impl Rings {
    /// Adds a ring file that is in the folder.
    pub(crate) fn discover(&mut self, key: (u32, u32)) {
        let file = self.files.entry(key).or_default();
        // The file was removed before: the number is reused.
        if file.is_gone {
            *file = RingFile::default();
        }
    }

    /// The ring with this number that was made at `made`.
    pub(crate) fn ring(&mut self, key: TrackKey, made: u64) -> &mut Ring {
        self.by_key.entry((key, made)).or_default()
    }

    /// Records that all rings with this number could not take.
    pub(crate) fn dropped(&self, key: TrackKey) -> u64 {
        self.by_key.range((key, 0)..=(key, u64::MAX)).map(|(_, ring)| ring.dropped).sum()
    }

    /// Reads ring files without consuming their records, up to about `budget` records. Also returns whether all were
    /// read.
    pub(crate) fn peek(&mut self, dir: &Path, budget: usize, batch: &mut Batch) -> (Vec<Peek>, bool) {
        let mut peeks = Vec::new();
        let mut n = 0;
        for (key, file) in self.files.iter_mut().skip(self.n_peeked) {
            if n > budget {
                return (peeks, false);
            }
            self.n_peeked += 1;
            if file.is_over {
                continue;
            }
            let path = ring::path(dir, key.0, key.1);
            match ring::peek(&path) {
                Ok(peek) if (peek.info.pid, peek.info.ring) == *key => {
                    file.damaged |= peek.damaged;
                    // A finished ring that no collector drains does not change: it need not be read each time.
                    file.is_over = file.finished && peek.finished;
                    file.finished = peek.finished;
                    n += peek.records.len();
                    peeks.push(peek);
                }
                Ok(_) => file.refuse("its header names another ring"),
                Err(RingError::NotReady) => {}
                Err(RingError::Io(e)) if e.kind() == std::io::ErrorKind::NotFound => {
                    file.is_over = true;
                    file.is_gone = true;
                }
                Err(RingError::Io(e)) => batch.warnings.push(io_warning(&path, &e.to_string())),
                Err(e @ (RingError::Foreign(_) | RingError::Damaged(_))) => file.refuse(&e.to_string()),
            }
        }
        self.n_peeked = 0;
        (peeks, true)
    }

    /// The rings, including `threads`, whose end is neither in a chunk nor in a file, in a trace that its collector
    /// finished.
    pub(crate) fn without_end(&self, threads: &BTreeSet<TrackKey>) -> Vec<TrackKey> {
        let has_end = |key: &TrackKey| {
            let in_file = self.files.get(&(key.pid, key.ring)).is_some_and(|f| !f.is_gone);
            in_file || self.by_key.range((*key, 0)..=(*key, u64::MAX)).next_back().is_some_and(|(_, r)| r.is_complete)
        };
        let known = self.by_key.keys().map(|(key, _)| *key);
        let mut keys: Vec<TrackKey> = known.chain(threads.iter().copied()).filter(|key| !has_end(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The id of a process on this machine that still writes to a ring.
    pub(crate) fn any_alive(&self) -> Option<u32> {
        let mut writing = self.files.iter().filter(|(_, f)| !f.is_over && !f.finished);
        writing.find(|(key, _)| is_running(key.0)).map(|(key, _)| key.0)
    }

    /// Up to which record each ring was read.
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
            // The end of the ring is in the sealed trace, or that has a warning about it.
            (ring.is_complete, ring.named) = (true, true);
        }
    }

    /// Whether all records up to these positions were read.
    pub(crate) fn have_all(&self, positions: &[RingPosition]) -> bool {
        positions.iter().all(|position| {
            let key = TrackKey { pid: position.pid, ring: position.ring };
            position.next == 0 || self.by_key.get(&(key, position.made)).is_some_and(|r| r.next >= position.next)
        })
    }

    pub(crate) fn warnings(&self, batch: &mut Batch) {
        for ((pid, ring), file) in &self.files {
            let source = format!("ring-{pid}-{ring}.ring");
            if let Some(problem) = &file.problem {
                let text = format!("{source}: {problem}; what it held is missing");
                batch.warnings.push(Warning::new(WarningKind::Damage, source, 1, text));
            } else if file.damaged {
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
    fn refuse(&mut self, problem: &str) {
        self.is_over = true;
        self.problem = Some(problem.to_owned());
    }
}
