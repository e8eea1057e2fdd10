//! Kernels of tensor arrays: arrays of tensors that live in their step's container, each element written once and read
//! once, unless it is said otherwise; those of gradients add up what is written to one element.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::stack::{object, register};
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::{ResourceHandle, Tensor};

mod elements;
mod pieces;

use elements::{Array, Options};
use pieces::{join, piece};

#[linkme::distributed_slice(KERNEL_TABLES)]
static TENSOR_ARRAY: &[KernelDef] = &[
    cpu_any("TensorArrayV2", |n| create(n, false)),
    cpu_any("TensorArrayV3", |n| create(n, true)),
    cpu_any("TensorArrayGradV2", |n| gradient(n, false)),
    cpu_any("TensorArrayGradV3", |n| gradient(n, true)),
    cpu_any("TensorArrayGradWithShape", |n| gradient(n, true)),
    cpu_any("TensorArrayWriteV2", |_| kernel(write)),
    cpu_any("TensorArrayWriteV3", |_| kernel(write)),
    cpu_any("TensorArrayReadV2", read),
    cpu_any("TensorArrayReadV3", read),
    cpu_any("TensorArrayGatherV2", gather),
    cpu_any("TensorArrayGatherV3", gather),
    cpu_any("TensorArrayScatterV2", |_| kernel(scatter)),
    cpu_any("TensorArrayScatterV3", |_| kernel(scatter)),
    cpu_any("TensorArrayConcatV2", concat),
    cpu_any("TensorArrayConcatV3", concat),
    cpu_any("TensorArraySplitV2", |_| kernel(split)),
    cpu_any("TensorArraySplitV3", |_| kernel(split)),
    cpu_any("TensorArraySizeV2", |_| cheap(size)),
    cpu_any("TensorArraySizeV3", |_| cheap(size)),
    cpu_any("TensorArrayCloseV2", |_| cheap(close)),
    cpu_any("TensorArrayCloseV3", |_| cheap(close)),
];

const CONTAINER: &str = "_tensor_arrays";
/// Arrays are made by nodes in loops too: each has its own name.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn invalid<T>(text: String) -> Result<T, KernelError> {
    Err(KernelError::invalid(text))
}

fn create(node: &Node, is_resource: bool) -> Built {
    let prefix = match node.text("tensor_array_name")? {
        name if name.is_empty() => node.name.to_string(),
        name => name,
    };
    let options = Options {
        dtype: *node.dtype("dtype")?,
        is_dynamic: *node.flag("dynamic_size")?,
        clear_after_read: *node.flag("clear_after_read")?,
        identical_shapes: node.flag("identical_element_shapes").is_ok_and(|is| *is),
        adds_up: false,
        is_gradient: false,
    };
    let element_shape = node.shape("element_shape")?.clone();
    cheap(move |c| {
        let size = c.item::<i32>(0)?;
        let Ok(size) = usize::try_from(size) else { return invalid(format!("Size should be >= 0, got {size}")) };
        let name: Arc<str> = format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into();
        let array = Array::new(Arc::clone(&name), options, element_shape.clone(), size)?;
        let handle = register(c.step_resources, CONTAINER, name, array, is_resource)?;
        c.set(0, handle);
        if is_resource {
            c.set(1, Tensor::scalar(0f32));
        }
        Ok(())
    })
}

fn array(c: &KernelContext<'_>) -> Result<Arc<Array>, KernelError> {
    object::<Array>(c, "tensor array")
}

/// The array of gradients of an array, one for each `source`: made by whoever asks first.
fn gradient(node: &Node, is_resource: bool) -> Built {
    let source = node.text("source")?;
    cheap(move |c| {
        let forward = array(c)?;
        let prepend: Vec<usize> = match c.inputs.len() > 2 {
            true => c.shape_input(2)?.dims().to_vec(),
            false => Vec::new(),
        };
        let name: Arc<str> = format!("{}@{source}", forward.name).into();
        let made = forward.gradient(Arc::clone(&name), &prepend)?;
        let container: Arc<str> = CONTAINER.into();
        let object = c.step_resources.find_or_create(&container, &name, || made)?;
        let handle = match is_resource {
            true => Tensor::resource(ResourceHandle { container, name, object }),
            false => Tensor::from_strings([2], vec![container.as_bytes().to_vec(), name.as_bytes().to_vec()])?,
        };
        c.set(0, handle);
        if is_resource {
            let flow = c.take(1)?;
            c.set(1, flow);
        }
        Ok(())
    })
}

fn write(c: &mut KernelContext<'_>) -> Computed {
    let array = array(c)?;
    let (index, value) = (c.item::<i32>(1)?, c.take(2)?);
    array.write(i64::from(index), value, c.allocator)?;
    pass_flow(c, 3)
}

/// The output that orders ops on an array is the input that does.
fn pass_flow(c: &mut KernelContext<'_>, i: usize) -> Computed {
    let flow = c.take(i)?;
    c.set(0, flow);
    Ok(())
}

fn check_dtype(array: &Array, dtype: DType) -> Computed {
    let held = array.options.dtype;
    if held == dtype {
        return Ok(());
    }
    invalid(format!("TensorArray dtype is {held} but Op requested dtype {dtype}."))
}

fn read(node: &Node) -> Built {
    let dtype = *node.dtype("dtype")?;
    cheap(move |c| {
        let array = array(c)?;
        check_dtype(&array, dtype)?;
        let value = array.read(i64::from(c.item::<i32>(1)?), c.allocator)?;
        c.set(0, value);
        Ok(())
    })
}

/// Shape `first` of the elements to which all of `values` must have theirs equal, from dimension `from` on.
fn check_equal(values: &[Tensor], from: usize) -> Computed {
    let Some(first) = values.first() else { return Ok(()) };
    let except = if from == 0 { "" } else { " (excepting dimension 0)" };
    for (i, value) in values.iter().enumerate() {
        if value.dims().len() < from {
            return invalid(format!("Concat saw a scalar shape at index {i} but requires at least vectors."));
        }
        if value.dims().len() != first.dims().len() || value.dims()[from..] != first.dims()[from..] {
            let (a, b) = (first.shape(), value.shape());
            return invalid(format!(
                "TensorArray has inconsistent shapes. Index 0 has{except} shape: {a} but index {i} has{except} shape: {b}"
            ));
        }
    }
    Ok(())
}

fn gather(node: &Node) -> Built {
    let (dtype, own_shape) = (*node.dtype("dtype")?, node.shape("element_shape")?.clone());
    kernel(move |c| {
        let array = array(c)?;
        check_dtype(&array, dtype)?;
        let indices: Vec<i32> = c.slice::<i32>(1)?.to_vec();
        let element = array.merge_shape(&own_shape)?;
        if indices.is_empty() {
            let dims = known(&element)?;
            let shape: Vec<usize> = std::iter::once(0).chain(dims).collect();
            let empty = Tensor::zeros(dtype, Shape::new(&shape), c.allocator)?;
            c.set(0, empty);
            return Ok(());
        }
        let read = |i: &i32| array.read(i64::from(*i), c.allocator);
        let values = indices.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        check_equal(&values, 0)?;
        let dims: Vec<usize> = std::iter::once(values.len()).chain(values[0].dims().iter().copied()).collect();
        let joined = join(&values, Shape::new(&dims), dtype, c.allocator)?;
        c.set(0, joined);
        Ok(())
    })
}

fn known(element: &PartialShape) -> Result<Vec<usize>, KernelError> {
    match element.known() {
        Some(shape) => Ok(shape.dims().to_vec()),
        None => invalid(format!(
            "TensorArray has size zero, but element shape {element} is not fully defined. Currently only static shapes \
             are supported when packing zero-size TensorArrays."
        )),
    }
}

fn concat(node: &Node) -> Built {
    let (dtype, except0) = (*node.dtype("dtype")?, node.shape("element_shape_except0")?.clone());
    kernel(move |c| {
        let array = array(c)?;
        check_dtype(&array, dtype)?;
        let n = array.len()?;
        if n == 0 {
            let shape: Vec<usize> = std::iter::once(0).chain(known(&except0)?).collect();
            let empty = Tensor::zeros(dtype, Shape::new(&shape), c.allocator)?;
            c.set(0, empty);
            c.set(1, Tensor::vector::<i64>(&[]));
            return Ok(());
        }
        let values = (0..n).map(|i| array.read(i as i64, c.allocator)).collect::<Result<Vec<_>, _>>()?;
        check_equal(&values, 1)?;
        let lengths: Vec<i64> = values.iter().map(|value| value.dims()[0] as i64).collect();
        let mut dims = values[0].dims().to_vec();
        dims[0] = values.iter().map(|value| value.dims()[0]).sum();
        let joined = join(&values, Shape::new(&dims), dtype, c.allocator)?;
        c.set(0, joined);
        c.set(1, Tensor::vector(&lengths));
        Ok(())
    })
}

fn scatter(c: &mut KernelContext<'_>) -> Computed {
    let array = array(c)?;
    let indices: Vec<i32> = c.slice::<i32>(1)?.to_vec();
    let value = c.input(2)?.clone();
    let Some(n) = value.dims().first().copied() else {
        return invalid("Expected value for unpacking to be at least a vector, but received a scalar".into());
    };
    if n != indices.len() {
        return invalid(format!("Expected len(indices) == values.shape[0], but saw: {} vs. {n}", indices.len()));
    }
    let size = array.len()?;
    let max = indices.iter().copied().max().unwrap_or(-1);
    if !array.options.is_dynamic && usize::try_from(max).is_ok_and(|max| max >= size) {
        return invalid(format!("Max scatter index must be < array size ({max} vs. {size})"));
    }
    let element = Shape::new(&value.dims()[1..]);
    array.set_shape(&element)?;
    let n_elements = element.n_elements();
    for (i, index) in indices.iter().enumerate() {
        let part = piece(&value, i * n_elements, element.clone(), c.allocator)?;
        array.write(i64::from(*index), part, c.allocator)?;
    }
    pass_flow(c, 3)
}

fn split(c: &mut KernelContext<'_>) -> Computed {
    let array = array(c)?;
    let value = c.input(1)?.clone();
    let lengths: Vec<i64> = c.slice::<i64>(2)?.to_vec();
    let Some(n) = value.dims().first().copied() else {
        return invalid("Expected value to be at least a vector, but received a scalar".into());
    };
    let lengths: Result<Vec<usize>, _> = lengths.iter().map(|length| usize::try_from(*length)).collect();
    let Ok(lengths) = lengths else { return invalid("lengths must not be negative".into()) };
    let total = lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length));
    if total != Some(n) {
        let total = total.unwrap_or(usize::MAX);
        return invalid(format!("Expected sum of lengths to be equal to values.shape[0], but saw: {total} vs. {n}"));
    }
    let size = array.len()?;
    if !array.options.is_dynamic && size != lengths.len() {
        return invalid(format!(
            "TensorArray's size is not equal to the size of lengths ({size} vs. {}), and the TensorArray is not marked \
             as dynamically resizeable",
            lengths.len()
        ));
    }
    let row = Shape::new(&value.dims()[1..]).n_elements();
    let mut first = 0;
    for (i, length) in lengths.iter().enumerate() {
        let mut dims = value.dims().to_vec();
        dims[0] = *length;
        let part = piece(&value, first * row, Shape::new(&dims), c.allocator)?;
        array.write(i as i64, part, c.allocator)?;
        first += length;
    }
    pass_flow(c, 3)
}

fn size(c: &mut KernelContext<'_>) -> Computed {
    let n = array(c)?.len()?;
    c.set(0, Tensor::scalar(n as i32));
    Ok(())
}

fn close(c: &mut KernelContext<'_>) -> Computed {
    array(c)?.close();
    Ok(())
}
