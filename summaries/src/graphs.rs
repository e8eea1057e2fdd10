//! Graphs that TensorFlow 2 and Keras write into event files under tags: Keras models, and functions that `tf.summary`
//! traced.
//!
//! [`Run::tagged_graphs`] lists them; [`TaggedGraph::read`] reads one. [`keras`] converts a model's configuration to a
//! graph of its layers, [`run_metadata`] extracts the graphs of functions from a `RunMetadata`.

mod keras;
mod run_metadata;

use std::sync::Arc;

use formats::proto::SummaryMetadata;

use crate::{
    media::{MediaError, RecordPosition},
    run::Run,
    sample::Sample,
    series::Series,
};
pub use keras::KerasError;
pub use run_metadata::NamedGraph;

/// The plugins whose values hold a graph: a Keras model, the graphs of functions, the same with a profile.
const KERAS: &str = "graph_keras_model";
const FUNCTIONS: &str = "graph_run_metadata_graph";
const PROFILE: &str = "graph_run_metadata";

/// Whether values of this kind hold a graph: see [`MediaSeries::kind`](crate::MediaSeries::kind).
pub fn is_graph_kind(kind: &str) -> bool {
    matches!(kind, KERAS | FUNCTIONS | PROFILE)
}

/// The newest graph of a tag, read on demand.
#[derive(Debug, Clone)]
pub struct TaggedGraph {
    /// The tag's name.
    pub tag: String,
    /// The number of graphs of the tag.
    pub n_rows: usize,
    /// The x axis: the program's step.
    pub step: i64,
    kind: String,
    place: RecordPosition,
    metadata: Arc<SummaryMetadata>,
}

/// Why the graph of a tag cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TaggedGraphError {
    /// The value cannot be read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The value is no Keras model.
    #[error(transparent)]
    Keras(#[from] KerasError),
    /// The value is no `RunMetadata`.
    #[error("not a readable RunMetadata: {0}")]
    RunMetadata(String),
    /// The value has no graph.
    #[error("a value without a graph")]
    Empty,
}

impl Run {
    /// The graphs under tags, in the order of the tags.
    pub fn tagged_graphs(&self) -> impl Iterator<Item = TaggedGraph> {
        self.series.iter().filter_map(|(tag, series)| {
            let Series::Media(series) = series else { return None };
            let newest = series.rows().last().filter(|_| is_graph_kind(series.kind()))?;
            Some(TaggedGraph {
                tag: tag.clone(),
                n_rows: series.len(),
                step: newest.step,
                kind: series.kind().to_owned(),
                place: newest.place.clone(),
                metadata: series.metadata.clone(),
            })
        })
    }

    /// All profiles of the run: first the `RunMetadata` events of TensorFlow 1, then the `RunMetadata` that TensorFlow
    /// 2 wrote as summaries.
    pub fn profiles(&self) -> impl Iterator<Item = Profile<'_>> {
        let records = self.run_metadata.iter().map(Profile::Record);
        let tagged = self.series.values().filter_map(|series| match series {
            Series::Media(series) if series.kind() == PROFILE => Some(series),
            _ => None,
        });
        records.chain(tagged.flat_map(|series| (0..series.len()).map(move |row| Profile::Value { series, row })))
    }
}

/// A profile of a step, read on demand.
#[derive(Debug, Clone, Copy)]
pub enum Profile<'a> {
    /// An event's `tagged_run_metadata`.
    Record(&'a crate::run::TaggedRecord),
    /// A value of a tag.
    Value {
        /// The tag's values.
        series: &'a crate::media::MediaSeries,
        /// The row of the value.
        row: usize,
    },
}

impl Profile<'_> {
    /// The x axis: the program's step.
    pub fn step(&self) -> i64 {
        match self {
            Self::Record(record) => record.step,
            Self::Value { series, row } => series.rows()[*row].step,
        }
    }

    /// The serialised `RunMetadata`; `None` where it has no `step_stats`.
    ///
    /// # Errors
    /// When the file is gone or was written over.
    pub fn read(&self) -> Result<Option<Vec<u8>>, MediaError> {
        let bytes = match self {
            Self::Record(record) => record.read()?,
            Self::Value { series, row } => first_blob(series.read(*row)?).unwrap_or_default(),
        };
        Ok(run_metadata::has_step_stats(&bytes).then_some(bytes))
    }
}

impl TaggedGraph {
    /// Reads the graphs, the main one first. Decodes about 100 MB/s; do not call it on the window's thread.
    ///
    /// # Errors
    /// When the file is gone or was written over, or its value is no graph.
    pub fn read(&self) -> Result<Vec<NamedGraph>, TaggedGraphError> {
        let blob = first_blob(self.place.read(&self.kind, &self.metadata)?).ok_or(TaggedGraphError::Empty)?;
        if self.kind == KERAS {
            return Ok(vec![NamedGraph { part: "", graph: keras::graph(&blob)? }]);
        }
        let graphs = run_metadata::graphs(&blob).map_err(TaggedGraphError::RunMetadata)?;
        // A `RunMetadata` that has only a profile has no graph, which is no error.
        if graphs.is_empty() && self.kind == FUNCTIONS { Err(TaggedGraphError::Empty) } else { Ok(graphs) }
    }
}

/// The bytes of a value that is one string.
fn first_blob(sample: Sample) -> Option<Vec<u8>> {
    match sample {
        Sample::Blobs(blobs) => blobs.into_iter().next(),
        _ => None,
    }
}
