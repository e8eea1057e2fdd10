//! The engine: nanoseconds per node, microseconds per trivial step, gemm rates, kernels, a perceptron's steps.
//!
//! Each figure is the best of many runs. What one thread does alone is given in CPU time, so that neighbours on a shared
//! machine do not count; where two threads work together wall time is measured, on a quiet machine.

mod case;
mod compute;
mod loops;
mod models;
mod rings;
pub mod setup;
mod versus;

use rings::Rings;
use setup::{graphs, least, placeholder, plain_session, session};

use crate::report::{BenchError, Report};
use ::engine::graph::Graph;
use ::engine::{RunOptions, Tensor};

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
    let x = placeholder(&g, "x");
    g.add_node("AddV2").name("y").input(x).input(x.number(1.0)).value();
    g.group("nothing", &[]);
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
