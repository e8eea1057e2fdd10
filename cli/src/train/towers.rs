//! Summaries that the workers of a cluster write themselves: each into a folder of its own within the run's, a run of its own for who
//! reads them. The client only says when, and of which step.

use std::ops::Range;
use std::path::Path;

use engine::{RunOptions, Tensor};
use prost::Message;

use super::cluster::{self, Runner};
use super::names::TowerNames;

/// What a step is given besides, so that towers tell of it.
#[derive(Default)]
pub(super) struct Telling<'a> {
    pub feeds: Vec<(&'a str, Tensor)>,
    pub targets: Vec<&'a str>,
}

/// When a tower tells of itself that does not take part in every step.
#[derive(Default)]
pub(super) struct Pauses {
    scalars: Option<u64>,
    histograms: Option<u64>,
}

impl Pauses {
    /// Whether it is time for scalars, and for histograms, in a step of the tower: the first, and where so many steps of the run were done since.
    pub fn end(&mut self, step: u64, scalars_every: u64, histograms_every: u64) -> (bool, bool) {
        let ends = |last: &mut Option<u64>, every| {
            let is_due = last.is_none_or(|last| step.saturating_sub(last) >= every);
            *last = if is_due { Some(step) } else { *last };
            is_due
        };
        (ends(&mut self.scalars, scalars_every), ends(&mut self.histograms, histograms_every))
    }
}

/// The towers whose workers write.
#[derive(Default)]
pub(super) struct Towers(Vec<TowerNames>);

impl Towers {
    /// Has each worker make its file, in the folder `worker_K` of the run's, and begin it with `first` where there is such an event.
    /// Where a worker cannot, nobody's training ends for it: none writes, and the user is told why.
    ///
    /// # Errors
    /// A worker was lost.
    pub fn open(
        names: &[TowerNames],
        runner: &Runner,
        logdir: &Path,
        first: Option<&formats::proto::Event>,
    ) -> anyhow::Result<Towers> {
        if names.is_empty() {
            return Ok(Towers::default());
        }
        // The working folders of workers are others.
        let logdir = std::path::absolute(logdir)?;
        let folder = |tower: usize| logdir.join(format!("worker_{tower}"));
        let text = |tower: usize| Tensor::string(folder(tower).to_string_lossy().into_owned());
        let feeds: Vec<_> =
            names.iter().enumerate().map(|(tower, names)| (names.logdir.as_str(), text(tower))).collect();
        let open: Vec<&str> = names.iter().map(|names| names.open.as_str()).collect();
        let mut opened = step(runner, &feeds, &open);
        if let (Ok(()), Some(event)) = (&opened, first) {
            let event = Tensor::string(event.encode_to_vec());
            let feeds: Vec<_> = names.iter().map(|names| (names.event.as_str(), event.clone())).collect();
            let import: Vec<&str> = names.iter().map(|names| names.import.as_str()).collect();
            opened = step(runner, &feeds, &import);
        }
        match opened {
            Ok(()) => Ok(Towers(names.to_vec())),
            Err(error) if cluster::lost(&error).is_some() => Err(error),
            Err(error) => {
                note!("warning: the workers write no summaries of their own: {error:#}");
                Ok(Towers::default())
            }
        }
    }

    /// Has these towers write what they have to tell of `step`, with the step that is run with it.
    pub fn telling(&self, towers: Range<usize>, step: u64, scalars: bool, histograms: bool) -> Telling<'_> {
        let mut telling = Telling::default();
        for names in self.0.get(towers).into_iter().flatten().filter(|_| scalars || histograms) {
            telling.feeds.push((&names.step, Tensor::scalar(step as i64)));
            telling.targets.extend(scalars.then_some(names.scalars.as_str()));
            telling.targets.extend(histograms.then_some(names.histograms.as_str()));
        }
        telling
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the files; says what is missing in them.
    pub fn close(&self, runner: &Runner) -> Option<String> {
        let close: Vec<&str> = self.0.iter().map(|names| names.close.as_str()).collect();
        let closed = (!close.is_empty()).then(|| step(runner, &[], &close));
        closed.and_then(Result::err).map(|error| format!("summaries of workers: {error:#}"))
    }
}

fn step(runner: &Runner, feeds: &[(&str, Tensor)], targets: &[&str]) -> anyhow::Result<()> {
    let options = RunOptions { label: "summaries", ..RunOptions::default() };
    runner.run_step(&options, feeds, &[], targets).map(drop)
}
