//! What was read: runs with their series, files and damage. Filled by [`Logdir`](crate::Logdir), looked at by views.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use formats::{
    plugins::h_params_plugin_data::Data,
    proto::{Event, GraphDef, MetaGraphDef, event::What},
};
use prost::{DecodeError, Message};

use crate::{
    by_name::ByName,
    damage::Damage,
    media::{MediaError, RecordPosition},
    sample::Sample,
    series::Series,
    writer::HParam,
};

/// All runs of a [`Logdir`](crate::Logdir), by name.
#[derive(Debug, Default)]
pub struct Runs {
    /// The runs; the name is the folder below the logdir, `.` for the logdir itself.
    pub by_name: ByName<Run>,
    /// Folders and files that could not be looked at.
    pub problems: Vec<Problem>,
    /// Grows with every commit: the stamp for caches over all runs.
    pub version: u64,
}

/// A path that could not be looked at, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The folder or file.
    pub path: PathBuf,
    /// The system's message.
    pub message: String,
}

/// A run: a folder with event files.
#[derive(Debug, Default)]
pub struct Run {
    /// Its name, as in [`Runs::by_name`].
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// Its tags.
    pub series: ByName<Series>,
    /// The last graph in its event files, not decoded yet.
    pub graph: Option<Arc<GraphBlob>>,
    /// Profiles of single steps that TensorFlow 1 wrote, in the order of arrival.
    pub run_metadata: Vec<TaggedRecord>,
    /// The unreadable ranges, at most 256 ranges of each file.
    pub damage: Vec<Damage>,
    /// How many damaged ranges there are in all.
    pub n_damaged: u64,
    /// Its event files in name order.
    pub files: Vec<FileStatus>,
    /// Grows with every change of this run: the stamp for caches over its series.
    pub version: u64,
}

impl Run {
    /// The hyperparameters of the run's session, read from its event files: none when it has none, or they cannot be
    /// read any more.
    pub fn hparams(&self) -> BTreeMap<String, HParam> {
        let mut all = BTreeMap::new();
        for series in self.series.values() {
            let Series::Media(series) = series else { continue };
            if series.kind() != "hparams" {
                continue;
            }
            for row in 0..series.len() {
                let Ok(Sample::HParams(data)) = series.read(row) else { continue };
                if let Some(Data::SessionStartInfo(start)) = data.data {
                    let known = start.hparams.into_iter().filter_map(|(name, value)| Some((name, value.kind?.into())));
                    all.extend(known);
                }
            }
        }
        all
    }
}

/// How far an event file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// The file.
    pub path: Arc<Path>,
    /// How many bytes of it were understood (or skipped as damaged).
    pub n_read: u64,
    /// How many bytes at its end belong to no whole record yet: being written, or torn off.
    pub n_waiting: u64,
    /// Whether it is still there.
    pub state: FileState,
}

/// Whether an event file can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It is there, and what comes is read.
    Followed,
    /// It was deleted; what was read of it stays.
    Deleted,
    /// It cannot be read at present; tried again at every poll.
    Unreadable(String),
}

/// A record under a tag, read when it is looked at.
#[derive(Debug, Clone)]
pub struct TaggedRecord {
    /// Its name: `step 100`, say.
    pub tag: String,
    /// The x axis: the program's step.
    pub step: i64,
    /// Unix seconds.
    pub wall: f64,
    place: RecordPosition,
}

impl TaggedRecord {
    pub(crate) fn new(tag: String, step: i64, wall: f64, place: RecordPosition) -> Self {
        Self { tag, step, wall, place }
    }

    /// The serialised `RunMetadata`.
    ///
    /// # Errors
    /// When the file is gone or was written over.
    pub fn read(&self) -> Result<Vec<u8>, MediaError> {
        let changed = || MediaError::Changed { path: self.place.file.clone(), offset: self.place.offset };
        let event = Event::decode(&self.place.record()?[..]).map_err(|_| changed())?;
        match event.what {
            Some(What::TaggedRunMetadata(tagged)) => Ok(tagged.run_metadata),
            _ => Err(changed()),
        }
    }
}

/// A serialised graph, decoded when it is first looked at: a large one takes a while, and many are never shown.
#[derive(Debug)]
pub struct GraphBlob {
    bytes: Vec<u8>,
    is_meta: bool,
    decoded: OnceLock<Result<Arc<GraphDef>, DecodeError>>,
}

impl GraphBlob {
    /// A graph from an event's `graph_def`.
    pub(crate) fn of_graph(bytes: Vec<u8>) -> Self {
        Self { bytes, is_meta: false, decoded: OnceLock::new() }
    }

    /// A graph from an event's `meta_graph_def`.
    pub(crate) fn of_meta_graph(bytes: Vec<u8>) -> Self {
        Self { bytes, is_meta: true, decoded: OnceLock::new() }
    }

    /// Whether `new` takes the place of `old`: the last plain graph counts; the one in a meta graph only while there is no
    /// plain one.
    pub(crate) fn replaces(old: Option<&Self>, new: &Self) -> bool {
        !new.is_meta || old.is_none_or(|old| old.is_meta)
    }

    /// Its serialised size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The graph; decoded by the first call (about 100 MB/s, so off the window's thread), kept for the others.
    ///
    /// # Errors
    /// When the bytes are no GraphDef.
    pub fn decode(&self) -> Result<Arc<GraphDef>, DecodeError> {
        let decode = || {
            let graph = if self.is_meta {
                MetaGraphDef::decode(&self.bytes[..])?.graph_def.unwrap_or_default()
            } else {
                GraphDef::decode(&self.bytes[..])?
            };
            Ok(Arc::new(graph))
        };
        self.decoded.get_or_init(decode).clone()
    }
}
