//! What control flow costs: nanoseconds per node execution of loops whose ops do next to nothing.

use crate::report::{BenchError, Report};
use ::engine::DType;
use ::engine::graph::{ContextId, Graph, GraphError, Output, WhileOptions};

use super::rings::Rings;
use super::setup::{least, session};
use ::engine::Tensor;

/// Iterations of each loop.
const TRIPS: i32 = 200;
/// Variables besides the counter.
const VARS: usize = 8;

/// Loops of scalars, with one iteration at a time and with many.
pub(super) fn run(report: &mut Report) -> Result<(), BenchError> {
    for traced in [false, true] {
        let mut rings = if traced { Some(Rings::record()?) } else { None };
        let mode = if traced { ", traced" } else { "" };
        for threads in [1, 2] {
            for parallel in [1, 32] {
                let g = Graph::new();
                let exits = scalars(&g, parallel)?;
                let names = exits.iter().map(|exit| Ok(g.node(exit.node)?.name.to_string()));
                let names = names.collect::<Result<Vec<_>, GraphError>>()?;
                let targets: Vec<&str> = names.iter().map(String::as_str).collect();
                let s = session(&g, threads)?;
                let step = s.prepare(&[], &[], &targets)?;
                let ns = least(100, threads, &mut rings, || Ok(step.run(&[]).map(drop)?))?;
                let n = executions(&g) as f64;
                let case = format!("while loop of {n} executions, {parallel} at once, {threads} threads{mode}");
                report.add(case, ns / n, "ns per execution");
            }
        }
    }
    Ok(())
}

/// A counter, and variables to each of which one is added in every iteration.
fn scalars(g: &Graph, parallel_iterations: i64) -> Result<Vec<Output>, GraphError> {
    let (n, one) = (g.constant(Tensor::scalar(TRIPS)), g.constant(Tensor::scalar(1i32)));
    let x = g.constant(1f32);
    let mut vars = vec![g.constant(Tensor::scalar(0i32)).output()];
    vars.extend([x.output(); VARS]);
    let options = WhileOptions { parallel_iterations, ..WhileOptions::default() };
    let add = |g: &Graph, var: Output| {
        let var = g.value(var);
        (var + if var.dtype() == DType::I32 { one } else { x }).output()
    };
    g.while_loop(
        &vars,
        |g, vars| Ok(g.value(vars[0]).less(n).output()),
        |g, vars| Ok(vars.iter().map(|var| add(g, *var)).collect()),
        &options,
    )
}

/// How many nodes run in one step: those of the loop once more than it goes round, most of them dead then.
fn executions(g: &Graph) -> usize {
    let nodes = g.nodes();
    let inside = nodes.iter().filter(|node| nodes.context_of(node.id) != ContextId::ROOT).count();
    inside * (TRIPS as usize + 1) + nodes.len() - inside
}
