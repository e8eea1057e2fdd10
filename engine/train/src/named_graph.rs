//! A training graph with the names by which sessions address its nodes.

use std::ops::Deref;
use std::sync::Arc;

use engine::training::TrainingGraph;
use engine::{Graph, Output};

/// The names of a graph's nodes, by id.
pub(crate) struct NodeNames(Vec<Arc<str>>);

impl NodeNames {
    /// The names of the nodes that are in the graph now.
    pub fn from_graph(graph: &Graph) -> NodeNames {
        NodeNames(graph.nodes().iter().map(|node| Arc::clone(&node.name)).collect())
    }

    /// The name of a node, or of its first output.
    pub fn name(&self, output: impl Into<Output>) -> &str {
        let output = output.into();
        debug_assert_eq!(output.port, 0, "sessions take a node's name for its first output");
        self.0.get(output.node.index()).map_or("", |name| name)
    }
}

/// A training graph with its names.
pub(crate) struct NamedGraph {
    graph: TrainingGraph,
    names: NodeNames,
}

impl NamedGraph {
    /// Joins `built` with the names of the nodes of `graph`, in which it was built.
    pub fn new(graph: &Graph, built: TrainingGraph) -> NamedGraph {
        NamedGraph { names: NodeNames::from_graph(graph), graph: built }
    }

    /// The name of a node, or of its first output. Training feeds and fetches no other outputs.
    pub fn name(&self, output: impl Into<Output>) -> &str {
        self.names.name(output)
    }

    /// The names of all nodes.
    pub fn names(&self) -> &NodeNames {
        &self.names
    }

    /// The number of batches that a training step takes.
    pub fn batches_per_step(&self) -> usize {
        self.pushes.as_ref().map_or(self.feeds.len() / self.train_ops.len(), |pushes| pushes.n_required)
    }

    /// Whether batches are fed to the training step; otherwise it takes them from a queue.
    pub fn is_fed(&self) -> bool {
        self.enqueues.is_empty()
    }
}

impl Deref for NamedGraph {
    type Target = TrainingGraph;

    fn deref(&self) -> &TrainingGraph {
        &self.graph
    }
}
