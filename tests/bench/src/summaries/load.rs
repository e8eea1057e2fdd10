//! Loading whole logdirs, each in a process of its own, compared with TensorBoard's data server and compared with the least that a reader
//! can do: the checksums alone, and one thread that keeps all points in plain columns.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use ::events::clock;
use ::summaries::{Logdir, Series};
use serde_json::{Value, json};

use super::cost::{self, Cost};
use super::logs::{LOGS, Log};
use super::{minimal, rustboard};
use crate::report::{BenchError, Report};

/// The option by which this program loads a logdir and prints what it cost, for the process of its own: `OPTION WAY LOGDIR`.
pub const LOAD: &str = "--load-logdir";

/// Loads are repeated, all ways in turns; the fastest counts.
const N_TIMES: usize = 5;
/// What a program takes before it has any point, for the goal on memory.
const BASE_BYTES: f64 = 50e6;

/// How a logdir is read.
const OURS: &str = "all points";
const MINIMAL: &str = "minimal pass, one thread";
const CHECKSUMS: &str = "checksums alone, one thread";

/// Every log.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let peer = rustboard::program()?;
    if peer.is_none() {
        report.add("TensorBoard's data server is not measured: STEPSCOPE_PYTHON names no python", 0.0, "");
    }
    for log in LOGS {
        if !report.wants(log.name) {
            continue;
        }
        let dir = tempfile::tempdir()?;
        let n_bytes = log.write(dir.path())?;
        report.add(format!("{}: size", log.name), n_bytes as f64 / 1e6, "MB");
        measure(report, log, dir.path(), peer.as_deref())?;
    }
    Ok(())
}

/// Every way in turns.
fn measure(report: &mut Report, log: &Log, logdir: &Path, peer: Option<&str>) -> Result<(), BenchError> {
    let ways: Vec<&str> = if log.is_scalar() { vec![OURS, MINIMAL, CHECKSUMS] } else { vec![OURS, CHECKSUMS] };
    let mut costs = vec![Vec::new(); ways.len()];
    let mut theirs = [Vec::new(), Vec::new()];
    for time in 0..N_TIMES {
        for (way, costs) in ways.iter().zip(&mut costs) {
            costs.push(in_process(way, logdir, log.n_points())?);
        }
        if let Some(peer) = peer {
            theirs[0].push(rustboard::load(peer, logdir, false)?);
            // It takes long, and is not what the goals are about.
            if time == 0 {
                theirs[1].push(rustboard::load(peer, logdir, true)?);
            }
        }
    }
    for (way, costs) in ways.iter().zip(&costs) {
        add(report, log, way, costs);
    }
    for (case, costs) in ["data server, sampled", "data server, all points"].iter().zip(&theirs) {
        add(report, log, case, costs);
    }
    let ours = least(&costs[0]);
    if !theirs[0].is_empty() {
        let share = ours.cpu_s / least(&theirs[0]).cpu_s;
        report.add(format!("{}: share of the sampling data server's CPU", log.name), share, "");
    }
    if log.is_scalar() {
        let n_cores = thread::available_parallelism()?.get() as f64;
        let share = ours.wall_s / (least(&costs[1]).wall_s / n_cores);
        report.add(format!("{}: wall time compared with the minimal pass divided by cores", log.name), share, "x");
        let per_point = (ours.rss - BASE_BYTES).max(0.0) / log.n_points() as f64;
        report.add(format!("{}: memory per point beyond 50 MB", log.name), per_point, "bytes");
    }
    Ok(())
}

/// The best of each figure.
fn least(costs: &[Cost]) -> Cost {
    let least = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
    Cost { wall_s: least(|c| c.wall_s), cpu_s: least(|c| c.cpu_s), rss: least(|c| c.rss) }
}

fn add(report: &mut Report, log: &Log, way: &str, costs: &[Cost]) {
    if !costs.is_empty() {
        let cost = least(costs);
        report.add(format!("{}: {way}, wall", log.name), cost.wall_s, "s");
        report.add(format!("{}: {way}, CPU", log.name), cost.cpu_s, "s");
        report.add(format!("{}: {way}, memory", log.name), cost.rss / 1e6, "MB");
    }
}

fn in_process(way: &str, logdir: &Path, n_points: usize) -> Result<Cost, BenchError> {
    let output = Command::new(std::env::current_exe()?).arg(LOAD).arg(way).arg(logdir).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let figure = |name: &str| answer[name].as_f64().ok_or("a load without figures");
    if figure("points")? != n_points as f64 {
        return Err(format!("{way}: {} of {n_points} points were read", answer["points"]).into());
    }
    Ok(Cost { wall_s: figure("wall_s")?, cpu_s: figure("cpu_s")?, rss: figure("rss")? })
}

/// Loads a logdir in this process; what it cost, as JSON.
///
/// # Errors
/// There is no such logdir or way, or a checksum does not hold.
pub fn load(way: &str, logdir: PathBuf) -> Result<String, BenchError> {
    let begin_ns = clock::mono_now();
    let figures = |points: usize| -> Result<String, BenchError> {
        let wall_s = (clock::mono_now() - begin_ns) as f64 / 1e9;
        let (cpu_s, rss) = cost::of_process("self")?;
        Ok(json!({"wall_s": wall_s, "cpu_s": cpu_s, "rss": rss, "points": points}).to_string())
    };
    match way {
        OURS => {
            let mut reader = Logdir::open(&[logdir])?;
            reader.read_all();
            let runs = reader.runs();
            figures(runs.by_name.values().flat_map(|run| run.series.values()).map(Series::n_points).sum())
        }
        MINIMAL => {
            let columns = minimal::columns(&logdir)?;
            figures(columns.iter().map(minimal::Column::len).sum())
        }
        CHECKSUMS => figures(minimal::records(&logdir, |_| Ok(()))?),
        _ => Err(format!("{way}: no such way").into()),
    }
}
