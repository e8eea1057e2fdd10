//! Side by side with TensorFlow: each case in blocks, ours and TensorFlow's in turn, so that a slow moment of the
//! machine hits both. One thread is compared in CPU time, two in wall time; figures are medians over all repetitions.

use ::engine::{Callable, RunOptions, Tensor};
use trace_analysis::stats::op_stats;
use trace_record::{Collector, CollectorOptions};
use trace_store::{Store, StoreOptions, TraceReader};

use super::case::{Case, Unit};
use super::{models, setup};
use crate::peer::{PYTHON, Peer};
use crate::report::{BenchError, Report};
use crate::stats::median;
use crate::tracing_cost::Blocks;

/// Turns that each side has.
const TURNS: usize = 5;

/// Compares all cases at 1 and 2 threads.
pub(super) fn run(report: &mut Report) -> Result<(), BenchError> {
    for threads in [1, 2] {
        let Some(mut peer) = Peer::start(threads)? else {
            eprintln!("not compared with TensorFlow: {PYTHON} names no python that has it");
            return Ok(());
        };
        for case in models::cases()? {
            if !report.wants(&format!("{}, {threads} threads", case.name)) {
                continue;
            }
            compare(report, &mut peer, &case, threads)?;
        }
    }
    Ok(())
}

/// What tracing costs each model's training step, compared with what TensorFlow's own full trace costs the same model.
pub(super) fn tracing(report: &mut Report) -> Result<(), BenchError> {
    const PAIRS: usize = 100;
    for case in wanted_models(report)? {
        let s = case.session(2)?;
        let feeds: Vec<(&str, Tensor)> =
            case.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let (fetches, targets) = (case.fetches(), case.targets());
        // Blocks of about a tenth of a second.
        let steps = case.repeat.max(3);
        let mut block = || -> Result<(), BenchError> {
            for _ in 0..steps {
                s.run_step(&RunOptions { label: "train", ..RunOptions::default() }, &feeds, &fetches, &targets)?;
            }
            Ok(())
        };
        Blocks { name: &case.name, pairs: PAIRS, steps, run: &mut block }.compare(report)?;
        if let Some(mut peer) = Peer::start(2)? {
            let mut shares = Vec::new();
            for _ in 0..TURNS {
                let (on, off) = (peer.measure(&case.name, steps, true)?, peer.measure(&case.name, steps, false)?);
                shares.push((median(on.cpu_ns) / median(off.cpu_ns) - 1.0) * 100.0);
            }
            report.add(format!("{}, TensorFlow's full trace, CPU time", case.name), median(shares), "%");
        }
    }
    Ok(())
}

fn wanted_models(report: &Report) -> Result<Vec<Case>, BenchError> {
    let mut cases = models::trained_models()?;
    cases.retain(|case| report.wants(&case.name));
    Ok(cases)
}

/// Where the time of one thread goes in a training step of each model: self time by op, from our own trace.
pub(super) fn ops(report: &mut Report) -> Result<(), BenchError> {
    const STEPS: usize = 10;
    for case in wanted_models(report)? {
        let s = case.session(1)?;
        let (step, feeds) = case.prepare(&s)?;
        ours(&step, &feeds, &case, 1, 3)?;
        let folder = tempfile::tempdir()?;
        let recording = ::events::start(folder.path(), ::events::Options::default())?;
        let collector = Collector::start(folder.path(), CollectorOptions::default())?;
        let taken = ours(&step, &feeds, &case, 1, STEPS)?;
        drop(recording);
        collector.stop();
        let mut store = Store::with_options(StoreOptions::UNBOUNDED);
        TraceReader::open(folder.path())?.read_all(&mut store)?;
        let per_step = |ns: i64| ns as f64 / 1e6 / STEPS as f64;
        report.add(format!("{}, step, CPU time, median", case.name), median(taken) / 1e6, "ms");
        let mut in_ops = 0;
        for op in op_stats(&store, store.range()).into_iter().filter(|op| op.category == "op") {
            in_ops += op.figures.self_ns;
            let count = op.figures.count as usize / STEPS;
            report.add(format!("{}, {} ({count} per step)", case.name, op.op), per_step(op.figures.self_ns), "ms");
        }
        report.add(format!("{}, all ops", case.name), per_step(in_ops), "ms");
    }
    Ok(())
}

fn compare(report: &mut Report, peer: &mut Peer, case: &Case, threads: usize) -> Result<(), BenchError> {
    let s = case.session(threads)?;
    let (step, feeds) = case.prepare(&s)?;
    ours(&step, &feeds, case, threads, 3)?;
    let (mut our_ns, mut their_ns, mut their_nodes) = (Vec::new(), Vec::new(), None);
    for _ in 0..TURNS {
        our_ns.extend(ours(&step, &feeds, case, threads, case.repeat)?);
        let measured = peer.measure(&case.name, case.repeat, false)?;
        their_ns.extend(if threads == 1 { measured.cpu_ns } else { measured.wall_ns });
        their_nodes = measured.nodes;
    }
    let least = least_of(&our_ns) / least_of(&their_ns);
    let (our_ns, their_ns) = (median(our_ns), median(their_ns));
    let our_nodes = step.n_nodes() as f64;
    let (our, unit) = case.unit.of(our_ns, our_nodes);
    let (their, _) = case.unit.of(their_ns, their_nodes.unwrap_or(our_nodes));
    report.add(format!("{}, {threads} threads", case.name), our, unit);
    report.add(format!("{}, {threads} threads, TensorFlow", case.name), their, unit);
    let ratio = if matches!(case.unit, Unit::NsPerNode) { our / their } else { our_ns / their_ns };
    report.add(format!("{}, {threads} threads, time ratio to TensorFlow", case.name), ratio, "");
    report.add(format!("{}, {threads} threads, time ratio of the least times", case.name), least, "");
    Ok(())
}

/// What each of our repetitions took, nanoseconds per step.
fn ours(
    step: &Callable<'_>,
    feeds: &[Tensor],
    case: &Case,
    threads: usize,
    repeat: usize,
) -> Result<Vec<f64>, BenchError> {
    let now = || setup::now(threads);
    let options = RunOptions { label: "step", ..RunOptions::default() };
    let mut all = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        let begin = now();
        for _ in 0..case.inner {
            step.run_step(&options, feeds)?;
        }
        all.push((now() - begin) as f64 / case.inner as f64);
    }
    Ok(all)
}

fn least_of(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
