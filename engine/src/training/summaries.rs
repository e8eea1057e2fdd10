//! What a training step reports of itself, as summary nodes.

use crate::layers::Variables;
use engine_core::graph::{Graph, Output, Value};

pub(super) fn scalars(g: &Graph, loss: Output, accuracy: Option<Output>, rate: Output) -> Value<'_> {
    let mut all = vec![g.scalar_summary("loss", "loss", loss)];
    all.extend(accuracy.map(|accuracy| g.scalar_summary("accuracy", "accuracy", accuracy)));
    all.push(g.scalar_summary("learning_rate", "learning_rate", rate));
    g.merge_summaries("scalars", &all)
}

/// The trained variables and their gradients, in the variables' order.
pub(super) fn histograms<'g>(g: &'g Graph, variables: &Variables, gradients: &[Output]) -> Value<'g> {
    let trained = variables.all().iter().filter(|v| v.is_trained);
    let mut all = Vec::new();
    for (v, gradient) in trained.zip(gradients) {
        all.push(g.histogram_summary(&v.name, &v.name, v.var.value));
        let tag = format!("{}/gradient", v.name);
        all.push(g.histogram_summary(&tag, &tag, *gradient));
    }
    g.merge_summaries("histograms", &all)
}

/// Pictures by tag; none where there are none.
pub(super) fn images(g: &Graph, images: &[(String, Output)]) -> Option<Output> {
    /// Of a batch; all filters of a small layer.
    const MAX_IMAGES: i64 = 32;
    let summary = |(tag, image): &(String, Output)| g.image_summary(&format!("{tag}/image"), tag, *image, MAX_IMAGES);
    let all: Vec<Value<'_>> = images.iter().map(summary).collect();
    (!all.is_empty()).then(|| g.merge_summaries("images", &all).output())
}
