//! What the engine's measurements share: the clock, sessions and the dispatch graphs.

use ::engine::compile::Passes;
use ::engine::graph::{Graph, NodeId, Value};
use ::engine::{DType, PartialShape, Session, SessionOptions, Tensor};
use ::events::clock;

use super::rings::Rings;
use crate::report::BenchError;

/// Nodes of the dispatch graphs.
const N: usize = 10_000;

/// Nanoseconds so far: of CPU time where one thread works.
pub fn now(threads: usize) -> i64 {
    if threads == 1 { clock::cpu_now() } else { clock::mono_now() }
}

/// Least nanoseconds of `repeats` calls on this many threads; rings are emptied in between.
pub(super) fn least(
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

pub fn session(g: &Graph, threads: usize) -> Result<Session, BenchError> {
    session_with(g, threads, Passes::all())
}

/// Where each node is to be run as it is: the passes would make one of a chain of additions.
pub(super) fn plain_session(g: &Graph, threads: usize) -> Result<Session, BenchError> {
    session_with(g, threads, Passes::none())
}

pub(super) fn session_with(g: &Graph, threads: usize, passes: Passes) -> Result<Session, BenchError> {
    Ok(Session::new(g, SessionOptions { threads: Some(threads), passes, ..SessionOptions::default() })?)
}

fn no_op(g: &Graph, after: &[NodeId]) -> NodeId {
    g.group("NoOp", after)
}

/// Graphs of N nodes that do nothing or next to nothing.
pub(super) fn graphs() -> Result<Vec<(&'static str, Graph, String)>, BenchError> {
    let mut graphs = Vec::new();
    let mut add = |name, g: Graph, last: NodeId| -> Result<(), BenchError> {
        let target = g.node(last)?.name.to_string();
        graphs.push((name, g, target));
        Ok(())
    };
    let g = Graph::new();
    let wide: Vec<NodeId> = (0..N).map(|_| no_op(&g, &[])).collect();
    let last = no_op(&g, &wide);
    add("no-op wide", g, last)?;
    let g = Graph::new();
    let last = (1..N).fold(no_op(&g, &[]), |last, _| no_op(&g, &[last]));
    add("no-op chain", g, last)?;
    let g = Graph::new();
    let mut layer: Vec<NodeId> = (0..64).map(|_| no_op(&g, &[])).collect();
    for _ in 1..157 {
        layer = (0..64).map(|k: usize| no_op(&g, &[layer[k], layer[(k + 1) % 64]])).collect();
    }
    let last = no_op(&g, &layer);
    add("no-op grid 64x157", g, last)?;
    for (name, one) in
        [("scalar AddV2 chain", Tensor::scalar(1.0f32)), ("AddV2 chain of [4]", Tensor::vector(&[1.0f32; 4]))]
    {
        let g = Graph::new();
        let one = g.constant(one);
        let last = (1..N).fold(one, |last, _| last + one).node();
        add(name, g, last)?;
    }
    Ok(graphs)
}

pub fn placeholder<'g>(g: &'g Graph, name: &str) -> Value<'g> {
    g.placeholder(name, DType::F32, PartialShape::unknown())
}

/// Small numbers of both signs.
pub fn values(shape: &[usize]) -> Result<Tensor, BenchError> {
    scaled(shape, 1.0)
}

/// The same, below this one.
pub(super) fn scaled(shape: &[usize], below: f32) -> Result<Tensor, BenchError> {
    let n = shape.iter().product::<usize>();
    let hash = |i: usize| ((i as u32).wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
    Ok(Tensor::from_vec(shape, (0..n).map(|i| below * hash(i)).collect())?)
}
