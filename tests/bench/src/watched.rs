//! A program that is run to its end and watched from outside: CPU time of all its threads, and memory, from `/proc`.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::events::clock;

use crate::report::BenchError;

/// What it took.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Wall time in seconds.
    pub wall_s: f64,
    /// CPU seconds of all its threads, to the hundredth.
    pub cpu_s: f64,
    /// The most anonymous memory that it was seen with (looked at every 5 ms), in bytes: what it allocated, without the pages of
    /// files that it mapped.
    pub anonymous: f64,
    /// What it printed.
    pub output: String,
}

/// Runs a command to its end.
///
/// # Errors
/// It does not start, or fails: with what it said.
pub fn watch(command: &mut Command) -> Result<Watched, BenchError> {
    let begin_ns = clock::mono_now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut anonymous, mut cpu_s) = (0.0f64, 0.0);
    // Its last CPU time can be read until it is waited for.
    loop {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        // After the name, which may hold anything but ends with the last parenthesis: state is field 3, utime 14, stime 15.
        let (_, fields) = stat.rsplit_once(") ").ok_or("an odd /proc/PID/stat")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |n: usize| fields.get(n - 3).and_then(|v| v.parse::<f64>().ok()).ok_or("an odd /proc/PID/stat");
        // Linux counts in hundredths of a second on every machine that it runs on.
        cpu_s = f64::max(cpu_s, (ticks(14)? + ticks(15)?) / 100.0);
        if fields[0] == "Z" {
            break;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        if let Some(line) = status.lines().find_map(|line| line.strip_prefix("RssAnon:")) {
            let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
            anonymous = anonymous.max(kib * 1024.0);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let wall_s = (clock::mono_now() - begin_ns) as f64 / 1e9;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    Ok(Watched { wall_s, cpu_s, anonymous, output: String::from_utf8(output.stdout)? })
}
