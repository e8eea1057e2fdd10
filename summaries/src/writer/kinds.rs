//! The methods of the writer that add summaries of every kind but plain numbers.

use std::collections::BTreeMap;

use events::clock;
use formats::{
    plugins::{
        Layout, MeshPluginData, PrCurvePluginData, SessionEndInfo, SessionStatus, h_params_plugin_data::Data,
        mesh_plugin_data::ContentType,
    },
    proto::{DataClass, Event, SummaryMetadata, TaggedRunMetadata, TensorProto, event::What},
};
use prost::Message;

use super::{
    SummaryWriter,
    encode::{self, Pixels, ValueError},
    hparam::HParam,
    values::{self, bytes, floats, ints, metadata, strings},
};
use crate::{histogram::Bucket, sample::PrCurve};

/// A mesh. Its empty parts are not written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mesh<'a> {
    /// Coordinates.
    pub vertices: &'a [[f32; 3]],
    /// Triangles: indices into the vertices. Without any, the vertices are a point cloud.
    pub faces: &'a [[i32; 3]],
    /// Red, green and blue of each vertex.
    pub colors: &'a [[u8; 3]],
}

impl SummaryWriter {
    /// Adds a histogram with the caller's buckets; edges and counts are written exactly.
    pub fn add_histogram_buckets(&self, tag: &str, buckets: &[Bucket], step: i64) {
        let (metadata, tensor) = values::histogram(buckets);
        self.add(tag, metadata, tensor, step);
    }

    /// Adds an image as PNG. This call encodes it, which takes about 10 ms for a million pixels.
    ///
    /// ```
    /// # use summaries::{Pixels, SummaryWriter, WriterOptions};
    /// # let logdir = tempfile::tempdir()?;
    /// # let writer = SummaryWriter::create(logdir.path(), WriterOptions::default())?;
    /// let grey = [0, 85, 170, 255];
    /// writer.add_image("gradient", Pixels { width: 4, height: 1, data: &grey }, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the data do not fill width and height.
    pub fn add_image(&self, tag: &str, pixels: Pixels<'_>, step: i64) -> Result<(), ValueError> {
        let png = encode::png(pixels)?;
        self.add_encoded_image(tag, (pixels.width, pixels.height), &png, step);
        Ok(())
    }

    /// Adds an image that is a PNG, JPEG or GIF file already. `size` is its width and height in pixels.
    pub fn add_encoded_image(&self, tag: &str, size: (u32, u32), file: &[u8], step: i64) {
        let (metadata, tensor) = values::image(size, file.to_vec());
        self.add(tag, metadata, tensor, step);
    }

    /// Adds a sound as a 16-bit WAV file. `samples` are -1 to 1, interleaved: one of each channel for every frame.
    ///
    /// # Errors
    /// When the samples do not fill the last frame.
    pub fn add_audio(
        &self,
        tag: &str,
        samples: &[f32],
        n_channels: u16,
        sample_rate: u32,
        step: i64,
    ) -> Result<(), ValueError> {
        let (metadata, tensor) = values::audio(encode::wav(samples, n_channels, sample_rate)?);
        self.add(tag, metadata, tensor, step);
        Ok(())
    }

    /// Adds a text, which is shown as Markdown.
    pub fn add_text(&self, tag: &str, text: &str, step: i64) {
        let (metadata, tensor) = values::text(text.into());
        self.add(tag, metadata, tensor, step);
    }

    /// Adds a table of texts, row by row.
    ///
    /// # Errors
    /// When the cells do not fill the rows.
    pub fn add_text_table(&self, tag: &str, n_columns: usize, cells: &[&str], step: i64) -> Result<(), ValueError> {
        if n_columns == 0 || !cells.len().is_multiple_of(n_columns) {
            return Err(ValueError::Size { n: cells.len(), expected: format!("rows of {n_columns}") });
        }
        let (metadata, tensor) = values::table(n_columns, cells.iter().map(|cell| cell.as_bytes().to_vec()).collect());
        self.add(tag, metadata, tensor, step);
        Ok(())
    }

    /// Adds a tensor of numbers, row by row; no plugin shows it.
    ///
    /// # Errors
    /// When the values do not fill the shape.
    pub fn add_tensor(&self, tag: &str, shape: &[usize], values: &[f32], step: i64) -> Result<(), ValueError> {
        if shape.iter().product::<usize>() != values.len() {
            return Err(ValueError::Size { n: values.len(), expected: format!("the shape {shape:?}") });
        }
        self.add(tag, SummaryMetadata::default(), floats(shape, values), step);
        Ok(())
    }

    /// Adds precision and recall at `n_thresholds` thresholds of `predictions` (0 to 1) against `labels`.
    pub fn add_pr_curve(&self, tag: &str, labels: &[bool], predictions: &[f32], n_thresholds: usize, step: i64) {
        let curve = PrCurve::from_predictions(labels.iter().copied().zip(predictions.iter().copied()), n_thresholds);
        let rows = [
            &curve.true_positives,
            &curve.false_positives,
            &curve.true_negatives,
            &curve.false_negatives,
            &curve.precision,
            &curve.recall,
        ];
        let values: Vec<f32> = rows.into_iter().flatten().map(|v| *v as f32).collect();
        let num_thresholds = curve.recall.len() as u32;
        let content = PrCurvePluginData { version: 0, num_thresholds }.encode_to_vec();
        self.add(
            tag,
            metadata("pr_curves", content, DataClass::Tensor),
            floats(&[6, curve.recall.len()], &values),
            step,
        );
    }

    /// Begins a session: the hyperparameters of this run, and in `metrics` the tags that measure its quality. End it
    /// with [`end_session`](Self::end_session).
    pub fn add_hparams(&self, hparams: &BTreeMap<String, HParam>, metrics: &[&str]) {
        let group = self.path().parent().map_or_else(String::new, |run| run.display().to_string());
        for (tag, data) in values::session_start(hparams, metrics, group, clock::wall_now()) {
            self.add_session(tag, data);
        }
    }

    /// Ends the session that [`add_hparams`](Self::add_hparams) began.
    pub fn end_session(&self, is_success: bool) {
        let status = if is_success { SessionStatus::StatusSuccess } else { SessionStatus::StatusFailure };
        let end = SessionEndInfo { status: status.into(), end_time_secs: clock::wall_now() };
        self.add_session("_hparams_/session_end_info", Data::SessionEndInfo(end));
    }

    fn add_session(&self, tag: &str, data: Data) {
        let (metadata, tensor) = values::session(data);
        self.add(tag, metadata, tensor, 0);
    }

    /// Adds the layout of the custom scalars: which tags share a chart.
    pub fn add_layout(&self, layout: &Layout) {
        let value = strings(&[], vec![layout.encode_to_vec()]);
        self.add("custom_scalars__config__", metadata("custom_scalars", Vec::new(), DataClass::Tensor), value, 0);
    }

    /// Adds a mesh or a point cloud: up to three tags, `TAG_VERTEX`, `TAG_FACE` and `TAG_COLOR`.
    pub fn add_mesh(&self, tag: &str, mesh: Mesh<'_>, step: i64) {
        let parts = [
            (ContentType::Vertex, "VERTEX", mesh.vertices.len()),
            (ContentType::Face, "FACE", mesh.faces.len()),
            (ContentType::Color, "COLOR", mesh.colors.len()),
        ];
        let components = parts.iter().filter(|(.., n)| *n > 0).map(|(content, ..)| component_flag(*content)).sum();
        for (content, suffix, n) in parts.into_iter().filter(|(.., n)| *n > 0) {
            let shape = [1, n, 3];
            let value = match content {
                ContentType::Face => ints(&shape, mesh.faces.as_flattened()),
                ContentType::Color => bytes(&shape, mesh.colors.as_flattened()),
                _ => floats(&shape, mesh.vertices.as_flattened()),
            };
            let content = MeshPluginData {
                version: 0,
                name: tag.to_owned(),
                content_type: content.into(),
                json_config: "{}".into(),
                shape: shape.iter().map(|size| *size as i32).collect(),
                components,
            };
            let metadata = metadata("mesh", content.encode_to_vec(), DataClass::Tensor);
            self.add(&format!("{tag}_{suffix}"), metadata, value, step);
        }
    }

    /// Adds a step's serialised `RunMetadata` (its profile) under a tag.
    pub fn add_run_metadata(&self, tag: &str, run_metadata: &[u8], step: i64) {
        let tagged = TaggedRunMetadata { tag: tag.to_owned(), run_metadata: run_metadata.to_vec() };
        let what = Some(What::TaggedRunMetadata(tagged));
        self.add_event(&Event { wall_time: clock::wall_now(), step, what, source_metadata: None });
    }

    fn add(&self, tag: &str, metadata: SummaryMetadata, tensor: TensorProto, step: i64) {
        self.add_event(&values::event(tag, (metadata, tensor), step, clock::wall_now()));
    }
}

/// The bit of a part in `MeshPluginData.components`.
fn component_flag(content: ContentType) -> u32 {
    1 << content as u32
}
