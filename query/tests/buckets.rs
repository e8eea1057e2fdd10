//! Traces and logdirs in a real S3 server on the loopback interface.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;
#[path = "common/moto.rs"]
mod moto;

use common::{chrome, open, rows, run_folder, try_rows, value};
use moto::Moto;
use query::{Database, Options, QueryError};
use serde_json::json;
use summaries::{SummaryWriter, WriterOptions};

#[test]
fn buckets_are_asked_as_folders_are() {
    let Some(moto) = Moto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (run, n) in [("a", 3_000), ("b c", 200)] {
        let folder = run_folder(dir.path(), run, n);
        let writer = SummaryWriter::create(&folder, WriterOptions::default()).unwrap();
        (0..50).for_each(|step| writer.add_scalar("loss", step as f32, step));
        writer.close().unwrap();
    }
    moto.put_folder(dir.path(), "team/runs");
    moto.put("single/t.json", chrome(100).into_bytes());
    moto.put("other/note.txt", b"nothing".to_vec());

    let (local, remote) = (open(dir.path()), open("s3://runs/team/runs"));
    for sql in [
        "select trace, name, count(*) n, sum(dur_ns) ns from slices group by 1, 2 order by 1, 2",
        "select trace, count(*) n from slices where ts_ns between 1000000 and 2000000 group by 1 order by 1",
        "select s.trace, t.process, count(*) n from slices s join tracks t using (trace, track_id) group by 1, 2 order by 1, 2",
        "select trace, cause, sum(dur_ns) ns from stalls group by 1, 2 order by 1, 2",
        "select trace, name, count, self_ns from ops order by 1, 2",
        "select run, tag, count(*) n, sum(value) total from scalars group by 1, 2 order by 1, 2",
        "select trace, key, value from meta order by 1, 2",
    ] {
        let (here, there) = (rows(&local, sql), rows(&remote, sql));
        assert!(!here.is_empty() && here == there, "{sql}\n{here:?}\n{there:?}");
    }
    assert_eq!(value(&open("s3://runs/single/t.json"), "select count(*) from slices"), json!(200));
    assert_eq!(value(&open("s3://runs/team/runs/a/trace/sealed"), "select count(*) from slices"), json!(6_000));
    assert_eq!(value(&open("s3://runs/team/runs/a/"), "select max(trace) from slices"), json!("."));

    // Damage in what is checked is found, reported, and the rest is read.
    let damaged = "damaged/a/trace/sealed";
    moto.put_folder(&dir.path().join("b c/trace/sealed"), damaged);
    let mut bytes = std::fs::read(dir.path().join("b c/trace/sealed/tracks.parquet")).unwrap();
    bytes[20] ^= 0x10;
    moto.put(&format!("{damaged}/tracks.parquet"), bytes);
    let database = open("s3://runs/damaged");
    assert_eq!(value(&database, "select count(*) from slices"), json!(400));
    assert!(database.take_warnings().is_empty());
    let error = try_rows(&database, "select count(*) from tracks").err().map(|e| e.to_string()).unwrap_or_default();
    let warnings = database.take_warnings();
    let is_reported =
        warnings.iter().chain([&error]).any(|text| text.contains("tracks.parquet") && text.contains("checksum"));
    assert!(is_reported, "{warnings:?} {error}");

    for (url, says) in [("s3://runs/missing", "nothing"), ("s3://nobucket/x", "")] {
        let error = Database::open(url, Options::default()).err().unwrap();
        assert!(
            matches!(&error, QueryError::Open { at, .. } if at == url) && error.to_string().contains(says),
            "{error}"
        );
    }
    drop(moto);
    let error = try_rows(&remote, "select sum(dur_ns) from slices").unwrap_err();
    assert!(matches!(error, QueryError::Failed(_)), "{error}");
}
