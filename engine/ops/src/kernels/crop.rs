//! Boxes cut out of images and brought to one size, and the gradients for the images and for the boxes.

use super::resize::images;
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CROP: &[KernelDef] = &[
    cpu_any("CropAndResize", crop),
    cpu_any("CropAndResizeGradImage", grad_image),
    cpu_any("CropAndResizeGradBoxes", |n| Method::of(n).and_then(|_| kernel(grad_boxes))),
];

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Bilinear,
    Nearest,
}

impl Method {
    fn of(node: &Node) -> Result<Method, KernelError> {
        match node.text("method")?.as_str() {
            "bilinear" => Ok(Method::Bilinear),
            "nearest" => Ok(Method::Nearest),
            other => Err(KernelError::invalid(format!("method {other:?} must be bilinear or nearest"))),
        }
    }
}

/// Along one axis of a box: where its samples lie in the image.
struct Axis {
    low: f32,
    high: f32,
    /// Pixels of the image, and of the crop.
    image: usize,
    crop: usize,
}

/// Between which pixels a sample lies, and how far from the lower one.
struct Sample {
    lower: usize,
    upper: usize,
    part: f32,
}

impl Axis {
    fn last(&self) -> f32 {
        self.image as f32 - 1.0
    }

    /// How much of the distance from the box's low to its high end lies before sample `i`, in pixels of the image.
    fn pixels_before(&self, i: usize) -> f32 {
        i as f32 * (self.last() / (self.crop as f32 - 1.0))
    }

    /// Sample `i`; `None` where it is outside of the image.
    fn sample(&self, i: usize) -> Option<Sample> {
        let at = match self.crop > 1 {
            true => {
                self.low * self.last() + i as f32 * ((self.high - self.low) * self.last() / (self.crop as f32 - 1.0))
            }
            false => 0.5 * (self.low + self.high) * self.last(),
        };
        let (lower, upper) = (at.floor(), at.ceil());
        let is_inside = at >= 0.0 && at <= self.last();
        is_inside.then_some(Sample { lower: lower as usize, upper: upper as usize, part: at - lower })
    }

    /// What a change at sample `i` does at the box's two ends.
    fn to_ends(&self, i: usize, change: f32) -> [f32; 2] {
        match self.crop > 1 {
            true => [change * (self.last() - self.pixels_before(i)), change * self.pixels_before(i)],
            false => [change * 0.5 * self.last(); 2],
        }
    }
}

impl Sample {
    /// The pixels that it is made of, with their shares.
    fn taps(&self, method: Method) -> [(usize, f32); 2] {
        match method {
            Method::Bilinear => [(self.lower, 1.0 - self.part), (self.upper, self.part)],
            // Halves are rounded away from zero.
            Method::Nearest if self.part >= 0.5 => [(self.upper, 1.0), (self.upper, 0.0)],
            Method::Nearest => [(self.lower, 1.0), (self.lower, 0.0)],
        }
    }
}

/// The boxes of an execution.
struct Boxes<'a> {
    corners: &'a [[f32; 4]],
    images: &'a [i32],
    /// Batch, height, width, channels of the images; height and width of the crops.
    image: [usize; 4],
    crop: [usize; 2],
}

impl<'a> Boxes<'a> {
    fn new(
        c: &'a KernelContext<'_>,
        (boxes, of): (usize, usize),
        image: [usize; 4],
        crop: [usize; 2],
    ) -> Result<Boxes<'a>, KernelError> {
        let shape = c.input(boxes)?.shape();
        let &[n, 4] = shape.dims() else {
            return Err(KernelError::invalid(format!("boxes must have shape [n, 4], got {shape}")));
        };
        let images = c.slice::<i32>(of)?;
        if images.len() != n {
            return Err(KernelError::invalid(format!("{n} boxes of {} images", images.len())));
        }
        if let Some(bad) = images.iter().find(|i| usize::try_from(**i).map_or(true, |i| i >= image[0])) {
            return Err(KernelError::invalid(format!("box_ind {bad} is outside of [0, {})", image[0])));
        }
        Ok(Boxes { corners: c.slice::<f32>(boxes)?.as_chunks::<4>().0, images, image, crop })
    }

    fn axes(&self, i: usize) -> (Axis, Axis) {
        let [y1, x1, y2, x2] = self.corners[i];
        let ([_, height, width, _], [crop_y, crop_x]) = (self.image, self.crop);
        (
            Axis { low: y1, high: y2, image: height, crop: crop_y },
            Axis { low: x1, high: x2, image: width, crop: crop_x },
        )
    }

    /// The place of a pixel's channels.
    fn pixel(&self, i: usize, y: usize, x: usize) -> usize {
        let [_, height, width, n] = self.image;
        ((self.images[i] as usize * height + y) * width + x) * n
    }

    /// Calls `f(box, y, x, rows, columns, place of the sample's channels)` for the samples that are inside of their image.
    fn each(&self, mut f: impl FnMut(usize, (usize, &Sample), (usize, &Sample), usize)) {
        let [crop_y, crop_x] = self.crop;
        let n = self.image[3];
        for i in 0..self.corners.len() {
            let (ys, xs) = self.axes(i);
            let columns: Vec<Option<Sample>> = (0..crop_x).map(|x| xs.sample(x)).collect();
            for y in 0..crop_y {
                let Some(row) = ys.sample(y) else { continue };
                for (x, column) in columns.iter().enumerate() {
                    if let Some(column) = column {
                        f(i, (y, &row), (x, column), ((i * crop_y + y) * crop_x + x) * n);
                    }
                }
            }
        }
    }
}

fn crop(node: &Node) -> Built {
    let (method, outside) = (Method::of(node)?, *node.float("extrapolation_value")?);
    kernel(move |c| {
        let image = images(c.input(0)?.shape())?;
        let size = c.shape_input(3)?;
        let &[height, width] = size.dims() else {
            return Err(KernelError::invalid(format!("crop_size must be a height and a width, got {size}")));
        };
        if height == 0 || width == 0 {
            return Err(KernelError::invalid(format!("crop_size {size} must be positive")));
        }
        let x = convert(c.input(0)?, DType::F32, c.allocator)?;
        let x = x.slice::<f32>()?;
        let boxes = Boxes::new(c, (1, 2), image, [height, width])?;
        let n = image[3];
        let crops = c.filled::<f32>(Shape::new(&[boxes.images.len(), height, width, n]), |out| {
            out.fill(outside);
            boxes.each(|i, (_, row), (_, column), at| {
                let (rows, columns) = (row.taps(method), column.taps(method));
                for (k, v) in out[at..at + n].iter_mut().enumerate() {
                    let pixel = |y: usize, x_at: usize| x[boxes.pixel(i, y, x_at) + k];
                    let [(left, _), (right, of_right)] = columns;
                    let line = |y: usize| pixel(y, left) + (pixel(y, right) - pixel(y, left)) * of_right;
                    let [(top, _), (bottom, of_bottom)] = rows;
                    *v = line(top) + (line(bottom) - line(top)) * of_bottom;
                }
            });
            Ok(())
        })?;
        c.set(0, crops);
        Ok(())
    })
}

/// The gradient's crops: boxes, height, width, channels.
fn grad_dims(c: &KernelContext<'_>) -> Result<[usize; 4], KernelError> {
    let shape = c.input(0)?.shape();
    <[usize; 4]>::try_from(shape.dims())
        .map_err(|_| KernelError::invalid(format!("grads must have rank 4, got shape {shape}")))
}

fn check(c: &KernelContext<'_>, boxes: &Boxes<'_>, [n, height, width, channels]: [usize; 4]) -> Computed {
    match (n, channels) == (boxes.images.len(), boxes.image[3]) && height > 0 && width > 0 {
        true => Ok(()),
        false => Err(KernelError::invalid(format!("grads of shape {} are not of these boxes", c.input(0)?.shape()))),
    }
}

fn grad_image(node: &Node) -> Built {
    let (method, dtype) = (Method::of(node)?, *node.dtype("T")?);
    kernel(move |c| {
        let shape = c.shape_input(3)?;
        let image = images(&shape)?;
        let dims @ [_, height, width, n] = grad_dims(c)?;
        let boxes = Boxes::new(c, (1, 2), image, [height, width])?;
        check(c, &boxes, dims)?;
        let g = c.slice::<f32>(0)?;
        let of_image = c.filled::<f32>(shape, |dx| {
            dx.fill(0.0);
            boxes.each(|i, (_, row), (_, column), at| {
                for (y, of_y) in row.taps(method) {
                    for (x, of_x) in column.taps(method) {
                        let to = &mut dx[boxes.pixel(i, y, x)..][..n];
                        to.iter_mut().zip(&g[at..at + n]).for_each(|(to, g)| *to += g * of_y * of_x);
                    }
                }
            });
            Ok(())
        })?;
        let of_image = convert(&of_image, dtype, c.allocator)?;
        c.set(0, of_image);
        Ok(())
    })
}

fn grad_boxes(c: &mut KernelContext<'_>) -> Computed {
    let image = images(c.input(1)?.shape())?;
    let dims @ [n_boxes, height, width, n] = grad_dims(c)?;
    let boxes = Boxes::new(c, (2, 3), image, [height, width])?;
    check(c, &boxes, dims)?;
    let g = c.slice::<f32>(0)?;
    let x = convert(c.input(1)?, DType::F32, c.allocator)?;
    let x = x.slice::<f32>()?;
    let of_boxes = c.filled::<f32>(Shape::new(&[n_boxes, 4]), |out| {
        out.fill(0.0);
        boxes.each(|i, (y, row), (x_at, column), at| {
            let (ys, xs) = boxes.axes(i);
            let (mut down, mut right) = (0.0, 0.0);
            for (k, g) in g[at..at + n].iter().enumerate() {
                let pixel = |y: usize, x_at: usize| x[boxes.pixel(i, y, x_at) + k];
                let (a, b) = (pixel(row.lower, column.lower), pixel(row.lower, column.upper));
                let (c, d) = (pixel(row.upper, column.lower), pixel(row.upper, column.upper));
                down += g * ((1.0 - column.part) * (c - a) + column.part * (d - b));
                right += g * ((1.0 - row.part) * (b - a) + row.part * (d - c));
            }
            let ([y1, y2], [x1, x2]) = (ys.to_ends(y, down), xs.to_ends(x_at, right));
            out[i * 4..][..4].iter_mut().zip([y1, x1, y2, x2]).for_each(|(to, part)| *to += part);
        });
        Ok(())
    })?;
    c.set(0, of_boxes);
    Ok(())
}
