//! Converts a JSON object to debug annotations.

use super::intern::InternTable;
use formats::perfetto::DebugAnnotation;
use serde_json::Value;

/// A debug annotation for each entry of an object.
pub(super) fn annotations(object: &Value, interned: &mut InternTable) -> Vec<DebugAnnotation> {
    let entries = object.as_object().into_iter().flatten();
    entries
        .map(|(name, value)| {
            let iid = interned.annotation(name);
            DebugAnnotation { name_iid: Some(iid), ..annotation(value, interned) }
        })
        .collect()
}

fn annotation(value: &Value, interned: &mut InternTable) -> DebugAnnotation {
    let none = DebugAnnotation::default;
    match value {
        Value::Bool(b) => DebugAnnotation { bool_value: Some(*b), ..none() },
        Value::String(text) => DebugAnnotation { string_value: Some(text.clone()), ..none() },
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => DebugAnnotation { int_value: Some(n), ..none() },
            (None, Some(n)) => DebugAnnotation { uint_value: Some(n), ..none() },
            (None, None) => DebugAnnotation { double_value: n.as_f64(), ..none() },
        },
        Value::Object(entries) if !entries.is_empty() => {
            DebugAnnotation { dict_entries: annotations(value, interned), ..none() }
        }
        Value::Array(values) if !values.is_empty() => {
            DebugAnnotation { array_values: values.iter().map(|v| annotation(v, interned)).collect(), ..none() }
        }
        // Debug annotations have no null, and none that is an empty object or array.
        Value::Null | Value::Object(_) | Value::Array(_) => {
            DebugAnnotation { legacy_json_value: Some(value.to_string()), ..none() }
        }
    }
}
