//! Images in other sizes: bilinear and nearest neighbour.

use super::shapes::Inferred;
use super::{OP_TABLES, OpSpec, op};
use crate::graph::InferContext;

const NUM: &str = "T: {reals}; align_corners: bool = false; \
                   half_pixel_centers: bool = false";
const FLOAT: &str = "T: {floats}; align_corners: bool = false; half_pixel_centers: bool = false";
#[linkme::distributed_slice(OP_TABLES)]
static RESIZE: &[OpSpec] = &[
    op("ResizeBilinear", "images: T, size: int32 -> resized_images: float", NUM, resized),
    op("ResizeBilinearGrad", "grads: float, original_image: T -> output: T", FLOAT, like_second),
    op("ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T", NUM, resized),
    op("ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T", NUM, resized),
];

/// Images `[batch, height, width, channels]` in the size that input 1 lists.
fn resized(c: &mut InferContext<'_>) -> Inferred {
    let size = c.ints(1);
    let dim = |i: usize| size.as_ref().and_then(|s| s.get(i)).and_then(|s| usize::try_from(*s).ok());
    let images = c.of_rank(0, 4)?;
    let (batch, channels) = images.dims().map_or((None, None), |d| (d[0], d[3]));
    c.set(0, [batch, dim(0), dim(1), channels]);
    Ok(())
}

fn like_second(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.of_rank(1, 4)?;
    c.set(0, shape);
    Ok(())
}
