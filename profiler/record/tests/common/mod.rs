//! Test programs.

#![allow(clippy::unwrap_used, dead_code)] // test code; each test file uses a part

use std::process::{Command, Stdio};
use std::time::Duration;

/// This test binary again, with one of its tests alone.
pub fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
    command
}

/// Waits for something that another thread or process does.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = events::clock::mono_now();
    while !is_so() {
        assert!(events::clock::mono_now() - begun < 60_000_000_000, "a minute without: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
