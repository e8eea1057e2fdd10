//! Runs with their series, files and damage. [`Logdir`](crate::Logdir) fills them, views read them.

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
    damage::Damage,
    media::{MediaError, RecordPosition},
    name_map::NameMap,
    sample::Sample,
    series::Series,
    writer::HParam,
};

/// All runs of a [`Logdir`](crate::Logdir), by name.
#[derive(Debug, Default)]
pub struct Runs {
    /// The runs; the name is the folder below the logdir, `.` for the logdir itself.
    pub by_name: NameMap<Run>,
    /// Folders and files that cannot be read.
    pub problems: Vec<Problem>,
    /// Grows with every commit: the version for caches over all runs.
    pub version: u64,
}

/// A path that cannot be read, and the reason.
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
    /// The name, as in [`Runs::by_name`].
    pub name: String,
    /// The folder.
    pub path: PathBuf,
    /// The series by tag.
    pub series: NameMap<Series>,
    /// The last graph in the event files, decoded on demand.
    pub graph: Option<Arc<GraphBlob>>,
    /// Profiles of single steps that TensorFlow 1 wrote, in the order of arrival.
    pub run_metadata: Vec<TaggedRecord>,
    /// The damaged ranges, at most 256 of each file.
    pub damage: Vec<Damage>,
    /// The number of all damaged ranges.
    pub n_damaged: u64,
    /// The event files in name order.
    pub files: Vec<FileStatus>,
    /// Grows with every change of this run: the version for caches over its series.
    pub version: u64,
}

impl Run {
    /// Reads the hyperparameters of the run's session from its event files; returns none where they are missing or
    /// cannot be read.
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

/// The state of reading an event file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// The file.
    pub path: Arc<Path>,
    /// The number of bytes that were decoded, or skipped as damaged.
    pub n_read: u64,
    /// The number of bytes at the end of the file that form no complete record: the record is being written, or was cut
    /// off.
    /// off.
    pub n_waiting: u64,
    /// Whether the file can be followed.
    pub state: FileState,
}

/// Whether an event file can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// The file exists, and new records are read.
    Followed,
    /// The file was deleted; its points stay.
    Deleted,
    /// The file cannot be read at present; every poll tries again.
    Unreadable(String),
}

/// A record under a tag, read on demand.
#[derive(Debug, Clone)]
pub struct TaggedRecord {
    /// The tag, such as `step 100`.
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

/// A serialised graph, decoded on demand: a large one takes seconds, and many are never shown.
#[derive(Debug)]
pub struct GraphBlob {
    bytes: Vec<u8>,
    is_meta: bool,
    decoded: OnceLock<Result<Arc<GraphDef>, DecodeError>>,
}

impl GraphBlob {
    /// A graph from an event's `graph_def`.
    pub(crate) fn from_graph(bytes: Vec<u8>) -> Self {
        Self { bytes, is_meta: false, decoded: OnceLock::new() }
    }

    /// A graph from an event's `meta_graph_def`.
    pub(crate) fn from_meta_graph(bytes: Vec<u8>) -> Self {
        Self { bytes, is_meta: true, decoded: OnceLock::new() }
    }

    /// Whether `new` replaces `old`: the last plain graph counts, and a meta graph only as long as there is no plain
    /// graph.
    pub(crate) fn replaces(old: Option<&Self>, new: &Self) -> bool {
        !new.is_meta || old.is_none_or(|old| old.is_meta)
    }

    /// The serialised size, bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The graph. The first call decodes it, at about 100 MB/s: do not call it on the window's thread. Later calls are
    /// cached.
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
