//! Gradients of resized images.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::Attr;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RESIZE: &[GradientSpec] = &[
    ("ResizeBilinear", Function(|c| resampled(c, "ResizeBilinearGrad"))),
    ("ResizeBicubic", Function(|c| resampled(c, "ResizeBicubicGrad"))),
    ("CropAndResize", Function(crops)),
    ("ResizeNearestNeighbor", Function(nearest)),
    ("UniformCandidateSampler", Zero),
    ("LogUniformCandidateSampler", Zero),
];

fn sampling(c: &GradientContext<'_>) -> [(&'static str, Attr); 2] {
    ["align_corners", "half_pixel_centers"]
        .map(|name| (name, Attr::Bool(c.node().flag(name).copied().unwrap_or(false))))
}

fn resampled(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (g, x) = (c.grad(0)?, c.input(0));
    if !c.dtype(x)?.is_float() {
        return Ok(());
    }
    let sampling = sampling(c);
    let of_x = c.op_with(op, &[g, x], &sampling)?;
    c.set(0, of_x);
    Ok(())
}

fn crops(c: &mut GradientContext<'_>) -> Done {
    let (g, image, boxes, of) = (c.grad(0)?, c.input(0), c.input(1), c.input(2));
    let method = ("method", Attr::from(c.node().text("method").unwrap_or_default().as_str()));
    let dtype = c.dtype(image)?;
    if dtype.is_float() {
        let size = c.shape_of(image)?;
        let attrs = [method, ("T", Attr::Type(dtype))];
        let of_image = c.op_with("CropAndResizeGradImage", &[g, boxes, of, size], &attrs)?;
        c.set(0, of_image);
    }
    let of_boxes = c.op_with("CropAndResizeGradBoxes", &[g, image, boxes, of], &[])?;
    c.set(1, of_boxes);
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
