//! `stepscope runs`: lists the runs of a logdir with their tags, counts, last values and damage.

mod groups;

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use summaries::{FileState, Run, Runs, Series};

use crate::args::RunsArgs;
use crate::logdir;
use crate::out;
use crate::outcome::Outcome;
use crate::source::Source;

/// Reads the logdir and prints it.
pub fn run(args: &RunsArgs) -> Outcome {
    let by = logdir::group_by(&args.grouping)?;
    let complete = logdir::read(&args.logdir)?;
    let runs = complete.logdir.runs();
    out::rows(|out| match by {
        Some(by) => groups::print(&groups::group_runs(&runs, &by), args.json, out),
        None if args.json => print_json(&runs, &complete.source, out),
        None => print_table(&runs, out),
    })
}

/// One object per run.
fn print_json(runs: &Runs, source: &Source, out: &mut impl Write) -> io::Result<()> {
    runs.by_name.values().try_for_each(|run| writeln!(out, "{}", out::versioned(1, run_json(run, source))))
}

fn run_json(run: &Run, source: &Source) -> Value {
    let named = |path: &Path| source.with_url(path.display().to_string());
    let files = run.files.iter().map(|file| {
        let state = match &file.state {
            FileState::Followed => "read",
            FileState::Deleted => "deleted",
            FileState::Unreadable(_) => "unreadable",
        };
        json!({
            "path": named(&file.path), "bytes": file.n_read, "waiting_bytes": file.n_waiting, "state": state,
        })
    });
    let tags = run.series.iter().map(|(tag, series)| (tag.clone(), tag_json(series)));
    let hparams = run.hparams().into_iter().map(|(name, value)| (name, hparam_json(value)));
    json!({
        "run": run.name, "path": named(&run.path),
        "points": run.series.values().map(Series::n_points).sum::<usize>(),
        "tags": tags.collect::<serde_json::Map<_, _>>(),
        "hparams": hparams.collect::<serde_json::Map<_, _>>(),
        "has_graph": run.graph.is_some(), "run_metadata": run.run_metadata.len(),
        "damaged": run.n_damaged, "files": files.collect::<Vec<_>>(),
    })
}

fn tag_json(series: &Series) -> Value {
    let mut tag = json!({"kind": series.kind(), "points": series.n_points()});
    if let Some((step, wall)) = series.last() {
        tag["last_step"] = step.into();
        tag["last_wall_time"] = wall.into();
    }
    if let Series::Scalar(scalars) = series {
        tag["last_value"] = scalars.last().map_or(Value::Null, |point| logdir::json_number(point.value));
        tag["pieces"] = scalars.pieces().count().into();
    }
    tag
}

fn hparam_json(value: summaries::HParam) -> Value {
    match value {
        summaries::HParam::Number(value) => logdir::json_number(value),
        summaries::HParam::Text(value) => value.into(),
        summaries::HParam::Bool(value) => value.into(),
    }
}

/// A line per run, an indented one per tag.
fn print_table(runs: &Runs, out: &mut impl Write) -> io::Result<()> {
    let width = runs.by_name.values().flat_map(|run| run.series.keys()).map(|tag| tag.chars().count()).max();
    let width = width.unwrap_or(0).min(60);
    for run in runs.by_name.values() {
        let n_points: usize = run.series.values().map(Series::n_points).sum();
        let n_bytes: u64 = run.files.iter().map(|file| file.n_read).sum();
        let damage = if run.n_damaged > 0 { format!(", {} damaged", run.n_damaged) } else { String::new() };
        let counts = format!("{} tags, {} points", text::count(run.series.len() as u64), text::count(n_points as u64));
        writeln!(out, "{}: {counts}, {}{damage}", run.name, text::bytes(n_bytes))?;
        for (tag, series) in &run.series {
            let step = series.last().map_or_else(String::new, |(step, _)| format!("step {step}"));
            let value = match series {
                Series::Scalar(scalars) => scalars.last().map_or_else(String::new, |point| point.value.to_string()),
                _ => String::new(),
            };
            let n = text::count(series.n_points() as u64);
            let line = format!("  {tag:width$}  {:14} {n:>12}  {step:14} {value}", series.kind());
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}
