//! Converts debug annotations to the text of a JSON object.

use super::sequence::Sequence;
use formats::perfetto::DebugAnnotation;
use formats::perfetto::debug_annotation::NestedValue;
use serde_json::{Map, Value};

/// Depth of annotations in annotations, at most.
const MAX_DEPTH: usize = 64;

/// The object; `None` without annotations.
pub(super) fn json(annotations: &[DebugAnnotation], sequence: &Sequence) -> Option<String> {
    if annotations.is_empty() {
        return None;
    }
    Some(object(annotations, sequence, MAX_DEPTH).to_string())
}

fn object(annotations: &[DebugAnnotation], sequence: &Sequence, depth: usize) -> Value {
    let mut map = Map::new();
    for annotation in annotations {
        let interned = annotation.name_iid.map(|iid| sequence.annotations.get(iid).unwrap_or("?"));
        let name = annotation.name.as_deref().or(interned).unwrap_or("");
        let value = value(annotation, sequence, depth);
        // Several annotations with the same name become a list.
        match map.get_mut(name) {
            None => {
                map.insert(name.to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(map)
}

fn value(a: &DebugAnnotation, sequence: &Sequence, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    if !a.dict_entries.is_empty() {
        return object(&a.dict_entries, sequence, depth - 1);
    }
    if !a.array_values.is_empty() {
        return a.array_values.iter().map(|v| value(v, sequence, depth - 1)).collect();
    }
    let number = |n: f64| serde_json::Number::from_f64(n).map_or_else(|| n.to_string().into(), Value::Number);
    let json = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into());
    None.or(a.bool_value.map(Value::from))
        .or(a.uint_value.map(Value::from))
        .or(a.int_value.map(Value::from))
        .or(a.double_value.map(number))
        .or(a.string_value.as_deref().map(Value::from))
        .or(a.string_value_iid.map(|iid| sequence.texts.get(iid).unwrap_or("?").into()))
        .or(a.pointer_value.map(|p| format!("0x{p:x}").into()))
        .or(a.legacy_json_value.as_ref().map(json))
        .or(a.nested_value.as_ref().map(|n| nested(n, depth - 1)))
        .unwrap_or(Value::Null)
}

fn nested(n: &NestedValue, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    if !n.dict_keys.is_empty() {
        return n.dict_keys.iter().zip(&n.dict_values).map(|(k, v)| (k.clone(), nested(v, depth - 1))).collect();
    }
    if !n.array_values.is_empty() {
        return n.array_values.iter().map(|v| nested(v, depth - 1)).collect();
    }
    let number = |n: f64| serde_json::Number::from_f64(n).map_or_else(|| n.to_string().into(), Value::Number);
    None.or(n.int_value.map(Value::from))
        .or(n.double_value.map(number))
        .or(n.bool_value.map(Value::from))
        .or(n.string_value.as_deref().map(Value::from))
        .unwrap_or(Value::Null)
}
