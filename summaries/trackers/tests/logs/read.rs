//! Every value is that of the tool's own reader, in its order.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value as Json, json};
use trackers::{Batch, Bucket, Entry, LogKind, Param, Value};

use crate::common::{copy, fixture, read_all, read_log, walk};

fn expected(name: &str) -> Json {
    serde_json::from_slice(&fs::read(fixture(name)).unwrap()).unwrap()
}

fn hex(value: f64) -> Json {
    let value = if value.is_nan() { f64::from_bits(0x7ff8 << 48) } else { value };
    json!(format!("{:016x}", value.to_bits()))
}

/// What was read, in the form of the expected values.
fn form(batch: &Batch, has_times: bool) -> Json {
    let mut kinds: BTreeMap<&str, BTreeMap<String, Vec<Json>>> = BTreeMap::new();
    let mut params = json!({});
    for kind in ["scalars", "texts", "files"] {
        kinds.entry(kind).or_default();
    }
    for Entry { tag, step, wall, value } in &batch.entries {
        let time = if has_times { hex(*wall) } else { Json::Null };
        let (kind, point) = match value {
            Value::Scalar(value) => ("scalars", json!([step, time, hex(*value)])),
            Value::Text(text) if tag != "alerts" => ("texts", json!([step, text])),
            Value::Image { file, .. } | Value::Audio(file) => ("files", json!([step, crc32fast::hash(file)])),
            Value::Params(all) => {
                params = all.iter().map(|(name, param)| (name.clone(), param_form(param))).collect();
                continue;
            }
            _ => continue,
        };
        kinds.entry(kind).or_default().entry(tag.clone()).or_default().push(point);
    }
    let mut form = json!(kinds);
    form["params"] = params;
    form
}

fn param_form(param: &Param) -> Json {
    match param {
        Param::Number(number) => json!({ "bits": hex(*number) }),
        Param::Text(text) => json!(text),
        Param::Bool(value) => json!(value),
    }
}

/// MLflow has all parameters as texts.
fn typed_params(expected: &mut Json) {
    for run in expected.as_object_mut().unwrap().values_mut() {
        for (_, param) in run["params"].as_object_mut().unwrap() {
            let text = param.as_str().unwrap();
            *param = match (text, text.parse::<f64>()) {
                ("True", _) => json!(true),
                (_, Ok(number)) => json!({ "bits": hex(number) }),
                _ => continue,
            };
        }
    }
}

/// Compares the logs of a folder, read in parts of `allowance` bytes.
fn check(folder: &Path, kind: LogKind, expected: &Json, has_times: bool, allowance: u64) {
    let mut found = json!({});
    for log in walk(folder) {
        assert_eq!(log.kind, kind);
        let own = log.folder.strip_prefix(folder).unwrap().to_str().unwrap();
        let name = if own.is_empty() || log.name.is_empty() {
            format!("{own}{}", log.name)
        } else {
            format!("{own}/{}", log.name)
        };
        let batch = read_all(&mut *log.open(), allowance);
        assert_eq!(batch.problems, []);
        assert!(batch.n_bytes > 0);
        found[name] = form(&batch, has_times);
    }
    for (name, run) in expected.as_object().unwrap() {
        for kind in ["scalars", "texts", "files", "params"] {
            assert_eq!(found[name][kind], run[kind], "{name}: {kind}");
        }
    }
    assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());
}

const ALLOWANCES: [u64; 3] = [1, 1000, u64::MAX];

#[test]
fn trackio() {
    let folder = copy("trackio");
    for allowance in ALLOWANCES {
        check(folder.path(), LogKind::Trackio, &expected("trackio.json"), true, allowance);
    }
    let logs = walk(folder.path());
    let batch = read_log(logs.iter().find(|log| log.name == "project/first").unwrap());
    let find = |tag: &str| batch.entries.iter().find(|entry| entry.tag == tag).unwrap();
    // numpy.histogram([1, 2, 3, 3], bins=4)
    let bucket = |left, right, count| Bucket { left, right, count };
    let buckets = vec![bucket(1.0, 1.5, 1.0), bucket(1.5, 2.0, 0.0), bucket(2.0, 2.5, 1.0), bucket(2.5, 3.0, 2.0)];
    assert_eq!((&find("hist").value, find("hist").step), (&Value::Histogram(buckets), 21));
    let cells = ["a", "b", "1", "x", "2.5", "y"].map(str::to_owned).to_vec();
    assert_eq!(find("table").value, Value::Table { n_columns: 2, cells });
    assert!(matches!(&find("image").value, Value::Image { size: (5, 4), .. }));
    assert_eq!(find("alerts").value, Value::Text("**careful** (warn)\n\nthe loss is high".to_owned()));
}

#[test]
fn mlflow_database() {
    let folder = copy("mlflow.db.gz");
    let mut expected = expected("mlflow_database.json");
    typed_params(&mut expected);
    for allowance in ALLOWANCES {
        check(folder.path(), LogKind::MlflowDatabase, &expected, true, allowance);
    }
}

#[test]
fn mlruns() {
    let mut expected = expected("mlruns.json");
    typed_params(&mut expected);
    for allowance in ALLOWANCES {
        check(&fixture("mlruns"), LogKind::MlflowFolder, &expected, true, allowance);
    }
}

#[test]
fn lightning() {
    let folder = fixture("lightning_logs");
    let mut expected = expected("lightning.json");
    let run = expected["lightning_logs/version_0"].take();
    for allowance in ALLOWANCES {
        check(&folder, LogKind::Csv, &json!({ "version_0": run }), false, allowance);
    }
}

#[test]
fn trainer_state() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trainer");
    fs::rename(copy("trainer").keep(), &output).unwrap();
    let logs = walk(folder.path());
    assert!(logs.iter().all(|log| *log == logs[0]), "a checkpoint is no run");
    let run = &expected("trainer.json")["trainer"];
    for allowance in ALLOWANCES {
        assert_eq!(form(&read_all(&mut *logs[0].open(), allowance), false), *run);
    }
    // The last file alone has all.
    for step in [6, 12] {
        fs::remove_dir_all(output.join(format!("checkpoint-{step}"))).unwrap();
    }
    assert_eq!(form(&read_log(&logs[0]), false), *run);
}

#[test]
fn json_lines() {
    let expected = &expected("json_lines.json")["json_lines"];
    for allowance in ALLOWANCES {
        check(&fixture("json_lines"), LogKind::JsonLines, &json!({ "": expected }), true, allowance);
    }
}
