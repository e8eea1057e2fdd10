//! Gradients of lists of tensors: lists of gradients.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::dtype::DType;
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static TENSOR_LIST: &[GradientSpec] = &[
    ("EmptyTensorList", Zero),
    ("TensorListReserve", Zero),
    ("TensorListLength", Zero),
    ("TensorListElementShape", Zero),
    ("TensorListPushBack", Function(push_back)),
    ("TensorListPopBack", Function(pop_back)),
    ("TensorListFromTensor", Function(from_tensor)),
    ("TensorListStack", Function(stack)),
    ("TensorListGetItem", Function(get_item)),
    ("TensorListSetItem", Function(set_item)),
    ("TensorListGather", Function(gather)),
    ("TensorListScatter", Function(scatter)),
    ("TensorListScatterV2", Function(scatter)),
    ("TensorListScatterIntoExistingList", Function(scatter_into)),
    ("TensorListConcat", Function(concat)),
    ("TensorListConcatV2", Function(concat)),
    ("TensorListSplit", Function(split)),
    ("TensorListResize", Function(resize)),
];

fn element_dtype(c: &GradientContext<'_>) -> (&'static str, Attr) {
    ("element_dtype", Attr::Type(c.node().dtype("element_dtype").copied().unwrap_or(DType::F32)))
}

fn int32() -> (&'static str, Attr) {
    ("shape_type", Attr::Type(DType::I32))
}

/// A shape of which nothing is known.
fn any_shape(c: &mut GradientContext<'_>) -> Result<Output, GradientError> {
    c.constant(Tensor::scalar(-1i32))
}

/// The shape of a list's tensors.
fn shape_of_elements(c: &mut GradientContext<'_>, list: Output) -> Result<Output, GradientError> {
    c.op_with("TensorListElementShape", &[list], &[int32()])
}

fn length(c: &mut GradientContext<'_>, list: Output) -> Result<Output, GradientError> {
    c.op("TensorListLength", &[list])
}

fn push_back(c: &mut GradientContext<'_>) -> Done {
    let (g, element) = (c.grad(0)?, c.input(1));
    let shape = c.shape_of(element)?;
    let dtype = element_dtype(c);
    let popped = c.op_with("TensorListPopBack", &[g, shape], &[dtype])?;
    c.set(0, popped);
    c.set(1, Output { port: 1, ..popped });
    Ok(())
}

fn pop_back(c: &mut GradientContext<'_>) -> Done {
    let list = match c.arrived(0) {
        Some(list) => list,
        None => {
            let popped = c.output(0);
            c.zeros(popped)?
        }
    };
    let element = c.grad(1)?;
    let dtype = element_dtype(c);
    let pushed = c.op_with("TensorListPushBack", &[list, element], &[dtype])?;
    c.set(0, pushed);
    Ok(())
}

fn from_tensor(c: &mut GradientContext<'_>) -> Done {
    let (g, tensor) = (c.grad(0)?, c.input(0));
    let whole = c.shape_of(tensor)?;
    let (one, rest, step) = (c.vector(&[1i32])?, c.vector(&[0i32])?, c.vector(&[1i32])?);
    let shape = c.op_with("StridedSlice", &[whole, one, rest, step], &[("end_mask", Attr::Int(1))])?;
    let dtype = element_dtype(c);
    let stacked = c.op_with("TensorListStack", &[g, shape], &[dtype])?;
    let stacked = c.with_shape_of(stacked, tensor)?;
    c.set(0, stacked);
    Ok(())
}

fn stack(c: &mut GradientContext<'_>) -> Done {
    let (g, list) = (c.grad(0)?, c.input(0));
    let shape = shape_of_elements(c, list)?;
    let dtype = element_dtype(c);
    let list = c.op_with("TensorListFromTensor", &[g, shape], &[dtype])?;
    c.set(0, list);
    Ok(())
}

/// A list as long as `like`, with nothing set.
fn unset(c: &mut GradientContext<'_>, like: Output) -> Result<Output, GradientError> {
    let (shape, n) = (shape_of_elements(c, like)?, length(c, like)?);
    let dtype = element_dtype(c);
    c.op_with("TensorListReserve", &[shape, n], &[dtype, int32()])
}

fn get_item(c: &mut GradientContext<'_>) -> Done {
    let (g, list, index) = (c.grad(0)?, c.input(0), c.input(1));
    let unset = unset(c, list)?;
    let dtype = element_dtype(c);
    let of_list = c.op_with("TensorListSetItem", &[unset, index, g], &[dtype])?;
    c.set(0, of_list);
    Ok(())
}

fn set_item(c: &mut GradientContext<'_>) -> Done {
    let (g, list, index, item) = (c.grad(0)?, c.input(0), c.input(1), c.input(2));
    let (shape, zeros) = (c.shape_of(item)?, c.zeros(item)?);
    let dtype = element_dtype(c);
    let of_item = c.op_with("TensorListGetItem", &[g, index, shape], std::slice::from_ref(&dtype))?;
    let of_item = c.with_shape_of(of_item, item)?;
    let mut of_list = c.op_with("TensorListSetItem", &[g, index, zeros], &[dtype])?;
    if c.node().flag("resize_if_index_out_of_bounds").is_ok_and(|resize| *resize) {
        let n = length(c, list)?;
        of_list = c.op("TensorListResize", &[of_list, n])?;
    }
    c.set(0, of_list);
    c.set(2, of_item);
    Ok(())
}

fn resize(c: &mut GradientContext<'_>) -> Done {
    let (g, list) = (c.grad(0)?, c.input(0));
    let n = length(c, list)?;
    let of_list = c.op("TensorListResize", &[g, n])?;
    c.set(0, of_list);
    Ok(())
}

/// What was gathered twice gets both gradients.
fn gather(c: &mut GradientContext<'_>) -> Done {
    let (g, list, indices) = (c.grad(0)?, c.input(0), c.input(1));
    let n = length(c, list)?;
    let rows = c.op("UnsortedSegmentSum", &[g, indices, n])?;
    let shape = shape_of_elements(c, list)?;
    let dtype = element_dtype(c);
    let of_list = c.op_with("TensorListFromTensor", &[rows, shape], &[dtype])?;
    c.set(0, of_list);
    Ok(())
}

fn scatter(c: &mut GradientContext<'_>) -> Done {
    let (g, tensor, indices) = (c.grad(0)?, c.input(0), c.input(1));
    let shape = any_shape(c)?;
    let dtype = element_dtype(c);
    let of_tensor = c.op_with("TensorListGather", &[g, indices, shape], &[dtype])?;
    let of_tensor = c.with_shape_of(of_tensor, tensor)?;
    c.set(0, of_tensor);
    Ok(())
}

fn scatter_into(c: &mut GradientContext<'_>) -> Done {
    let (g, tensor, indices) = (c.grad(0)?, c.input(1), c.input(2));
    let shape = any_shape(c)?;
    let dtype = element_dtype(c);
    let of_tensor = c.op_with("TensorListGather", &[g, indices, shape], std::slice::from_ref(&dtype))?;
    let of_tensor = c.with_shape_of(of_tensor, tensor)?;
    let zeros = c.zeros(tensor)?;
    let of_list = c.op_with("TensorListScatterIntoExistingList", &[g, zeros, indices], &[dtype])?;
    c.set(0, of_list);
    c.set(1, of_tensor);
    Ok(())
}

fn concat(c: &mut GradientContext<'_>) -> Done {
    let (g, list, lengths) = (c.grad(0)?, c.input(0), c.output(1));
    let shape = shape_of_elements(c, list)?;
    let dtype = element_dtype(c);
    let of_list = c.op_with("TensorListSplit", &[g, shape, lengths], &[dtype])?;
    c.set(0, of_list);
    Ok(())
}

fn split(c: &mut GradientContext<'_>) -> Done {
    let (g, tensor, lengths) = (c.grad(0)?, c.input(0), c.input(2));
    let shape = shape_of_elements(c, g)?;
    let dtype = element_dtype(c);
    let joined = c.op_with("TensorListConcatV2", &[g, shape, lengths], &[dtype])?;
    let joined = c.with_shape_of(joined, tensor)?;
    c.set(0, joined);
    Ok(())
}
