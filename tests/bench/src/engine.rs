//! The engine: nanoseconds per node, microseconds per trivial step, gemm rates, kernels, a perceptron's steps.
//!
//! Each figure is the best of many runs. What one thread does alone is given in CPU time, so that neighbours on a shared
//! machine do not count; where two threads work together wall time is measured, on a quiet machine.

mod compute;
mod loops;
mod models;
mod rings;
mod versus;

use rings::Rings;

use crate::report::{BenchError, Report};
use ::engine::compile::Passes;
use ::engine::graph::{Graph, NodeId, Output};
use ::engine::{DType, RunOptions, Session, SessionOptions, Tensor};
use ::events::clock;

/// Nodes of the dispatch graphs.
const N: usize = 10_000;

/// Runs all of them.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    for traced in [false, true] {
        let mut rings = if traced { Some(Rings::record()?) } else { None };
        for threads in [1, 2] {
            dispatch(report, threads, &mut rings)?;
        }
        trivial(report, &mut rings)?;
        if let Some(rings) = rings {
            report.add("dropped events while traced", rings.dropped() as f64, "events");
        }
    }
    loops::run(report)?;
    for threads in [1, 2] {
        compute::matmul(report, threads)?;
        compute::kernels(report, threads)?;
        compute::fusion(report, threads)?;
    }
    for threads in [1, 2] {
        compute::mlp(report, threads)?;
    }
    compute::passes(report)?;
    versus(report)
}

/// Loops whose nodes do next to nothing.
pub fn loops(report: &mut Report) -> Result<(), BenchError> {
    loops::run(report)
}

/// The same and more compared with TensorFlow, case by case in turns.
pub fn versus(report: &mut Report) -> Result<(), BenchError> {
    versus::run(report)
}

/// Where the time of the models' steps goes.
pub fn ops(report: &mut Report) -> Result<(), BenchError> {
    versus::ops(report)
}

/// What tracing costs the models that are compared.
pub fn tracing(report: &mut Report) -> Result<(), BenchError> {
    versus::tracing(report)
}

/// Nanoseconds so far: of CPU time where one thread works.
fn now(threads: usize) -> i64 {
    if threads == 1 { clock::cpu_now() } else { clock::mono_now() }
}

/// Least nanoseconds of `repeats` calls on this many threads; rings are emptied in between.
fn least(
    repeats: usize,
    threads: usize,
    rings: &mut Option<Rings>,
    mut f: impl FnMut() -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let mut least = f64::INFINITY;
    for _ in 0..repeats {
        if let Some(rings) = rings {
            rings.empty()?;
        }
        let begin = now(threads);
        f()?;
        least = least.min((now(threads) - begin) as f64);
    }
    Ok(least)
}

fn session(g: &Graph, threads: usize) -> Result<Session, BenchError> {
    session_with(g, threads, Passes::all())
}

/// Where each node is to be run as it is: the passes would make one of a chain of additions.
fn plain_session(g: &Graph, threads: usize) -> Result<Session, BenchError> {
    session_with(g, threads, Passes::none())
}

fn session_with(g: &Graph, threads: usize, passes: Passes) -> Result<Session, BenchError> {
    Ok(Session::new(g, SessionOptions { threads: Some(threads), passes, ..SessionOptions::default() })?)
}

fn no_op(g: &Graph, after: &[NodeId]) -> Result<NodeId, BenchError> {
    Ok(g.add_node("NoOp").after(after).build()?)
}

fn constant(g: &Graph, value: Tensor) -> Result<Output, BenchError> {
    Ok(g.add_node("Const").attr("dtype", value.dtype()).attr("value", value).output()?)
}

/// Graphs of N nodes that do nothing or next to nothing.
fn graphs() -> Result<Vec<(&'static str, Graph, String)>, BenchError> {
    let mut graphs = Vec::new();
    let mut add = |name, g: Graph, last: NodeId| -> Result<(), BenchError> {
        let target = g.node(last)?.name.to_string();
        graphs.push((name, g, target));
        Ok(())
    };
    let g = Graph::new();
    let wide = (0..N).map(|_| no_op(&g, &[])).collect::<Result<Vec<_>, _>>()?;
    let last = no_op(&g, &wide)?;
    add("no-op wide", g, last)?;
    let g = Graph::new();
    let mut last = no_op(&g, &[])?;
    for _ in 1..N {
        last = no_op(&g, &[last])?;
    }
    add("no-op chain", g, last)?;
    let g = Graph::new();
    let mut layer = (0..64).map(|_| no_op(&g, &[])).collect::<Result<Vec<_>, _>>()?;
    for _ in 1..157 {
        let next = |k: usize| no_op(&g, &[layer[k], layer[(k + 1) % 64]]);
        layer = (0..64).map(next).collect::<Result<_, _>>()?;
    }
    let last = no_op(&g, &layer)?;
    add("no-op grid 64x157", g, last)?;
    for (name, one) in
        [("scalar AddV2 chain", Tensor::scalar(1.0f32)), ("AddV2 chain of [4]", Tensor::vector(&[1.0f32; 4]))]
    {
        let g = Graph::new();
        let one = constant(&g, one)?;
        let mut last = one;
        for _ in 1..N {
            last = g.add_node("AddV2").input(last).input(one).output()?;
        }
        add(name, g, last.node)?;
    }
    Ok(graphs)
}

fn dispatch(report: &mut Report, threads: usize, rings: &mut Option<Rings>) -> Result<(), BenchError> {
    let mode = if rings.is_some() { ", traced" } else { "" };
    for (name, g, target) in graphs()? {
        let s = plain_session(&g, threads)?;
        let step = s.prepare(&[], &[], &[&target])?;
        let ns = least(150, threads, rings, || Ok(step.run(&[]).map(drop)?))?;
        report.add(format!("{name}, {threads} threads{mode}"), ns / step.n_nodes() as f64, "ns per node");
    }
    Ok(())
}

/// Prepared steps of one or two nodes.
fn trivial(report: &mut Report, rings: &mut Option<Rings>) -> Result<(), BenchError> {
    const CALLS: usize = 1_000;
    let mode = if rings.is_some() { ", traced" } else { "" };
    let g = Graph::new();
    let x = g.add_node("Placeholder").name("x").attr("dtype", DType::F32).output()?;
    let one = constant(&g, Tensor::scalar(1.0f32))?;
    g.add_node("AddV2").name("y").input(x).input(one).build()?;
    g.add_node("NoOp").name("nothing").build()?;
    let s = session(&g, 1)?;
    let options = RunOptions { label: "trivial", ..RunOptions::default() };
    let nothing = s.prepare(&[], &[], &["nothing"])?;
    let add = s.prepare(&["x"], &["y"], &[])?;
    let feed = [Tensor::scalar(1.0f32)];
    for (name, step, feeds) in [("prepared no-op", &nothing, &feed[..0]), ("prepared x -> x + 1", &add, &feed[..])] {
        let ns = least(50, 1, rings, || {
            for _ in 0..CALLS {
                step.run_step(&options, feeds)?;
            }
            Ok(())
        })?;
        report.add(format!("{name}{mode}"), ns / CALLS as f64 / 1e3, "us per step");
    }
    Ok(())
}
