//! Kernels that move blocks of space to the batch or to the channels and back, and that cut out patches.

use super::layout::viewed;
use super::pick::{ElementSource, pick, zero};
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::geometry::View;
use engine_core::graph::{Attr, Node};
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static BLOCKS: &[KernelDef] = &[
    cpu_any("SpaceToBatch", |n| {
        let b = block_size(n)?;
        kernel(move |c| {
            let by = c.ints(1)?;
            space_to_batch(c, &[b, b], &by)
        })
    }),
    cpu_any("SpaceToBatchND", |_| {
        kernel(|c| {
            let (block, by) = (block_shape(c)?, c.ints(2)?);
            space_to_batch(c, &block, &by)
        })
    }),
    cpu_any("BatchToSpace", |n| {
        let b = block_size(n)?;
        kernel(move |c| {
            let by = c.ints(1)?;
            batch_to_space(c, &[b, b], &by)
        })
    }),
    cpu_any("BatchToSpaceND", |_| {
        kernel(|c| {
            let (block, by) = (block_shape(c)?, c.ints(2)?);
            batch_to_space(c, &block, &by)
        })
    }),
    cpu_any("SpaceToDepth", |n| depth(n, true)),
    cpu_any("DepthToSpace", |n| depth(n, false)),
    cpu_any("ExtractImagePatches", extract_patches),
];

fn block_size(node: &Node) -> Result<usize, KernelError> {
    let b = *node.int("block_size")?;
    usize::try_from(b)
        .ok()
        .filter(|b| *b > 0)
        .ok_or_else(|| KernelError::invalid(format!("block_size {b} is not positive")))
}

fn block_shape(c: &KernelContext<'_>) -> Result<Vec<usize>, KernelError> {
    let block = c.shape_input(1)?.dims().to_vec();
    if block.contains(&0) {
        return Err(KernelError::invalid("a block must not be 0"));
    }
    Ok(block)
}

/// Checks blocks and their paddings (or crops, two for each) against a shape.
fn check<'a>(x: &Tensor, block: &[usize], by: &'a [i64]) -> Result<&'a [[i64; 2]], KernelError> {
    let (pairs, rest) = by.as_chunks::<2>();
    if pairs.len() != block.len() || !rest.is_empty() || block.len() >= x.shape().rank().max(1) {
        let text = format!("{} blocks and {} paddings for shape {}", block.len(), by.len(), x.shape());
        return Err(KernelError::invalid(text));
    }
    if let Some(v) = by.iter().find(|v| **v < 0) {
        return Err(KernelError::invalid(format!("padding {v} is negative")));
    }
    Ok(pairs)
}

fn space_to_batch(c: &mut KernelContext<'_>, block: &[usize], by: &[i64]) -> Computed {
    let x = c.input(0)?;
    let by = check(x, block, by)?;
    let mut dims = x.dims().to_vec();
    for (i, b) in block.iter().enumerate() {
        let whole = dims[i + 1] + (by[i][0] + by[i][1]) as usize;
        if !whole.is_multiple_of(*b) {
            return Err(KernelError::invalid(format!("{whole}, padded, is no multiple of block {b}")));
        }
        dims[i + 1] = whole / b;
        dims[0] = dims[0].checked_mul(*b).ok_or_else(|| KernelError::invalid("the result is too large"))?;
    }
    let (own, shape) = (x.shape().strides(), Shape::new(&dims));
    let strides = shape.strides();
    let n_batch = x.dims()[0].max(1);
    let fill = zero(c, x.dtype())?;
    let out = pick(c, [x, &fill], shape, &|i| {
        let (mut offset, batch) = (i / strides[0] / n_batch, i / strides[0] % n_batch);
        let mut at = batch * own[0];
        for k in (0..block.len()).rev() {
            let p = (i / strides[k + 1] % dims[k + 1]) * block[k] + offset % block[k];
            offset /= block[k];
            let inside = p.checked_sub(by[k][0] as usize).filter(|v| *v < x.dims()[k + 1]);
            let Some(inside) = inside else { return ElementSource::Second(0) };
            at += inside * own[k + 1];
        }
        ElementSource::First(at + i % strides[block.len()])
    })?;
    c.set(0, out);
    Ok(())
}

fn batch_to_space(c: &mut KernelContext<'_>, block: &[usize], by: &[i64]) -> Computed {
    let x = c.input(0)?;
    let by = check(x, block, by)?;
    let n_blocks: usize = block.iter().product();
    let mut dims = x.dims().to_vec();
    if !dims[0].is_multiple_of(n_blocks) {
        return Err(KernelError::invalid(format!("batch {} is no multiple of {n_blocks} blocks", dims[0])));
    }
    dims[0] /= n_blocks;
    for (i, b) in block.iter().enumerate() {
        let cropped = (dims[i + 1] * b).checked_sub((by[i][0] + by[i][1]) as usize);
        dims[i + 1] = cropped.ok_or_else(|| KernelError::invalid("the crops exceed the shape"))?;
    }
    let (own, shape) = (x.shape().strides(), Shape::new(&dims));
    let strides = shape.strides();
    let n_batch = dims[0];
    let out = pick(c, [x, x], shape, &|i| {
        let (mut offset, mut at) = (0, 0);
        for k in 0..block.len() {
            let p = i / strides[k + 1] % dims[k + 1] + by[k][0] as usize;
            offset = offset * block[k] + p % block[k];
            at += p / block[k] * own[k + 1];
        }
        ElementSource::First((offset * n_batch + i / strides[0]) * own[0] + at + i % strides[block.len()])
    })?;
    c.set(0, out);
    Ok(())
}

/// Space to depth, or back, in one transposition of the dimensions cut into blocks.
fn depth(node: &Node, to_depth: bool) -> Built {
    let b = block_size(node)?;
    let channels_first = match node.text("data_format")?.as_str() {
        "NHWC" => false,
        "NCHW" => true,
        other => return Err(KernelError::invalid(format!("data_format {other} is not supported"))),
    };
    kernel(move |c| {
        let x = c.input(0)?;
        let &[n, d1, d2, d3] = x.dims() else {
            return Err(KernelError::invalid(format!("input must have rank 4, got shape {}", x.shape())));
        };
        let (h, w, ch) = if channels_first { (d2, d3, d1) } else { (d1, d2, d3) };
        let fits = if to_depth { h.is_multiple_of(b) && w.is_multiple_of(b) } else { ch.is_multiple_of(b * b) };
        if !fits {
            return Err(KernelError::invalid(format!("shape {} does not fit blocks of {b}", x.shape())));
        }
        // The input cut apart, the order of its dimensions in the output, and the output put together.
        let (cut, order, dims): ([usize; 6], [usize; 6], [usize; 4]) = match (to_depth, channels_first) {
            (true, false) => ([n, h / b, b, w / b, b, ch], [0, 1, 3, 2, 4, 5], [n, h / b, w / b, ch * b * b]),
            (true, true) => ([n, ch, h / b, b, w / b, b], [0, 3, 5, 1, 2, 4], [n, ch * b * b, h / b, w / b]),
            (false, false) => ([n, h, w, b, b, ch / (b * b)], [0, 1, 3, 2, 4, 5], [n, h * b, w * b, ch / (b * b)]),
            (false, true) => ([n, b, b, ch / (b * b), h, w], [0, 3, 4, 1, 5, 2], [n, ch / (b * b), h * b, w * b]),
        };
        let view = View { shape: Shape::new(&dims), ..View::permuted(&Shape::new(&cut), &order) };
        let out = viewed(c, x, &view)?;
        c.set(0, out);
        Ok(())
    })
}

/// The two spatial numbers of a list for [1, rows, columns, 1].
fn pair(node: &Node, name: &str) -> Result<[usize; 2], KernelError> {
    let list = node.ints(name)?;
    match list.as_slice() {
        [1, a, b, 1] if *a > 0 && *b > 0 => Ok([*a as usize, *b as usize]),
        _ => Err(KernelError::invalid(format!("{name} {list:?} is not [1, rows, columns, 1]"))),
    }
}

fn extract_patches(node: &Node) -> Built {
    let (size, step, rate) = (pair(node, "ksizes")?, pair(node, "strides")?, pair(node, "rates")?);
    let same = match node.attrs.get("padding") {
        Some(Attr::Str(s)) if s == b"SAME" => true,
        Some(Attr::Str(s)) if s == b"VALID" => false,
        _ => return Err(KernelError::invalid("padding is neither SAME nor VALID")),
    };
    kernel(move |c| {
        let x = c.input(0)?;
        let &[n, h, w, ch] = x.dims() else {
            return Err(KernelError::invalid(format!("images must have rank 4, got shape {}", x.shape())));
        };
        let axis = |d: usize, k: usize| {
            let extent = (size[k] - 1) * rate[k] + 1;
            let out = if same { d.div_ceil(step[k]) } else { (d + step[k]).saturating_sub(extent) / step[k] };
            let before = if same { (out.saturating_sub(1) * step[k] + extent).saturating_sub(d) / 2 } else { 0 };
            (out, before)
        };
        let ((rows, top), (cols, left)) = (axis(h, 0), axis(w, 1));
        let depth = size[0] * size[1] * ch;
        let fill = zero(c, x.dtype())?;
        let out = pick(c, [x, &fill], Shape::new(&[n, rows, cols, depth]), &|i| {
            let (k, at) = (i % depth, i / depth);
            let (channel, tap) = (k % ch, k / ch);
            let y = (at / cols % rows * step[0] + tap / size[1] * rate[0]).checked_sub(top).filter(|y| *y < h);
            let z = (at % cols * step[1] + tap % size[1] * rate[1]).checked_sub(left).filter(|z| *z < w);
            match y.zip(z) {
                Some((y, z)) => ElementSource::First(((at / cols / rows * h + y) * w + z) * ch + channel),
                None => ElementSource::Second(0),
            }
        })?;
        c.set(0, out);
        Ok(())
    })
}
