//! Sealed traces reach a collector as the growing ones do.
#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{Folder, args, read, sender, server};
use gather::{Server, Unsealed};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Slices, arrows and counters of two processes, sealed.
fn sealed(dir: &Path) {
    for pid in [71, 72] {
        let mut folder = Folder::create(dir, pid, 1_000_000);
        for n in 0..5_000u64 {
            folder.slice(2_000_000 + 100 * n as i64, 50, n);
        }
        folder.counter(2_000_500, f64::from(pid));
        folder.arrow(pid == 71, 2_000_000 + i64::from(pid), 9);
        folder.anchor(3_000_000);
        folder.end();
    }
    trace_store::sealing::seal(dir).unwrap();
    assert!(!dir.join("chunks-71.bin").exists() && dir.join(trace_model::layout::SEALED_FOLDER).is_dir());
}

fn send(trace: &Path, server: &Server) -> u64 {
    let unsealed = Unsealed::create(trace, &read(trace)).unwrap();
    let report = sender(unsealed.dir(), server).finish(PATIENCE);
    assert!(report.finished, "{report:?}");
    report.acknowledged
}

#[test]
fn a_sealed_trace_is_gathered_once_however_often_it_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, gathered) = (dir.path().join("trace"), dir.path().join("gathered"));
    sealed(&trace);
    let home = read(&trace);
    let mut sent = Vec::new();
    // The second time to a collector that was started again.
    for _ in 0..2 {
        let server = server(&gathered);
        sent.push(send(&trace, &server));
        server.stop();
    }
    assert_eq!(sent[0], sent[1]);
    assert!(!trace.join("unsealed").exists(), "what was made to be sent is gone");
    let there = read(&gathered);
    assert_eq!(args(&there), args(&home));
    assert_eq!(there.stats().slices, 10_000);
    let values = |store: &trace_store::Store| {
        let mut all: Vec<f64> = store.counters().iter().flat_map(|c| c.value.clone()).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    assert_eq!(values(&there), [71.0, 72.0]);
    assert_eq!(there.flows().filter(|flow| flow.from.is_some() && flow.to.is_some()).count(), 1);
}

#[test]
fn one_process_at_a_time_sends_it() {
    let dir = tempfile::tempdir().unwrap();
    sealed(dir.path());
    let store = read(dir.path());
    let first = Unsealed::create(dir.path(), &store).unwrap();
    assert!(Unsealed::create(dir.path(), &store).is_err_and(|e| e.to_string().contains("being sent already")));
    drop(first);
    // What a killed one left is in nobody's way.
    std::fs::create_dir(dir.path().join("unsealed")).unwrap();
    std::fs::write(dir.path().join("unsealed/meta-1.bin"), "x").unwrap();
    let made = Unsealed::create(dir.path(), &store).unwrap();
    assert!(!made.dir().join("meta-1.bin").exists());
}
