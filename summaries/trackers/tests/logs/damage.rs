//! What is damaged is a problem, and nothing else is lost.

use std::{fs, ops::Range, path::Path};

use proptest::prelude::*;
use trackers::{Batch, Log, LogKind, Value, logs_in, logs_of_file};

use crate::common::{copy, fixture, make_old, read_log, values, walk};

#[test]
fn damaged_lines() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let batch = read_log(&logs_of_file(&path)[0]);
        let range = |bytes: &Range<u64>| &text[bytes.start as usize..bytes.end as usize];
        let problems = batch.problems.iter().map(|problem| String::from_utf8_lossy(range(&problem.bytes)).into_owned());
        let problems: Vec<String> = problems.collect();
        (values(&batch.entries, "loss"), problems)
    };
    let lines =
        b"{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"lo\n\n[1, 2]\n\xff\xfe\n{\"step\": 3, \"loss\": 3}\r\n{\"st";
    let (points, problems) = read("metrics.jsonl", lines);
    assert_eq!(points, [(1, 1.0), (3, 3.0)]);
    assert_eq!(problems, ["{\"step\": 2, \"lo\n", "[1, 2]\n", "\u{fffd}\u{fffd}\n"]);
    let (points, problems) = read("metrics.csv", b"step,loss\n1,1\n2\n2,2,2\n\n3,x\n\"4,4\n5,5\r\n");
    assert_eq!(points, [(1, 1.0), (5, 5.0)]);
    assert_eq!(problems, ["2\n", "2,2,2\n", "\"4,4\n"]);
}

#[test]
fn deep_and_large_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let huge = "9".repeat(400);
    fs::write(&path, format!("{deep}\n{{\"step\": 9e99, \"loss\": {huge}}}\n{{\"step\": -1, \"loss\": 1}}\n")).unwrap();
    let batch = read_log(&logs_of_file(&path)[0]);
    assert_eq!(batch.problems.len(), 1);
    assert_eq!(values(&batch.entries, "loss"), [(1, f64::INFINITY), (-1, 1.0)]);
}

#[test]
fn a_damaged_trainer_state() {
    let folder = copy("trainer");
    let log = walk(folder.path()).remove(0);
    let whole = read_log(&log);
    let damaged = folder.path().join("checkpoint-6/trainer_state.json");
    let bytes = fs::read(&damaged).unwrap();
    for bad in [&bytes[..300], b"", b"[1]", b"\xff\xff\xff"] {
        fs::write(&damaged, bad).unwrap();
        make_old(&damaged);
        let batch = read_log(&log);
        assert_eq!(batch.problems.len(), 1);
        assert_eq!(values(&batch.entries, "eval/loss"), values(&whole.entries, "eval/loss"));
    }
    let odd = r#"{"log_history": [1, {"step": 5, "loss": 0.5}, {"loss": "x", "step": 6}], "max_steps": "no"}"#;
    fs::remove_file(folder.path().join("trainer_state.json")).unwrap();
    fs::remove_dir_all(folder.path().join("checkpoint-12")).unwrap();
    fs::write(&damaged, odd).unwrap();
    let batch = read_log(&log);
    assert_eq!((batch.problems.len(), values(&batch.entries, "train/loss")), (1, vec![(5, 0.5)]));
}

#[test]
fn damage_in_mlruns() {
    let folder = copy("mlruns");
    let log = walk(folder.path()).into_iter().find(|log| log.name == "experiment/other_name").unwrap();
    fs::write(log.path.join("metrics/loss"), "1 2 3 4\nx 1 1\n1700000000000 0.5 7\n1 1 x\n").unwrap();
    fs::write(log.path.join("params/lr"), b"\xff").unwrap();
    let batch = read_log(&log);
    assert_eq!((batch.problems.len(), values(&batch.entries, "loss")), (3, vec![(7, 0.5)]));
    assert_eq!(values(&batch.entries, "val/acc").len(), 2);
    // Without its name the run has its id; without its file it is none.
    let meta = log.path.join("meta.yaml");
    let text = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, text.replace("run_name: other/name\n", "")).unwrap();
    let id = log.path.file_name().unwrap().to_str().unwrap();
    assert!(walk(folder.path()).iter().any(|log| log.name == format!("experiment/{}", &id[..8])));
    fs::write(&meta, "run_id: [\n").unwrap();
    assert_eq!(walk(folder.path()).len(), 2);
}

#[test]
fn logs_that_are_gone() {
    let folder = copy("trackio");
    let path = folder.path().join("project.db");
    let log = walk(folder.path()).remove(0);
    let mut reader = log.open();
    reader.read(u64::MAX, &mut Batch::default()).unwrap();
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(reader.read(1, &mut Batch::default()).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    for kind in
        [LogKind::MlflowFolder, LogKind::MlflowDatabase, LogKind::Csv, LogKind::JsonLines, LogKind::TrainerState]
    {
        let log = Log { kind, path: path.clone(), ..log.clone() };
        let error = log.open().read(1, &mut Batch::default()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{kind:?}");
    }
}

/// Reads whatever is there.
fn read_anything(path: &Path) -> usize {
    let mut logs = logs_of_file(path);
    logs.extend(logs_in(path.parent().unwrap(), &[path.to_owned()], &[]));
    let mut n_entries = 0;
    for log in logs {
        let (mut reader, mut batch) = (log.open(), Batch::default());
        for _ in 0..3 {
            let _ = reader.read(1 << 16, &mut batch);
        }
        n_entries += batch.entries.len();
    }
    n_entries
}

const NAMES: [&str; 6] = ["metrics.csv", "metrics.jsonl", "trainer_state.json", "meta.yaml", "a.db", "any"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), name in 0..NAMES.len()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAMES[name]);
        fs::write(&path, bytes).unwrap();
        make_old(&path);
        read_anything(&path);
    }

    #[test]
    fn changed_bytes_of_logs(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30)) {
        let files = ["json_lines/metrics.jsonl", "lightning_logs/version_0/metrics.csv", "lightning_logs/version_0/hparams.yaml",
            "trainer/trainer_state.json"];
        for file in files {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(Path::new(file).file_name().unwrap());
            let mut bytes = fs::read(fixture(file)).unwrap();
            for (index, byte) in &changes {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            fs::write(folder.path().join("metrics.csv"), "step,a\n1,2\n").unwrap();
            fs::write(&path, bytes).unwrap();
            make_old(&path);
            read_anything(&path);
            read_anything(&folder.path().join("metrics.csv"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn changed_bytes_of_databases(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
        len in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        for (fixture, name) in [("trackio", "project.db"), ("mlflow.db.gz", "mlflow.db")] {
            let folder = copy(fixture);
            let path = folder.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            for (index, byte) in &changes {
                // The first bytes say that it is a database.
                let at = 100 + index.index(bytes.len() - 100);
                bytes[at] = *byte;
            }
            if is_cut {
                bytes.truncate(len.index(bytes.len()));
            }
            fs::write(&path, bytes).unwrap();
            read_anything(&path);
        }
    }
}

#[test]
fn the_cases_above_read_something() {
    for name in ["trackio/project.db", "mlflow.db"] {
        let (fixture, file) = name.split_once('/').unwrap_or(("mlflow.db.gz", name));
        assert!(read_anything(&copy(fixture).path().join(file)) > 10);
    }
    let batch = read_log(&logs_of_file(&fixture("json_lines/metrics.jsonl"))[0]);
    assert!(batch.entries.iter().all(|entry| matches!(entry.value, Value::Scalar(_))));
}
