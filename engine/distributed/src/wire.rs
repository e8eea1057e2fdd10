//! Tensors in frames: a head that states type and shape, and the elements as they lie in memory, little-endian.

use engine::buffer::Allocator;
use engine::tensor::TensorError;
use engine::tensor_list::TensorList;
use engine::{DType, PartialShape, Shape, Tensor};
use net::{Body, Incoming, NetError};

use crate::protocol::{ListHead, ListItem, TensorHead};

/// A tensor that cannot go from process to process.
#[derive(Debug, Clone, thiserror::Error)]
#[error("a {0} tensor means something only where it was made: it cannot go to another task")]
pub struct Stays(DType);

/// Elements that go as they lie in memory.
struct Elements(Tensor);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Appends a tensor to a frame's body; gives its head. Elements are not copied.
pub fn put(tensor: &Tensor, body: &mut Vec<Body>) -> Result<TensorHead, Stays> {
    let dtype = tensor.dtype();
    let mut lengths = Vec::new();
    match dtype {
        DType::Resource => return Err(Stays(dtype)),
        DType::Variant => {
            let list = tensor.as_list().map_err(|_| Stays(dtype))?;
            return Ok(TensorHead { dtype: dtype as i32, list: Some(put_list(list, body)?), ..TensorHead::default() });
        }
        DType::String => {
            let strings = tensor.strings().unwrap_or_default();
            lengths = strings.iter().map(|s| s.len() as u64).collect();
            body.push(Box::new(strings.concat()));
        }
        _ => body.push(Box::new(Elements(tensor.clone()))),
    }
    let dims = tensor.dims().iter().map(|d| *d as u64).collect();
    Ok(TensorHead { dtype: dtype as i32, dims, lengths, list: None })
}

fn put_list(list: &TensorList, body: &mut Vec<Body>) -> Result<ListHead, Stays> {
    let mut items = Vec::with_capacity(list.tensors.len());
    for tensor in &list.tensors {
        items.push(ListItem { tensor: tensor.as_ref().map(|tensor| put(tensor, body)).transpose()? });
    }
    let dims = list.element_shape.dims();
    let dim = |dim: &Option<usize>| dim.map_or(-1, |dim| dim as i64);
    Ok(ListHead {
        dtype: list.element_dtype as i32,
        has_rank: dims.is_some(),
        dims: dims.unwrap_or_default().iter().map(dim).collect(),
        max: list.max_num_elements.map(|max| max as u64),
        items,
    })
}

/// Takes a tensor from a frame's body, into memory of `allocator`.
pub fn take(head: &TensorHead, frame: &mut Incoming<'_>, allocator: &Allocator) -> Result<Tensor, NetError> {
    let bad = |problem: String| NetError::Protocol(format!("a tensor that came: {problem}"));
    let dtype = DType::from_number(head.dtype).ok_or_else(|| bad(format!("element type number {}", head.dtype)))?;
    if head.dims.len() > 254 {
        return Err(bad("its rank".into()));
    }
    let dims = head.dims.iter().map(|d| usize::try_from(*d)).collect::<Result<Vec<usize>, _>>();
    let shape = Shape::new(&dims.map_err(|e| bad(e.to_string()))?);
    let n = shape.checked_n_elements().ok_or_else(|| bad(format!("shape {shape} is too large")))?;
    if let (DType::Variant, Some(list)) = (dtype, &head.list) {
        return take_list(list, frame, allocator);
    }
    if dtype == DType::String {
        return take_strings(head, n, shape, frame);
    }
    let n_bytes = n.checked_mul(dtype.size()).ok_or_else(|| bad(format!("shape {shape} is too large")))?;
    // No memory before the frame says that it comes, within the limits.
    if dtype.size() == 0 || n_bytes as u64 > frame.body_len() {
        return Err(bad(format!("{} bytes for {dtype}{shape}", frame.body_len())));
    }
    let filled = Tensor::filled_by(dtype, shape, allocator, |to| frame.read_body(to).map_err(Filling::Net));
    filled.map_err(|error| match error {
        Filling::Net(error) => error,
        Filling::Tensor(error) => bad(error.to_string()),
    })
}

fn take_list(head: &ListHead, frame: &mut Incoming<'_>, allocator: &Allocator) -> Result<Tensor, NetError> {
    let bad = |what: &str| NetError::Protocol(format!("a list that came: {what}"));
    let element_dtype = DType::from_number(head.dtype).ok_or_else(|| bad("its element type"))?;
    if head.dims.len() > 254 {
        return Err(bad("the rank of its tensors"));
    }
    let dims: Vec<Option<usize>> = head.dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    let max = head.max.map(usize::try_from).transpose().map_err(|_| bad("its length"))?;
    let element_shape = if head.has_rank { PartialShape::new(&dims) } else { PartialShape::unknown() };
    let mut list = TensorList::new(element_dtype, element_shape);
    list.max_num_elements = max;
    list.grow(head.items.len()).map_err(|error| bad(&error.to_string()))?;
    for item in &head.items {
        let tensor = item.tensor.as_ref().map(|head| take(head, frame, allocator)).transpose()?;
        list.tensors.push(tensor);
    }
    Ok(Tensor::list(list))
}

/// Why a tensor could not be filled.
enum Filling {
    Net(NetError),
    Tensor(TensorError),
}

impl From<TensorError> for Filling {
    fn from(error: TensorError) -> Filling {
        Filling::Tensor(error)
    }
}

fn take_strings(head: &TensorHead, n: usize, shape: Shape, frame: &mut Incoming<'_>) -> Result<Tensor, NetError> {
    let total = head.lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
    if head.lengths.len() != n || total.is_none_or(|total| total > frame.body_len()) {
        return Err(NetError::Protocol(format!("strings that came do not fit {shape}")));
    }
    let mut strings = Vec::with_capacity(n);
    for len in &head.lengths {
        let mut string = vec![0; *len as usize];
        frame.read_body(&mut string)?;
        strings.push(string);
    }
    Tensor::from_strings(shape, strings).map_err(|e| NetError::Protocol(e.to_string()))
}
