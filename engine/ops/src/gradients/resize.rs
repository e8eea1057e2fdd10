//! Gradients of resized images.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::graph::Value;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RESIZE: &[GradientSpec] = &[
    ("ResizeBilinear", Function(|c| resampled(c, "ResizeBilinearGrad"))),
    ("ResizeBicubic", Function(|c| resampled(c, "ResizeBicubicGrad"))),
    ("CropAndResize", Function(crops)),
    ("ResizeNearestNeighbor", Function(nearest)),
    ("UniformCandidateSampler", Zero),
    ("LogUniformCandidateSampler", Zero),
];

/// The op `op` of the gradient and `size`, with this node's way of sampling.
fn sampled<'a>(c: &GradientContext<'a>, op: &'static str, size: Value<'a>) -> Value<'a> {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let node = c.add_node(op).input(c.grad(0)).input(size);
    node.attr("align_corners", flag("align_corners")).attr("half_pixel_centers", flag("half_pixel_centers")).value()
}

fn resampled(c: &GradientContext<'_>, op: &'static str) -> RuleResult {
    let x = c.input(0);
    if x.dtype().is_float() {
        c.set(0, sampled(c, op, x));
    }
    Ok(())
}

fn crops(c: &GradientContext<'_>) -> RuleResult {
    let (g, image, boxes, of) = (c.grad(0), c.input(0), c.input(1), c.input(2));
    if image.dtype().is_float() {
        let method = c.node().text("method").unwrap_or_default();
        let node = c.add_node("CropAndResizeGradImage").input(g).input(boxes).input(of).input(c.shape_of(image));
        c.set(0, node.attr("method", method.as_str()).attr("T", image.dtype()).value());
    }
    c.set(1, c.op("CropAndResizeGradBoxes", &[g, image, boxes, of]));
    Ok(())
}

fn nearest(c: &GradientContext<'_>) -> RuleResult {
    let (begin, size) = (c.graph().ints(&[1]), c.graph().ints(&[2]));
    let size = c.op("Slice", &[c.shape_of(c.input(0)), begin, size]);
    c.set(0, sampled(c, "ResizeNearestNeighborGrad", size));
    Ok(())
}
