//! A row of the history. Dictionaries come in parts, each with its own name: a histogram is three items.

use std::collections::{BTreeMap, BTreeSet};

use jiter::JsonValue;

use super::{frames::Frame, media::Media, proto::Item, value::flatten};
use crate::{
    entry::{Bucket, Entry, Value},
    json,
    reader::{Batch, Problem},
};

/// Where a dictionary says what it stands for.
const TYPE: &str = "_type";
/// The values that every row has in addition to those that were logged.
const OWN: [&str; 3] = ["_step", "_timestamp", "_runtime"];
/// How many parts of a name are looked at for a dictionary that stands for something.
const MAX_DEPTH: usize = 64;
/// The most files of a list that are read: Weights & Biases' own limit of images.
const MAX_LIST: usize = 108;

/// The values of a record by their names, whose parts are joined by `.`, as Weights & Biases shows them.
pub(super) struct Row<'a> {
    values: Vec<(String, JsonValue<'a>)>,
    /// What could not be read.
    problems: Vec<&'static str>,
    /// The names of the dictionaries that stand for something.
    objects: BTreeSet<String>,
}

impl<'a> Row<'a> {
    pub fn new(items: &'a [Item]) -> Self {
        let mut row = Row { values: Vec::new(), problems: Vec::new(), objects: BTreeSet::new() };
        for item in items {
            let Some(value) = item.value() else {
                row.problems.push("a value that is not JSON");
                continue;
            };
            if !flatten(item.name(), value, &mut row.values) {
                row.problems.push("a name of more than 4096 bytes");
            }
        }
        let typed = row.values.iter().filter(|(_, value)| matches!(value, JsonValue::Str(_)));
        row.objects =
            typed.filter_map(|(name, _)| Some(name.strip_suffix(TYPE)?.strip_suffix('.')?.to_owned())).collect();
        row
    }

    fn value(&self, name: &str) -> Option<&JsonValue<'a>> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn step(&self) -> Option<i64> {
        self.value("_step").and_then(json::integer)
    }

    pub fn wall(&self) -> Option<f64> {
        self.value("_timestamp").and_then(json::number)
    }

    /// The names of the dictionaries that stand for something.
    pub fn objects(&self) -> impl Iterator<Item = &String> {
        self.objects.iter()
    }

    /// The numbers that are no part of a histogram, a media file or such.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        let own = self.values.iter().filter(|(name, _)| !is_internal(name) && self.object_of(name).is_none());
        own.filter_map(|(name, value)| Some((name.as_str(), json::number(value)?)))
    }

    /// Adds the values of the row.
    pub fn entries(&self, step: i64, wall: f64, media: &mut Media, frame: &Frame, batch: &mut Batch) {
        let mut objects: BTreeMap<&str, Object<'_, 'a>> = BTreeMap::new();
        for (name, value) in &self.values {
            if let Some((object, field)) = self.object_of(name) {
                objects.entry(object).or_default().0.insert(field, value);
                continue;
            }
            let value = match value {
                _ if is_internal(name) => continue,
                JsonValue::Null => continue,
                JsonValue::Str(text) => Value::Text(text.to_string()),
                value => json::number(value).map_or_else(|| Value::Text(json::display(value)), Value::Scalar),
            };
            batch.entries.push(Entry { tag: name.clone(), step, wall, value });
        }
        let mut problems = self.problems.clone();
        for (name, object) in &objects {
            for (tag, value) in object.values(name, media) {
                match value {
                    Ok(value) => batch.entries.push(Entry { tag, step, wall, value }),
                    Err(what) => problems.push(what),
                }
            }
        }
        batch.problems.extend(problems.into_iter().map(|what| Problem { what, bytes: frame.bytes.clone() }));
    }

    /// The dictionary that a value belongs to, and its field there. That of an image has others in it (boxes, masks),
    /// which belong to the image.
    fn object_of<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        if self.objects.is_empty() {
            return None;
        }
        let mut dots = name.match_indices('.').take(MAX_DEPTH);
        dots.find_map(|(at, _)| {
            let object = name.get(..at)?;
            self.objects.contains(object).then_some((object, name.get(at + 1..)?))
        })
    }
}

/// Whether a value is Weights & Biases' own.
fn is_internal(name: &str) -> bool {
    OWN.contains(&name) || name == "_wandb" || name.starts_with("_wandb.")
}

/// The fields of a dictionary that stands for something.
#[derive(Default)]
struct Object<'a, 'j>(BTreeMap<&'a str, &'a JsonValue<'j>>);

type FileResult = Result<Value, &'static str>;

impl Object<'_, '_> {
    fn text(&self, field: &str) -> Option<&str> {
        match self.0.get(field)? {
            JsonValue::Str(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, field: &str) -> Option<&[JsonValue<'_>]> {
        match self.0.get(field)? {
            JsonValue::Array(values) => Some(values),
            _ => None,
        }
    }

    fn numbers(&self, field: &str) -> Option<Vec<f64>> {
        self.list(field)?.iter().map(json::number).collect()
    }

    /// What the dictionary stands for, with its tag; several for a list.
    fn values(&self, name: &str, media: &mut Media) -> Vec<(String, FileResult)> {
        let found = match self.text(TYPE).unwrap_or_default() {
            "images/separated" => return self.files(name, "filenames", &mut |path| media.image(path)),
            "audio" => return self.files(name, "audio", &mut |path| media.audio(path)),
            "html" => return self.files(name, "html", &mut |path| media.text(path)),
            "histogram" => self.histogram().ok_or("a histogram without bins or values"),
            "image-file" => self.path().and_then(|path| media.image(path)),
            "audio-file" => self.path().and_then(|path| media.audio(path)),
            "html-file" => self.path().and_then(|path| media.text(path)),
            "table-file" | "incremental-table-file" => self.path().and_then(|path| media.table(path)),
            "video-file" | "videos" => Err("a video, which is not shown"),
            "plotly-file" | "bokeh-file" | "graph-file" => Err("a chart of another library, which is not shown"),
            "object3D-file" | "object3D" | "molecule-file" | "molecule" => Err("a 3D object, which is not shown"),
            "partitioned-table" | "joined-table" => Err("a table in several files, which is not shown"),
            _ => Err("a kind of media that is not shown"),
        };
        vec![(name.to_owned(), found)]
    }

    fn path(&self) -> Result<&str, &'static str> {
        self.text("path").ok_or("a media file without a path")
    }

    /// The files of a list, which has paths or dictionaries with paths.
    fn files(&self, name: &str, field: &str, read: &mut dyn FnMut(&str) -> FileResult) -> Vec<(String, FileResult)> {
        let Some(files) = self.list(field) else { return vec![(name.to_owned(), Err("media files without paths"))] };
        let file = |(i, file): (usize, &JsonValue<'_>)| {
            let path = match file {
                JsonValue::Str(path) => Some(&**path),
                JsonValue::Object(file) => json::text(file, "path"),
                _ => None,
            };
            (format!("{name}/{i}"), path.ok_or("a media file without a path").and_then(&mut *read))
        };
        let mut found: Vec<_> = files.iter().take(MAX_LIST).enumerate().map(file).collect();
        if files.len() > MAX_LIST {
            found.push((name.to_owned(), Err("a list of more than 108 media files")));
        }
        found
    }

    /// Bins are given by their edges, or by the first edge and their width.
    fn histogram(&self) -> Option<Value> {
        let counts = self.numbers("values")?;
        let edges = match self.numbers("bins") {
            Some(edges) => edges,
            None => {
                let packed = |field: &str| self.0.get(field).and_then(|value| json::number(value));
                let (min, width) = (packed("packedBins.min")?, packed("packedBins.size")?);
                (0..=counts.len()).map(|i| min + width * i as f64).collect()
            }
        };
        (edges.len() == counts.len() + 1).then_some(())?;
        let sides = edges.iter().zip(edges.iter().skip(1)).zip(&counts);
        let buckets = sides.map(|((left, right), count)| Bucket { left: *left, right: *right, count: *count });
        Some(Value::Histogram(buckets.collect()))
    }
}
