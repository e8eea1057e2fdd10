//! What a training step tells of itself, as summary nodes.

use crate::graph::{Graph, GraphError, Output};
use crate::models::Variables;
use crate::tensor::Tensor;

pub(super) fn scalars(g: &Graph, loss: Output, accuracy: Option<Output>, rate: Output) -> Result<Output, GraphError> {
    let mut all = vec![g.scalar_summary("loss", "loss", loss)?];
    if let Some(accuracy) = accuracy {
        all.push(g.scalar_summary("accuracy", "accuracy", accuracy)?);
    }
    all.push(g.scalar_summary("learning_rate", "learning_rate", rate)?);
    g.merge_summaries("scalars", &all)
}

/// The trained variables and their gradients, in the variables' order.
pub(super) fn histograms(g: &Graph, variables: &Variables, gradients: &[Output]) -> Result<Output, GraphError> {
    let trained = variables.all().iter().filter(|v| v.is_trained);
    let mut all = Vec::new();
    for (v, gradient) in trained.zip(gradients) {
        all.push(g.histogram_summary(&v.name, &v.name, v.var.value)?);
        let tag = format!("{}/gradient", v.name);
        all.push(g.histogram_summary(&tag, &tag, *gradient)?);
    }
    g.merge_summaries("histograms", &all)
}

/// Pictures by tag; none where there are none.
pub(super) fn images(g: &Graph, images: &[(String, Output)]) -> Result<Option<Output>, GraphError> {
    /// Of a batch; all filters of a small layer.
    const MAX_IMAGES: i64 = 32;
    let mut all = Vec::new();
    for (tag, image) in images {
        let name = format!("{tag}/image");
        let tags = g.named_constant(&format!("{name}/tag"), Tensor::string(tag.as_str()))?;
        let node = g.add_node("ImageSummary").name(&name).input(tags).input(*image);
        all.push(node.attr("max_images", MAX_IMAGES).output()?);
    }
    if all.is_empty() { Ok(None) } else { g.merge_summaries("images", &all).map(Some) }
}
