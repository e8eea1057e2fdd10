//! A cluster whose executors read traces from a bucket.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

extern crate query as query;

mod common;
#[path = "../../tests/common/moto.rs"]
mod moto;
#[path = "../../tests/common/mod.rs"]
mod traces;

use std::path::Path;

use common::{Nodes, Sight};
use moto::Moto;
use traces::{open, rows, run_folder};

#[test]
fn other_process() {
    common::other_process();
}

#[test]
fn executors_read_sealed_traces_from_a_bucket() {
    let Some(moto) = Moto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (run, n) in [("a", 3_000), ("b c", 200)] {
        run_folder(dir.path(), run, n);
    }
    moto.put_folder(dir.path(), "team");
    let nodes = Nodes::start(Sight::All, 180);
    let (here, there) = (open(dir.path()), nodes.open(Path::new("s3://runs/team"), None));
    for sql in [
        "select trace, name, count(*) n, sum(dur_ns) ns from slices group by 1, 2 order by 1, 2",
        "select s.trace, t.process, count(*) n from slices s join tracks t using (trace, track_id) group by 1, 2 order by 1, 2",
        "select trace, cause, sum(dur_ns) ns from stalls group by 1, 2 order by 1, 2",
    ] {
        assert_eq!(rows(&here, sql), rows(&there, sql), "{sql}");
    }
}
