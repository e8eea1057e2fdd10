//! What users write down: bookmarks on traces and pinned tags of logdirs.

use std::path::{Path, PathBuf};

/// Traces whose notes and logdirs whose pins are stored, at most: those that were changed last.
pub(crate) const MAX_NOTED: usize = 200;

/// A bookmark on a trace's time, with words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// ns from the trace's origin.
    pub time: i64,
    /// What the user wrote; may be empty.
    pub text: String,
}

/// Bookmarks by trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(pub(crate) Vec<(PathBuf, Vec<Note>)>);

impl Notes {
    /// The notes of a trace, in order of time.
    pub fn of(&self, path: &Path) -> &[Note] {
        self.0.iter().find(|(known, _)| known == path).map_or(&[], |(_, notes)| notes)
    }

    /// Replaces the notes of a trace.
    pub fn set(&mut self, path: &Path, notes: Vec<Note>) {
        if self.of(path) == notes {
            return;
        }
        self.0.retain(|(known, _)| known != path);
        if !notes.is_empty() {
            self.0.insert(0, (path.to_owned(), notes));
        }
        self.0.truncate(MAX_NOTED);
    }
}

/// Pinned tags by logdir.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(pub(crate) Vec<(PathBuf, Vec<String>)>);

impl Pins {
    /// The pinned tags of a logdir, in the order of pinning.
    pub fn of(&self, path: &Path) -> &[String] {
        self.0.iter().find(|(known, _)| known == path).map_or(&[], |(_, tags)| tags)
    }

    /// Replaces the pinned tags of a logdir.
    pub fn set(&mut self, path: &Path, tags: Vec<String>) {
        if self.of(path) == tags {
            return;
        }
        self.0.retain(|(known, _)| known != path);
        if !tags.is_empty() {
            self.0.insert(0, (path.to_owned(), tags));
        }
        self.0.truncate(MAX_NOTED);
    }
}
