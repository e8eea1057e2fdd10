//! Deserialisation of files that users edited or other versions wrote: invalid values are left out.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;

/// A value, or its default where it is invalid.
pub fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}

/// The valid elements of a list.
pub fn valid_elements<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all: Vec<Value> = or_default(from)?;
    Ok(all.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// The valid values of a table.
pub fn each_value<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    let all: BTreeMap<String, Value> = or_default(from)?;
    Ok(all.into_iter().filter_map(|(key, value)| Some((key, serde_json::from_value(value).ok()?))).collect())
}
