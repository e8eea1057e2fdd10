//! JSON as the same data that a pickle has.

use jiter::JsonValue;

use crate::{document::Document, error::Error, tree::Tree, value::Value, warnings::Warnings};

/// Reads a text of JSON. Its depth is limited by the parser.
pub(crate) fn read(text: &[u8]) -> Result<Document, Error> {
    let json = JsonValue::parse(text, true).map_err(|error| Error::Json(error.to_string()))?;
    let mut tree = Tree::new();
    let root = add(&mut tree, &json);
    Ok(Document { tree, root, n_bytes: text.len() as u64, warnings: Warnings::new() })
}

fn add(tree: &mut Tree, json: &JsonValue<'_>) -> Value {
    match json {
        JsonValue::Null => Value::NONE,
        JsonValue::Bool(value) => Value::bool(*value),
        JsonValue::Int(value) => tree.new_int(i128::from(*value)),
        JsonValue::BigInt(value) => value.to_string().parse().map_or(Value::OPAQUE, |value| tree.new_int(value)),
        JsonValue::Float(value) => tree.new_float(*value),
        JsonValue::Str(text) => tree.new_text(text),
        JsonValue::Array(items) => {
            let items = items.iter().map(|item| add(tree, item)).collect();
            tree.new_list(items)
        }
        JsonValue::Object(object) => {
            let pairs: Vec<Value> =
                object.iter().flat_map(|(key, value)| [tree.new_text(key), add(tree, value)]).collect();
            let dict = tree.new_dict();
            tree.insert(dict, &pairs);
            dict
        }
    }
}
