//! The runs' hyperparameters, read in a thread from their event files (TensorBoard's hparams plugin, torch's
//! `add_hparams`) or else from the command in `run.json`. No egui here.

use super::table::{Cell, Key, Session, Statistic};
use crate::{Data, data::RunRef};
use formats::{
    plugins::{SessionStatus, h_params_plugin_data::Data as Content},
    proto::SummaryMetadata,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};
use summaries::{HParam, RecordPosition, Run, Sample, ScalarSeries, Series};

/// The sources of a run's hyperparameters.
pub struct Source {
    logdir_idx: usize,
    run: Arc<str>,
    label: Arc<str>,
    folder: PathBuf,
    /// The positions of the plugin's records with their metadata.
    records: Vec<(RecordPosition, Arc<SummaryMetadata>)>,
}

/// The hyperparameters of all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionData {
    /// The runs with hyperparameters.
    pub sessions: Vec<SessionRun>,
    /// Metrics that experiments declare: logdir, run below the session's, and tag.
    pub metrics: BTreeSet<(usize, Arc<str>, Arc<str>)>,
    /// The number of values that could not be read, with the first error.
    pub unreadable: Option<(usize, String)>,
}

/// The hyperparameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRun {
    logdir_idx: usize,
    run: Arc<str>,
    label: Arc<str>,
    hparams: BTreeMap<Arc<str>, Cell>,
    status: &'static str,
}

/// Returns the number of runs and of values. There is nothing new to read while both stay the same.
pub fn n_runs_and_values(data: &Data) -> (usize, usize) {
    let n_hparams =
        |run: RunRef<'_>| run.run.series.values().map(|s| if is_hparams(s) { s.n_points() } else { 0 }).sum::<usize>();
    (data.runs().count(), data.runs().map(n_hparams).sum())
}

fn is_hparams(series: &Series) -> bool {
    matches!(series, Series::Media(s) if s.kind() == "hparams")
}

/// Returns the sources of all runs.
pub fn sources(data: &Data) -> Vec<Source> {
    let source = |run: RunRef<'_>| {
        let values = run.run.series.values().filter_map(|series| match series {
            Series::Media(s) if s.kind() == "hparams" => Some(s),
            _ => None,
        });
        let records = values.flat_map(|s| s.rows().iter().map(|row| (row.place.clone(), s.metadata.clone())));
        Source {
            logdir_idx: run.logdir_idx,
            run: run.run.name.as_str().into(),
            label: run.label.clone(),
            folder: run.run.path.clone(),
            records: records.collect(),
        }
    };
    data.runs().map(source).collect()
}

/// Reads the hyperparameters of runs.
pub fn read(sources: Vec<Source>) -> SessionData {
    let mut found = SessionData::default();
    for source in sources {
        let (mut hparams, mut status) = (BTreeMap::new(), "");
        for (position, metadata) in &source.records {
            let content = match position.read("hparams", metadata) {
                Ok(Sample::HParams(content)) => content.data,
                Ok(_) => None,
                Err(error) => {
                    let unreadable = found.unreadable.get_or_insert_with(|| (0, error.to_string()));
                    unreadable.0 += 1;
                    None
                }
            };
            match content {
                Some(Content::Experiment(experiment)) => {
                    let names = experiment.metric_infos.into_iter().filter_map(|info| info.name);
                    let metric = |name: formats::plugins::MetricName| {
                        (source.logdir_idx, name.group.trim_matches('.').into(), name.tag.into())
                    };
                    found.metrics.extend(names.map(metric));
                }
                Some(Content::SessionStartInfo(start)) => {
                    let kinds = start.hparams.into_iter().filter_map(|(name, value)| Some((name, value.kind?)));
                    hparams.extend(kinds.map(|(name, kind)| (name.into(), Cell::from(&HParam::from(kind)))));
                }
                Some(Content::SessionEndInfo(end)) => status = status_name(end.status()),
                None => {}
            }
        }
        if source.records.is_empty() {
            hparams = command_parameters(&source.folder);
        }
        if !hparams.is_empty() {
            let Source { logdir_idx, run, label, .. } = source;
            found.sessions.push(SessionRun { logdir_idx, run, label, hparams, status });
        }
    }
    found
}

fn status_name(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::StatusUnknown => "",
        SessionStatus::StatusSuccess => "success",
        SessionStatus::StatusFailure => "failure",
        SessionStatus::StatusRunning => "running",
    }
}

/// Bytes of a `run.json` that are read, at most; the files have a few hundred bytes.
const MAX_RUN_JSON: u64 = 1 << 20;
/// Options for paths, reports and display, which are no hyperparameters.
const OTHER_OPTIONS: [&str; 13] = [
    "logdir",
    "trace",
    "headless",
    "json",
    "checkpoint-dir",
    "checkpoint-every",
    "summary-every",
    "cluster",
    "theme",
    "renderer",
    "quiet",
    "verbose",
    "collector",
];

/// Returns the options of the command in `run.json` (`--learning-rate 0.1`, `--sync`) and the name of the model.
fn command_parameters(folder: &Path) -> BTreeMap<Arc<str>, Cell> {
    let mut text = String::new();
    let read = File::open(folder.join("run.json")).and_then(|f| f.take(MAX_RUN_JSON).read_to_string(&mut text));
    let info = read.ok().and_then(|_| serde_json::from_str::<serde_json::Value>(&text).ok());
    let Some(info) = info else { return BTreeMap::new() };
    let words: Vec<&str> = info["command"].as_array().into_iter().flatten().filter_map(|w| w.as_str()).collect();
    let mut out = BTreeMap::new();
    for (i, word) in words.iter().enumerate() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let next = words.get(i + 1).filter(|next| !next.starts_with("--"));
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value),
            None => (option, next.copied().unwrap_or("true")),
        };
        if !OTHER_OPTIONS.contains(&name) {
            let cell = value.parse().map_or_else(|_| Cell::Text(value.into()), Cell::Number);
            out.insert(name.into(), cell);
        }
    }
    if let Some(name) = info["name"].as_str().filter(|_| !words.is_empty()) {
        out.insert("name".into(), Cell::Text(name.into()));
    }
    out
}

/// Returns the sessions with their current metrics.
pub fn sessions(session_data: &SessionData, data: &Data, statistic: Statistic) -> Vec<Session> {
    let session = |source: &SessionRun| {
        let mut cells: BTreeMap<Key, Cell> =
            source.hparams.iter().map(|(name, cell)| (Key::HParam(name.clone()), cell.clone())).collect();
        let runs = &data.logdirs.get(source.logdir_idx)?.runs.by_name;
        let run_name = |group: &str| match (&*source.run, group) {
            (run, "") => run.to_owned(),
            (".", group) => group.to_owned(),
            (run, group) => format!("{run}/{group}"),
        };
        let mut declared =
            session_data.metrics.iter().filter(|(logdir_idx, ..)| *logdir_idx == source.logdir_idx).peekable();
        if declared.peek().is_some() {
            for (_, group, tag) in declared {
                if let Some(Series::Scalar(series)) = runs.get(&run_name(group)).and_then(|run| run.series.get(&**tag))
                {
                    cells.extend(metric(group.clone(), tag, series, statistic));
                }
            }
        } else {
            // Without declared metrics, every scalar of the session and of the runs in its folder is a metric.
            let prefix = if &*source.run == "." { String::new() } else { format!("{}/", source.run) };
            let session_run = runs.get(&*source.run).map(|run| ("", run));
            let start = runs.partition_point(|name, _| *name < prefix);
            let others = runs.iter().skip(start).take_while(|(name, _)| name.starts_with(&prefix));
            let others = others.filter(|(name, _)| **name != *source.run && &*source.run != ".");
            for (group, run) in session_run.into_iter().chain(others.map(|(name, run)| (&name[prefix.len()..], run))) {
                cells.extend(scalars(run).filter_map(|(tag, series)| metric(group.into(), tag, series, statistic)));
            }
        }
        Some(Session { label: source.label.clone(), cells, status: source.status })
    };
    session_data.sessions.iter().filter_map(session).collect()
}

fn scalars(run: &Run) -> impl Iterator<Item = (&str, &ScalarSeries)> {
    run.series.iter().filter_map(|(tag, series)| match series {
        Series::Scalar(series) => Some((tag.as_str(), &**series)),
        _ => None,
    })
}

fn metric(group: Arc<str>, tag: &str, series: &ScalarSeries, statistic: Statistic) -> Option<(Key, Cell)> {
    let extent = || series.values().extent(0..series.len());
    let value = match statistic {
        Statistic::Last => series.last()?.value,
        Statistic::Min => Some(extent().min).filter(|x| x.is_finite())?,
        Statistic::Max => Some(extent().max).filter(|x| x.is_finite())?,
    };
    Some((Key::Metric(group, tag.into()), Cell::Number(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_command() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"name":"mnist","command":["stepscope","train","mnist","--learning-rate","0.1","--sync","--data=x","--logdir","y",
            "--theme","dark","--renderer=wgpu","--summary-every","10","--quiet"]}"#;
        std::fs::write(dir.path().join("run.json"), text).unwrap();
        let got: Vec<(String, String)> =
            command_parameters(dir.path()).into_iter().map(|(name, cell)| (name.to_string(), cell.exact())).collect();
        let want = [("data", "x"), ("learning-rate", "0.1"), ("name", "mnist"), ("sync", "true")];
        assert_eq!(got, want.map(|(a, b)| (a.to_owned(), b.to_owned())));
        std::fs::write(dir.path().join("run.json"), "{").unwrap();
        assert!(command_parameters(dir.path()).is_empty() && command_parameters(Path::new("/nowhere")).is_empty());
    }
}
