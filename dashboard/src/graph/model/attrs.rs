//! Attributes of nodes as text.

use super::shapes::Shape;
use formats::proto::{AttrValue, DataType, TensorProto, TensorShapeProto, attr_value::Value};

/// Characters of the text of an attribute, at most.
const MAX_TEXT: usize = 240;
/// Values of a list that are shown, by type, at most.
const MAX_LIST: usize = 24;

/// Returns an attribute's value on one line, cut after [`MAX_TEXT`] characters.
pub(crate) fn attr_text(attr: &AttrValue) -> String {
    let mut text = match &attr.value {
        None => "none".to_owned(),
        Some(value) => value_text(value),
    };
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn value_text(value: &Value) -> String {
    match value {
        Value::S(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MAX_TEXT)]).into_owned(),
        Value::I(i) => i.to_string(),
        Value::F(f) => f.to_string(),
        Value::B(b) => b.to_string(),
        Value::Type(t) => dtype(*t),
        Value::Shape(shape) => self::shape(shape),
        Value::Tensor(tensor) => self::tensor(tensor),
        Value::Func(function) => format!("function {}", function.name),
        Value::Placeholder(name) => format!("placeholder {name}"),
        Value::List(list) => {
            let mut parts: Vec<String> = Vec::new();
            parts.extend(
                list.s.iter().take(MAX_LIST).map(|s| String::from_utf8_lossy(&s[..s.len().min(MAX_TEXT)]).into_owned()),
            );
            parts.extend(list.i.iter().take(MAX_LIST).map(ToString::to_string));
            parts.extend(list.f.iter().take(MAX_LIST).map(ToString::to_string));
            parts.extend(list.b.iter().take(MAX_LIST).map(ToString::to_string));
            parts.extend(list.r#type.iter().take(MAX_LIST).map(|t| dtype(*t)));
            parts.extend(list.shape.iter().take(MAX_LIST).map(shape));
            parts.extend(list.tensor.iter().take(MAX_LIST).map(tensor));
            parts.extend(list.func.iter().take(MAX_LIST).map(|f| f.name.clone()));
            let n = list.s.len() + list.i.len() + list.f.len() + list.b.len() + list.r#type.len();
            let n = n + list.shape.len() + list.tensor.len() + list.func.len();
            if n > parts.len() {
                parts.push(format!("… {n} in all"));
            }
            format!("[{}]", parts.join(", "))
        }
    }
}

/// Returns numpy's name of a type: `float32` for `DT_FLOAT`.
fn dtype(number: i32) -> String {
    let Ok(dtype) = DataType::try_from(number) else { return format!("type {number}") };
    let name = dtype.as_str_name().trim_start_matches("DT_").to_lowercase();
    match name.as_str() {
        "float" => "float32".to_owned(),
        "double" => "float64".to_owned(),
        "half" => "float16".to_owned(),
        _ => name,
    }
}

fn shape(shape: &TensorShapeProto) -> String {
    if shape.unknown_rank {
        "unknown rank".to_owned()
    } else {
        Shape(shape.dim.iter().map(|d| d.size).collect()).to_string()
    }
}

/// Returns type and shape of a tensor with its first values.
fn tensor(tensor: &TensorProto) -> String {
    fn first<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
        values.into_iter().take(8).map(|value| value.to_string()).collect()
    }
    let le_words = || tensor.tensor_content.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
    let mut values = first(&tensor.float_val);
    values.extend(first(&tensor.int_val));
    values.extend(first(&tensor.int64_val));
    values.extend(first(tensor.string_val.iter().map(|s| String::from_utf8_lossy(&s[..s.len().min(60)]).into_owned())));
    if values.is_empty() && tensor.dtype == DataType::DtFloat as i32 {
        values = first(le_words().map(f32::from_le_bytes));
    } else if values.is_empty() && tensor.dtype == DataType::DtInt32 as i32 {
        values = first(le_words().map(i32::from_le_bytes));
    }
    let header = format!("{} {}", dtype(tensor.dtype), tensor.tensor_shape.as_ref().map(shape).unwrap_or_default());
    if values.is_empty() { header } else { format!("{header}: {}", values.join(", ")) }
}
