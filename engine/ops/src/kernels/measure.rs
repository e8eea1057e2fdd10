//! The [geometry](engine_core::geometry) of each execution of a node: which inputs and attributes of which op it is taken from. The
//! same for the kernels of all devices, which only move or compute what lies there.

use std::ops::Range;

use smallvec::SmallVec;

use super::{KernelContext, KernelError};
use engine_core::geometry::{
    Along, Gather, OneHot, Pad, Partition, Reduction, Rows, View, axis_mask, checked, one, paddings,
};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::strided::{Masks, resolve};

/// A function from the shapes of the inputs, and the values of those that list axes and sizes, to a geometry.
pub type Measure<G> = Box<dyn Fn(&KernelContext<'_>) -> Result<G, KernelError> + Send + Sync>;

fn measure<G>(f: impl Fn(&KernelContext<'_>) -> Result<G, KernelError> + Send + Sync + 'static) -> Measure<G> {
    Box::new(f)
}

fn unknown<G>(node: &Node) -> Result<G, KernelError> {
    Err(KernelError::invalid(format!("the geometry of {} is unknown", node.op.name)))
}

/// The output as a view of the first input.
///
/// # Errors
/// The node's op does something else.
pub fn view(node: &Node) -> Result<Measure<View>, KernelError> {
    Ok(match node.op.name {
        "Transpose" | "ConjugateTranspose" => measure(|c| Ok(View::transposed(c.input(0)?.shape(), &c.ints(1)?)?)),
        "BroadcastTo" => measure(|c| Ok(View::broadcast(c.input(0)?.shape(), &c.shape_input(1)?)?)),
        "Slice" => measure(|c| Ok(View::slice(c.input(0)?.shape(), &c.ints(1)?, &c.ints(2)?)?)),
        "StridedSlice" => {
            let masks = Masks::of(&node.attrs);
            measure(move |c| Ok(resolve(c.input(0)?.shape(), &masks, &c.ints(1)?, &c.ints(2)?, &c.ints(3)?)?))
        }
        "Tile" => measure(|c| Ok(View::tiled(c.input(0)?.shape(), &c.shape_input(1)?)?)),
        "ReverseV2" => measure(|c| Ok(View::reversed_axes(c.input(0)?.shape(), &c.ints(1)?)?)),
        "Reverse" => measure(|c| Ok(View::reversed(c.input(0)?.shape(), c.slice::<bool>(1)?)?)),
        _ => return unknown(node),
    })
}

/// Of `StridedSliceGrad`: the output's shape, and where in it the gradient (input 4) lies.
pub fn strided_slice_grad(node: &Node) -> Measure<(Shape, View)> {
    let masks = Masks::of(&node.attrs);
    measure(move |c| {
        let shape = c.shape_input(0)?;
        let view = resolve(&shape, &masks, &c.ints(1)?, &c.ints(2)?, &c.ints(3)?)?;
        let gradient = c.input(4)?.shape();
        if *gradient != view.shape {
            return Err(KernelError::invalid(format!("dy has shape {gradient}, the slice {}", view.shape)));
        }
        Ok((shape, view))
    })
}

/// The number of the first of the inputs that are joined, and how they lie in the output.
///
/// # Errors
/// The node's op does something else.
pub fn join(node: &Node) -> Result<Measure<(usize, Partition)>, KernelError> {
    fn shapes<'a>(c: &'a KernelContext<'_>, inputs: Range<usize>) -> Result<SmallVec<[&'a Shape; 8]>, KernelError> {
        inputs.map(|i| Ok(c.input(i)?.shape())).collect()
    }
    Ok(match node.op.name {
        "Concat" => measure(|c| {
            let along = one("the axis", &c.ints(0)?)?;
            Ok((1, Partition::concat(&shapes(c, 1..c.inputs.len())?, along)?))
        }),
        "ConcatV2" => measure(|c| {
            let n = c.inputs.len() - 1;
            Ok((0, Partition::concat(&shapes(c, 0..n)?, one("the axis", &c.ints(n)?)?)?))
        }),
        "Pack" => {
            let along = *node.int("axis")?;
            measure(move |c| Ok((0, Partition::pack(&shapes(c, 0..c.inputs.len())?, along)?)))
        }
        _ => return unknown(node),
    })
}

/// The number of the input that is split, and how the outputs lie in it.
///
/// # Errors
/// The node's op does something else.
pub fn split(node: &Node) -> Result<Measure<(usize, Partition)>, KernelError> {
    Ok(match node.op.name {
        "Split" => measure(|c| {
            let along = one("the axis", &c.ints(0)?)?;
            Ok((1, Partition::split(c.input(1)?.shape(), along, c.outputs.len())?))
        }),
        "SplitV" => measure(|c| {
            let along = one("the axis", &c.ints(2)?)?;
            Ok((0, Partition::split_into(c.input(0)?.shape(), along, &c.ints(1)?, c.outputs.len())?))
        }),
        "Unpack" => {
            let along = *node.int("axis")?;
            measure(move |c| Ok((0, Partition::unpack(c.input(0)?.shape(), along, c.outputs.len())?)))
        }
        _ => return unknown(node),
    })
}

/// Of `Fill`: the value (input 1) at every position of the shape that input 0 lists.
///
/// # Errors
/// That is no shape, or too large; the value is no scalar.
pub fn fill(c: &KernelContext<'_>) -> Result<View, KernelError> {
    let (shape, value) = (checked(c.shape_input(0)?)?, c.input(1)?);
    if value.len() != 1 {
        return Err(KernelError::invalid(format!("the value must be a scalar, got shape {}", value.shape())));
    }
    Ok(View::repeated(&shape))
}

/// What input 1 puts around each dimension of input 0.
///
/// # Errors
/// They do not fit.
pub fn paddings_of(c: &KernelContext<'_>) -> Result<Vec<[usize; 2]>, KernelError> {
    Ok(paddings(c.input(0)?.shape(), c.input(1)?.shape(), &c.ints(1)?)?)
}

/// Of `Pad` and `PadV2`.
///
/// # Errors
/// The inputs do not fit.
pub fn pad(c: &KernelContext<'_>) -> Result<Pad, KernelError> {
    if c.inputs.len() > 2 && c.input(2)?.len() != 1 {
        let got = c.input(2)?.shape();
        return Err(KernelError::invalid(format!("constant_values must be a scalar, got shape {got}")));
    }
    Ok(Pad::new(c.input(0)?.shape(), &paddings_of(c)?)?)
}

/// Of `Gather` and `GatherV2`.
pub fn gather(node: &Node) -> Measure<Gather> {
    let batch = node.int("batch_dims").map_or(0, |batch| *batch);
    measure(move |c| {
        let along = if c.inputs.len() > 2 { one("the axis", &c.ints(2)?)? } else { 0 };
        Ok(Gather::new(c.input(0)?.shape(), c.input(1)?.shape(), along, batch)?)
    })
}

/// Of `OneHot`.
///
/// # Errors
/// The node has no attribute `axis`.
pub fn one_hot(node: &Node) -> Result<Measure<OneHot>, KernelError> {
    let along = *node.int("axis")?;
    Ok(measure(move |c| {
        if c.input(2)?.len() != 1 || c.input(3)?.len() != 1 {
            return Err(KernelError::invalid("on_value and off_value must be scalars"));
        }
        Ok(OneHot::new(c.input(0)?.shape(), one("depth", &c.ints(1)?)?, along)?)
    }))
}

/// Input 0 reduced along the axes that input 1 lists.
///
/// # Errors
/// One of them is not there.
pub fn reduction(c: &KernelContext<'_>, keeps: bool) -> Result<Reduction, KernelError> {
    let of = c.input(0)?.shape();
    Ok(Reduction::new(of.dims(), &axis_mask(&c.ints(1)?, of.rank())?, keeps))
}

/// Of `ArgMax` and `ArgMin`: input 0 along the axis that input 1 holds, and the output's shape, which lacks it.
///
/// # Errors
/// There is no such axis, or it is empty.
pub fn position(c: &KernelContext<'_>) -> Result<(Along, Shape), KernelError> {
    let of = c.input(0)?.shape();
    let along = Along::new(of, one("the dimension", &c.ints(1)?)?)?;
    if along.n == 0 {
        return Err(KernelError::invalid(format!("axis {} of shape {of} is empty", along.axis)));
    }
    Ok((along, along.replaced(of, &[])))
}

/// The rows of a cross entropy's logits: one class of each (`Sparse...`), or the probabilities of all.
///
/// # Errors
/// The labels do not fit.
pub fn labelled_rows(c: &KernelContext<'_>, has_classes: bool) -> Result<Rows, KernelError> {
    let (logits, labels) = (c.input(0)?.shape(), c.input(1)?.shape());
    Ok(if has_classes { Rows::with_classes(logits, labels)? } else { Rows::with_probabilities(logits, labels)? })
}
