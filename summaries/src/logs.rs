//! Follows a log of another tool.
//!
//! What is new in the log is appended as events to a temporary event file, which is followed like any other: all that
//! holds for event files (kinds of tags, values on demand, charts) then holds for the log. The file costs about as many
//! bytes as the log, and disappears with the follower.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
};

use formats::{event_file, tfrecord::append_record};
use prost::Message as _;
use tempfile::TempPath;
use trackers::{Batch, Log, Reader};

use crate::{
    damage::{DamageKind, DamageLog},
    follow::{ACTIVE_NS, FileFollower, ReadReport},
    run::{FileState, FileStatus},
    stage::RunStage,
};
pub use convert::{ConvertError, ConvertedRun, convert};
use translate::Translator;

/// A log that is followed.
#[derive(Debug)]
pub(crate) struct LogFollower {
    log: Log,
    path: Arc<Path>,
    reader: Box<dyn Reader>,
    translation: Translation,
    /// Follows the translation; none before the first entry.
    events: Option<FileFollower>,
    damage: DamageLog,
    state: FileState,
    n_read: u64,
    last_growth_ns: i64,
}

impl LogFollower {
    pub fn new(log: Log, now_ns: i64) -> Self {
        let path: Arc<Path> = log.path.as_path().into();
        Self {
            reader: log.open(),
            log,
            damage: DamageLog::new(path.clone()),
            path,
            translation: Translation::default(),
            events: None,
            state: FileState::Followed,
            n_read: 0,
            last_growth_ns: now_ns,
        }
    }

    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub fn status(&self) -> FileStatus {
        FileStatus { path: self.path.clone(), n_read: self.n_read, n_waiting: 0, state: self.state.clone() }
    }

    /// Whether the log grew within [`ACTIVE_NS`].
    pub fn is_active(&self, now_ns: i64) -> bool {
        now_ns - self.last_growth_ns < ACTIVE_NS
    }

    pub fn is_changed_by(&self, path: &Path) -> bool {
        self.log.is_changed_by(path)
    }

    /// The damage of the log.
    pub fn damage(&mut self) -> &mut DamageLog {
        &mut self.damage
    }

    /// Reads about `allowance` new bytes into `stage`.
    pub fn read_new(&mut self, allowance: u64, now_ns: i64, stage: &mut RunStage) -> ReadReport {
        let (state, n_damaged) = (self.state.clone(), self.damage.count());
        let mut batch = Batch::default();
        let read = self.reader.read(allowance, &mut batch);
        // What was read before an error counts.
        let taken = self.take(&mut batch, now_ns, stage);
        let result = read.and(taken);
        self.state = match result {
            Ok(()) => FileState::Followed,
            Err(e) if e.kind() == io::ErrorKind::NotFound => FileState::Deleted,
            Err(e) => FileState::Unreadable(e.to_string()),
        };
        if batch.n_bytes > 0 {
            self.n_read += batch.n_bytes;
            self.last_growth_ns = now_ns;
        }
        ReadReport {
            n_bytes: batch.n_bytes,
            has_more: batch.has_more && matches!(self.state, FileState::Followed),
            is_changed: batch.n_bytes > 0 || n_damaged != self.damage.count() || state != self.state,
        }
    }

    /// Translates what was read, and reads the translation into `stage`.
    fn take(&mut self, batch: &mut Batch, now_ns: i64, stage: &mut RunStage) -> io::Result<()> {
        for problem in batch.problems.drain(..) {
            self.damage.add(DamageKind::Log(problem.what), problem.bytes);
        }
        if batch.entries.is_empty() {
            return Ok(());
        }
        let file = self.translation.append(batch)?;
        let events = self.events.get_or_insert_with(|| FileFollower::new(file.to_owned(), now_ns));
        while events.read_new(u64::MAX, now_ns, stage).has_more {}
        self.damage.append(events.log());
        match events.status().state {
            FileState::Followed => Ok(()),
            FileState::Deleted => Err(io::Error::other(format!("the temporary file {} was deleted", file.display()))),
            FileState::Unreadable(reason) => Err(io::Error::other(reason)),
        }
    }
}

/// The entries that were read, as an event file.
#[derive(Debug, Default)]
struct Translation {
    translator: Translator,
    /// Open only while it is written: there may be thousands of logs.
    path: Option<TempPath>,
}

impl Translation {
    /// Appends the entries of `batch`; returns the path of the file.
    fn append(&mut self, batch: &mut Batch) -> io::Result<&Path> {
        let mut bytes = Vec::new();
        let (path, mut file) = match self.path.take() {
            Some(path) => {
                let file = File::options().append(true).open(&path)?;
                (path, file)
            }
            None => {
                let named = tempfile::Builder::new().prefix("stepscope-log-").suffix(".tfevents").tempfile()?;
                append_record(&mut bytes, &event_file::version(0.0).encode_to_vec());
                let (file, path) = named.into_parts();
                (path, file)
            }
        };
        for entry in batch.entries.drain(..) {
            for event in self.translator.events(entry) {
                append_record(&mut bytes, &event.encode_to_vec());
            }
        }
        let written = file.write_all(&bytes);
        let path = self.path.insert(path);
        written.map(|()| &**path)
    }
}

mod convert;
mod translate;
