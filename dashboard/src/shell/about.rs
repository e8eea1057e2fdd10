//! What the top bar says about the run: name, state, step, rate, last loss and accuracy. No egui here.

use crate::{
    Data, ViewKind, catalogue,
    data::{RunRef, SourceKind, Status},
    format,
    runs::DrawKind,
};
use std::sync::Arc;
use summaries::{ScalarSeries, Series};

/// A window of this many seconds of wall time gives the rate in steps per second.
const RATE_WINDOW_S: f64 = 5.0;

/// [`RunFacts::of`] what is open, looked up anew when that changed: thousands of series are not looked through in every frame.
#[derive(Debug, Default)]
pub struct KnownFacts {
    of: Option<Opened>,
    facts: Option<RunFacts>,
}

/// What facts depend on: version and status of each logdir, and the status of each trace.
type Opened = (Vec<(u64, Status)>, Vec<Status>);

impl KnownFacts {
    /// Of what is open in this frame.
    pub fn update(&mut self, data: &Data) -> Option<&RunFacts> {
        let logdirs = data.logdirs.iter().map(|logdir| (logdir.runs.version, logdir.status)).collect();
        let of = Some((logdirs, data.traces.iter().map(|trace| trace.status).collect()));
        if self.of != of {
            (self.of, self.facts) = (of, RunFacts::of(data));
        }
        self.facts.as_ref()
    }
}

/// Facts about the run that wrote last.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The run.
    pub label: Arc<str>,
    /// How it is doing.
    pub status: Status,
    /// Its newest step.
    pub step: i64,
    /// Steps per second over the last seconds, where at least two points tell.
    pub steps_per_second: Option<f64>,
    /// Short name and newest value of a loss and of an accuracy, where there are such tags.
    pub values: Vec<(String, f64)>,
    /// Where several runs lie side by side and none is being written: how many. Then the label is the logdir's.
    pub n_runs: Option<usize>,
}

impl RunFacts {
    /// Of the run whose newest point was written last; `None` without scalars.
    pub fn of(data: &Data) -> Option<Self> {
        let newest = |run: &RunRef<'_>| {
            let walls = run.run.series.values().filter_map(|series| match series {
                Series::Scalar(s) => s.last().map(|point| point.wall),
                _ => None,
            });
            walls.fold(f64::NEG_INFINITY, f64::max)
        };
        let (wall, run) = data
            .runs()
            .map(|run| (newest(&run), run))
            .filter(|(wall, _)| *wall > f64::NEG_INFINITY)
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let scalars = || {
            run.run.series.iter().filter_map(|(tag, series)| match series {
                Series::Scalar(s) => Some((tag, s)),
                _ => None,
            })
        };
        let step = scalars().filter_map(|(_, s)| s.last().map(|point| point.step)).max()?;
        let longest = scalars().map(|(_, s)| s).max_by_key(|s| s.len())?;
        let since = (0..longest.len()).rfind(|row| longest.wall(*row) < wall - RATE_WINDOW_S).unwrap_or(0);
        let values = ["loss", "acc"].iter().filter_map(|word| {
            let found = scalars().filter(|(tag, _)| tag.to_ascii_lowercase().contains(word));
            // The one with most points, always: which one wrote last changes from step to step.
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

    /// What is shown beside the label and the status: names and values.
    pub fn figures(&self) -> Vec<(&str, String)> {
        if let Some(n) = self.n_runs {
            return vec![("", format::counted(n as u64, "run"))];
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

/// How many runs draw curves, if several do; runs of hyperparameters within them count with them.
fn n_runs(data: &Data) -> Option<usize> {
    let n = data.runs().filter(|run| DrawKind::of(run.run) == DrawKind::Curves).count();
    (n > 1).then_some(n)
}

/// How a run is doing: its trace knows whether the program still runs and how it ended; without one, its event files
/// tell by growing.
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

/// Whether a panel has something to show, or will have: a run that goes on writes scalars.
pub fn has_something(data: &Data, kind: ViewKind) -> bool {
    let has = |kind: fn(&Series) -> bool| data.runs().any(|r| r.run.series.values().any(kind));
    match kind {
        ViewKind::Scalars => {
            let goes_on = data.sources.iter().any(|s| s.kind == SourceKind::Logdir && s.status == Status::Live);
            goes_on || has(|s| matches!(s, Series::Scalar(_)))
        }
        ViewKind::Histograms => has(|s| matches!(s, Series::Histogram(_))),
        ViewKind::Media => has(|s| matches!(s, Series::Media(s) if !catalogue::has_own_panel(s.kind()))),
        ViewKind::Embeddings => data.runs().take(64).any(|r| r.run.path.join("projector_config.pbtxt").exists()),
        ViewKind::HParams => has(|s| s.kind() == "hparams"),
        ViewKind::Graph => !data.graphs.is_empty(),
        ViewKind::Timeline | ViewKind::Ops | ViewKind::Bottlenecks => !data.traces.is_empty(),
        ViewKind::Sql => !(data.traces.is_empty() && data.logdirs.is_empty()),
    }
}

/// The panel to open on: the first that has something to show.
pub fn first_panel(data: &Data) -> ViewKind {
    let order = [ViewKind::Scalars, ViewKind::Timeline, ViewKind::Graph, ViewKind::Histograms, ViewKind::Media];
    order.into_iter().find(|kind| has_something(data, *kind)).unwrap_or(ViewKind::Scalars)
}

/// Whether a panel has something to show already, while more is being read.
pub fn has_something_now(data: &Data, kind: ViewKind) -> bool {
    let has_slices = || data.traces.iter().any(|trace| trace.store.tracks().iter().any(|track| track.n_slices() > 0));
    match kind {
        ViewKind::Scalars => data.runs().any(|r| r.run.series.values().any(|s| matches!(s, Series::Scalar(_)))),
        ViewKind::Timeline | ViewKind::Ops | ViewKind::Bottlenecks => has_slices(),
        // Questions can be asked, but nothing is shown.
        ViewKind::Sql => false,
        kind => has_something(data, kind),
    }
}

/// Whether there is anything but what is still being read.
pub fn shows_anything(data: &Data) -> bool {
    let is_loading = data.sources.iter().any(|source| source.status == Status::Loading);
    match is_loading {
        true => ViewKind::ALL.into_iter().any(|kind| has_something_now(data, kind)),
        false => kind_of(data).is_some(),
    }
}

/// What is open, as a word under which the panels' layout is remembered; `None` while nothing is.
pub fn kind_of(data: &Data) -> Option<&'static str> {
    match (data.logdirs.is_empty(), data.traces.is_empty(), data.graphs.is_empty()) {
        (false, false, _) => Some("run"),
        (false, true, _) => Some("logdir"),
        (true, false, _) => Some("trace"),
        (true, true, false) => Some("graph"),
        (true, true, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use summaries::{Point, Run, Runs};

    #[test]
    fn several_runs_are_told_by_their_logdir() {
        let facts = |names: &[&str]| {
            let mut runs = Runs::default();
            for name in names {
                let n_points = if name.contains("hparams") { 1 } else { 3 };
                let points = (0..n_points).map(|step| Point { step, wall: step as f64, value: 0.5 });
                let loss = Series::Scalar(Box::new(points.collect::<ScalarSeries>()));
                let series = [("loss".to_owned(), loss)].into_iter().collect();
                runs.by_name.insert((*name).to_owned(), Run { name: (*name).to_owned(), series, ..Run::default() });
            }
            RunFacts::of(&Data::default().with_runs("logs", runs)).unwrap().text()
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
