//! Reads a trace folder into batches: while it grows, after it was finished, after a crash, with damage.
//!
//! Each poll reads, in this order: new chunks; then the rings, without consuming their records, so that a live view is
//! as fresh as the last publish, and after a crash no published record is missing; then the meta files, since a name is
//! written before the first record that uses it. Every record has a sequence number in its ring. So a record that is
//! read from a ring and again from a chunk is applied once, and missing records are counted exactly.
//!
//! Damage never ends the reading: it becomes a warning in the batch, with file, offset and count.

mod clock;
mod files;
mod folder;
mod gathered;
mod notices;
mod process;
mod rings;

use crate::store::{Store, Update};
use folder::FolderReader;
use gathered::GatheredReader;
use std::io;
use std::path::{Path, PathBuf};
use trace_model::clocks::Fact;
use trace_model::layout::{OpenError, find_sealed, is_gathered};
use trace_model::{Batch, RingPosition};

/// Follows a trace folder. All updates are for one store, in order.
pub struct TraceReader {
    dir: PathBuf,
    source: Source,
    is_ended: bool,
}

enum Source {
    /// The trace folder of one machine.
    Folder(Box<FolderReader>),
    /// The trace folders of many processes and hosts.
    Gathered(Box<GatheredReader>),
}

impl TraceReader {
    /// Opens a trace folder, which may still be growing, or may be [sealed](crate::seal); a gathered one; or a folder
    /// of Parquet files.
    ///
    /// # Errors
    /// Fails if the folder cannot be read or has no trace.
    pub fn open(trace_dir: &Path) -> Result<TraceReader, OpenError> {
        let source = if is_gathered(trace_dir) {
            let gathered = GatheredReader::open(trace_dir).map_err(|e| OpenError::Io(trace_dir.to_owned(), e))?;
            Source::Gathered(Box::new(gathered))
        } else {
            Source::Folder(Box::new(FolderReader::open(trace_dir)?))
        };
        Ok(TraceReader { dir: trace_dir.to_owned(), source, is_ended: false })
    }

    /// Opens a trace whose collector has ended, with or without finishing it.
    pub(crate) fn open_ended(trace_dir: &Path) -> Result<TraceReader, OpenError> {
        let mut reader = TraceReader::open(trace_dir)?;
        reader.is_ended = true;
        match &mut reader.source {
            Source::Folder(folder) => folder.end(),
            Source::Gathered(gathered) => gathered.end(),
        }
        Ok(reader)
    }

    /// The folders in a gathered folder that are read in addition to its own trace.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        match &self.source {
            Source::Folder(_) => Vec::new(),
            Source::Gathered(gathered) => gathered.sources(),
        }
    }

    /// The reader of the trace that this machine records into the folder.
    fn local_folder(&self) -> Option<&FolderReader> {
        match &self.source {
            Source::Folder(folder) => Some(folder),
            Source::Gathered(gathered) => gathered.local_folder(),
        }
    }

    /// The position in each ring up to which records were read.
    pub(crate) fn positions(&self) -> Vec<RingPosition> {
        self.local_folder().map_or_else(Vec::new, FolderReader::positions)
    }

    /// The id of a process that may still write into the folder, as far as this machine knows.
    pub(crate) fn live_process(&self) -> Option<u32> {
        self.local_folder().and_then(FolderReader::live_process)
    }

    /// The id of a process that was still writing to a ring when the rings were last read.
    pub(crate) fn writing_process(&self) -> Option<u32> {
        self.local_folder().and_then(FolderReader::writing_process)
    }

    /// Facts about clocks that messages between hosts of a gathered folder have proved since the last call, each with
    /// the clock's id.
    pub fn take_clock_facts(&mut self) -> Vec<(String, Fact)> {
        match &mut self.source {
            Source::Folder(_) => Vec::new(),
            Source::Gathered(gathered) => gathered.take_facts(),
        }
    }

    /// The trace folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads one update of new events into the store. Returns whether the store changed.
    ///
    /// # Errors
    /// Fails if the folder cannot be listed any more. Damaged or unreadable files become warnings of the store instead.
    pub fn poll(&mut self, store: &mut Store) -> io::Result<bool> {
        Ok(store.apply(self.poll_staged()?))
    }

    /// Reads all events that exist now, and checks all pages of a sealed trace for damage.
    ///
    /// # Errors
    /// As [`TraceReader::poll`].
    pub fn read_all(&mut self, store: &mut Store) -> io::Result<()> {
        loop {
            let update = self.poll_staged()?;
            let has_more = update.has_more();
            store.apply(update);
            if !has_more {
                break;
            }
        }
        if let Some(pager) = store.pager() {
            pager.check_all();
            store.apply(Batch::new());
        }
        Ok(())
    }

    /// Reads new events, about 65,536, for [`Store::apply`]. The caller calls again at once while [`Update::has_more`].
    ///
    /// # Errors
    /// As [`TraceReader::poll`].
    pub fn poll_staged(&mut self) -> io::Result<Update> {
        let gathered = match &mut self.source {
            Source::Folder(folder) => return folder.poll_staged(),
            Source::Gathered(gathered) => gathered,
        };
        let polled = gathered.poll_staged();
        if is_gathered(&self.dir) || find_sealed(&self.dir).is_none() {
            return polled;
        }
        // The gathered folder was sealed while it was followed: the sealed folder has everything.
        let mut folder = FolderReader::open(&self.dir).map_err(io::Error::other)?;
        folder.final_collector = self.is_ended.then_some(None);
        let update = folder.poll_staged();
        self.source = Source::Folder(Box::new(folder));
        update
    }
}
