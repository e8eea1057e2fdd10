//! A recording of this process whose rings are emptied between measurements: what is timed is emitting, not dropping.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::events::record::Record;
use ::events::ring::RingReader;

use crate::report::BenchError;

/// The recording and its rings' readers.
pub(super) struct Rings {
    _recording: ::events::Session,
    folder: tempfile::TempDir,
    readers: BTreeMap<PathBuf, RingReader>,
    records: Vec<Record>,
}

impl Rings {
    /// Begins to record.
    pub fn record() -> Result<Rings, BenchError> {
        let folder = tempfile::tempdir()?;
        let recording = ::events::start(folder.path(), ::events::Options::default())?;
        Ok(Rings { _recording: recording, folder, readers: BTreeMap::new(), records: Vec::new() })
    }

    /// Empties all rings there are.
    pub fn empty(&mut self) -> Result<(), BenchError> {
        for entry in std::fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "ring") && !self.readers.contains_key(&path) {
                let reader = RingReader::open(&path)?;
                self.readers.insert(path, reader);
            }
        }
        for reader in self.readers.values_mut() {
            self.records.clear();
            reader.drain(&mut self.records);
        }
        Ok(())
    }

    /// Events that found their ring full: 0, or the figures are of dropping.
    pub fn dropped(&self) -> u64 {
        self.readers.values().map(RingReader::dropped).sum()
    }
}
