//! The nodes of a training graph by name, as sessions want them.

use engine::graph::GraphError;
use engine::training::{Enqueue, Position, Pushes, Saving, TowerSummaries, TrainingGraph};
use engine::{Graph, Output};

/// The graph's nodes by name, as sessions want them.
pub(super) struct Names {
    pub init: String,
    pub feeds: Vec<Vec<String>>,
    pub enqueue: Option<EnqueueNames>,
    pub train_ops: Vec<String>,
    pub pushes: Option<PushNames>,
    pub losses: Vec<String>,
    pub scalars: String,
    pub histograms: String,
    pub images: Option<String>,
    pub test_feeds: Vec<String>,
    pub test_loss: String,
    pub test_accuracy: Option<String>,
    pub test_updates: Vec<String>,
    /// The variable that the judgement needs.
    pub judged: Option<String>,
    /// On a cluster: what tells towers where their input begins, and what saves and restores.
    pub remote: Option<RemoteNames>,
    /// On a cluster: what has each tower write summaries of its own.
    pub towers: Vec<TowerNames>,
}

/// What has a tower write summaries of its own.
#[derive(Clone)]
pub(super) struct TowerNames {
    pub logdir: String,
    pub open: String,
    pub event: String,
    pub import: String,
    pub step: String,
    pub scalars: String,
    pub histograms: String,
    pub close: String,
}

impl TowerNames {
    fn of(graph: &Graph, tower: &TowerSummaries) -> Result<TowerNames, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        Ok(TowerNames {
            logdir: output_name(graph, tower.logdir)?,
            open: node(tower.open)?,
            event: output_name(graph, tower.event)?,
            import: node(tower.import)?,
            step: output_name(graph, tower.step)?,
            scalars: node(tower.scalars)?,
            histograms: node(tower.histograms)?,
            close: node(tower.close)?,
        })
    }
}

/// Nodes that work on the tasks of a cluster.
pub(super) struct RemoteNames {
    /// What each tower's position is fed to, and what tells it.
    pub positions: Vec<(String, String)>,
    pub parts: Vec<String>,
    pub prefix: String,
    pub save: String,
    pub restore: String,
}

/// What towers give their gradients with, where there are backup workers.
#[derive(Clone)]
pub(super) struct PushNames {
    pub done: String,
    pub begin: String,
    pub ops: Vec<String>,
    pub n_required: usize,
}

impl PushNames {
    fn of(graph: &Graph, pushes: &Pushes) -> Result<PushNames, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        Ok(PushNames {
            done: output_name(graph, pushes.done)?,
            begin: node(pushes.begin)?,
            ops: pushes.ops.iter().map(|id| node(*id)).collect::<Result<_, _>>()?,
            n_required: pushes.n_required,
        })
    }
}

/// The queue's nodes.
#[derive(Clone)]
pub(super) struct EnqueueNames {
    pub feeds: Vec<String>,
    pub op: String,
    pub close: String,
    pub size: String,
}

impl EnqueueNames {
    pub fn of(graph: &Graph, enqueue: &Enqueue) -> Result<EnqueueNames, GraphError> {
        Ok(EnqueueNames {
            feeds: enqueue.feeds.iter().map(|feed| output_name(graph, *feed)).collect::<Result<_, _>>()?,
            op: graph.node(enqueue.op)?.name.to_string(),
            close: graph.node(enqueue.close)?.name.to_string(),
            size: output_name(graph, enqueue.size)?,
        })
    }
}

pub(super) fn output_name(graph: &Graph, output: Output) -> Result<String, GraphError> {
    Ok(format!("{}:{}", graph.node(output.node)?.name, output.port))
}

impl Names {
    /// Batches that a training step takes.
    pub fn batches_per_step(&self) -> usize {
        self.pushes.as_ref().map_or(self.feeds.len() / self.train_ops.len(), |pushes| pushes.n_required)
    }

    pub fn of(graph: &Graph, built: &TrainingGraph, wanted: Option<&str>) -> Result<Names, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        let output = |o: &Output| output_name(graph, *o);
        let outputs = |list: &[Output]| list.iter().map(output).collect::<Result<Vec<_>, _>>();
        let enqueue = built.enqueues.first().map(|enqueue| EnqueueNames::of(graph, enqueue)).transpose()?;
        let judged = built.variables.iter().find(|(name, _)| Some(name.as_str()) == wanted);
        Ok(Names {
            init: node(built.init)?,
            feeds: built.feeds.iter().map(|feeds| outputs(feeds)).collect::<Result<_, _>>()?,
            enqueue,
            train_ops: built.train_ops.iter().map(|id| node(*id)).collect::<Result<_, _>>()?,
            pushes: built.pushes.as_ref().map(|pushes| PushNames::of(graph, pushes)).transpose()?,
            losses: outputs(&built.losses)?,
            scalars: output(&built.scalars)?,
            histograms: output(&built.histograms)?,
            images: built.images.as_ref().map(output).transpose()?,
            test_feeds: outputs(&built.evaluation.feeds)?,
            test_loss: output(&built.evaluation.loss)?,
            test_accuracy: built.evaluation.accuracy.as_ref().map(output).transpose()?,
            test_updates: built.evaluation.updates.iter().map(|id| node(*id)).collect::<Result<_, _>>()?,
            judged: judged.map(|(_, value)| output(value)).transpose()?,
            towers: built.towers.iter().map(|tower| TowerNames::of(graph, tower)).collect::<Result<_, _>>()?,
            remote: built.saving.as_ref().map(|saving| RemoteNames::of(graph, saving, &built.positions)).transpose()?,
        })
    }
}

impl RemoteNames {
    fn of(graph: &Graph, saving: &Saving, positions: &[Position]) -> Result<RemoteNames, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        let position = |p: &Position| Ok((output_name(graph, p.feed)?, node(p.tell)?));
        Ok(RemoteNames {
            positions: positions.iter().map(position).collect::<Result<_, GraphError>>()?,
            parts: saving.parts.iter().map(|part| output_name(graph, *part)).collect::<Result<_, _>>()?,
            prefix: output_name(graph, saving.prefix)?,
            save: node(saving.save)?,
            restore: node(saving.restore)?,
        })
    }
}
