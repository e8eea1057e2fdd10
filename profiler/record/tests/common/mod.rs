//! Test programs, and their traces read back.

#![allow(clippy::unwrap_used, dead_code)] // test code; each test file uses a part

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use trace_model::SliceRef;
use trace_store::{Store, StoreOptions, TraceReader};

/// This test binary again, with one of its tests alone.
pub fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
    command
}

pub fn read(dir: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(dir).unwrap().read_all(&mut store).unwrap();
    store
}

/// All slices of a trace, lane by lane.
pub fn slices(store: &Store) -> impl Iterator<Item = SliceRef> + '_ {
    let lanes = store.tracks().iter().flat_map(|track| &track.lanes);
    lanes.flat_map(|lane| (0..lane.len() as u32).filter_map(|i| lane.slice(i)))
}

/// Waits for something that another thread or process does.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = events::clock::mono_now();
    while !is_so() {
        assert!(events::clock::mono_now() - begun < 60_000_000_000, "a minute without: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
