//! Images in other sizes: bilinear, bicubic and nearest neighbour; and parts of images in one size.

use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op};

const NUM: &str = "T: {reals}; align_corners: bool = false; \
                   half_pixel_centers: bool = false";
const FLOAT: &str = "T: {floats}; align_corners: bool = false; half_pixel_centers: bool = false";
#[linkme::distributed_slice(OP_TABLES)]
static RESIZE: &[OpSpec] = &[
    op("ResizeBilinear", "images: T, size: int32 -> resized_images: float", NUM, resized),
    op("ResizeBilinearGrad", "grads: float, original_image: T -> output: T", FLOAT, like_second),
    op("ResizeBicubic", "images: T, size: int32 -> resized_images: float", NUM, resized),
    op("ResizeBicubicGrad", "grads: float, original_image: T -> output: T", FLOAT, like_second),
    op("ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T", NUM, resized),
    op("ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T", NUM, resized),
];

const CROP: &str = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; \
                    method: string = 'bilinear'; extrapolation_value: float = 0";
const CROP_GRAD: &str = "T: {float, half, double}; method: string = 'bilinear'";
const BOXES_GRAD: &str = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; \
                          method: string = 'bilinear'";

#[linkme::distributed_slice(OP_TABLES)]
static CROP_OPS: &[OpSpec] = &[
    op("CropAndResize", "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float", CROP, crops),
    op(
        "CropAndResizeGradImage",
        "grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T",
        CROP_GRAD,
        |c| {
            let shape = super::shapes::from_value(c, 3)?;
            c.set(0, shape);
            Ok(())
        },
    ),
    op(
        "CropAndResizeGradBoxes",
        "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
        BOXES_GRAD,
        |c| {
            let boxes = c.of_rank(2, 2)?;
            c.set(0, boxes);
            Ok(())
        },
    ),
];

/// One crop for each box.
fn crops(c: &mut InferContext<'_>) -> Inferred {
    let size = c.ints(3);
    let dim = |i: usize| size.as_ref().and_then(|s| s.get(i)).and_then(|s| usize::try_from(*s).ok());
    let (images, boxes) = (c.of_rank(0, 4)?, c.of_rank(1, 2)?);
    let channels = images.dims().and_then(|d| d[3]);
    c.set(0, [boxes.dims().and_then(|d| d[0]), dim(0), dim(1), channels]);
    Ok(())
}

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
