//! JSON as Python writes it: `NaN`, `Infinity` and `-Infinity` are numbers.

use std::collections::BTreeMap;

use jiter::{JsonObject, JsonValue};

use crate::entry::Param;

/// Parses a text. `None` where it is no JSON.
pub(crate) fn parse(text: &str) -> Option<JsonValue<'_>> {
    parse_bytes(text.as_bytes())
}

/// Parses the bytes of a text. `None` where they are no JSON.
pub(crate) fn parse_bytes(text: &[u8]) -> Option<JsonValue<'_>> {
    JsonValue::parse(text, true).ok()
}

/// The value as a number; `None` for texts, lists and the rest.
pub(crate) fn number(value: &JsonValue<'_>) -> Option<f64> {
    match value {
        JsonValue::Int(value) => Some(*value as f64),
        JsonValue::Float(value) => Some(*value),
        // Beyond 64 bits.
        JsonValue::BigInt(value) => value.to_string().parse().ok(),
        JsonValue::Bool(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

/// A whole number, or a number without a fraction.
pub(crate) fn integer(value: &JsonValue<'_>) -> Option<i64> {
    match value {
        JsonValue::Int(value) => Some(*value),
        JsonValue::Float(value) if value.fract() == 0.0 && value.abs() < 9e18 => Some(*value as i64),
        _ => None,
    }
}

/// The value of a key, the last one if there are several.
pub(crate) fn get<'a, 'j>(object: &'a JsonObject<'j>, key: &str) -> Option<&'a JsonValue<'j>> {
    object.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// The text of a key.
pub(crate) fn text<'a>(object: &'a JsonObject<'_>, key: &str) -> Option<&'a str> {
    match get(object, key)? {
        JsonValue::Str(text) => Some(text),
        _ => None,
    }
}

/// Calls `leaf` for each value of an object that is no object, with its path; `separator` stands between names.
/// Objects for which `is_leaf` holds are values, too.
pub(crate) fn walk<'a, 'j>(
    object: &'a JsonObject<'j>,
    separator: &str,
    is_leaf: &dyn Fn(&JsonObject<'j>) -> bool,
    leaf: &mut dyn FnMut(String, &'a JsonValue<'j>),
) {
    walk_below(object, "", separator, is_leaf, leaf);
}

fn walk_below<'a, 'j>(
    object: &'a JsonObject<'j>,
    prefix: &str,
    separator: &str,
    is_leaf: &dyn Fn(&JsonObject<'j>) -> bool,
    leaf: &mut dyn FnMut(String, &'a JsonValue<'j>),
) {
    for (name, value) in object.iter() {
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}{separator}{name}") };
        match value {
            JsonValue::Object(inner) if !is_leaf(inner) => walk_below(inner, &path, separator, is_leaf, leaf),
            value => leaf(path, value),
        }
    }
}

/// An object as hyperparameters; nested names are joined by `separator`, lists are texts.
pub(crate) fn params(object: &JsonObject<'_>, separator: &str) -> BTreeMap<String, Param> {
    let mut params = BTreeMap::new();
    walk(object, separator, &|_| false, &mut |name, value| {
        params.insert(name, param(value));
    });
    params
}

/// A value as a hyperparameter.
pub(crate) fn param(value: &JsonValue<'_>) -> Param {
    match value {
        JsonValue::Bool(value) => Param::Bool(*value),
        JsonValue::Str(text) => Param::Text(text.to_string()),
        value => number(value).map_or_else(|| Param::Text(display(value)), Param::Number),
    }
}

/// A value as text: a string as it is, anything else as JSON.
pub(crate) fn display(value: &JsonValue<'_>) -> String {
    match value {
        JsonValue::Null => "null".to_owned(),
        JsonValue::Bool(value) => value.to_string(),
        JsonValue::Int(value) => value.to_string(),
        JsonValue::BigInt(_) => number(value).unwrap_or(f64::NAN).to_string(),
        JsonValue::Float(value) => value.to_string(),
        JsonValue::Str(text) => text.to_string(),
        JsonValue::Array(values) => {
            format!("[{}]", values.iter().map(display).collect::<Vec<_>>().join(", "))
        }
        JsonValue::Object(object) => {
            let pairs: Vec<String> = object.iter().map(|(name, value)| format!("{name}: {}", display(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// A text as a hyperparameter: a number or yes or no where it reads as one.
pub(crate) fn param_of_text(text: &str) -> Param {
    match (text, text.parse::<f64>()) {
        ("True" | "true", _) => Param::Bool(true),
        ("False" | "false", _) => Param::Bool(false),
        (_, Ok(number)) => Param::Number(number),
        _ => Param::Text(text.to_owned()),
    }
}
