//! Builders of summaries of images, sounds, texts and tensors.

use formats::proto::{SummaryMetadata, summary_metadata::PluginData};
use prost::Message;

use super::{Graph, Output, Value};
use crate::tensor::Tensor;

impl Graph {
    /// A summary of one number, under `tag`.
    ///
    /// Each summary is a string scalar, a serialised `Summary`: a step may fetch it, and ops write it to an event file,
    /// which `stepscope view` and TensorBoard show.
    ///
    /// ```
    /// # use engine::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let logdir = folder.path().to_str().ok_or("the folder's name is no text")?;
    /// let g = Graph::new();
    /// let (loss, step) = (g.constant(0.5f32), g.placeholder("step", DType::I64, PartialShape::scalar()));
    /// let summary = g.scalar_summary("loss_summary", "loss", loss);
    /// let writer = g.add_node("SummaryWriter").attr("shared_name", "run").value();
    /// let [max_queue, flush_millis] = [10i32, 1000].map(|n| g.constant(Tensor::scalar(n)));
    /// let open = g.add_node("CreateSummaryFileWriter").input(writer).input(g.constant(Tensor::string(logdir)));
    /// let open = open.input(max_queue).input(flush_millis).input(g.constant(Tensor::string(""))).value().node();
    /// let write = g.add_node("WriteRawProtoSummary").input(writer).input(step).input(summary).value().node();
    /// let close = g.add_node("CloseSummaryWriter").input(writer).value().node();
    ///
    /// let session = Session::new(&g, SessionOptions::default())?;
    /// session.step().target(open).run()?;
    /// session.step().feed(step, 1i64).target(write).run()?;
    /// session.step().target(close).run()?;
    /// # assert_eq!(std::fs::read_dir(logdir)?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scalar_summary(&self, name: &str, tag: &str, value: impl Into<Output>) -> Value<'_> {
        let tag = self.named_constant(&format!("{name}/tags"), Tensor::string(tag));
        self.add_node("ScalarSummary").name(name).input(tag).input(value).value()
    }

    /// A summary of the distribution of many numbers, under `tag`.
    pub fn histogram_summary(&self, name: &str, tag: &str, values: impl Into<Output>) -> Value<'_> {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag));
        self.add_node("HistogramSummary").name(name).input(tag).input(values).value()
    }

    /// Summaries in one.
    pub fn merge_summaries(&self, name: &str, summaries: &[impl Into<Output> + Copy]) -> Value<'_> {
        self.add_node("MergeSummary").name(name).inputs(summaries).value()
    }

    /// A summary of up to `max_images` images `[batch, height, width, channels]`: bytes as they are, floats scaled to
    /// bytes.
    pub fn image_summary(&self, name: &str, tag: &str, images: impl Into<Output>, max_images: i64) -> Value<'_> {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag));
        self.add_node("ImageSummary").name(name).input(tag).input(images).attr("max_images", max_images).value()
    }

    /// A summary of up to `max_outputs` sounds `[batch, frames]` or `[batch, frames, channels]` of values in [-1, 1],
    /// `sample_rate` frames a second.
    pub fn audio_summary(
        &self,
        name: &str,
        tag: &str,
        sounds: impl Into<Output>,
        sample_rate: f32,
        max_outputs: i64,
    ) -> Value<'_> {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag));
        let rate = self.named_constant(&format!("{name}/sample_rate"), sample_rate);
        let node = self.add_node("AudioSummaryV2").name(name).input(tag).input(sounds).input(rate);
        node.attr("max_outputs", max_outputs).value()
    }

    /// A summary of texts, which readers take as Markdown.
    pub fn text_summary(&self, name: &str, tag: &str, texts: impl Into<Output>) -> Value<'_> {
        self.plugin_summary(name, tag, texts, "text")
    }

    /// A summary of any tensor, for the plugin of this name.
    pub fn plugin_summary(&self, name: &str, tag: &str, value: impl Into<Output>, plugin: &str) -> Value<'_> {
        let plugin_data = Some(PluginData { plugin_name: plugin.to_owned(), content: Vec::new() });
        // Tensors, as far as readers that sort by class are concerned.
        let metadata = SummaryMetadata { plugin_data, data_class: 2, ..Default::default() };
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag));
        let metadata = self.named_constant(&format!("{name}/metadata"), Tensor::string(metadata.encode_to_vec()));
        self.add_node("TensorSummaryV2").name(name).input(tag).input(value).input(metadata).value()
    }
}
