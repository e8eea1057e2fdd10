//! What a process costs: CPU seconds and memory, from `/proc`.

use std::fs;

use crate::report::BenchError;

/// Of one load.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Seconds of all its threads.
    pub cpu_s: f64,
    /// The most memory that it held, in bytes.
    pub rss: f64,
}

/// CPU seconds so far and the greatest resident size in bytes of a process; `self` is this one.
///
/// # Errors
/// The process is gone, or the system has no `/proc`.
pub fn of_process(pid: &str) -> Result<(f64, f64), BenchError> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // After the name, which may hold anything but ends with the last parenthesis: state is field 3, utime 14, stime 15.
    let (_, fields) = stat.rsplit_once(") ").ok_or("an odd /proc/PID/stat")?;
    let ticks =
        |n: usize| fields.split(' ').nth(n - 3).and_then(|v| v.parse::<f64>().ok()).ok_or("an odd /proc/PID/stat");
    // Linux counts in hundredths of a second on every machine that it runs on.
    let cpu_s = (ticks(14)? + ticks(15)?) / 100.0;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok((cpu_s, kib * 1024.0))
}
