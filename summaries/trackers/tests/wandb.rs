//! Weights & Biases' logs. Those in `fixtures/wandb` were written by its own program, and `expected.json` next to each
//! has what its own reader gives (tests/scripts/wandb_fixtures.py).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "wandb/damage.rs"]
mod damage;
#[path = "wandb/growth.rs"]
mod growth;
#[path = "wandb/made.rs"]
mod made;
#[path = "wandb/media.rs"]
mod media;
#[path = "wandb/read.rs"]
mod read;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value as Json;
use trackers::{Batch, Bucket, Entry, LogKind, Param, Value, logs_in, logs_of_file};

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wandb").join(name);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "wandb")).unwrap()
}

fn expected(log: &Path) -> Json {
    serde_json::from_slice(&fs::read(log.with_file_name("expected.json")).unwrap()).unwrap()
}

fn bits(json: &Json) -> u64 {
    u64::from_str_radix(json.as_str().unwrap(), 16).unwrap()
}

fn list(json: &Json) -> &[Json] {
    json.as_array().unwrap()
}

/// Tag, step, time and value, the last two by their bits.
type Scalar = (String, i64, u64, u64);

fn scalars(batch: &Batch) -> Vec<Scalar> {
    let scalar = |entry: &Entry| match entry.value {
        Value::Scalar(value) => Some((entry.tag.clone(), entry.step, entry.wall.to_bits(), value.to_bits())),
        _ => None,
    };
    batch.entries.iter().filter_map(scalar).collect()
}

fn check_texts(batch: &Batch, expected: &Json) {
    let pages = ["page", "pages/0", "pages/1"];
    let of_list = |text: &str| text.starts_with('[');
    let text = |entry: &Entry| match &entry.value {
        Value::Text(text) if !pages.contains(&&*entry.tag) && !of_list(text) => {
            let long = || serde_json::json!([text.len(), crc32fast::hash(text.as_bytes())]);
            let text = if text.len() < 1000 { Json::from(text.as_str()) } else { long() };
            Some(serde_json::json!([entry.tag, entry.step, text]))
        }
        _ => None,
    };
    let texts: Vec<Json> = batch.entries.iter().filter_map(text).collect();
    assert_eq!(texts, list(&expected["texts"]));
}

fn check_configs(batch: &Batch, expected: &Json) {
    let params = |entry: &Entry| match &entry.value {
        Value::Params(params) => Some(params.clone()),
        _ => None,
    };
    let found: Vec<BTreeMap<String, Param>> = batch.entries.iter().filter_map(params).collect();
    let param = |json: &Json| match json {
        Json::Bool(value) => Param::Bool(*value),
        Json::String(text) => Param::Text(text.clone()),
        Json::Object(number) => Param::Number(f64::from_bits(bits(&number["bits"]))),
        Json::Array(values) => {
            Param::Text(format!("[{}]", values.iter().map(Json::to_string).collect::<Vec<_>>().join(", ")))
        }
        other => Param::Text(other.to_string()),
    };
    let config =
        |json: &Json| json.as_object().unwrap().iter().map(|(name, json)| (name.clone(), param(json))).collect();
    let expected: Vec<BTreeMap<String, Param>> = list(&expected["configs"]).iter().map(config).collect();
    assert_eq!(found, expected);
}

/// Histograms bucket by bucket, and files byte by byte.
fn check_objects(batch: &Batch, expected: &Json, files: &Path) {
    let value = |tag: &str, step: i64| {
        batch.entries.iter().find(|entry| entry.tag == tag && entry.step == step).map(|entry| &entry.value)
    };
    for object in list(&expected["objects"]) {
        let (tag, step) = (object["tag"].as_str().unwrap(), object["step"].as_i64().unwrap());
        let kind = object["type"].as_str().unwrap();
        if kind == "histogram" {
            let numbers =
                |name: &str| list(&object[name]).iter().map(|json| f64::from_bits(bits(json))).collect::<Vec<_>>();
            let (edges, counts) = (numbers("bins"), numbers("values"));
            let bucket = |(i, count): (usize, &f64)| Bucket { left: edges[i], right: edges[i + 1], count: *count };
            let buckets = counts.iter().enumerate().map(bucket).collect();
            assert_eq!(value(tag, step), Some(&Value::Histogram(buckets)), "{tag}");
            continue;
        }
        for (i, path) in list(&object["paths"]).iter().enumerate() {
            let is_list = ["images/separated", "html"].contains(&kind);
            let tag = if is_list { format!("{tag}/{i}") } else { tag.to_owned() };
            let file = fs::read(files.join(path.as_str().unwrap())).unwrap();
            match value(&tag, step) {
                Some(Value::Image { file: found, size }) => assert_eq!((found, *size), (&file, (3, 2)), "{tag}"),
                Some(Value::Audio(found)) => assert_eq!(found, &file, "{tag}"),
                Some(Value::Text(found)) => assert_eq!(found.as_bytes(), file, "{tag}"),
                Some(Value::Table { n_columns, cells }) => {
                    assert_eq!((*n_columns, &*cells.join(" ")), (2, "a b 1 x 2.5 null"));
                }
                other => {
                    assert!(other.is_none() && ["video-file", "object3D-file"].contains(&kind), "{tag}: {other:?}");
                }
            }
        }
    }
}

fn check(name: &str) -> Batch {
    let log = fixture(name);
    let (batch, expected) = (read::whole(&log), expected(&log));
    let scalar =
        |json: &Json| (json[0].as_str().unwrap().to_owned(), json[1].as_i64().unwrap(), bits(&json[2]), bits(&json[3]));
    assert_eq!(scalars(&batch), list(&expected["scalars"]).iter().map(scalar).collect::<Vec<_>>());
    check_texts(&batch, &expected);
    check_configs(&batch, &expected);
    check_objects(&batch, &expected, &log.with_file_name("files"));
    assert_eq!(batch.n_bytes, fs::metadata(&log).unwrap().len());
    batch
}

#[test]
fn a_run_of_the_current_release() {
    let batch = check("core");
    assert_eq!(read::whats(&batch), ["a 3D object, which is not shown", "a video, which is not shown"]);
    // The program put these into the summary only; the smallest of a metric is no value of its own.
    assert_eq!(read::scalars(&batch, "best"), [(12, 0.9)]);
    assert_eq!(read::scalars(&batch, "only.summary"), [(12, 1.0)]);
    assert_eq!(read::scalars(&batch, "low"), [(1, 4.0)]);
    assert!(read::scalars(&batch, "low.min").is_empty());
    assert!(batch.entries.iter().any(|entry| entry.tag == "system/cpu" && entry.step >= 1));
}

#[test]
fn runs_with_typed_values_and_of_an_old_release() {
    for name in ["typed", "typed-only", "legacy"] {
        assert!(check(name).problems.is_empty(), "{name}");
    }
}

#[test]
fn logs_are_found_by_name_and_by_content() {
    let log = fixture("core");
    let found = logs_in(log.parent().unwrap(), std::slice::from_ref(&log), &[]);
    assert_eq!(found.iter().map(|log| (log.kind, &*log.name)).collect::<Vec<_>>(), [(LogKind::Wandb, "")]);
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("log");
    fs::copy(&log, &other).unwrap();
    assert_eq!(logs_of_file(&other).iter().map(|log| log.kind).collect::<Vec<_>>(), [LogKind::Wandb]);
    fs::write(&other, ":W&").unwrap();
    assert!(logs_of_file(&other).is_empty());
}
