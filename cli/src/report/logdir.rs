//! The part of the page about a logdir: curves, each with its band where runs are grouped, and histograms.

use std::collections::BTreeMap;
use std::path::Path;

use formats::FileKind;
use summaries::charts::{Chart, Curve, Shape};
use summaries::derive::group::{Align, GroupBy, band, groups};
use summaries::{Histogram, HistogramSeries, Run, Runs, ScalarSeries, Series};

use super::page::{Figure, Section};
use crate::logdir;
use crate::outcome::Failure;
use crate::source;

/// The most charts of scalars, and of histograms: the first tags by name.
const MAX_TAGS: usize = 60;
/// The most histograms of a chart, evenly spaced.
const MAX_HISTOGRAMS: usize = 40;

/// The section of the scalars and histograms below a path, if there are any.
pub fn section(path: &Path, group_by: Option<&GroupBy>) -> Result<Option<Section>, Failure> {
    if !source::is_url(path) {
        let fault = |error| Failure::wrong_use(format_args!("{}: {error}", path.display()));
        let kind = formats::sniff(path).map_err(fault)?;
        if !matches!(kind, FileKind::EventFile | FileKind::Logdir | FileKind::RunFolder | FileKind::RunLog) {
            return Ok(None);
        }
    }
    let complete = match logdir::read(path) {
        // A run folder may have only a trace.
        Err(_) if !source::is_url(path) => return Ok(None),
        complete => complete?,
    };
    let runs = complete.logdir.runs();
    let (scalars, histograms) = (scalar_figures(&runs, group_by), histogram_figures(&runs));
    let n_points: usize = runs.by_name.values().flat_map(|run| run.series.values()).map(Series::n_points).sum();
    let n_tags = tags(&runs, |_| true).len();
    let n_damaged: u64 = runs.by_name.values().map(|run| run.n_damaged).sum();
    let mut facts =
        vec![format!("{} runs, {n_tags} tags, {} points.", runs.by_name.len(), text::count(n_points as u64))];
    if n_tags > MAX_TAGS {
        facts.push(format!("The first {MAX_TAGS} tags by name are shown."));
    }
    let warnings = (n_damaged > 0).then(|| format!("{n_damaged} damaged places in the event files were skipped."));
    Ok(Some(Section {
        title: format!("Summaries of {}", path.display()),
        facts,
        warnings: warnings.into_iter().collect(),
        figures: scalars.into_iter().chain(histograms).collect(),
        ..Section::default()
    }))
}

/// The tags that have a series of this kind in any run, with those runs.
fn tags(runs: &Runs, is_wanted: impl Fn(&Series) -> bool) -> BTreeMap<&str, Vec<&Run>> {
    let mut tags: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs.by_name.values() {
        for (tag, _) in run.series.iter().filter(|(_, series)| is_wanted(series)) {
            tags.entry(tag).or_default().push(run);
        }
    }
    tags
}

fn scalars<'a>(run: &'a Run, tag: &str) -> Option<&'a ScalarSeries> {
    match run.series.get(tag) {
        Some(Series::Scalar(scalars)) => Some(scalars),
        _ => None,
    }
}

fn scalar_figures(runs: &Runs, group_by: Option<&GroupBy>) -> Vec<Figure> {
    let figure = |(tag, runs): (&str, Vec<&Run>)| {
        let mut curves: Vec<Curve> = match group_by {
            None => runs.iter().filter_map(|run| Some(curve(&run.name, scalars(run, tag)?))).collect(),
            Some(group_by) => {
                groups(runs, group_by).into_iter().map(|(name, runs)| group_curve(&name, &runs, tag)).collect()
            }
        };
        // A single run needs no label.
        if let [only] = &mut curves[..]
            && only.label == "."
        {
            only.label.clear();
        }
        let shape = Shape::Curves { x: "step".to_owned(), y: String::new(), curves };
        Figure { name: tag.to_owned(), chart: Chart { title: tag.to_owned(), shape } }
    };
    tags(runs, |series| matches!(series, Series::Scalar(_))).into_iter().take(MAX_TAGS).map(figure).collect()
}

/// The curve of a run, whose line breaks at each restart.
fn curve(name: &str, scalars: &ScalarSeries) -> Curve {
    let mut points = Vec::new();
    for rows in scalars.pieces() {
        points.extend(points.last().map(|&(step, _)| (step, f64::NAN)));
        points.extend(rows.map(|row| scalars.point(row)).map(|point| (point.step as f64, point.value)));
    }
    Curve { label: name.to_owned(), points, band: Vec::new() }
}

/// The curve of a group: the mean of its runs, in the band from their minimum to their maximum.
fn group_curve(name: &str, runs: &[&Run], tag: &str) -> Curve {
    let series: Vec<&ScalarSeries> = runs.iter().filter_map(|run| scalars(run, tag)).collect();
    let rows = band(&series, Align::Interpolated, &[]);
    Curve {
        label: format!("{name} ({})", series.len()),
        points: rows.iter().map(|row| (row.step as f64, row.mean)).collect(),
        band: rows.iter().map(|row| (row.step as f64, row.min, row.max)).collect(),
    }
}

/// Ridges and distributions for each run of each tag.
fn histogram_figures(runs: &Runs) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (tag, runs) in tags(runs, |series| matches!(series, Series::Histogram(_))).into_iter().take(MAX_TAGS) {
        for run in runs {
            let Some(Series::Histogram(series)) = run.series.get(tag) else { continue };
            let title = if run.name == "." { tag.to_owned() } else { format!("{tag} of {}", run.name) };
            let rows = sample_rows(series);
            for (name, shape) in [("ridges", Shape::Ridges(rows.clone())), ("distribution", Shape::Distributions(rows))]
            {
                let chart = Chart { title: format!("{title}: {name}"), shape };
                figures.push(Figure { name: format!("{tag}-{}-{name}", run.name), chart });
            }
        }
    }
    figures.truncate(2 * MAX_TAGS);
    figures
}

fn sample_rows(series: &HistogramSeries) -> Vec<(i64, Histogram)> {
    let n = series.len();
    let n_shown = n.min(MAX_HISTOGRAMS);
    // The newest histogram is always included.
    let row = |i: usize| (i + 1) * n / n_shown.max(1) - 1;
    (0..n_shown).map(row).filter_map(|row| Some((series.step[row], series.histogram(row).ok()?))).collect()
}
