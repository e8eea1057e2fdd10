//! What a value of a row stands for: numbers, texts, and dictionaries with a `_type` (trackio's histogram.py, table.py,
//! markdown.py, media/).

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use jiter::{JsonObject, JsonValue};

use crate::{
    entry::{Bucket, Value},
    file, image, json,
};

/// The largest media file that is read.
const MAX_BYTES: u64 = 64 << 20;
/// The most rows of a table that are shown.
const MAX_ROWS: usize = 1000;

/// Whether an object is more than a dictionary of values.
pub(super) fn is_typed(object: &JsonObject<'_>) -> bool {
    json::text(object, "_type").is_some()
}

/// A number, also one that JSON lacks (trackio's utils.py, serialize_values).
pub(super) fn scalar(value: &JsonValue<'_>) -> Option<f64> {
    match value {
        JsonValue::Str(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        value => json::number(value),
    }
}

/// A value of a row; `None` for null.
///
/// # Errors
/// It cannot be read, or is of a kind that is not shown.
pub(super) fn read(value: &JsonValue<'_>, media: &Media) -> Result<Option<Value>, &'static str> {
    if let Some(number) = scalar(value) {
        return Ok(Some(Value::Scalar(number)));
    }
    match value {
        JsonValue::Null => Ok(None),
        JsonValue::Object(object) => typed(object, media).map(Some),
        value => Ok(Some(Value::Text(json::display(value)))),
    }
}

fn typed(object: &JsonObject<'_>, media: &Media) -> Result<Value, &'static str> {
    match json::text(object, "_type").unwrap_or_default() {
        "trackio.image" => Ok(image_of(media.file(object)?)),
        "trackio.audio" => match media.file(object)? {
            file if file.starts_with(b"RIFF") => Ok(Value::Audio(file)),
            _ => Err("a sound that is no WAV file"),
        },
        "trackio.video" => match media.file(object)? {
            file if file.starts_with(b"GIF8") => Ok(image_of(file)),
            _ => Err("a video, which is not shown"),
        },
        "trackio.html" => media.file(object).map(|file| Value::Text(String::from_utf8_lossy(&file).into_owned())),
        "trackio.markdown" => {
            json::text(object, "_value").map(|text| Value::Text(text.to_owned())).ok_or("a text without a value")
        }
        "trackio.histogram" => histogram(object).ok_or("a histogram without bins or values"),
        "trackio.table" => table(object).ok_or("a table that cannot be read"),
        _ => Err("a kind of medium that is not shown"),
    }
}

fn image_of(file: Vec<u8>) -> Value {
    Value::Image { size: image::size(&file), file }
}

/// The folder of media files, which is next to the database.
#[derive(Debug)]
pub(super) struct Media {
    folder: PathBuf,
}

impl Media {
    pub fn new(database: &Path) -> Self {
        Self { folder: database.with_file_name("media") }
    }

    /// The file of a medium. It must be in the folder, also when links are followed.
    fn file(&self, object: &JsonObject<'_>) -> Result<Vec<u8>, &'static str> {
        const MISSING: &str = "a medium whose file is missing, or larger than 64 MiB";
        const OUTSIDE: &str = "a medium outside of the project's folder";
        // Windows' paths have other separators.
        let path = json::text(object, "file_path").ok_or("a medium without a path")?.replace('\\', "/");
        if !Path::new(&path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(OUTSIDE);
        }
        let folder = fs::canonicalize(&self.folder).map_err(|_| MISSING)?;
        let path = fs::canonicalize(folder.join(path)).map_err(|_| MISSING)?;
        if !path.starts_with(folder) {
            return Err(OUTSIDE);
        }
        file::read(&path, MAX_BYTES).map_err(|_| MISSING)
    }
}

fn numbers(object: &JsonObject<'_>, key: &str) -> Option<Vec<f64>> {
    match json::get(object, key)? {
        JsonValue::Array(values) => values.iter().map(scalar).collect(),
        _ => None,
    }
}

/// `bins` are the edges, one more than there are counts; both are empty without a finite value.
fn histogram(object: &JsonObject<'_>) -> Option<Value> {
    let (edges, counts) = (numbers(object, "bins")?, numbers(object, "values")?);
    (edges.len() == counts.len() + 1 || edges.is_empty() && counts.is_empty()).then_some(())?;
    let edges = edges.iter().zip(edges.iter().skip(1));
    let bucket = |((left, right), count): ((&f64, &f64), &f64)| Bucket { left: *left, right: *right, count: *count };
    Some(Value::Histogram(edges.zip(&counts).map(bucket).collect()))
}

/// A table is a list of objects, a row each, which need not have the same columns.
fn table(object: &JsonObject<'_>) -> Option<Value> {
    let JsonValue::Array(rows) = json::get(object, "_value")? else { return None };
    let rows = rows.iter().take(MAX_ROWS).map(|row| match row {
        JsonValue::Object(row) => Some(row),
        _ => None,
    });
    let rows: Vec<&JsonObject<'_>> = rows.collect::<Option<_>>()?;
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| row.iter()) {
        if !columns.iter().any(|column| column == name) {
            columns.push(name.to_string());
        }
    }
    (!columns.is_empty()).then_some(())?;
    let mut cells = columns.clone();
    for row in rows {
        cells.extend(columns.iter().map(|column| json::get(row, column).map(json::display).unwrap_or_default()));
    }
    Some(Value::Table { n_columns: columns.len(), cells })
}
