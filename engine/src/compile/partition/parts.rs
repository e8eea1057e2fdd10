//! A divided graph as one definition per task: what a master gives to its workers (white paper section 3.3).

use std::sync::Arc;

use formats::proto::{FunctionDefLibrary, GraphDef, VersionDef};

use super::error::PartitionError;
use crate::compile::passes::dump::placeholder;
use crate::compile::{Source, WorkGraph, WorkId};
use engine_core::device::{Device, DeviceName};

/// What one task does of a step. Its `_Send` and `_Recv` nodes meet those of the other tasks' parts.
#[derive(Debug, Clone)]
pub struct Part {
    /// Job, replica and task.
    pub task: DeviceName,
    /// The nodes, each with the full name of its device, and a placeholder for each feed.
    pub graph: GraphDef,
    /// The feeds that it needs: the position in the step's signature, and the placeholder.
    pub feeds: Vec<(usize, String)>,
    /// The fetches that it gives: the position in the step's signature, and the output (`name:port`).
    pub fetches: Vec<(usize, String)>,
    /// Nodes that shall run besides.
    pub targets: Vec<String>,
}

impl WorkGraph {
    /// The parts of a graph that [`super::partition`] divided, each with the functions that its nodes may call.
    ///
    /// # Errors
    /// A node is on no device, or an edge still crosses from task to task.
    pub(crate) fn parts(
        &self,
        devices: &[Arc<Device>],
        library: Option<&FunctionDefLibrary>,
    ) -> Result<Vec<Part>, PartitionError> {
        let feed_names = self.feed_names();
        let mut parts: Vec<Part> = Vec::new();
        // The part of each device.
        let mut of_device: Vec<Option<usize>> = vec![None; devices.len()];
        for (id, node) in self.iter() {
            let device = devices.get(node.device as usize).ok_or_else(|| self.broken(id))?;
            let at = *of_device[node.device as usize].get_or_insert_with(|| {
                let task = device.full_name().task_name();
                parts.iter().position(|part| part.task == task).unwrap_or_else(|| {
                    parts.push(Part::empty(task, library));
                    parts.len() - 1
                })
            });
            let task = &parts[at].task;
            let is_here = |from: &WorkId| {
                let from = self.get(*from).and_then(|from| devices.get(from.device as usize));
                from.is_some_and(|from| from.full_name().task_name() == *task)
            };
            if !node.before().all(|from| is_here(&from)) {
                return Err(self.broken(id));
            }
            let mut def = node.def.to_def(self.edges_into(id, &feed_names));
            def.device = device.full_name().to_string();
            for source in &node.inputs {
                if let Source::Feed(feed) = source {
                    self.take_feed(&mut parts[at], *feed as usize, &feed_names);
                }
            }
            parts[at].graph.node.push(def);
        }
        let part_of = |id: WorkId| self.get(id).and_then(|node| of_device[node.device as usize]);
        for (position, source) in self.fetches.iter().enumerate() {
            if let Source::Port(id, port) = source {
                let at = part_of(*id).ok_or_else(|| self.broken(*id))?;
                parts[at].fetches.push((position, format!("{}:{port}", self.name(*id))));
            }
        }
        for target in &self.targets {
            let at = part_of(*target).ok_or_else(|| self.broken(*target))?;
            parts[at].targets.push(self.name(*target));
        }
        Ok(parts)
    }

    fn name(&self, id: WorkId) -> String {
        self.get(id).map(|node| node.name().to_string()).unwrap_or_default()
    }

    fn broken(&self, id: WorkId) -> PartitionError {
        PartitionError::NotDivided { node: self.name(id) }
    }

    /// The inputs of a node as a definition writes them.
    fn edges_into(&self, id: WorkId, feed_names: &[String]) -> Vec<String> {
        let Some(node) = self.get(id) else { return Vec::new() };
        let data = node.inputs.iter().map(|source| match *source {
            Source::Port(from, 0) => self.name(from),
            Source::Port(from, port) => format!("{}:{port}", self.name(from)),
            Source::Feed(feed) => feed_names.get(feed as usize).cloned().unwrap_or_default(),
        });
        data.chain(node.control_inputs.iter().map(|from| format!("^{}", self.name(*from)))).collect()
    }

    fn take_feed(&self, part: &mut Part, feed: usize, names: &[String]) {
        if part.feeds.iter().any(|(known, _)| *known == feed) {
            return;
        }
        part.graph.node.push(placeholder(&self.feeds[feed], &names[feed]));
        part.feeds.push((feed, names[feed].clone()));
    }
}

impl Part {
    fn empty(task: DeviceName, library: Option<&FunctionDefLibrary>) -> Part {
        let versions = Some(VersionDef { producer: 1882, min_consumer: 0, bad_consumers: Vec::new() });
        let graph = GraphDef { library: library.cloned(), versions, ..GraphDef::default() };
        Part { task, graph, feeds: Vec::new(), fetches: Vec::new(), targets: Vec::new() }
    }
}
