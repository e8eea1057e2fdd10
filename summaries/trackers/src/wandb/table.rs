//! A table's file: `{"columns": [...], "data": [[...], ...]}` (wandb's sdk/data_types/table.py).

use jiter::{Jiter, JsonValue};

use crate::{entry::Value, json};

/// The most rows that are shown.
const MAX_ROWS: usize = 1000;

/// Reads a table's first rows. `None` where it is no table.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut jiter = Jiter::new(text.as_bytes()).with_allow_inf_nan();
    let (mut columns, mut rows) = (None, None);
    let mut key = jiter.next_object().ok()?.map(str::to_owned);
    while let Some(name) = key {
        match name.as_str() {
            "columns" => columns = Some(array(jiter.next_value().ok()?)?),
            "data" => {
                let (first, is_whole) = first_rows(&mut jiter)?;
                rows = Some(first);
                if !is_whole && columns.is_some() {
                    // The rest of a long table is not even looked at.
                    break;
                }
                if !is_whole {
                    skip_rows(&mut jiter)?;
                }
            }
            _ => jiter.next_skip().ok()?,
        }
        key = jiter.next_key().ok()?.map(str::to_owned);
    }
    let (columns, rows) = (columns?, rows?);
    let is_even = rows.iter().all(|row| row.len() == columns.len());
    let cells = columns.iter().chain(rows.iter().flatten()).map(json::display).collect();
    (is_even && !columns.is_empty()).then_some(Value::Table { n_columns: columns.len(), cells })
}

fn array(value: JsonValue<'_>) -> Option<Vec<JsonValue<'_>>> {
    match value {
        JsonValue::Array(values) => Some(values.to_vec()),
        _ => None,
    }
}

/// The first rows, and whether these are all; if not, the next one is about to be read.
fn first_rows<'j>(jiter: &mut Jiter<'j>) -> Option<(Vec<Vec<JsonValue<'j>>>, bool)> {
    let mut rows = Vec::new();
    let mut peek = jiter.next_array().ok()?;
    while let Some(next) = peek {
        if rows.len() == MAX_ROWS {
            jiter.known_skip(next).ok()?;
            return Some((rows, false));
        }
        rows.push(array(jiter.known_value(next).ok()?)?);
        peek = jiter.array_step().ok()?;
    }
    Some((rows, true))
}

/// Goes on to the end of the rows.
fn skip_rows(jiter: &mut Jiter<'_>) -> Option<()> {
    while let Some(next) = jiter.array_step().ok()? {
        jiter.known_skip(next).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::entry::Value;

    fn cells(text: &str) -> Option<usize> {
        match read(text)? {
            Value::Table { cells, .. } => Some(cells.len()),
            _ => None,
        }
    }

    #[test]
    fn a_long_table_has_its_first_rows() {
        let rows = vec!["[1, null]"; 1001].join(", ");
        assert_eq!(cells(&format!(r#"{{"columns": ["a", "b"], "data": [{rows}]}}"#)), Some(2002));
        assert_eq!(cells(&format!(r#"{{"data": [{rows}], "x": 1, "columns": ["a", "b"]}}"#)), Some(2002));
    }

    #[test]
    fn what_is_no_table() {
        for text in ["", "{}", "[]", r#"{"columns": [], "data": []}"#, r#"{"columns": ["a"], "data": [[1, 2]]}"#] {
            assert_eq!(cells(text), None, "{text}");
        }
    }
}
