//! Follows what a run is read from: an event file, or a log of another tool.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use crate::{
    damage::DamageLog,
    follow::{FileFollower, ReadReport},
    logs::LogFollower,
    run::FileStatus,
    stage::RunStage,
    walk::RunSource,
};

/// With more changed files than this, each log counts as changed: to compare its files with all of them would cost
/// more.
const MAX_COMPARED: usize = 256;

/// A source of a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are event files, of which there may be thousands")]
pub(super) enum SourceFollower {
    Events(FileFollower),
    Log(Box<LogFollower>),
}

impl SourceFollower {
    pub fn new(source: RunSource, now_ns: i64) -> Self {
        match source {
            RunSource::EventFile(path) => Self::Events(FileFollower::new(path, now_ns)),
            RunSource::Log(log) => Self::Log(Box::new(LogFollower::new(log, now_ns))),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Events(file) => file.path(),
            Self::Log(log) => log.path(),
        }
    }

    pub fn status(&self) -> FileStatus {
        match self {
            Self::Events(file) => file.status(),
            Self::Log(log) => log.status(),
        }
    }

    /// Whether it grew in the last seconds.
    pub fn is_active(&self, now_ns: i64) -> bool {
        match self {
            Self::Events(file) => file.is_active(now_ns),
            Self::Log(log) => log.is_active(now_ns),
        }
    }

    /// Whether one of the files that the system reported is part of it.
    pub fn is_changed_by(&self, changed_files: &FxHashSet<PathBuf>) -> bool {
        match self {
            Self::Events(file) => changed_files.contains(&**file.path()),
            Self::Log(log) => {
                changed_files.len() > MAX_COMPARED || changed_files.iter().any(|path| log.is_changed_by(path))
            }
        }
    }

    pub fn damage(&mut self) -> &mut DamageLog {
        match self {
            Self::Events(file) => file.log(),
            Self::Log(log) => log.damage(),
        }
    }

    /// Reads about `allowance` new bytes into `stage`.
    pub fn read_new(&mut self, allowance: u64, now_ns: i64, stage: &mut RunStage) -> ReadReport {
        match self {
            Self::Events(file) => file.read_new(allowance, now_ns, stage),
            Self::Log(log) => log.read_new(allowance, now_ns, stage),
        }
    }
}
