//! `stepscope report`: a page with charts about traces and logdirs, for those who have no stepscope.

mod charts;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use formats::FileKind;
use profiler::Store;
use profiler::analysis::report::{Analysis, analyse};
use summaries::{Logdir, Series};

use crate::analyze;
use crate::args;
use crate::human;
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::trace_file;
use charts::{Chart, DARK, LIGHT, Shape};
use page::{MARK, Section};

/// Bars of a chart, and rows of the list of findings.
const TOP: usize = 12;
/// Charts of scalars: the first tags by name.
const MAX_TAGS: usize = 60;

/// Writes the page and its charts.
pub fn run(args: &args::Report) -> Outcome {
    let mut sections = Vec::new();
    for path in &args.paths {
        let before = sections.len();
        sections.extend(trace_section(path)?);
        sections.extend(logdir_section(path)?);
        if sections.len() == before {
            return Err(Failure::wrong_use(format_args!("{}: neither a trace nor event files in it", path.display())));
        }
    }
    number_charts(&mut sections);
    let title = args.paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    let drawn = |error| anyhow::anyhow!("drawing: {error}");
    let mut files = vec![(args.out.join("index.html"), page::html(&title, &sections).map_err(drawn)?)];
    for chart in sections.iter().flat_map(|s| &s.charts) {
        for theme in [LIGHT, DARK] {
            let svg = format!("{MARK}\n{}", chart.svg(theme).map_err(drawn)?);
            files.push((args.out.join(format!("{}-{}.svg", chart.name, theme.name)), svg));
        }
    }
    write(&args.out, &files)?;
    out::line(args.out.join("index.html").display());
    Ok(())
}

/// Each chart's files have names of their own.
fn number_charts(sections: &mut [Section]) {
    for (i, chart) in sections.iter_mut().flat_map(|s| &mut s.charts).enumerate() {
        let letters = chart.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        chart.name = format!("{:02}-{}", i + 1, letters.collect::<String>());
    }
}

/// Writes all files, or none where one of them is somebody else's.
fn write(folder: &Path, files: &[(PathBuf, String)]) -> Outcome {
    for (path, _) in files {
        let is_foreign = match fs::read(path) {
            Ok(bytes) => !bytes[..bytes.len().min(256)].windows(MARK.len()).any(|part| part == MARK.as_bytes()),
            Err(_) => path.exists(),
        };
        if is_foreign {
            return Err(Failure::wrong_use(format_args!(
                "{}: not written by this command; not replaced",
                path.display()
            )));
        }
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (path, text) in files {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn kind(path: &Path) -> Result<FileKind, Failure> {
    formats::sniff(path).map_err(|error| Failure::wrong_use(format_args!("{}: {error}", path.display())))
}

/// The trace of a path, where it has one.
fn trace_section(path: &Path) -> Result<Option<Section>, Failure> {
    if !trace_file::has_trace(path) {
        return Ok(None);
    }
    let store = trace_file::open(path)?;
    let analysis = analyse(&store, store.range());
    let ms = |ns: i64| ns as f64 / 1e6;
    let stats = store.stats();
    let facts = vec![format!(
        "{} slices on {} tracks, {} steps, {}.",
        human::count(stats.slices),
        store.tracks().len(),
        human::count(store.steps().len() as u64),
        human::duration(analysis.range.end - analysis.range.start)
    )];
    let bars = |rows: Vec<(String, i64)>| {
        Shape::Bars(rows.into_iter().take(TOP).map(|(name, ns)| (name, ms(ns), human::duration(ns))).collect())
    };
    let chart = |name: &str, title: &str, shape| Chart { name: name.to_owned(), title: title.to_owned(), shape };
    let parts = analyze::parts(&analysis.breakdown).map(|(name, ns)| (name.replace('_', " "), ns));
    let mut charts = vec![
        chart("breakdown", "Where the time went", bars(parts.into_iter().filter(|(_, ns)| *ns > 0).collect())),
        chart("critical-path", "The critical path", bars(analyze::path_kinds(&analysis.paths))),
        chart(
            "ops",
            "Ops by self time",
            bars(analysis.ops.iter().map(|op| (op.name.clone(), op.figures.self_ns)).collect()),
        ),
        chart(
            "stalls",
            "Stalls by cause",
            bars(analysis.causes.iter().map(|c| (c.cause.to_string(), c.total_ns)).collect()),
        ),
    ];
    charts.extend(step_chart(&store));
    charts.extend(memory_charts(&analysis));
    let findings = analysis.findings.iter().take(TOP).map(|f| vec![human::duration(f.saves_ns), f.text.clone()]);
    let tables = vec![("What to change first, with what it would save at most".to_owned(), findings.collect())];
    let warnings = store.warnings().iter().map(|w| w.text.clone()).collect();
    Ok(Some(Section { title: format!("Trace {}", path.display()), facts, warnings, tables, charts }))
}

/// Step times; the kinds of steps (`train`, `test`) apart.
fn step_chart(store: &Store) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    for step in store.steps() {
        let label = store.sites().get(step.site as usize).map_or("step", |s| s.name.as_str());
        let point = (step.summary_step as f64, (step.end - step.start) as f64 / 1e6);
        match lines.iter_mut().find(|(name, _)| name == label) {
            Some((_, points)) => points.push(point),
            None => lines.push((label.to_owned(), vec![point])),
        }
    }
    lines.retain(|(_, points)| points.len() > 1);
    let shape = Shape::Lines { x: "step", y: "ms".to_owned(), lines };
    let has_lines = matches!(&shape, Shape::Lines { lines, .. } if !lines.is_empty());
    has_lines.then(|| Chart { name: "step-time".to_owned(), title: "Step time".to_owned(), shape })
}

fn memory_charts(analysis: &Analysis) -> impl Iterator<Item = Chart> + '_ {
    analysis.memory.iter().map(|memory| {
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * memory.points.len());
        for (time, bytes) in &memory.points {
            let x = *time as f64 / 1e9;
            // A step: the value holds until the next change.
            points.extend(points.last().map(|last| (x, last.1)));
            points.push((x, *bytes as f64 / (1024.0 * 1024.0)));
        }
        let shape = Shape::Lines { x: "seconds", y: "MiB".to_owned(), lines: vec![(memory.device.clone(), points)] };
        Chart { name: format!("memory-{}", memory.device), title: format!("Memory of {}", memory.device), shape }
    })
}

/// A curve: its name and points.
type Line = (String, Vec<(f64, f64)>);

/// The scalars below a path, where there are any.
fn logdir_section(path: &Path) -> Result<Option<Section>, Failure> {
    if !path.is_dir() && !matches!(kind(path)?, FileKind::EventFile) {
        return Ok(None);
    }
    let fault = |error| Failure::wrong_use(format_args!("{}: {error}", path.display()));
    let mut logdir = Logdir::open(&[path.to_path_buf()]).map_err(fault)?;
    logdir.read_all();
    let runs = logdir.runs();
    let mut tags: BTreeMap<&str, Vec<Line>> = BTreeMap::new();
    let (mut damaged, mut n_points) = (0, 0);
    for run in runs.by_name.values() {
        damaged += run.n_damaged;
        for (tag, series) in &run.series {
            if let Series::Scalar(scalars) = series {
                let points = scalars.points().map(|point| (point.step as f64, point.value));
                n_points += scalars.len() as u64;
                tags.entry(tag).or_default().push((run.name.clone(), points.collect()));
            }
        }
    }
    if tags.is_empty() {
        return Ok(None);
    }
    let n_tags = tags.len();
    let mut facts = vec![format!("{} runs, {n_tags} tags, {} points.", runs.by_name.len(), human::count(n_points))];
    if n_tags > MAX_TAGS {
        facts.push(format!("The first {MAX_TAGS} tags by name are shown."));
    }
    let warnings = (damaged > 0).then(|| format!("{damaged} damaged places in the event files were skipped."));
    let chart = |(tag, lines): (&str, Vec<Line>)| Chart {
        name: tag.to_owned(),
        title: tag.to_owned(),
        shape: Shape::Lines { x: "step", y: String::new(), lines },
    };
    let charts = tags.into_iter().take(MAX_TAGS).map(chart).collect();
    let title = format!("Scalars of {}", path.display());
    Ok(Some(Section { title, facts, warnings: warnings.into_iter().collect(), tables: Vec::new(), charts }))
}
