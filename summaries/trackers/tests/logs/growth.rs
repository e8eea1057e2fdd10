//! Files that grow, are written anew, or are half written.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use proptest::prelude::*;
use trackers::{Batch, Entry, Log, Param, Reader, Value, logs_of_file};

use crate::common::{copy, fixture, make_old, read_all, read_log, scalars, values, walk};

/// The only log of a file.
fn log_of(path: &Path) -> Log {
    logs_of_file(path).pop().unwrap()
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn read(reader: &mut dyn Reader) -> Batch {
    read_all(reader, u64::MAX)
}

/// Writes `bytes` in pieces that end at `cuts`, and reads after each.
fn read_in_pieces(path: &Path, bytes: &[u8], mut cuts: Vec<usize>, reader: &mut dyn Reader) -> Vec<Entry> {
    cuts.retain(|cut| *cut < bytes.len());
    cuts.sort_unstable();
    cuts.push(bytes.len());
    fs::write(path, b"").unwrap();
    let (mut begin, mut entries) = (0, Vec::new());
    for cut in cuts {
        append(path, &bytes[begin..cut]);
        let batch = read(reader);
        assert_eq!(batch.problems, []);
        entries.extend(batch.entries);
        begin = cut;
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_give_what_the_whole_gives(cuts in proptest::collection::vec(0_usize..3000, 0..12)) {
        for name in ["json_lines/metrics.jsonl", "lightning_logs/version_0/metrics.csv"] {
            let whole = fs::read(fixture(name)).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(Path::new(name).file_name().unwrap());
            let mut reader = log_of(&path).open();
            let entries = read_in_pieces(&path, &whole, cuts.clone(), &mut *reader);
            let expected = read_log(&log_of(&path));
            prop_assert!(!entries.is_empty());
            prop_assert_eq!(scalars(&entries), scalars(&expected.entries));
        }
    }
}

#[test]
fn a_new_column_writes_the_table_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.csv");
    fs::write(&path, "epoch,loss,step\n0,0.5,10\n0,0.25,20\n").unwrap();
    let mut reader = log_of(&path).open();
    let first = read(&mut *reader).entries;
    assert_eq!(values(&first, "loss"), [(10, 0.5), (20, 0.25)]);
    assert_eq!(values(&first, "epoch"), [(10, 0.0), (20, 0.0)]);
    fs::write(&path, "acc,epoch,loss,step\n,0,0.5,10\n,0,0.25,20\n0.75,1,,20\n").unwrap();
    let second = read(&mut *reader).entries;
    assert_eq!(scalars(&second), [("acc", 20, 0.75_f64.to_bits()), ("epoch", 20, 1_f64.to_bits())]);
    // Another training in the same folder.
    fs::write(&path, "loss,step\n8,1\n7,2\n").unwrap();
    assert_eq!(values(&read(&mut *reader).entries, "loss"), [(1, 8.0), (2, 7.0)]);
    assert_eq!(read(&mut *reader), Batch::default());
}

#[test]
fn a_row_without_its_end_waits() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin, rest) in [
        ("metrics.csv", "step,loss\n1,0.5\n2,0.2", "5\n"),
        ("metrics.jsonl", "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": 0.2", "5}\n"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, begin).unwrap();
        let mut reader = log_of(&path).open();
        assert_eq!(values(&read(&mut *reader).entries, "loss"), [(1, 0.5)]);
        append(&path, rest.as_bytes());
        assert_eq!(values(&read(&mut *reader).entries, "loss"), [(2, 0.25)]);
    }
    // A file that nobody writes any more.
    let path = folder.path().join("metrics.csv");
    fs::write(&path, "step,loss\n1,0.5\n2,0.25").unwrap();
    make_old(&path);
    assert_eq!(values(&read_log(&log_of(&path)).entries, "loss"), [(1, 0.5), (2, 0.25)]);
}

#[test]
fn hyperparameters_that_come_later() {
    let folder = copy("lightning_logs/version_0");
    let params = folder.path().join("hparams.yaml");
    let whole = fs::read_to_string(&params).unwrap();
    fs::write(&params, "lr: [1,\n").unwrap();
    let log = log_of(&folder.path().join("metrics.csv"));
    let mut reader = log.open();
    let batch = read(&mut *reader);
    assert!(batch.problems.is_empty(), "it may be half written");
    assert!(!batch.entries.iter().any(|entry| entry.tag.is_empty()));
    fs::write(&params, whole).unwrap();
    let batch = read(&mut *reader);
    let [Entry { value: Value::Params(found), .. }] = &*batch.entries else { panic!("{batch:?}") };
    assert_eq!(found["lr"], Param::Number(1e-5));
    assert_eq!(found["text"], Param::Text("0.5".to_owned()));
    assert_eq!(read(&mut *reader), Batch::default());
}

#[test]
fn checkpoints_one_after_the_other() {
    let whole = copy("trainer");
    let expected = read_log(&walk(whole.path())[0]).entries;
    let folder = tempfile::tempdir().unwrap();
    let file = "trainer_state.json";
    let mut log = walk(whole.path()).remove(0);
    (log.folder, log.path) = (folder.path().to_owned(), folder.path().to_owned());
    let mut reader = log.open();
    assert!(reader.read(u64::MAX, &mut Batch::default()).is_err(), "nothing yet");
    let mut entries = Vec::new();
    for part in ["checkpoint-6", "checkpoint-12", "."] {
        fs::create_dir_all(folder.path().join(part)).unwrap();
        let bytes = fs::read(whole.path().join(part).join(file)).unwrap();
        let to = folder.path().join(part).join(file);
        // Half of it at first.
        fs::write(&to, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(read(&mut *reader).entries, []);
        fs::write(&to, bytes).unwrap();
        let batch = read(&mut *reader);
        assert_eq!(batch.problems, []);
        assert!(!batch.entries.is_empty());
        entries.extend(batch.entries);
        // The trainer keeps only the last ones.
        let _ = fs::remove_dir_all(folder.path().join("checkpoint-6"));
    }
    assert_eq!(scalars(&entries), scalars(&expected));
}

#[test]
fn a_run_of_mlruns_grows() {
    let folder = copy("mlruns");
    let logs = walk(folder.path());
    let log = logs.iter().find(|log| log.name == "experiment/other_name").unwrap();
    let mut reader = log.open();
    read(&mut *reader);
    append(&log.path.join("metrics/loss"), b"1700000000000 nan 100\n1700000000000 -inf 10");
    fs::write(log.path.join("metrics/val/new"), "1700000000250 0.5 3 data digest\n").unwrap();
    fs::write(log.path.join("params/late"), "5").unwrap();
    let image = "artifacts/images/b%step%4%timestamp%1700000000000%id.png";
    fs::write(log.path.join(image), b"\x89PNG\r\n\x1a\n").unwrap();
    let batch = read(&mut *reader);
    assert_eq!(batch.problems, []);
    let scalars: Vec<_> = batch.entries.iter().filter(|entry| matches!(entry.value, Value::Scalar(_))).collect();
    assert_eq!((scalars.len(), scalars[0].tag.as_str(), scalars[0].step), (2, "loss", 100));
    assert!(matches!(scalars[0].value, Value::Scalar(value) if value.is_nan()));
    let new = Entry { tag: "val/new".to_owned(), step: 3, wall: 1_700_000_000.25, value: Value::Scalar(0.5) };
    assert_eq!(*scalars[1], new);
    let Value::Params(params) = &batch.entries[0].value else { panic!("{batch:?}") };
    assert_eq!((params.len(), &params["late"]), (6, &Param::Number(5.0)));
    append(&log.path.join("metrics/loss"), b"0\n");
    assert_eq!(values(&read(&mut *reader).entries, "loss"), [(100, f64::NEG_INFINITY)]);
    // The image never got its end.
    make_old(&log.path.join(image));
    assert_eq!(read(&mut *reader).problems.len(), 1);
    assert_eq!(read(&mut *reader), Batch::default());
}
