//! Scatters: rows or slices of a tensor updated at indices, in variables or in a copy.

use super::layout::walk;
use super::rows::{Arith, Combine, pick, row_function};
use super::support::{Built, Computed, by_word, cpu_any, kernel};
use super::variables::{copied, pass_on, value_of, with_value};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::geometry::{Indexing, Places};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::strided::{Masks, resolve};
use engine_core::tensor::Tensor;

/// Whether one scalar updates all elements; an error where the updates fit neither so nor slice by slice.
fn is_scalar(places: &Places, updates: &Tensor) -> Result<bool, KernelError> {
    let is_scalar = updates.shape().rank() == 0 && places.shape.rank() > 0;
    if !is_scalar && updates.shape() != &places.shape {
        let (got, wanted) = (updates.shape(), &places.shape);
        return Err(KernelError::invalid(format!("the updates have shape {got}, the indices ask for {wanted}")));
    }
    Ok(is_scalar)
}

/// `to[places] = to[places] how updates`; `to` is not shared (strings: it is replaced).
fn scatter(c: &KernelContext<'_>, to: &mut Tensor, places: &Places, updates: &Tensor, how: Combine) -> Computed {
    let is_scalar = is_scalar(places, updates)?;
    if to.dtype() != updates.dtype() {
        return Err(KernelError::invalid(format!("the updates are {}, the tensor {}", updates.dtype(), to.dtype())));
    }
    let dtype = to.dtype();
    if how == Combine::Set {
        if dtype == DType::String {
            return set_strings(to, places, updates, is_scalar);
        }
        return by_word!(dtype, set(to, places, updates, is_scalar));
    }
    match dtype {
        DType::F32 => combine::<f32>(to, places, updates, is_scalar, how),
        DType::F64 => combine::<f64>(to, places, updates, is_scalar, how),
        DType::I32 => combine::<i32>(to, places, updates, is_scalar, how),
        DType::I64 => combine::<i64>(to, places, updates, is_scalar, how),
        DType::U64 => combine::<u64>(to, places, updates, is_scalar, how),
        DType::C128 => combine::<Complex64>(to, places, updates, is_scalar, how),
        DType::Bool if how == Combine::Add => any(to, places, updates, is_scalar),
        _ => {
            let wide = dtype.computes_as().ok_or_else(|| KernelError::invalid(format!("{dtype} is no number")))?;
            let mut whole = convert(to, wide, c.allocator)?;
            scatter(c, &mut whole, places, &convert(updates, wide, c.allocator)?, how)?;
            *to = convert(&whole, dtype, c.allocator)?;
            Ok(())
        }
    }
}

fn shared() -> KernelError {
    KernelError::invalid("the tensor to be updated is shared")
}

fn set<T: Element>(to: &mut Tensor, places: &Places, updates: &Tensor, is_scalar: bool) -> Computed {
    let from = updates.words::<T>()?;
    let to = to.words_mut::<T>()?.ok_or_else(shared)?;
    for (i, at) in places.offsets.iter().enumerate() {
        let to = &mut to[*at..*at + places.len];
        match is_scalar {
            true => to.fill(from[0]),
            false => to.copy_from_slice(&from[i * places.len..(i + 1) * places.len]),
        }
    }
    Ok(())
}

/// The sum of truth values.
fn any(to: &mut Tensor, places: &Places, updates: &Tensor, is_scalar: bool) -> Computed {
    let from = updates.slice::<bool>()?;
    let to = to.slice_mut::<bool>()?.ok_or_else(shared)?;
    for (i, at) in places.offsets.iter().enumerate() {
        for k in 0..places.len {
            to[at + k] |= from[if is_scalar { 0 } else { i * places.len + k }];
        }
    }
    Ok(())
}

fn set_strings(to: &mut Tensor, places: &Places, updates: &Tensor, is_scalar: bool) -> Computed {
    let (from, mut all) = (updates.strings()?, to.strings()?.to_vec());
    for (i, at) in places.offsets.iter().enumerate() {
        for k in 0..places.len {
            all[at + k] = from[if is_scalar { 0 } else { i * places.len + k }].clone();
        }
    }
    *to = Tensor::from_strings(to.shape().clone(), all)?;
    Ok(())
}

fn combine<T: Arith>(to: &mut Tensor, places: &Places, updates: &Tensor, is_scalar: bool, how: Combine) -> Computed {
    let (f, from) = (row_function::<T>(how), updates.slice::<T>()?);
    let repeated = if is_scalar { vec![from[0]; places.len] } else { Vec::new() };
    let to = to.slice_mut::<T>()?.ok_or_else(shared)?;
    for (i, at) in places.offsets.iter().enumerate() {
        let row = if is_scalar { &repeated } else { &from[i * places.len..(i + 1) * places.len] };
        f(&mut to[*at..*at + places.len], row);
    }
    Ok(())
}

/// Into the variable that input 0 is.
fn into_variable(how: Combine, indexing: Indexing) -> Built {
    kernel(move |c| {
        let (indices, updates, ints) = (c.input(1)?, c.input(2)?, c.ints(1)?);
        with_value(c, 0, |value| {
            let places = Places::new(value.shape(), indices.shape(), &ints, indexing)?;
            scatter(c, value, &places, updates, how)
        })?;
        pass_on(c)
    })
}

/// Into a copy of input 0, or into it where nobody else holds it.
fn into_tensor(how: Combine) -> Built {
    kernel(move |c| {
        let mut value = c.take(0)?;
        let (indices, updates, ints) = (c.input(1)?, c.input(2)?, c.ints(1)?);
        let places = Places::new(value.shape(), indices.shape(), &ints, Indexing::Nd)?;
        if !value.is_unique() && value.dtype() != DType::String {
            value = copied(c, &value)?;
        }
        scatter(c, &mut value, &places, updates, how)?;
        c.set(0, value);
        Ok(())
    })
}

/// Into zeros: what falls on one place is added (strings: set).
fn scatter_nd(c: &mut KernelContext<'_>) -> Computed {
    let shape = c.ints(2)?.iter().map(|d| usize::try_from(*d)).collect::<Result<Vec<_>, _>>();
    let shape = Shape::new(&shape.map_err(|_| KernelError::invalid("the shape has a negative dimension"))?);
    let (indices, updates, ints) = (c.input(0)?, c.input(1)?, c.ints(0)?);
    let mut out = Tensor::zeros(updates.dtype(), shape, c.allocator)?;
    let places = Places::new(out.shape(), indices.shape(), &ints, Indexing::Nd)?;
    let how = if updates.dtype() == DType::String { Combine::Set } else { Combine::Add };
    scatter(c, &mut out, &places, updates, how)?;
    c.set(0, out);
    Ok(())
}

/// A strided slice of the variable is overwritten.
fn slice_assign(node: &Node) -> Built {
    let masks = Masks::of(&node.attrs);
    kernel(move |c| {
        let (begin, end, strides) = (c.ints(1)?, c.ints(2)?, c.ints(3)?);
        let update = c.input(4)?;
        with_value(c, 0, |value| {
            let slice = resolve(value.shape(), &masks, &begin, &end, &strides)?;
            let is_scalar = update.shape().rank() == 0;
            if (update.shape() != &slice.shape && !is_scalar) || update.dtype() != value.dtype() {
                let (got, wanted) = (update.shape(), &slice.shape);
                return Err(KernelError::invalid(format!("the value has shape {got}, the slice {wanted}")));
            }
            let mut offsets = Vec::with_capacity(slice.shape.n_elements());
            walk(&slice.dims, &slice.strides, slice.first, |_, at| offsets.push(at as usize));
            let places = Places { offsets, len: 1, shape: update.shape().clone() };
            if value.dtype() == DType::String {
                return set_strings(value, &places, update, is_scalar);
            }
            by_word!(value.dtype(), set(value, &places, update, is_scalar))
        })?;
        pass_on(c)
    })
}

fn gather(node: &Node) -> Built {
    let batch = usize::try_from(*node.int("batch_dims")?).unwrap_or(usize::MAX);
    kernel(move |c| {
        let (value, indices, ints) = (value_of(c, 0)?, c.input(1)?, c.ints(1)?);
        let (dims, own) = (value.dims(), indices.dims());
        let fits = dims.len() > batch && own.get(..batch) == Some(&dims[..batch]);
        if !fits {
            let text = format!("batch_dims {batch} with shapes {} and {}", value.shape(), indices.shape());
            return Err(KernelError::invalid(text));
        }
        let (n_rows, row) = (dims[batch], dims[batch + 1..].iter().product::<usize>());
        let per_batch = own[batch..].iter().product::<usize>().max(1);
        let mut picks = Vec::with_capacity(ints.len());
        for (i, index) in ints.iter().enumerate() {
            let at = usize::try_from(*index).ok().filter(|at| *at < n_rows);
            let at = at.ok_or_else(|| KernelError::invalid(format!("index {index} is outside of [0, {n_rows})")))?;
            picks.push((0, i / per_batch * n_rows + at));
        }
        let shape = Shape::new(&[own, &dims[batch + 1..]].concat());
        let out = pick(c, value.dtype(), &[&value], &picks, row, shape)?;
        c.set(0, out);
        Ok(())
    })
}

fn gather_nd(c: &mut KernelContext<'_>) -> Computed {
    let (value, indices, ints) = (value_of(c, 0)?, c.input(1)?, c.ints(1)?);
    let places = Places::new(value.shape(), indices.shape(), &ints, Indexing::Nd)?;
    let picks: Vec<(usize, usize)> = places.offsets.iter().map(|at| (0, at / places.len.max(1))).collect();
    let out = pick(c, value.dtype(), &[&value], &picks, places.len, places.shape)?;
    c.set(0, out);
    Ok(())
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SCATTER: &[KernelDef] = &[
    cpu_any("ScatterUpdate", |_| into_variable(Combine::Set, Indexing::Rows)),
    cpu_any("ScatterAdd", |_| into_variable(Combine::Add, Indexing::Rows)),
    cpu_any("ScatterSub", |_| into_variable(Combine::Sub, Indexing::Rows)),
    cpu_any("ScatterMul", |_| into_variable(Combine::Mul, Indexing::Rows)),
    cpu_any("ScatterDiv", |_| into_variable(Combine::Div, Indexing::Rows)),
    cpu_any("ScatterMin", |_| into_variable(Combine::Min, Indexing::Rows)),
    cpu_any("ScatterMax", |_| into_variable(Combine::Max, Indexing::Rows)),
    cpu_any("ScatterNdUpdate", |_| into_variable(Combine::Set, Indexing::Nd)),
    cpu_any("ScatterNdAdd", |_| into_variable(Combine::Add, Indexing::Nd)),
    cpu_any("ScatterNdSub", |_| into_variable(Combine::Sub, Indexing::Nd)),
    cpu_any("ScatterNdMin", |_| into_variable(Combine::Min, Indexing::Nd)),
    cpu_any("ScatterNdMax", |_| into_variable(Combine::Max, Indexing::Nd)),
    cpu_any("ResourceScatterUpdate", |_| into_variable(Combine::Set, Indexing::Rows)),
    cpu_any("ResourceScatterAdd", |_| into_variable(Combine::Add, Indexing::Rows)),
    cpu_any("ResourceScatterSub", |_| into_variable(Combine::Sub, Indexing::Rows)),
    cpu_any("ResourceScatterMul", |_| into_variable(Combine::Mul, Indexing::Rows)),
    cpu_any("ResourceScatterDiv", |_| into_variable(Combine::Div, Indexing::Rows)),
    cpu_any("ResourceScatterMin", |_| into_variable(Combine::Min, Indexing::Rows)),
    cpu_any("ResourceScatterMax", |_| into_variable(Combine::Max, Indexing::Rows)),
    cpu_any("ResourceScatterNdUpdate", |_| into_variable(Combine::Set, Indexing::Nd)),
    cpu_any("ResourceScatterNdAdd", |_| into_variable(Combine::Add, Indexing::Nd)),
    cpu_any("ResourceScatterNdSub", |_| into_variable(Combine::Sub, Indexing::Nd)),
    cpu_any("ResourceScatterNdMin", |_| into_variable(Combine::Min, Indexing::Nd)),
    cpu_any("ResourceScatterNdMax", |_| into_variable(Combine::Max, Indexing::Nd)),
    cpu_any("TensorScatterUpdate", |_| into_tensor(Combine::Set)),
    cpu_any("TensorScatterAdd", |_| into_tensor(Combine::Add)),
    cpu_any("TensorScatterSub", |_| into_tensor(Combine::Sub)),
    cpu_any("TensorScatterMin", |_| into_tensor(Combine::Min)),
    cpu_any("TensorScatterMax", |_| into_tensor(Combine::Max)),
    cpu_any("ScatterNdNonAliasingAdd", |_| into_tensor(Combine::Add)),
    cpu_any("ScatterNd", |_| kernel(scatter_nd)),
    cpu_any("ResourceStridedSliceAssign", slice_assign),
    cpu_any("StridedSliceAssign", slice_assign),
    cpu_any("ResourceGather", gather),
    cpu_any("ResourceGatherNd", |_| kernel(gather_nd)),
];
