//! The data of a run that were read since its last commit: staged without any lock, committed in one short step.
//!
//! A file's [`Block`]s are decoded in parallel into [`Segment`]s, each with tags of its own; [`RunStage::absorb`] takes
//! them in the order of the file. The first value of a tag determines its kind. A segment that was decoded before that
//! value was absorbed may have assumed another kind: it is decoded again with the kind that is then known.

use std::{mem, ops::Range, path::Path, sync::Arc};

use formats::{
    proto::{SummaryMetadata, TaggedRunMetadata},
    tfrecord::{Block, Record, Scan},
};
use prost::Message;
use rustc_hash::FxHashMap;

use crate::{
    damage::DamageKind,
    event::{Data, EventKind, EventView, ValueView, plugin_name, values},
    histograms::{HistogramSeries, PackedRows},
    media::{MediaRow, MediaSeries, RecordPosition, parse_metadata},
    run::{GraphBlob, Run, TaggedRecord},
    series::{Point, ScalarSeries, Series},
    tensor,
};
use form::Form;

mod distribution;
mod form;
pub(crate) mod point_pool;

/// The fewest tags that a block is expected to have.
const MIN_TAGS: usize = 16;

/// The bytes of a record besides its data: length and two checksums.
const RECORD_OVERHEAD: u64 = 16;

/// The kind of a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Scalar,
    Histogram,
    Media(Arc<str>),
}

/// The kinds of a run's tags that have been absorbed.
pub(crate) type TagKinds = FxHashMap<Box<str>, Kind>;

/// The values of some records, by tag.
#[derive(Debug)]
pub(crate) struct Segment {
    file: Arc<Path>,
    by_tag: FxHashMap<Box<[u8]>, usize>,
    tags: Vec<SegmentTag>,
    /// The index of the last value's tag.
    last_idx: usize,
    damage: Vec<(DamageKind, Range<u64>)>,
    graph: Option<GraphBlob>,
    run_metadata: Vec<TaggedRecord>,
    n_points: u64,
    /// The number of rows that a tag is expected to have.
    n_expected: usize,
    /// The segment's block, if a tag was not known: where its assumed kind is wrong the block is decoded again.
    block: Option<Block>,
}

/// The values of one tag in a segment.
#[derive(Debug)]
struct SegmentTag {
    /// The tag's bytes in the file, which may be invalid UTF-8.
    raw: Box<[u8]>,
    name: Box<str>,
    /// `None`: a tensor without metadata, of a tag that is not known yet.
    kind: Option<Kind>,
    node_name: String,
    metadata: Option<Arc<SummaryMetadata>>,
    rows: Rows,
    form: Option<Form>,
    /// The index of the tag that followed the last time: programs write their tags in the same order in every step.
    next_idx: usize,
}

#[derive(Debug)]
enum Rows {
    Scalar(Vec<Point>),
    Histogram(PackedRows),
    Media(Vec<MediaRow>),
}

impl Segment {
    pub fn new(file: Arc<Path>) -> Self {
        Self {
            file,
            by_tag: FxHashMap::default(),
            tags: Vec::new(),
            last_idx: 0,
            damage: Vec::new(),
            graph: None,
            run_metadata: Vec::new(),
            n_points: 0,
            n_expected: 0,
            block: None,
        }
    }

    /// Decodes a block with the kinds that are known so far.
    pub fn from_block(file: Arc<Path>, block: Block, known: &TagKinds) -> Self {
        let mut segment = Self::new(file);
        segment.decode_block(&block, known);
        let has_known_kinds = segment.tags.iter().all(|tag| known.contains_key(&tag.name));
        segment.block = (!has_known_kinds).then_some(block);
        segment
    }

    fn decode_block(&mut self, block: &Block, known: &TagKinds) {
        let n_bytes = block.bytes().end - block.bytes().start;
        for found in block.records() {
            match found {
                Scan::Record(record) => {
                    if self.tags.is_empty() {
                        // An estimate: the known tags take turns, with records as long as this one.
                        let n_records = n_bytes / (record.data.len() as u64 + RECORD_OVERHEAD);
                        self.n_expected = n_records as usize / known.len().max(MIN_TAGS);
                    }
                    self.decode_record(&record, known);
                }
                Scan::Damage(damage) => self.damage.push((damage.kind.into(), damage.bytes)),
                Scan::More => break,
            }
        }
    }

    /// Decodes the values of a record. Values that cannot be decoded are added to the damage.
    pub fn decode_record(&mut self, record: &Record<&[u8]>, known: &TagKinds) {
        if self.decode_by_form(record.data) {
            return;
        }
        let bytes = record.offset..record.offset + record.data.len() as u64 + RECORD_OVERHEAD;
        let Ok(event) = EventView::parse(record.data) else {
            return self.damage.push((DamageKind::Undecodable, bytes));
        };
        match event.kind {
            EventKind::Summary(summary) => {
                for (value_idx, value) in values(summary).enumerate() {
                    let result = match value {
                        Ok(value) => self.decode_value(&event, &value, (record.offset, value_idx as u32), known),
                        Err(_) => Err(DamageKind::Undecodable),
                    };
                    match result {
                        Ok(()) => self.learn_form(record.data),
                        Err(kind) => self.damage.push((kind, bytes.clone())),
                    }
                }
            }
            EventKind::Graph(graph) => self.add_graph(GraphBlob::from_graph(graph.to_vec())),
            EventKind::MetaGraph(graph) => self.add_graph(GraphBlob::from_meta_graph(graph.to_vec())),
            EventKind::RunMetadata(tagged) => match TaggedRunMetadata::decode(tagged) {
                Ok(tagged) => {
                    let place = RecordPosition { file: self.file.clone(), offset: record.offset, value_idx: 0 };
                    self.run_metadata.push(TaggedRecord::new(tagged.tag, event.step, event.wall, place));
                }
                Err(_) => self.damage.push((DamageKind::Undecodable, bytes)),
            },
            EventKind::Other => {}
        }
    }

    /// Decodes a record that has the form of the last record of the expected tag; returns false for other records.
    #[inline]
    fn decode_by_form(&mut self, record: &[u8]) -> bool {
        let idx = self.next_idx();
        let Some(tag) = self.tags.get_mut(idx) else { return false };
        let Some(point) = tag.form.as_ref().and_then(|form| form.point(record)) else { return false };
        let Rows::Scalar(rows) = &mut tag.rows else { return false };
        rows.push(point);
        self.n_points += 1;
        self.tags[self.last_idx].next_idx = idx;
        self.last_idx = idx;
        true
    }

    /// Stores the form of a record of the last tag, if it is a scalar: the tag's next records probably have the same
    /// form.
    fn learn_form(&mut self, record: &[u8]) {
        if let Some(SegmentTag { rows: Rows::Scalar(_), form, .. }) = self.tags.get_mut(self.last_idx) {
            *form = Form::from_record(record);
        }
    }

    /// The index of the tag that is expected next.
    fn next_idx(&self) -> usize {
        self.tags.get(self.last_idx).map_or(0, |last| last.next_idx)
    }

    fn add_graph(&mut self, graph: GraphBlob) {
        if GraphBlob::replaces(self.graph.as_ref(), &graph) {
            self.graph = Some(graph);
        }
    }

    fn decode_value(
        &mut self,
        event: &EventView<'_>,
        value: &ValueView<'_>,
        (offset, value_idx): (u64, u32),
        known: &TagKinds,
    ) -> Result<(), DamageKind> {
        let idx = self.tag(value, known);
        let tag = &mut self.tags[idx];
        let (step, wall) = (event.step, event.wall);
        if tag.metadata.is_none() && value.metadata.is_some() {
            tag.metadata = Some(parse_metadata(value.metadata));
        }
        match (&mut tag.rows, value.data) {
            (Rows::Scalar(rows), Data::Simple(v)) => rows.push(Point { step, wall, value: f64::from(v) }),
            (Rows::Scalar(rows), Data::Tensor(bytes)) => rows.push(Point { step, wall, value: decode_scalar(bytes)? }),
            (Rows::Histogram(rows), Data::Histogram(bytes)) => {
                rows.push(step, wall, |histogram| distribution::decode_proto(bytes, histogram))?;
            }
            (Rows::Histogram(rows), Data::Tensor(bytes)) => {
                rows.push(step, wall, |histogram| distribution::decode_tensor(bytes, histogram))?;
            }
            (Rows::Media(rows), data) if can_store(tag.kind.as_ref(), data) => {
                rows.push(MediaRow {
                    step,
                    wall,
                    place: RecordPosition { file: self.file.clone(), offset, value_idx },
                });
            }
            _ => return Err(DamageKind::KindChanged),
        }
        self.n_points += 1;
        Ok(())
    }

    /// The index of the value's tag, which is added if it is new.
    fn tag(&mut self, value: &ValueView<'_>, known: &TagKinds) -> usize {
        let expected_idx = self.next_idx();
        let idx = match self.tags.get(expected_idx) {
            Some(tag) if *tag.raw == *value.tag => expected_idx,
            _ => match self.by_tag.get(value.tag) {
                Some(&idx) => idx,
                None => self.add_tag(value, known),
            },
        };
        if let Some(last) = self.tags.get_mut(self.last_idx) {
            last.next_idx = idx;
        }
        self.last_idx = idx;
        idx
    }

    fn add_tag(&mut self, value: &ValueView<'_>, known: &TagKinds) -> usize {
        let idx = self.tags.len();
        let name: Box<str> = String::from_utf8_lossy(value.tag).into();
        let kind = known.get(&name).cloned().or_else(|| kind_of(value));
        self.by_tag.insert(value.tag.into(), idx);
        // Tags beyond the expected number reserve no memory.
        let n_expected = if idx < known.len().max(MIN_TAGS) { self.n_expected } else { 0 };
        self.tags.push(SegmentTag {
            raw: value.tag.into(),
            name,
            rows: match kind {
                Some(Kind::Scalar) => Rows::Scalar(point_pool::take(n_expected)),
                Some(Kind::Histogram) => Rows::Histogram(PackedRows::default()),
                Some(Kind::Media(_)) | None => Rows::Media(Vec::new()),
            },
            kind,
            node_name: String::from_utf8_lossy(value.node_name).into_owned(),
            metadata: None,
            form: None,
            next_idx: idx + 1,
        });
        idx
    }

    /// Whether the kinds that the segment assumed for its tags agree with the known ones.
    fn agrees_with(&self, known: &TagKinds) -> bool {
        self.tags.iter().all(|tag| match (&tag.kind, known.get(&tag.name)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(kind), Some(known_kind)) => kind == known_kind,
        })
    }
}

/// The kind of a tag by its first value; `None` for a tensor without metadata.
fn kind_of(value: &ValueView<'_>) -> Option<Kind> {
    let plugin = value.metadata.map_or(&[][..], |metadata| plugin_name(metadata).unwrap_or_default());
    Some(match (value.data, plugin) {
        (Data::Simple(_), _) | (Data::Tensor(_), b"scalars") => Kind::Scalar,
        (Data::Histogram(_), _) | (Data::Tensor(_), b"histograms") => Kind::Histogram,
        (Data::Image(_), _) => Kind::Media("images".into()),
        (Data::Audio(_), _) => Kind::Media("audio".into()),
        (Data::Tensor(_), b"") => return None,
        (Data::None, b"") => Kind::Media(PLAIN_TENSOR.into()),
        (_, plugin) => Kind::Media(String::from_utf8_lossy(plugin).into()),
    })
}

/// The kind of a tensor that no plugin claims.
const PLAIN_TENSOR: &str = "tensor";

/// Whether a tag of this kind may have a value of this form.
fn can_store(kind: Option<&Kind>, data: Data<'_>) -> bool {
    match (kind, data) {
        (_, Data::Tensor(_) | Data::None) => true,
        (Some(Kind::Media(kind)), Data::Image(_)) => **kind == *"images",
        (Some(Kind::Media(kind)), Data::Audio(_)) => **kind == *"audio",
        _ => false,
    }
}

/// The new points of a run's tags.
#[derive(Debug, Default)]
pub(crate) struct RunStage {
    known: TagKinds,
    segments: Vec<Segment>,
}

impl RunStage {
    /// The kinds of the tags, for the decoding of further segments.
    pub fn known(&self) -> &TagKinds {
        &self.known
    }

    /// Takes the next segment of a file; its damage is passed to `report_damage`.
    pub fn absorb(&mut self, mut segment: Segment, mut report_damage: impl FnMut(DamageKind, Range<u64>)) {
        if !segment.agrees_with(&self.known) {
            segment = self.decode_again(segment);
        }
        for tag in &segment.tags {
            if let (None, Some(kind)) = (self.known.get(&tag.name), &tag.kind) {
                self.known.insert(tag.name.clone(), kind.clone());
            }
        }
        segment.block = None;
        segment.damage.drain(..).for_each(|(kind, bytes)| report_damage(kind, bytes));
        if segment.n_points > 0 || segment.graph.is_some() || !segment.run_metadata.is_empty() {
            self.segments.push(segment);
        }
    }

    /// Decodes the segment again with the known kinds. A new tag whose first value is a tensor without metadata is a
    /// plain tensor.
    fn decode_again(&self, segment: Segment) -> Segment {
        let Some(block) = segment.block else { return segment };
        let mut known = self.known.clone();
        for tag in segment.tags {
            known.entry(tag.name).or_insert_with(|| tag.kind.unwrap_or(Kind::Media(PLAIN_TENSOR.into())));
        }
        let mut segment = Segment::new(segment.file);
        segment.decode_block(&block, &known);
        segment
    }

    /// Whether a commit would add data to the run.
    pub fn is_dirty(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Moves everything new into `run`; returns the number of new points.
    pub fn commit(&mut self, run: &mut Run) -> u64 {
        let mut n_points = 0;
        // `take` frees the list's memory, too: most runs have nothing new for a while.
        for segment in mem::take(&mut self.segments) {
            n_points += segment.n_points;
            for tag in segment.tags {
                match run.series.get_mut(&tag.name) {
                    Some(series) => tag.append_to(series),
                    None => {
                        let mut series = tag.new_series();
                        let name = tag.name.to_string();
                        tag.append_to(&mut series);
                        if series.n_points() > 0 {
                            run.series.insert(name, series);
                        }
                    }
                }
            }
            if let Some(graph) = segment.graph.filter(|graph| GraphBlob::replaces(run.graph.as_deref(), graph)) {
                run.graph = Some(Arc::new(graph));
            }
            run.run_metadata.extend(segment.run_metadata);
        }
        n_points
    }
}

impl SegmentTag {
    fn new_series(&self) -> Series {
        let node_name = self.node_name.clone();
        let media =
            |kind: &str, metadata| Series::Media(Box::new(MediaSeries::new(kind.into(), node_name.clone(), metadata)));
        match &self.kind {
            Some(Kind::Scalar) => Series::Scalar(Box::new(ScalarSeries::for_node(node_name))),
            Some(Kind::Histogram) => Series::Histogram(Box::new(HistogramSeries::for_node(node_name))),
            Some(Kind::Media(kind)) => media(kind, self.metadata.clone().unwrap_or_default()),
            None => media(PLAIN_TENSOR, Arc::default()),
        }
    }

    fn append_to(self, series: &mut Series) {
        match (series, self.rows) {
            (Series::Scalar(series), Rows::Scalar(rows)) => {
                series.append(&rows);
                point_pool::recycle(rows);
            }
            (Series::Histogram(series), Rows::Histogram(rows)) => series.append(&rows),
            (Series::Media(series), Rows::Media(mut rows)) => {
                if let Some(metadata) = self.metadata.filter(|_| series.metadata.plugin_data.is_none()) {
                    series.metadata = metadata;
                }
                series.append(&mut rows);
            }
            _ => debug_assert!(false, "a tag keeps its kind"),
        }
    }
}

fn decode_scalar(bytes: &[u8]) -> Result<f64, DamageKind> {
    if let Some(value) = tensor::scalar(bytes) {
        return Ok(value);
    }
    match tensor::decode(bytes)?.1[..] {
        [value] => Ok(value),
        _ => Err(DamageKind::Undecodable),
    }
}
