//! Builders of summaries of images, sounds, texts and tensors.

use formats::proto::{SummaryMetadata, summary_metadata::PluginData};
use prost::Message;

use super::math::Built;
use super::{Graph, Output};
use crate::tensor::Tensor;

impl Graph {
    /// A summary of up to `max_images` images `[batch, height, width, channels]`: bytes as they are, floats scaled to
    /// bytes.
    ///
    /// # Errors
    /// `images` are not of such a type.
    pub fn image_summary(&self, name: &str, tag: &str, images: Output, max_images: i64) -> Built {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag))?;
        self.add_node("ImageSummary").name(name).input(tag).input(images).attr("max_images", max_images).output()
    }

    /// A summary of up to `max_outputs` sounds `[batch, frames]` or `[batch, frames, channels]` of values in [-1, 1],
    /// `sample_rate` frames a second.
    ///
    /// # Errors
    /// `sounds` are not floats.
    pub fn audio_summary(&self, name: &str, tag: &str, sounds: Output, sample_rate: f32, max_outputs: i64) -> Built {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag))?;
        let rate = self.named_constant(&format!("{name}/sample_rate"), sample_rate)?;
        let node = self.add_node("AudioSummaryV2").name(name).input(tag).input(sounds).input(rate);
        node.attr("max_outputs", max_outputs).output()
    }

    /// A summary of texts, which readers take as Markdown.
    ///
    /// # Errors
    /// `texts` are not strings.
    pub fn text_summary(&self, name: &str, tag: &str, texts: Output) -> Built {
        self.plugin_summary(name, tag, texts, "text")
    }

    /// A summary of any tensor, for the plugin of this name.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn plugin_summary(&self, name: &str, tag: &str, value: Output, plugin: &str) -> Built {
        let plugin_data = Some(PluginData { plugin_name: plugin.to_owned(), content: Vec::new() });
        // Tensors, as far as readers that sort by class are concerned.
        let metadata = SummaryMetadata { plugin_data, data_class: 2, ..Default::default() };
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag))?;
        let metadata = self.named_constant(&format!("{name}/metadata"), Tensor::string(metadata.encode_to_vec()))?;
        self.add_node("TensorSummaryV2").name(name).input(tag).input(value).input(metadata).output()
    }
}
