//! Gradients of resized images.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::Attr;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RESIZE: &[GradientSpec] = &[
    ("ResizeBilinear", Function(bilinear)),
    ("ResizeNearestNeighbor", Function(nearest)),
    ("UniformCandidateSampler", Zero),
    ("LogUniformCandidateSampler", Zero),
];

fn sampling(c: &GradientContext<'_>) -> [(&'static str, Attr); 2] {
    ["align_corners", "half_pixel_centers"]
        .map(|name| (name, Attr::Bool(c.node().flag(name).copied().unwrap_or(false))))
}

fn bilinear(c: &mut GradientContext<'_>) -> Done {
    let (g, x) = (c.grad(0)?, c.input(0));
    if !c.dtype(x)?.is_float() {
        return Ok(());
    }
    let sampling = sampling(c);
    let of_x = c.op_with("ResizeBilinearGrad", &[g, x], &sampling)?;
    c.set(0, of_x);
    Ok(())
}

fn nearest(c: &mut GradientContext<'_>) -> Done {
    let (g, x) = (c.grad(0)?, c.input(0));
    let shape = c.shape_of(x)?;
    let (begin, size) = (c.vector(&[1i32])?, c.vector(&[2i32])?);
    let size = c.op("Slice", &[shape, begin, size])?;
    let sampling = sampling(c);
    let of_x = c.op_with("ResizeNearestNeighborGrad", &[g, size], &sampling)?;
    c.set(0, of_x);
    Ok(())
}
