//! Facts about the run for the top bar: name, state, step, rate, last loss and accuracy. No egui here.

use crate::{
    Data,
    catalogue::Kind as _,
    data::{RunRef, Status},
    runs::DrawKind,
};
use std::sync::Arc;
use summaries::ScalarSeries;
use ui::format;

/// Wall time over which the rate in steps per second is measured, seconds.
const RATE_WINDOW_S: f64 = 5.0;

/// [`RunFacts::of_newest_run`] of the open data, cached, so that thousands of series are not searched in every frame.
#[derive(Debug, Default)]
pub struct RunFactsCache {
    key: Option<FactsKey>,
    facts: Option<RunFacts>,
}

/// The key of the cache: version and status of each logdir, and the status of each trace.
type FactsKey = (Vec<(u64, Status)>, Vec<Status>);

impl RunFactsCache {
    /// The facts about the data that is open in this frame.
    pub fn update(&mut self, data: &Data) -> Option<&RunFacts> {
        let logdirs = data.logdirs.iter().map(|logdir| (logdir.runs.version, logdir.status)).collect();
        let key = Some((logdirs, data.traces.iter().map(|trace| trace.status).collect()));
        if self.key != key {
            (self.key, self.facts) = (key, RunFacts::of_newest_run(data));
        }
        self.facts.as_ref()
    }
}

/// Facts about the run that wrote last.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The run.
    pub label: Arc<str>,
    pub status: Status,
    /// Its newest step.
    pub step: i64,
    /// Steps per second over the last seconds, from at least two points.
    pub steps_per_second: Option<f64>,
    /// Short name and newest value of a loss and of an accuracy, where there are such tags.
    pub values: Vec<(String, f64)>,
    /// The number of runs, where there are several and none is being written. Then the label is the logdir's.
    pub n_runs: Option<usize>,
}

impl RunFacts {
    /// Of the run whose newest point was written last; `None` without scalars.
    fn of_newest_run(data: &Data) -> Option<Self> {
        let newest = |run: &RunRef<'_>| {
            let walls =
                run.run.series.values().filter_map(|series| Some(ScalarSeries::from_series(series)?.last()?.wall));
            walls.fold(f64::NEG_INFINITY, f64::max)
        };
        let (wall, run) = data
            .runs()
            .map(|run| (newest(&run), run))
            .filter(|(wall, _)| *wall > f64::NEG_INFINITY)
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let scalars =
            || run.run.series.iter().filter_map(|(tag, series)| Some((tag, ScalarSeries::from_series(series)?)));
        let step = scalars().filter_map(|(_, s)| s.last().map(|point| point.step)).max()?;
        let longest = scalars().map(|(_, s)| s).max_by_key(|s| s.len())?;
        let since = (0..longest.len()).rfind(|row| longest.wall(*row) < wall - RATE_WINDOW_S).unwrap_or(0);
        let values = ["loss", "acc"].iter().filter_map(|word| {
            let found = scalars().filter(|(tag, _)| tag.to_ascii_lowercase().contains(word));
            // The series with the most points, as the one that wrote last changes from step to step.
            let (tag, series) = found.max_by_key(|(tag, s)| (s.len(), std::cmp::Reverse(tag.len())))?;
            let short = tag.rsplit('/').next().unwrap_or(tag).to_owned();
            Some((short, series.last()?.value))
        });
        let status = status_of(data, run);
        let n_runs = n_runs(data).filter(|_| status != Status::Live);
        let names: Vec<&str> = data.logdirs.iter().map(|logdir| &*logdir.name).collect();
        Some(Self {
            label: if n_runs.is_some() { names.join(", ").into() } else { run.label.clone() },
            status,
            step,
            steps_per_second: rate(longest, since),
            values: values.collect(),
            n_runs,
        })
    }

    /// Names and values that are shown next to the label and the status.
    pub fn figures(&self) -> Vec<(&str, String)> {
        if let Some(n) = self.n_runs {
            return vec![("", format::count_of(n as u64, "run"))];
        }
        let rate = self.steps_per_second.filter(|_| self.status == Status::Live);
        let step = ("step", format::step(self.step));
        let rate = rate.map(|rate| ("steps/s", format::figure(rate)));
        let values = self.values.iter().map(|(name, value)| (&**name, format::figure(*value)));
        std::iter::once(step).chain(rate).chain(values).collect()
    }

    /// One line: `demo · live · step 1,200 · 250 steps/s · loss 0.0312`.
    pub fn text(&self) -> String {
        let mut parts = vec![self.label.to_string(), self.status.name().to_owned()];
        parts.extend(self.figures().into_iter().map(|(name, value)| match name {
            "steps/s" => format!("{value} {name}"),
            _ => format!("{name} {value}").trim_start().to_owned(),
        }));
        parts.join(" · ")
    }
}

/// The number of runs that draw curves, if there are several; runs of hyperparameters within them count with them.
fn n_runs(data: &Data) -> Option<usize> {
    let n = data.runs().filter(|run| DrawKind::for_run(run.run) == DrawKind::Curves).count();
    (n > 1).then_some(n)
}

/// The status of a run: its trace knows whether the program still runs and how it ended; without one, growing event
/// files mean that it runs.
fn status_of(data: &Data, run: RunRef<'_>) -> Status {
    let trace = data.traces.iter().find(|trace| trace.path.parent() == Some(&run.run.path));
    match trace.map(|trace| trace.status) {
        Some(status @ (Status::Live | Status::Finished | Status::Crashed)) => status,
        _ => data.logdirs[run.logdir_idx].status,
    }
}

/// Steps per second since a row.
fn rate(series: &ScalarSeries, since: usize) -> Option<f64> {
    let (first, last) = (series.point(since), series.last()?);
    let seconds = last.wall - first.wall;
    (last.step > first.step && seconds > 0.0).then(|| last.step.abs_diff(first.step) as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use summaries::{Point, Run, Runs, Series};

    #[test]
    fn several_runs_are_named_by_their_logdir() {
        let facts = |names: &[&str]| {
            let mut runs = Runs::default();
            for name in names {
                let n_points = if name.contains("hparams") { 1 } else { 3 };
                let points = (0..n_points).map(|step| Point { step, wall: step as f64, value: 0.5 });
                let loss = Series::Scalar(Box::new(points.collect::<ScalarSeries>()));
                let series = [("loss".to_owned(), loss)].into_iter().collect();
                runs.by_name.insert((*name).to_owned(), Run { name: (*name).to_owned(), series, ..Run::default() });
            }
            RunFacts::of_newest_run(&Data::default().with_runs("logs", runs)).unwrap().text()
        };
        assert_eq!(facts(&["a", "a/hparams"]), "a · finished · step 2 · loss 0.5000");
        assert_eq!(facts(&["a", "a/hparams", "b", "c"]), "logs · finished · 3 runs");
    }

    #[test]
    fn rate_needs_time_and_progress() {
        let per_second = |points: &[(i64, f64)]| {
            let point = |&(step, wall): &(i64, f64)| Point { step, wall, value: 0.0 };
            rate(&points.iter().map(point).collect(), 0)
        };
        assert_eq!(per_second(&[(0, 10.0), (100, 12.0)]), Some(50.0));
        assert_eq!(per_second(&[(5, 1.0)]), None);
        assert_eq!(per_second(&[(5, 1.0), (5, 2.0)]), None);
        assert_eq!(per_second(&[(0, 1.0), (5, 1.0)]), None);
    }
}
