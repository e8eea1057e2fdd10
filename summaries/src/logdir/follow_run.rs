//! Follows one run: reads each of its files from where the last poll ended.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use super::source_follower::SourceFollower;
use crate::{run::Run, stage::RunStage, walk::RunSource};

/// The changes that a poll made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The names of the runs that are new or have new data.
    pub runs: Vec<String>,
    /// The number of points that were added.
    pub n_points: u64,
    /// The number of bytes that were read.
    pub n_bytes: u64,
    /// The number of damaged ranges that were found.
    pub n_damaged: u64,
    /// Whether there is more to read now: poll again at once.
    pub has_more: bool,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

/// The state of a poll, which determines the files that are due.
pub(super) struct PollTurn<'a> {
    pub now_ns: i64,
    pub n_polls: usize,
    /// The number of polls in which every idle file is checked once.
    pub n_turns: usize,
    /// Files that the system reported.
    pub changed_files: &'a FxHashSet<PathBuf>,
}

/// A run that is followed.
#[derive(Debug)]
pub(super) struct RunFollower {
    pub name: String,
    folder: PathBuf,
    /// The event files and logs in the order of their paths.
    pub files: Vec<SourceFollower>,
    stage: RunStage,
    is_changed: bool,
}

impl RunFollower {
    pub fn new(name: String, folder: PathBuf) -> Self {
        Self { name, folder, files: Vec::new(), stage: RunStage::default(), is_changed: true }
    }

    pub fn add(&mut self, source: RunSource, now_ns: i64) {
        if let Err(idx) = self.files.binary_search_by(|known| known.path().cmp(source.path())) {
            // Most runs have a single file: `insert` alone would reserve room for four.
            self.files.reserve_exact(1);
            self.files.insert(idx, SourceFollower::new(source, now_ns));
            self.is_changed = true;
        }
    }

    /// Whether any file of the run is due.
    pub fn is_due(&self, turn: &PollTurn<'_>, run_idx: usize) -> bool {
        self.files.iter().enumerate().any(|(i, file)| turn.includes(file, run_idx + i))
    }

    /// Whether a commit would change anything.
    pub fn is_dirty(&self) -> bool {
        self.is_changed || self.stage.is_dirty()
    }

    /// Reads up to `allowance` bytes of the files that are due; returns the number of bytes, and whether there is more.
    pub fn read_new(&mut self, turn: &PollTurn<'_>, run_idx: usize, allowance: u64) -> (u64, bool) {
        let mut n_bytes = 0;
        for (i, file) in self.files.iter_mut().enumerate() {
            if !turn.includes(file, run_idx + i) {
                continue;
            }
            let report = file.read_new(allowance - n_bytes, turn.now_ns, &mut self.stage);
            self.is_changed |= report.is_changed;
            n_bytes += report.n_bytes;
            if report.has_more || n_bytes >= allowance {
                return (n_bytes, true);
            }
        }
        (n_bytes, false)
    }

    pub fn commit(&mut self, run: &mut Run, changes: &mut Changes) {
        run.name.clone_from(&self.name);
        run.path.clone_from(&self.folder);
        changes.n_points += self.stage.commit(run);
        for file in &mut self.files {
            let n_new = file.damage().take(&mut run.damage);
            run.n_damaged += n_new;
            changes.n_damaged += n_new;
        }
        run.files.clear();
        run.files.reserve_exact(self.files.len());
        run.files.extend(self.files.iter().map(SourceFollower::status));
        self.is_changed = false;
    }
}

impl PollTurn<'_> {
    fn includes(&self, file: &SourceFollower, number: usize) -> bool {
        file.is_active(self.now_ns)
            || (self.n_polls + number).is_multiple_of(self.n_turns)
            || file.is_changed_by(self.changed_files)
    }
}
