//! Logs with wrong bytes.

use std::{collections::BTreeSet, fs, path::Path};

use proptest::{collection::vec, prelude::*};

use super::{
    fixture,
    made::Log,
    read::{open, rest, scalars, whats, whole},
};

const BLOCK: usize = 32 << 10;

fn steps(path: &Path) -> BTreeSet<i64> {
    scalars(&whole(path), "x").into_iter().map(|(step, _)| step).collect()
}

#[test]
fn a_wrong_byte_costs_no_record_of_another_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    // Some records span blocks.
    let text = |step: i64| format!("\"{}\"", "t".repeat(if step % 7 == 0 { 20_000 } else { 300 }));
    let log = (0..40).fold(Log::new(), |log, step| log.row(step, &[("x", "1"), ("text", &text(step))]));
    let headers = log.records.iter().flat_map(|record| record.start..record.start + 7);
    for at in headers.chain((7..log.bytes.len()).step_by(331)) {
        for mask in [1, 0x80, 0xff] {
            let mut bytes = log.bytes.clone();
            bytes[at] ^= mask;
            fs::write(&path, &bytes).unwrap();
            let found = steps(&path);
            let touches = |range: &std::ops::Range<usize>| {
                (range.start / BLOCK..=(range.end - 1) / BLOCK).contains(&(at / BLOCK))
            };
            for (step, range) in (0..).zip(&log.records) {
                assert!(touches(range) || found.contains(&step), "byte {at} ^ {mask}, step {step}");
            }
        }
    }
}

#[test]
fn a_wrong_byte_in_a_value_costs_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    let log = (0..10).fold(Log::new(), |log, step| log.row(step, &[("x", "1.5")]));
    let mut bytes = log.bytes.clone();
    bytes[log.records[4].end - 1] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let batch = whole(&path);
    assert_eq!(batch.problems.len(), 1);
    assert_eq!(batch.problems[0].what, "a record with a wrong checksum");
    assert_eq!(batch.problems[0].bytes, log.records[4].start as u64..log.records[4].end as u64);
    assert_eq!(scalars(&batch, "x").len(), 9);
}

#[test]
fn what_is_no_message_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    let mut log = Log::new().row(0, &[("x", "1"), ("bad", "{"), ("y", "2")]);
    log.record(b"\xff\xff\xff");
    let log = log.row(1, &[(&"n".repeat(5000), "1"), ("x", "3")]);
    log.write(&path);
    let batch = whole(&path);
    let expected =
        ["a value that is not JSON", "a record that is not a protobuf message", "a name of more than 4096 bytes"];
    assert_eq!(whats(&batch), expected);
    assert_eq!(batch.problems[1].bytes, log.records[1].start as u64..log.records[1].end as u64);
    assert_eq!(scalars(&batch, "x"), [(0, 1.0), (1, 3.0)]);
    assert_eq!(scalars(&batch, "y"), [(0, 2.0)]);
}

#[test]
fn an_end_that_is_missing_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    let log = Log::new().row(0, &[("x", "1")]).row(1, &[("x", "1")]);
    fs::write(&path, &log.bytes[..log.bytes.len() - 1]).unwrap();
    let mut reader = open(&path);
    let batch = rest(&mut *reader, u64::MAX);
    assert!(batch.problems.is_empty() && !batch.has_more);
    assert_eq!(batch.entries.len(), 1);
    log.write(&path);
    assert_eq!(rest(&mut *reader, u64::MAX).entries.len(), 1);
}

#[test]
fn deep_and_large_values_are_no_danger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    let deep = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    let (good, bad) = (deep(50), deep(100_000));
    Log::new().row(0, &[("deep", &good), ("deeper", &bad), ("x", "1")]).write(&path);
    let batch = whole(&path);
    assert_eq!(whats(&batch), ["a value that is not JSON"]);
    assert_eq!(batch.entries.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_any_kind(has_header in any::<bool>(), bytes in vec(any::<u8>(), 0..5000)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-x.wandb");
        let header: &[u8] = if has_header { b":W&B\xe1\xbe\x00" } else { b"" };
        fs::write(&path, [header, &bytes].concat()).unwrap();
        whole(&path);
    }

    #[test]
    fn records_of_any_bytes(records in vec(vec(any::<u8>(), 0..300), 0..50)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-x.wandb");
        let mut log = Log::new();
        records.iter().for_each(|record| log.record(record));
        log = log.row(7, &[("x", "1")]);
        log.write(&path);
        prop_assert!(scalars(&whole(&path), "x").contains(&(7, 1.0)));
    }

    #[test]
    fn values_of_any_text(key in ".{0,20}", json in ".{0,40}") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-x.wandb");
        Log::new().row(7, &[(&key, &json), ("x", "1")]).write(&path);
        prop_assert!(!whole(&path).entries.is_empty());
    }

    #[test]
    fn a_real_log_with_wrong_bytes(changes in vec((0..39_000_usize, any::<u8>()), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-x.wandb");
        let mut bytes = fs::read(fixture("legacy")).unwrap();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        fs::write(&path, &bytes).unwrap();
        // What is left is in the file as well.
        let all = super::read::shown(&whole(&fixture("legacy")));
        let batch = whole(&path);
        let rows = batch.entries.iter().filter(|entry| entry.tag == "loss" || entry.tag == "nested.value");
        for row in rows {
            let shown = format!("{row:?}");
            prop_assert!(all.contains(&shown));
        }
    }
}
