//! Loading whole logdirs, each in a process of its own, beside TensorBoard's data server and beside the checksums alone.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::events::clock;
use ::summaries::{Logdir, Series};
use formats::tfrecord::masked_crc;
use serde_json::{Value, json};

use super::cost::{self, Cost};
use super::logs::LOGS;
use super::rustboard;
use crate::BenchError;
use crate::report::Report;

/// The option by which this program loads a logdir and prints what it cost, for the process of its own.
pub const LOAD: &str = "--load-logdir";

/// Loads are repeated, ours and theirs in turns; the fastest counts.
const N_TIMES: usize = 3;

/// Every log.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let peer = rustboard::program()?;
    if peer.is_none() {
        report.add("TensorBoard's data server is not measured: STEPSCOPE_PYTHON names no python", 0.0, "");
    }
    for log in LOGS {
        let dir = tempfile::tempdir()?;
        let n_bytes = log.write(dir.path())?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..N_TIMES {
            ours.push(load_in_process(dir.path(), log.n_points())?);
            if let Some(peer) = &peer {
                theirs.push(rustboard::load(peer, dir.path(), false)?);
            }
        }
        report.add(format!("{}: size", log.name), n_bytes as f64 / 1e6, "MB");
        report.add(format!("{}: checksums alone, one thread", log.name), checksums(dir.path())?, "s");
        add(report, &format!("{}: all points", log.name), &ours, log.n_points());
        add(report, &format!("{}: data server, sampled", log.name), &theirs, log.n_points());
        if let Some(peer) = &peer {
            let all = rustboard::load(peer, dir.path(), true)?;
            add(report, &format!("{}: data server, all points", log.name), &[all], log.n_points());
        }
    }
    Ok(())
}

fn add(report: &mut Report, case: &str, costs: &[Cost], n_points: usize) {
    let least = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
    if !costs.is_empty() {
        report.add(format!("{case}, wall"), least(|c| c.wall_s), "s");
        report.add(format!("{case}, CPU"), least(|c| c.cpu_s), "s");
        report.add(format!("{case}, memory"), least(|c| c.rss) / 1e6, "MB");
        report.add(format!("{case}, memory per point"), least(|c| c.rss) / n_points as f64, "bytes");
    }
}

fn load_in_process(logdir: &Path, n_points: usize) -> Result<Cost, BenchError> {
    let output = Command::new(std::env::current_exe()?).arg(LOAD).arg(logdir).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let figure = |name: &str| answer[name].as_f64().ok_or("a load without figures");
    if figure("points")? != n_points as f64 {
        return Err(format!("{} of {n_points} points were read", answer["points"]).into());
    }
    Ok(Cost { wall_s: figure("wall_s")?, cpu_s: figure("cpu_s")?, rss: figure("rss")? })
}

/// Loads a logdir in this process; what it cost, as JSON.
///
/// # Errors
/// There is no such logdir.
pub fn load(logdir: PathBuf) -> Result<String, BenchError> {
    let begin_ns = clock::mono_now();
    let mut reader = Logdir::open(&[logdir])?;
    reader.read_all();
    let wall_s = (clock::mono_now() - begin_ns) as f64 / 1e9;
    let (cpu_s, rss) = cost::of_process("self")?;
    let runs = reader.runs();
    let points: usize = runs.by_name.values().flat_map(|run| run.series.values()).map(Series::n_points).sum();
    Ok(json!({"wall_s": wall_s, "cpu_s": cpu_s, "rss": rss, "points": points}).to_string())
}

/// Reading the files and verifying both checksums of each record, and nothing else; seconds, the fastest of three.
fn checksums(logdir: &Path) -> Result<f64, BenchError> {
    let mut best_s = f64::INFINITY;
    for _ in 0..N_TIMES {
        let begin_ns = clock::mono_now();
        let mut is_good = true;
        for run in fs::read_dir(logdir)? {
            for file in fs::read_dir(run?.path())? {
                let mut bytes = Vec::new();
                File::open(file?.path())?.read_to_end(&mut bytes)?;
                let mut rest = &bytes[..];
                while let Some((header, data)) = rest.split_at_checked(12) {
                    let n = u64::from_le_bytes(header[..8].try_into()?) as usize;
                    let crc = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes);
                    is_good &= crc(&header[8..])? == masked_crc(&header[..8]);
                    is_good &= crc(&data[n..n + 4])? == masked_crc(&data[..n]);
                    rest = &data[n + 4..];
                }
            }
        }
        if !is_good {
            return Err("a generated log has a bad checksum".into());
        }
        best_s = best_s.min((clock::mono_now() - begin_ns) as f64 / 1e9);
    }
    Ok(best_s)
}
