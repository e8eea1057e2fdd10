//! Summaries that the workers of a cluster write themselves, each into a folder `worker_K` within the run's folder,
//! which readers show as a run. The client decides in which steps they write.

use std::ops::Range;
use std::path::Path;

use engine::training::TowerSummaries;
use engine::{RunOptions, Tensor};
use prost::Message;

use crate::backend::{self, StepRunner, path_tensor};
use crate::event::{Event, Observer};
use crate::named_graph::NamedGraph;

/// Feeds and targets that, added to a step, make towers write summaries.
#[derive(Default)]
pub(crate) struct SummaryNodes<'a> {
    pub feeds: Vec<(&'a str, Tensor)>,
    pub targets: Vec<&'a str>,
}

/// The last steps in which a tower wrote scalars and histograms, for towers that do not take part in every step.
#[derive(Default)]
pub(crate) struct SummaryIntervals {
    last_scalars: Option<u64>,
    last_histograms: Option<u64>,
}

/// The summaries that a step writes.
#[derive(Clone, Copy)]
pub(crate) struct DueSummaries {
    pub scalars: bool,
    pub histograms: bool,
}

impl SummaryIntervals {
    /// The summaries that are due in a step of the tower: in its first step, and once the given number of steps of the
    /// run have passed.
    pub fn due(&mut self, step: u64, scalars_every: u64, histograms_every: u64) -> DueSummaries {
        let is_due = |last: &mut Option<u64>, every| {
            let is_due = last.is_none_or(|last| step.saturating_sub(last) >= every);
            *last = if is_due { Some(step) } else { *last };
            is_due
        };
        let scalars = is_due(&mut self.last_scalars, scalars_every);
        DueSummaries { scalars, histograms: is_due(&mut self.last_histograms, histograms_every) }
    }
}

/// Whether the workers write summaries: all of them do, or none.
#[derive(Default)]
pub(crate) struct WorkerSummaries {
    is_open: bool,
}

impl WorkerSummaries {
    /// Makes each worker create its event file in the folder `worker_K`, beginning with `first_event` if there is
    /// one. Where a worker fails, training goes on without summaries of workers, and the observer receives the reason
    /// as a warning.
    ///
    /// # Errors
    /// A worker was lost.
    pub fn open(
        graph: &NamedGraph,
        runner: &StepRunner,
        logdir: &Path,
        first_event: Option<&formats::proto::Event>,
        observer: &dyn Observer,
    ) -> anyhow::Result<WorkerSummaries> {
        let towers = &graph.towers;
        if towers.is_empty() {
            return Ok(WorkerSummaries::default());
        }
        // Absolute: workers may have other working folders.
        let logdir = std::path::absolute(logdir)?;
        let folder = |tower: usize| path_tensor(&logdir.join(format!("worker_{tower}")));
        let feeds = towers.iter().enumerate().map(|(idx, tower)| (graph.name(tower.logdir), folder(idx)));
        let mut opened = run_step(runner, &feeds.collect::<Vec<_>>(), &targets(graph, |tower| tower.open));
        if let (Ok(()), Some(event)) = (&opened, first_event) {
            let event = Tensor::string(event.encode_to_vec());
            let feeds: Vec<_> = towers.iter().map(|tower| (graph.name(tower.event), event.clone())).collect();
            opened = run_step(runner, &feeds, &targets(graph, |tower| tower.import));
        }
        match opened {
            Ok(()) => Ok(WorkerSummaries { is_open: true }),
            Err(error) if backend::lost_task(&error).is_some() => Err(error),
            Err(error) => {
                observer.on_event(&Event::Warning(&format!("the workers write no summaries of their own: {error:#}")));
                Ok(WorkerSummaries::default())
            }
        }
    }

    /// The nodes with which these towers write the summaries of `step` that are `due`.
    pub fn nodes<'a>(
        &self,
        graph: &'a NamedGraph,
        towers: Range<usize>,
        step: u64,
        due: DueSummaries,
    ) -> SummaryNodes<'a> {
        let mut nodes = SummaryNodes::default();
        let DueSummaries { scalars, histograms } = due;
        if !self.is_open || !(scalars || histograms) {
            return nodes;
        }
        for tower in graph.towers.get(towers).into_iter().flatten() {
            nodes.feeds.push((graph.name(tower.step), Tensor::scalar(step as i64)));
            nodes.targets.extend(scalars.then(|| graph.name(tower.scalars)));
            nodes.targets.extend(histograms.then(|| graph.name(tower.histograms)));
        }
        nodes
    }

    /// Closes the event files; returns a warning where that failed.
    pub fn close(&self, graph: &NamedGraph, runner: &StepRunner) -> Option<String> {
        let closed = self.is_open.then(|| run_step(runner, &[], &targets(graph, |tower| tower.close)));
        closed.and_then(Result::err).map(|error| format!("summaries of workers: {error:#}"))
    }
}

fn targets(graph: &NamedGraph, node: impl Fn(&TowerSummaries) -> engine::graph::NodeId) -> Vec<&str> {
    graph.towers.iter().map(|tower| graph.name(node(tower))).collect()
}

fn run_step(runner: &StepRunner, feeds: &[(&str, Tensor)], targets: &[&str]) -> anyhow::Result<()> {
    let options = RunOptions { label: "summaries", ..RunOptions::default() };
    runner.run_step(&options, feeds, &[], targets).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_due_in_the_first_step_and_after_each_interval() {
        let mut intervals = SummaryIntervals::default();
        let due: Vec<_> = [3, 4, 12, 13, 25, 103].map(|step| intervals.due(step, 10, 100)).into();
        let due: Vec<_> = due.iter().map(|due| (due.scalars, due.histograms)).collect();
        let expected = [(true, true), (false, false), (false, false), (true, false), (true, false), (true, true)];
        assert_eq!(due, expected);
    }
}
