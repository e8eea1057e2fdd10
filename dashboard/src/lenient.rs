//! Values of files that users may have edited or other versions written: what makes no sense is left out.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;

/// A value, or its default where it makes no sense.
pub fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}

/// What makes sense in a list.
pub fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all: Vec<Value> = or_default(from)?;
    Ok(all.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// What makes sense in a table.
pub fn each_value<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    let all: BTreeMap<String, Value> = or_default(from)?;
    Ok(all.into_iter().filter_map(|(key, value)| Some((key, serde_json::from_value(value).ok()?))).collect())
}
