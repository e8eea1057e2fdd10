//! Test programs.

#![allow(clippy::unwrap_used, dead_code)] // test code; each test file uses a part

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use trace_record::watch::{Watch, WatchOptions, WatchReport};
use trace_record::{Collector, CollectorOptions};
use trace_store::Store;
use trace_store::testkit::read;

/// This test binary again, with one of its tests alone.
pub fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
    command
}

/// Runs a command to its end, watched; returns its trace, what was counted, and its process.
pub fn watched(command: &mut Command, dir: &Path, options: WatchOptions) -> (Store, WatchReport, u32) {
    let watch = Watch::prepare(dir, options).unwrap();
    let collector = Collector::start_with(dir, CollectorOptions::default(), Some(watch.tracks())).unwrap();
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    watch.set_command(child.id());
    assert!(child.wait().unwrap().success());
    let report = watch.stop();
    let collected = collector.stop();
    assert_eq!((collected.dropped, collected.write_errors), (0, 0));
    (read(dir), report, child.id())
}

/// Waits for something that another thread or process does.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = events::clock::mono_now();
    while !is_so() {
        assert!(events::clock::mono_now() - begun < 60_000_000_000, "a minute without: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
