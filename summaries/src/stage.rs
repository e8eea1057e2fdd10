//! What was read of a run since its last commit. Filled without any lock, committed in one short step.

use std::{ops::Range, sync::Arc};

use formats::{
    proto::{HistogramProto, TensorProto},
    tfrecord::Record,
};
use prost::Message;
use rustc_hash::FxHashMap;

use crate::{
    damage::DamageKind,
    event::{Data, EventView, ValueView, What, values},
    histogram::Histogram,
    run::{GraphBlob, Run},
    series::{HistogramSeries, OtherSeries, ScalarSeries, Series},
    tensor,
};

/// The new points of a run's tags. A tag's entry stays after the commit: it knows what the tag is.
#[derive(Debug, Default)]
pub(crate) struct RunStage {
    by_tag: FxHashMap<Box<str>, usize>,
    tags: Vec<StagedTag>,
    /// Entries of `tags` with new points.
    dirty: Vec<usize>,
    graph: Option<Arc<GraphBlob>>,
    has_plain_graph: bool,
    n_points: u64,
}

#[derive(Debug)]
struct StagedTag {
    name: Box<str>,
    points: Series,
}

impl RunStage {
    /// Takes the values of a record. What of it cannot be understood is told to `damaged`; the rest is kept.
    pub fn take(&mut self, record: &Record<&[u8]>, mut damaged: impl FnMut(DamageKind, Range<u64>)) {
        let bytes = record.offset..record.offset + record.data.len() as u64 + 16;
        let Ok(event) = EventView::parse(record.data) else {
            return damaged(DamageKind::Undecodable, bytes);
        };
        match event.what {
            What::Summary(summary) => {
                for value in values(summary) {
                    let result = match value {
                        Ok(value) => self.take_value(&event, &value),
                        Err(_) => Err(DamageKind::Undecodable),
                    };
                    if let Err(kind) = result {
                        damaged(kind, bytes.clone());
                    }
                }
            }
            What::Graph(graph) => self.take_graph(GraphBlob::of_graph(graph.to_vec())),
            What::MetaGraph(graph) => self.take_graph(GraphBlob::of_meta_graph(graph.to_vec())),
            What::Other => {}
        }
    }

    /// The last plain graph counts; the one in a meta graph only while there is no plain one.
    fn take_graph(&mut self, graph: GraphBlob) {
        if graph.is_meta() && self.has_plain_graph {
            return;
        }
        self.has_plain_graph |= !graph.is_meta();
        self.graph = Some(Arc::new(graph));
    }

    fn take_value(&mut self, event: &EventView<'_>, value: &ValueView<'_>) -> Result<(), DamageKind> {
        let idx = self.tag(value);
        let tag = &mut self.tags[idx];
        let was_empty = tag.points.n_points() == 0;
        let (step, wall) = (event.step, event.wall);
        match (&mut tag.points, &value.data) {
            (Series::Scalar(series), Data::Simple(v)) => series.push(step, wall, f64::from(*v)),
            (Series::Scalar(series), Data::Tensor(bytes)) => series.push(step, wall, decode_scalar(bytes)?),
            (Series::Histogram(series), Data::Histogram(bytes)) => series.push(step, wall, decode_histogram(bytes)?),
            (Series::Histogram(series), Data::Tensor(bytes)) => series.push(step, wall, decode_rows(bytes)?),
            (Series::Other(series), Data::Tensor(_) | Data::None) => series.push(step),
            (Series::Other(series), Data::Image) if series.kind == "images" => series.push(step),
            (Series::Other(series), Data::Audio) if series.kind == "audio" => series.push(step),
            _ => return Err(DamageKind::KindChanged),
        }
        self.n_points += 1;
        if was_empty {
            self.dirty.push(idx);
        }
        Ok(())
    }

    /// The entry of the value's tag; the first value makes it and says what it is.
    fn tag(&mut self, value: &ValueView<'_>) -> usize {
        let name = String::from_utf8_lossy(value.tag);
        if let Some(&idx) = self.by_tag.get(&*name) {
            return idx;
        }
        let name: Box<str> = name.into();
        let idx = self.tags.len();
        self.tags.push(StagedTag { name: name.clone(), points: empty_series(value) });
        self.by_tag.insert(name, idx);
        idx
    }

    /// Whether a commit would change anything.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.graph.is_some()
    }

    /// Moves everything new into `run`; the number of new points.
    pub fn commit(&mut self, run: &mut Run) -> u64 {
        for idx in self.dirty.drain(..) {
            let tag = &mut self.tags[idx];
            match run.series.get_mut(&*tag.name) {
                Some(series) => series.append(&mut tag.points),
                None => {
                    let mut series = tag.points.empty_like();
                    series.append(&mut tag.points);
                    run.series.insert(tag.name.to_string(), series);
                }
            }
        }
        if let Some(graph) = self.graph.take() {
            run.graph = Some(graph);
        }
        std::mem::take(&mut self.n_points)
    }
}

/// The series that a tag's first value asks for.
fn empty_series(value: &ValueView<'_>) -> Series {
    let node_name = String::from_utf8_lossy(value.node_name).into_owned();
    let plugin = String::from_utf8_lossy(value.plugin.unwrap_or_default());
    let kind = match (&value.data, &*plugin) {
        (Data::Simple(_), _) | (Data::Tensor(_), "scalars") => {
            return Series::Scalar(ScalarSeries { node_name, ..ScalarSeries::default() });
        }
        (Data::Histogram(_), _) | (Data::Tensor(_), "histograms") => {
            return Series::Histogram(HistogramSeries { node_name, ..HistogramSeries::default() });
        }
        (Data::Image, _) => "images",
        (Data::Audio, _) => "audio",
        (_, "") => "tensor",
        (_, plugin) => plugin,
    };
    Series::Other(OtherSeries { kind: kind.to_owned(), node_name, ..OtherSeries::default() })
}

fn decode_tensor(bytes: &[u8]) -> Result<(TensorProto, Vec<f64>), DamageKind> {
    let tensor = TensorProto::decode(bytes).map_err(|_| DamageKind::Undecodable)?;
    let numbers = tensor::numbers(&tensor).ok_or(DamageKind::Undecodable)?;
    Ok((tensor, numbers))
}

fn decode_scalar(bytes: &[u8]) -> Result<f64, DamageKind> {
    match decode_tensor(bytes)?.1[..] {
        [value] => Ok(value),
        _ => Err(DamageKind::Undecodable),
    }
}

/// A TensorFlow 2 histogram: a tensor of shape [k, 3].
fn decode_rows(bytes: &[u8]) -> Result<Histogram, DamageKind> {
    let (tensor, numbers) = decode_tensor(bytes)?;
    let dims: Vec<i64> = tensor.tensor_shape.unwrap_or_default().dim.iter().map(|dim| dim.size).collect();
    match dims[..] {
        [_, 3] => Ok(Histogram::from_rows(&numbers)),
        _ => Err(DamageKind::Undecodable),
    }
}

fn decode_histogram(bytes: &[u8]) -> Result<Histogram, DamageKind> {
    let proto = HistogramProto::decode(bytes).map_err(|_| DamageKind::Undecodable)?;
    Histogram::from_proto(&proto).ok_or(DamageKind::Undecodable)
}
