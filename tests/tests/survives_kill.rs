//! `kill -9` in the middle of a run: the trace and the event files open and hold everything up to the last 200 ms.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stepscope_tests::{stepscope_binary, times};

/// What must be there of the time before the kill.
const LOST_AT_MOST_NS: i64 = 200_000_000;

fn start(binary: &Path, logdir: &Path) -> Child {
    let mut command = Command::new(binary);
    command.args(["train", "mlp", "--steps", "1000000", "--logdir"]).arg(logdir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// Points in the event files before the run is killed: whatever else the machine does, there is something to lose.
const POINTS: usize = 40;

/// Waits until the run says on stderr that it trains, and has written something.
fn wait_until_training(child: &mut Child, logdir: &Path) {
    let stderr = child.stderr.take().expect("stderr is piped");
    let mut lines = BufReader::new(stderr).lines();
    let found = lines.by_ref().map_while(Result::ok).any(|line| line.contains("step"));
    assert!(found, "the run ended before its first progress line");
    // Keeps draining, so that the run never blocks on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let begun = events::clock::mono_now();
    while last_scalar(logdir).1 < POINTS {
        assert!(events::clock::mono_now() - begun < 60_000_000_000, "a minute without {POINTS} points");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The end of the last slice in the trace, in CLOCK_MONOTONIC_RAW nanoseconds, and the number of slices.
fn last_slice(trace: &Path) -> (i64, u64) {
    let mut reader = trace_store::TraceReader::open(trace).expect("the trace opens");
    let mut store = trace_store::Store::default();
    reader.read_all(&mut store).expect("the trace reads");
    let ends = store.tracks().iter().flat_map(|track| &track.lanes).filter_map(trace_store::Lane::range);
    let end = ends.map(|range| range.end).max().expect("the trace has slices");
    (store.origin_ns() + end, store.stats().slices_total)
}

/// The wall time of the last scalar, Unix seconds, and the number of points.
fn last_scalar(logdir: &Path) -> (f64, usize) {
    let mut logdir = summaries::Logdir::open(&[logdir.to_path_buf()]).expect("the logdir opens");
    logdir.read_all();
    let mut last = f64::NEG_INFINITY;
    let mut n = 0;
    for run in logdir.runs().by_name.values() {
        assert!(run.damage.is_empty(), "damage: {:?}", run.damage);
        for series in run.series.values() {
            if let summaries::Series::Scalar(scalars) = series {
                n += scalars.len();
                last = scalars.points().map(|p| p.wall).fold(last, f64::max);
            }
        }
    }
    (last, n)
}

#[test]
fn everything_but_the_last_200_ms_is_there() {
    let Some(binary) = stepscope_binary("kill -9 of a run") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for round in 0..times(20, 200) {
        let logdir = folder.path().join(format!("run-{round}"));
        let mut child = start(&binary, &logdir);
        wait_until_training(&mut child, &logdir);
        std::thread::sleep(Duration::from_millis(37 * (round as u64 % 20)));
        let (mono, wall) = (events::clock::mono_now(), events::clock::wall_now());
        child.kill().expect("kill -9");
        child.wait().expect("the run ends");
        let (end, slices) = last_slice(&logdir.join("trace"));
        assert!(mono - end < LOST_AT_MOST_NS, "round {round}: the trace ends {} ms early", (mono - end) / 1_000_000);
        assert!(slices > 1000, "round {round}: {slices} slices");
        let (last, points) = last_scalar(&logdir);
        assert!(
            wall - last < LOST_AT_MOST_NS as f64 / 1e9,
            "round {round}: scalars end {:.0} ms early",
            (wall - last) * 1e3
        );
        assert!(points >= POINTS, "round {round}: {points} points");
        fs::remove_dir_all(&logdir).expect("the scratch folder is ours");
    }
}
