//! A case that is compared: the graph, what a step of it runs, and the unit of its figure.

use ::engine::graph::Graph;
use ::engine::{Callable, Session, Tensor};

use super::setup::{plain_session, session};
use crate::report::BenchError;

/// One step on our side, named as in `tensorflow_peer.py`.
pub(super) struct Case {
    pub name: String,
    pub graph: Graph,
    /// Run once before.
    pub init: Option<String>,
    pub feeds: Vec<(String, Tensor)>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
    /// Steps of a repetition, where one is too short to be timed.
    pub inner: usize,
    /// Repetitions of a turn.
    pub repeat: usize,
    pub unit: Unit,
}

impl Case {
    pub(super) fn new(name: &str, graph: Graph, target: String) -> Case {
        Case {
            name: name.to_owned(),
            graph,
            init: None,
            feeds: Vec::new(),
            fetches: Vec::new(),
            targets: vec![target],
            inner: 1,
            repeat: 10,
            unit: Unit::MsPerStep,
        }
    }

    /// Its graph in a session, initialised.
    pub(super) fn session(&self, threads: usize) -> Result<Session, BenchError> {
        // Per node: each node is run as it is, as on TensorFlow's side.
        let is_dispatch = matches!(self.unit, Unit::NsPerNode);
        let s = if is_dispatch { plain_session(&self.graph, threads)? } else { session(&self.graph, threads)? };
        if let Some(init) = &self.init {
            s.run(&[], &[], &[init])?;
        }
        Ok(s)
    }

    pub(super) fn fetches(&self) -> Vec<&str> {
        self.fetches.iter().map(String::as_str).collect()
    }

    pub(super) fn targets(&self) -> Vec<&str> {
        self.targets.iter().map(String::as_str).collect()
    }

    /// The step, ready to be run with the feeds.
    pub(super) fn prepare<'s>(&self, session: &'s Session) -> Result<(Callable<'s>, Vec<Tensor>), BenchError> {
        let (names, feeds): (Vec<&str>, Vec<Tensor>) =
            self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).unzip();
        Ok((session.prepare(&names, &self.fetches(), &self.targets())?, feeds))
    }
}

/// The unit of a case's figure.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    NsPerNode,
    UsPerStep,
    MsPerStep,
    /// With the floating-point operations of a step.
    Gflops(f64),
}

impl Unit {
    pub(super) fn of(self, ns: f64, nodes: f64) -> (f64, &'static str) {
        match self {
            Unit::NsPerNode => (ns / nodes, "ns per node"),
            Unit::UsPerStep => (ns / 1e3, "us per step"),
            Unit::MsPerStep => (ns / 1e6, "ms per step"),
            Unit::Gflops(flops) => (flops / ns, "GFLOP/s"),
        }
    }
}
