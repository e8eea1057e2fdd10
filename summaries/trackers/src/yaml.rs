//! Hyperparameters in YAML, from the events of its parser: nothing is built of tags such as `!!python/object`, and
//! aliases are not expanded.

use std::{collections::BTreeMap, io, path::Path};

use saphyr_parser::{Event, Parser};

use crate::{entry::Param, file, json::param_of_text};

/// The largest file that is read.
const MAX_BYTES: u64 = 4 << 20;
/// The deepest nesting.
const MAX_DEPTH: usize = 64;

/// What is being read: a map with the key whose value is next, or a list with its next index.
enum Level {
    Map { key: Option<String> },
    List { index: usize },
}

/// A value that is neither a map nor a list.
#[derive(Debug)]
struct Scalar {
    text: String,
    /// Without quotes and tag: it may be a number.
    is_plain: bool,
}

/// Reads the scalars of a file by their paths, joined by `/`.
///
/// # Errors
/// The file cannot be read, is too large or is no YAML.
pub(crate) fn read_params(path: &Path) -> io::Result<BTreeMap<String, Param>> {
    let param = |value: Scalar| if value.is_plain { plain(&value.text) } else { Param::Text(value.text) };
    Ok(read(path)?.into_iter().map(|(name, value)| (name, param(value))).collect())
}

/// As [`read_params`], but each as it is written, and null left out.
///
/// # Errors
/// The file cannot be read, is too large or is no YAML.
pub(crate) fn read_texts(path: &Path) -> io::Result<BTreeMap<String, String>> {
    let is_null = |value: &Scalar| value.is_plain && is_null(&value.text);
    let values = read(path)?.into_iter().filter(|(_, value)| !is_null(value));
    Ok(values.map(|(name, value)| (name, value.text)).collect())
}

fn read(path: &Path) -> io::Result<BTreeMap<String, Scalar>> {
    let bytes = file::read(path, MAX_BYTES)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    parse(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The scalars of a text; `None` where it is no YAML.
fn parse(text: &str) -> Option<BTreeMap<String, Scalar>> {
    let mut scalars = BTreeMap::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.ok()?;
        match event {
            Event::Scalar(value, style, _, tag) => {
                if let Some(Level::Map { key: key @ None }) = levels.last_mut() {
                    *key = Some(value.to_string());
                    continue;
                }
                enter(&mut levels, &mut path);
                let is_plain = style == saphyr_parser::ScalarStyle::Plain && tag.is_none();
                scalars.insert(path.join("/"), Scalar { text: value.to_string(), is_plain });
                leave(&mut levels, &mut path);
            }
            Event::Alias(_) => {
                // As a key or as a value: what it stands for is there already.
                if let Some(Level::Map { key }) = levels.last_mut() {
                    *key = key.is_none().then(|| "*".to_owned());
                }
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if levels.len() >= MAX_DEPTH {
                    return None;
                }
                // A map as a key has no name.
                if let Some(Level::Map { key: key @ None }) = levels.last_mut() {
                    *key = Some("?".to_owned());
                }
                enter(&mut levels, &mut path);
                let is_map = matches!(event, Event::MappingStart(..));
                levels.push(if is_map { Level::Map { key: None } } else { Level::List { index: 0 } });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                levels.pop();
                leave(&mut levels, &mut path);
            }
            _ => {}
        }
    }
    Some(scalars)
}

/// Adds the name of the value that comes to the path.
fn enter(levels: &mut [Level], path: &mut Vec<String>) {
    match levels.last() {
        Some(Level::Map { key }) => path.push(key.clone().unwrap_or_default()),
        Some(Level::List { index }) => path.push(index.to_string()),
        None => {}
    }
}

/// Removes the name of the value that was read, and goes on to the next.
fn leave(levels: &mut [Level], path: &mut Vec<String>) {
    match levels.last_mut() {
        Some(Level::Map { key }) => *key = None,
        Some(Level::List { index }) => *index += 1,
        None => return,
    }
    path.pop();
}

/// A scalar without quotes.
fn plain(value: &str) -> Param {
    match value {
        value if is_null(value) => Param::Text("null".to_owned()),
        ".nan" | ".NaN" | ".NAN" => Param::Number(f64::NAN),
        ".inf" | ".Inf" | ".INF" => Param::Number(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Param::Number(f64::NEG_INFINITY),
        value => param_of_text(value),
    }
}

fn is_null(value: &str) -> bool {
    matches!(value, "null" | "~" | "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_and_tags() {
        let text = "lr: 0.001\nname: net\nbatch: 32\nuse: true\nquoted: '32'\nlayers: [8, 16]\nopt:\n  betas:\n  - 0.9\n  - 0.99\n\
                    nothing: null\nbad: !!python/object/apply:os.system ['rm']\nanchor: &a {x: 1}\nagain: *a\nlast: 5\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hparams.yaml");
        std::fs::write(&path, text).unwrap();
        let params = read_params(&path).unwrap();
        let texts = read_texts(&path).unwrap();
        assert_eq!((&*texts["lr"], &*texts["quoted"], texts.get("nothing")), ("0.001", "32", None));
        let number = |name: &str| match params.get(name) {
            Some(Param::Number(value)) => *value,
            other => panic!("{name}: {other:?}"),
        };
        let numbers = ["lr", "batch", "layers/0", "layers/1", "opt/betas/0", "opt/betas/1", "anchor/x", "last"];
        assert_eq!(numbers.map(number), [0.001, 32.0, 8.0, 16.0, 0.9, 0.99, 1.0, 5.0]);
        assert_eq!(params["use"], Param::Bool(true));
        assert_eq!(params["quoted"], Param::Text("32".to_owned()));
        assert_eq!(params["bad/0"], Param::Text("rm".to_owned()));
        assert!(!params.keys().any(|name| name.starts_with("again")));
        let deep = "[".repeat(100_000);
        for text in ["a: [1", "\t- :\n -\n\t}", deep.as_str()] {
            assert!(parse(text).is_none());
        }
    }
}
