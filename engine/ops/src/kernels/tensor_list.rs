//! Kernels of lists of tensors. A list that nobody shares is changed where it is, so that a loop which appends to one
//! copies nothing.

use std::sync::Arc;

use super::support::{Built, Computed, cheap, cpu, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::buffer::Allocator;
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;
use engine_core::tensor_list::TensorList;

#[linkme::distributed_slice(KERNEL_TABLES)]
static TENSOR_LIST: &[KernelDef] = &[
    cpu_any("EmptyTensorList", empty),
    cpu_any("TensorListReserve", reserve),
    cpu_any("TensorListFromTensor", from_tensor),
    cpu_any("TensorListPushBack", |_| cheap(push_back)),
    cpu_any("TensorListPopBack", |_| cheap(pop_back)),
    cpu_any("TensorListLength", |_| cheap(length)),
    cpu_any("TensorListElementShape", element_shape),
    cpu_any("TensorListGetItem", |_| cheap(get_item)),
    cpu_any("TensorListSetItem", set_item),
    cpu_any("TensorListStack", stack),
    cpu_any("TensorListGather", |_| kernel(gather)),
    cpu_any("TensorListScatter", scatter),
    cpu_any("TensorListScatterV2", scatter),
    cpu_any("TensorListScatterIntoExistingList", |_| kernel(scatter_into)),
    cpu_any("TensorListConcat", |_| kernel(concat)),
    cpu_any("TensorListConcatV2", |_| kernel(concat)),
    cpu_any("TensorListSplit", split),
    cpu_any("TensorListResize", |_| cheap(resize)),
    cpu_any("TensorListConcatLists", |_| cheap(concat_lists)),
    cpu("AddN", ("T", &[DType::Variant]), |_| kernel(add_n)),
];

/// Tensors that a list may be asked to have at once without any of them given.
const MAX_RESERVED: usize = 1 << 24;

type Computes<T> = Result<T, KernelError>;

/// What input `i` says of the elements' shape: a scalar -1 says nothing.
fn shape_input(ctx: &KernelContext<'_>, i: usize) -> Computes<PartialShape> {
    let (rank, dims) = (ctx.input(i)?.shape().rank(), ctx.ints(i)?);
    match rank {
        0 if dims == [-1] => Ok(PartialShape::unknown()),
        1 if dims.iter().all(|d| *d >= -1) => {
            Ok(PartialShape::new(&dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Vec<_>>()))
        }
        _ => Err(KernelError::invalid(format!("element shape {:?} is no shape, and not -1", ctx.input(i)?))),
    }
}

/// Input 0, to be changed: copied first where somebody shares it.
fn take_list(ctx: &mut KernelContext<'_>, i: usize) -> Computes<Arc<TensorList>> {
    Ok(ctx.take(i)?.into_list()?)
}

fn count(ctx: &KernelContext<'_>, i: usize) -> Computes<usize> {
    let n = ctx.item::<i32>(i)?;
    let reserved = usize::try_from(n).ok().filter(|n| *n <= MAX_RESERVED);
    reserved.ok_or_else(|| KernelError::invalid(format!("a list of {n} tensors (0 to {MAX_RESERVED} are possible)")))
}

fn index_of(list: &TensorList, index: i64) -> Computes<usize> {
    let n = list.tensors.len();
    let found = usize::try_from(index).ok().filter(|i| *i < n);
    found.ok_or_else(|| KernelError::invalid(format!("index {index} of a list of {n} tensors")))
}

fn check_element(list: &TensorList, tensor: &Tensor) -> Computed {
    if tensor.dtype() == list.element_dtype && list.element_shape.admits(tensor.shape()) {
        return Ok(());
    }
    let (got, shape) = (tensor.dtype(), tensor.shape());
    let (expected, of) = (list.element_dtype, &list.element_shape);
    Err(KernelError::invalid(format!("a {got}{shape} for a list of {expected}{of}")))
}

/// The shape of elements that were not set: what the list, the caller and the other elements say together.
fn unset_shape(list: &TensorList, asked: &PartialShape) -> Computes<Shape> {
    let mut shape = list.element_shape.merge(asked);
    for tensor in list.tensors.iter().flatten() {
        match &shape {
            Some(s) if s.known().is_none() => shape = s.merge(&PartialShape::from(tensor.shape())),
            _ => break,
        }
    }
    let known = shape.and_then(|shape| shape.known());
    known.ok_or_else(|| {
        let of = &list.element_shape;
        KernelError::invalid(format!("the shape of an element that was not set is not known: {of} and {asked}"))
    })
}

fn element(list: &TensorList, i: usize, asked: &PartialShape, allocator: &Allocator) -> Computes<Tensor> {
    match &list.tensors[i] {
        Some(tensor) if asked.admits(tensor.shape()) => Ok(tensor.clone()),
        Some(tensor) => {
            let shape = tensor.shape();
            Err(KernelError::invalid(format!("element {i} has shape {shape}, expected {asked}")))
        }
        None if list.element_dtype == DType::Variant => {
            Ok(Tensor::list(TensorList::new(DType::Variant, PartialShape::unknown())))
        }
        None => Ok(Tensor::zeros(list.element_dtype, unset_shape(list, asked)?, allocator)?),
    }
}

/// Element `i`, for which input `asked` gives a shape; that counts only where the element was not set.
fn one_element(ctx: &KernelContext<'_>, list: &TensorList, i: usize, asked: usize) -> Computes<Tensor> {
    match &list.tensors[i] {
        Some(tensor) => Ok(tensor.clone()),
        None => element(list, i, &shape_input(ctx, asked)?, ctx.allocator),
    }
}

fn empty(node: &Node) -> Built {
    let dtype = *node.dtype("element_dtype")?;
    cheap(move |c| {
        let max = c.item::<i32>(1)?;
        let mut list = TensorList::new(dtype, shape_input(c, 0)?);
        list.max_num_elements = usize::try_from(max).ok();
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

fn reserve(node: &Node) -> Built {
    let dtype = *node.dtype("element_dtype")?;
    cheap(move |c| {
        let n = count(c, 1)?;
        let mut list = TensorList::new(dtype, shape_input(c, 0)?);
        list.resize(n)?;
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

fn push_back(ctx: &mut KernelContext<'_>) -> Computed {
    let tensor = ctx.take(1)?;
    let mut list = take_list(ctx, 0)?;
    check_element(&list, &tensor)?;
    if let Some(max) = list.max_num_elements.filter(|max| list.tensors.len() >= *max) {
        return Err(KernelError::invalid(format!("the list has {max} tensors, which is all that it may have")));
    }
    let own = Arc::make_mut(&mut list);
    own.grow(1)?;
    own.tensors.push(Some(tensor));
    ctx.set(0, Tensor::list(list));
    Ok(())
}

fn pop_back(ctx: &mut KernelContext<'_>) -> Computed {
    let mut list = take_list(ctx, 0)?;
    let Some(last) = list.tensors.len().checked_sub(1) else {
        return Err(KernelError::invalid("nothing can be taken from an empty list"));
    };
    let tensor = one_element(ctx, &list, last, 1)?;
    Arc::make_mut(&mut list).tensors.pop();
    ctx.set(0, Tensor::list(list));
    ctx.set(1, tensor);
    Ok(())
}

fn length(ctx: &mut KernelContext<'_>) -> Computed {
    let n = ctx.input(0)?.as_list()?.tensors.len();
    ctx.set(0, Tensor::scalar(n as i32));
    Ok(())
}

fn element_shape(node: &Node) -> Built {
    let is_long = *node.dtype("shape_type")? == DType::I64;
    cheap(move |c| {
        let list = c.input(0)?.as_list()?;
        let dims = list.element_shape.dims().map(|d| d.iter().map(|d| d.map_or(-1, |d| d as i64)).collect::<Vec<_>>());
        let narrow = |d: &i64| i32::try_from(*d).unwrap_or(-1);
        let shape = match (dims, is_long) {
            (None, true) => Tensor::scalar(-1i64),
            (None, false) => Tensor::scalar(-1i32),
            (Some(dims), true) => Tensor::vector(&dims),
            (Some(dims), false) => Tensor::vector(&dims.iter().map(narrow).collect::<Vec<i32>>()),
        };
        c.set(0, shape);
        Ok(())
    })
}

fn get_item(ctx: &mut KernelContext<'_>) -> Computed {
    let list = ctx.input(0)?.as_list()?;
    let i = index_of(list, i64::from(ctx.item::<i32>(1)?))?;
    let item = one_element(ctx, list, i, 2)?;
    ctx.set(0, item);
    Ok(())
}

fn set_item(node: &Node) -> Built {
    let resize = *node.flag("resize_if_index_out_of_bounds")?;
    cheap(move |c| {
        let (index, item) = (c.item::<i32>(1)?, c.take(2)?);
        let mut list = take_list(c, 0)?;
        check_element(&list, &item)?;
        let beyond = usize::try_from(index).ok().filter(|i| resize && *i >= list.tensors.len() && *i < MAX_RESERVED);
        if let Some(i) = beyond {
            Arc::make_mut(&mut list).resize(i + 1)?;
        }
        let i = index_of(&list, i64::from(index))?;
        Arc::make_mut(&mut list).tensors[i] = Some(item);
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

fn resize(ctx: &mut KernelContext<'_>) -> Computed {
    let n = count(ctx, 1)?;
    let mut list = take_list(ctx, 0)?;
    Arc::make_mut(&mut list).resize(n)?;
    ctx.set(0, Tensor::list(list));
    Ok(())
}

fn concat_lists(ctx: &mut KernelContext<'_>) -> Computed {
    let other = take_list(ctx, 1)?;
    let mut list = take_list(ctx, 0)?;
    if list.element_dtype != other.element_dtype {
        let (a, b) = (list.element_dtype, other.element_dtype);
        return Err(KernelError::invalid(format!("a list of {a} and one of {b} are no list")));
    }
    let own = Arc::make_mut(&mut list);
    own.grow(other.tensors.len())?;
    own.tensors.extend(other.tensors.iter().cloned());
    ctx.set(0, Tensor::list(list));
    Ok(())
}

/// The tensors' elements one after the other, in a tensor of `shape`.
fn joined(dtype: DType, shape: Shape, parts: &[Tensor], allocator: &Allocator) -> Computes<Tensor> {
    if dtype == DType::String {
        let strings = parts.iter().map(|t| Ok(t.strings()?.to_vec())).collect::<Computes<Vec<_>>>()?.concat();
        return Ok(Tensor::from_strings(shape, strings)?);
    }
    if dtype.size() == 0 {
        return Err(KernelError::invalid(format!("a list of {dtype} makes no tensor")));
    }
    if shape.rank() == 0 {
        return parts.first().cloned().ok_or(KernelError::MissingInput(0));
    }
    let mut out = Tensor::with_room(dtype, shape, allocator)?;
    let mut rest = out.bytes_mut().unwrap_or_default();
    for part in parts {
        let bytes = part.bytes();
        if bytes.len() > rest.len() {
            return Err(KernelError::invalid("the list's tensors differ in shape"));
        }
        let (own, others) = rest.split_at_mut(bytes.len());
        own.copy_from_slice(bytes);
        rest = others;
    }
    Ok(out)
}

/// Tensors of one shape as one tensor with a dimension more.
fn stacked(list: &TensorList, parts: &[Tensor], asked: &PartialShape, allocator: &Allocator) -> Computes<Tensor> {
    let shape = match parts.first() {
        Some(first) => first.shape().clone(),
        None => unset_shape(list, asked)?,
    };
    if let Some(other) = parts.iter().find(|t| *t.shape() != shape) {
        let other = other.shape();
        return Err(KernelError::invalid(format!("tensors of shapes {shape} and {other} cannot be stacked")));
    }
    let dims: Vec<usize> = std::iter::once(parts.len()).chain(shape.dims().iter().copied()).collect();
    joined(list.element_dtype, Shape::new(&dims), parts, allocator)
}

fn stack(node: &Node) -> Built {
    let expected = usize::try_from(*node.int("num_elements")?).ok();
    kernel(move |c| {
        let asked = shape_input(c, 1)?;
        let list = c.input(0)?.as_list()?;
        let n = list.tensors.len();
        if let Some(expected) = expected.filter(|expected| *expected != n) {
            return Err(KernelError::invalid(format!("the list has {n} tensors, expected {expected}")));
        }
        let parts = (0..n).map(|i| element(list, i, &asked, c.allocator)).collect::<Computes<Vec<_>>>()?;
        let stacked = stacked(list, &parts, &asked, c.allocator)?;
        c.set(0, stacked);
        Ok(())
    })
}

fn gather(ctx: &mut KernelContext<'_>) -> Computed {
    let (indices, asked) = (ctx.ints(1)?, shape_input(ctx, 2)?);
    let list = ctx.input(0)?.as_list()?;
    let part = |i: &i64| element(list, index_of(list, *i)?, &asked, ctx.allocator);
    let parts = indices.iter().map(part).collect::<Computes<Vec<_>>>()?;
    let values = stacked(list, &parts, &asked, ctx.allocator)?;
    ctx.set(0, values);
    Ok(())
}

/// The tensors along the first dimension of `tensor`, `lengths` of them together, without that dimension where each is
/// of length one and `drop_first`.
fn parts_of(tensor: &Tensor, lengths: &[usize], drop_first: bool, allocator: &Allocator) -> Computes<Vec<Tensor>> {
    let Some((first, inner)) = tensor.dims().split_first() else {
        return Err(KernelError::invalid("a scalar has no parts"));
    };
    let n: Option<usize> = lengths.iter().try_fold(0usize, |n, length| n.checked_add(*length));
    if n != Some(*first) {
        return Err(KernelError::invalid(format!("parts of {lengths:?} rows of a tensor of {first} rows")));
    }
    let row = inner.iter().product::<usize>();
    let mut begin = 0;
    let part = |length: &usize| {
        let dims: Vec<usize> = std::iter::once(*length).filter(|_| !drop_first).chain(inner.iter().copied()).collect();
        let (from, to) = (begin * row, (begin + length) * row);
        begin += length;
        if tensor.dtype() == DType::String {
            return Ok(Tensor::from_strings(Shape::new(&dims), tensor.strings()?[from..to].to_vec())?);
        }
        let size = tensor.dtype().size();
        let mut out = Tensor::with_room(tensor.dtype(), Shape::new(&dims), allocator)?;
        if let Some(bytes) = out.bytes_mut() {
            bytes.copy_from_slice(&tensor.bytes()[from * size..to * size]);
        }
        Ok(out)
    };
    lengths.iter().map(part).collect()
}

fn rows(tensor: &Tensor, allocator: &Allocator) -> Computes<Vec<Tensor>> {
    let n = tensor.dims().first().copied().unwrap_or(0);
    parts_of(tensor, &vec![1; n], true, allocator)
}

fn from_tensor(node: &Node) -> Built {
    let dtype = *node.dtype("element_dtype")?;
    kernel(move |c| {
        let mut list = TensorList::new(dtype, shape_input(c, 1)?);
        for tensor in rows(c.input(0)?, c.allocator)? {
            check_element(&list, &tensor)?;
            list.tensors.push(Some(tensor));
        }
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

/// Sets the tensors at `indices`; a list that is too short grows.
fn put(list: &mut TensorList, indices: &[i64], tensors: Vec<Tensor>) -> Computed {
    if indices.len() != tensors.len() {
        let (i, t) = (indices.len(), tensors.len());
        return Err(KernelError::invalid(format!("{i} indices for {t} tensors")));
    }
    let beyond = || indices.iter().find(|i| **i < 0 || **i >= MAX_RESERVED as i64);
    if let Some(i) = beyond() {
        return Err(KernelError::invalid(format!("index {i} of a list of tensors")));
    }
    let n = indices.iter().map(|i| *i as usize + 1).max().unwrap_or(0);
    if n > list.tensors.len() {
        list.tensors.resize(n, None);
    }
    for (i, tensor) in indices.iter().zip(tensors) {
        check_element(list, &tensor)?;
        list.tensors[*i as usize] = Some(tensor);
    }
    Ok(())
}

fn scatter(node: &Node) -> Built {
    let dtype = *node.dtype("element_dtype")?;
    kernel(move |c| {
        let mut list = TensorList::new(dtype, shape_input(c, 2)?);
        // The second version says how long the list is at least.
        if c.inputs.len() > 3 && c.item::<i32>(3)? >= 0 {
            list.tensors.resize(count(c, 3)?, None);
        }
        let indices = c.ints(1)?;
        put(&mut list, &indices, rows(c.input(0)?, c.allocator)?)?;
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

fn scatter_into(ctx: &mut KernelContext<'_>) -> Computed {
    let (tensors, indices) = (rows(ctx.input(1)?, ctx.allocator)?, ctx.ints(2)?);
    let mut list = take_list(ctx, 0)?;
    put(Arc::make_mut(&mut list), &indices, tensors)?;
    ctx.set(0, Tensor::list(list));
    Ok(())
}

fn concat(ctx: &mut KernelContext<'_>) -> Computed {
    let asked = if ctx.inputs.len() > 1 { shape_input(ctx, 1)? } else { PartialShape::unknown() };
    let leading = if ctx.inputs.len() > 2 { ctx.ints(2)? } else { Vec::new() };
    let list = ctx.input(0)?.as_list()?;
    let mut parts = Vec::with_capacity(list.tensors.len());
    for (i, tensor) in list.tensors.iter().enumerate() {
        let length = leading.get(i).and_then(|d| usize::try_from(*d).ok());
        let of_unset = match (asked.dims(), length) {
            (Some([_, rest @ ..]), Some(length)) => {
                PartialShape::new(&std::iter::once(Some(length)).chain(rest.iter().copied()).collect::<Vec<_>>())
            }
            _ => asked.clone(),
        };
        let shape = if tensor.is_some() { &PartialShape::unknown() } else { &of_unset };
        parts.push(element(list, i, shape, ctx.allocator)?);
    }
    let inner = match parts.first() {
        Some(first) => first.dims().get(1..).map(<[usize]>::to_vec),
        None => unset_shape_inner(list, &asked),
    };
    let Some(inner) = inner else { return Err(KernelError::invalid("scalars cannot be put one after the other")) };
    if parts.iter().any(|t| t.dims().get(1..) != Some(&inner)) {
        return Err(KernelError::invalid("the list's tensors differ in more than their first dimension"));
    }
    let lengths: Vec<i64> = parts.iter().map(|t| t.dims()[0] as i64).collect();
    let dims: Vec<usize> = std::iter::once(lengths.iter().sum::<i64>() as usize).chain(inner).collect();
    let tensor = joined(list.element_dtype, Shape::new(&dims), &parts, ctx.allocator)?;
    ctx.set(0, tensor);
    ctx.set(1, Tensor::vector(&lengths));
    Ok(())
}

/// The dimensions behind the first, of a list without tensors.
fn unset_shape_inner(list: &TensorList, asked: &PartialShape) -> Option<Vec<usize>> {
    let shape = list.element_shape.merge(asked)?;
    shape.dims()?.get(1..)?.iter().copied().collect()
}

fn split(node: &Node) -> Built {
    let dtype = *node.dtype("element_dtype")?;
    kernel(move |c| {
        let lengths: Result<Vec<usize>, _> = c.ints(2)?.iter().map(|n| usize::try_from(*n)).collect();
        let lengths = lengths.map_err(|_| KernelError::invalid("a part cannot have fewer than 0 rows"))?;
        let parts = parts_of(c.input(0)?, &lengths, false, c.allocator)?;
        let list = TensorList::new(dtype, shape_input(c, 1)?);
        parts.iter().try_for_each(|tensor| check_element(&list, tensor))?;
        let list = list.with(parts.into_iter().map(Some).collect());
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

/// Zeros in the shapes of the list's tensors.
pub(super) fn zeros_like(list: &TensorList, allocator: &Allocator) -> Computes<Tensor> {
    let zero = |tensor: &Option<Tensor>| match tensor {
        None => Ok(None),
        Some(t) if t.dtype() == DType::Variant => Ok(Some(zeros_like(t.as_list()?, allocator)?)),
        Some(t) => Ok(Some(Tensor::zeros(t.dtype(), t.shape().clone(), allocator)?)),
    };
    let tensors = list.tensors.iter().map(zero).collect::<Computes<Vec<_>>>()?;
    Ok(Tensor::list(list.with(tensors)))
}

/// Lists of one length added tensor by tensor; what was not set counts as zeros.
fn add_n(ctx: &mut KernelContext<'_>) -> Computed {
    let mut sum = ctx.take(0)?;
    for i in 1..ctx.inputs.len() {
        sum = add(&sum, ctx.input(i)?, ctx.allocator)?;
    }
    ctx.set(0, sum);
    Ok(())
}

fn add(a: &Tensor, b: &Tensor, allocator: &Allocator) -> Computes<Tensor> {
    match a.dtype() {
        DType::Variant => add_lists(a.as_list()?, b.as_list()?, allocator),
        DType::F32 => add_numbers::<f32>(a, b, |a, b| a + b),
        DType::F64 => add_numbers::<f64>(a, b, |a, b| a + b),
        DType::I32 => add_numbers::<i32>(a, b, i32::wrapping_add),
        DType::I64 => add_numbers::<i64>(a, b, i64::wrapping_add),
        other => Err(KernelError::invalid(format!("lists of {other} cannot be added"))),
    }
}

fn add_lists(a: &TensorList, b: &TensorList, allocator: &Allocator) -> Computes<Tensor> {
    if a.tensors.len() != b.tensors.len() || a.element_dtype != b.element_dtype {
        let (n, m) = (a.tensors.len(), b.tensors.len());
        let (s, t) = (a.element_dtype, b.element_dtype);
        return Err(KernelError::invalid(format!("lists of {n} tensors of {s} and {m} of {t} cannot be added")));
    }
    let sum = |(a, b): (&Option<Tensor>, &Option<Tensor>)| match (a, b) {
        (Some(a), Some(b)) => Ok(Some(add(a, b, allocator)?)),
        (one, other) => Ok(one.clone().or_else(|| other.clone())),
    };
    let tensors = a.tensors.iter().zip(&b.tensors).map(sum).collect::<Computes<Vec<_>>>()?;
    Ok(Tensor::list(a.with(tensors)))
}

fn add_numbers<T: Element>(a: &Tensor, b: &Tensor, f: impl Fn(T, T) -> T) -> Computes<Tensor> {
    if a.shape() != b.shape() {
        let (a, b) = (a.shape(), b.shape());
        return Err(KernelError::invalid(format!("tensors of shapes {a} and {b} cannot be added")));
    }
    let sum = a.slice::<T>()?.iter().zip(b.slice::<T>()?).map(|(a, b)| f(*a, *b)).collect();
    Ok(Tensor::from_vec(a.shape().clone(), sum)?)
}
