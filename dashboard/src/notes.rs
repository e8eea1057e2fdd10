//! What users write down: bookmarks on traces and pinned tags of logdirs.

use crate::lenient::{or_default, valid_elements};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};

/// Traces with bookmarks and logdirs with pins that are stored, at most: those changed last.
const MAX_NOTED: usize = 200;

/// A bookmark at a time of a trace, with a text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Note {
    /// Time of the bookmark, ns from the trace's origin.
    pub time: i64,
    /// The user's text, possibly empty.
    #[serde(default, deserialize_with = "or_default")]
    pub text: String,
}

/// Bookmarks by trace, in order of time.
pub type Notes = ByPath<Note>;

/// Pinned tags by logdir, in the order of pinning.
pub type Pins = ByPath<String>;

/// Values by the path of a trace or logdir.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent, bound(deserialize = "T: DeserializeOwned"))]
pub struct ByPath<T>(#[serde(deserialize_with = "valid_elements")] Vec<AtPath<T>>);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
struct AtPath<T> {
    #[serde(alias = "trace", alias = "logdir")]
    path: PathBuf,
    #[serde(alias = "notes", alias = "tags", deserialize_with = "valid_elements")]
    values: Vec<T>,
}

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> ByPath<T> {
    /// The values of a path.
    pub fn get(&self, path: &Path) -> &[T] {
        self.0.iter().find(|at| at.path == path).map_or(&[], |at| &at.values)
    }

    /// Replaces the values of a path.
    pub fn set(&mut self, path: &Path, values: Vec<T>) {
        if self.get(path) == values {
            return;
        }
        self.0.retain(|at| at.path != path);
        if !values.is_empty() {
            self.0.insert(0, AtPath { path: path.to_owned(), values });
        }
        self.truncate();
    }

    /// Drops the paths that were changed longest ago where there are too many.
    pub(crate) fn truncate(&mut self) {
        self.0.truncate(MAX_NOTED);
    }
}
