//! Shapes of tensors from the file: `_output_shapes`, or the attributes of ops that state their own shape.

use formats::proto::{AttrValue, NodeDef, TensorShapeProto, attr_value::Value};

/// The dimensions of a tensor; -1 for an unknown one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<i64>);

impl std::fmt::Display for Shape {
    /// `128×512`, `?×64`, `scalar`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (idx, &dim) in self.0.iter().enumerate() {
            if idx > 0 {
                f.write_str("×")?;
            }
            if dim < 0 { f.write_str("?")? } else { write!(f, "{dim}")? }
        }
        Ok(())
    }
}

/// Returns the shape of output `port`, if the file has it.
pub fn output_shape(node: &NodeDef, port: u32) -> Option<Shape> {
    find_shape(node, port).map(|shape| Shape(shape.dim.iter().map(|d| d.size).collect()))
}

/// Returns the number of elements of output `port`; 1 if the shape is unknown.
pub(super) fn output_size(node: &NodeDef, port: u32) -> u64 {
    find_shape(node, port).map_or(1, |shape| n_elements(shape.dim.iter().map(|d| d.size)))
}

fn find_shape(node: &NodeDef, port: u32) -> Option<&TensorShapeProto> {
    let has_rank = |shape: &&TensorShapeProto| !shape.unknown_rank;
    let attr = |name: &str| node.attr.get(name).and_then(|attr: &AttrValue| attr.value.as_ref());
    for name in ["_output_shapes", "output_shapes"] {
        if let Some(Value::List(list)) = attr(name) {
            return list.shape.get(port as usize).filter(has_rank);
        }
    }
    if port != 0 {
        return None;
    }
    match (node.op.as_str(), attr("shape"), attr("value")) {
        ("Const" | "HostConst", _, Some(Value::Tensor(tensor))) => tensor.tensor_shape.as_ref().filter(has_rank),
        ("Placeholder" | "PlaceholderWithDefault" | "Variable" | "VariableV2", Some(Value::Shape(shape)), _) => {
            Some(shape).filter(has_rank)
        }
        _ => None,
    }
}

fn n_elements(dims: impl Iterator<Item = i64>) -> u64 {
    dims.fold(1, |n, dim| n.saturating_mul(u64::try_from(dim).unwrap_or(1)))
}
