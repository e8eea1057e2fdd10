//! `stepscope report`: a page with charts about traces and logdirs, for readers without stepscope.

mod interactive;
mod logdir;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use summaries::charts::{Bar, Chart, Curve, Shape};
use trace_analysis::ops::OpRow;
use trace_analysis::report::{Analysis, analyse};
use trace_store::Store;

use crate::analyze::{counters, figures, roofline};
use crate::args;
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::trace_file;
use page::{Figure, MARK, Section, THEMES, style};

/// The most bars of a chart, and the most listed findings.
const MAX_ROWS: usize = 12;

/// Writes the page and its charts.
pub fn run(args: &args::Report) -> Outcome {
    if args.out.is_none() && crate::logdir::group_by(&args.grouping)?.is_some() {
        return Err(Failure::wrong_use(
            "--group and --group-hparam group the curves of -o; the page of --html has each run",
        ));
    }
    if let Some(file) = &args.html {
        write_page(args, file)?;
    }
    args.out.as_ref().map_or(Ok(()), |folder| charts(args, folder))
}

/// Writes the interactive page.
fn write_page(args: &args::Report, file: &Path) -> Outcome {
    if file.is_dir() {
        return Err(Failure::wrong_use(format_args!("{}: is a folder; name a file: --html FILE.html", file.display())));
    }
    let page = interactive::page(args)?;
    let size = text::bytes(page.len() as u64);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    write(folder, &[(file.to_owned(), page.into_bytes())])?;
    note!("{}: {size}", file.display());
    out::line(file.display());
    Ok(())
}

/// Writes the page with charts and their files into the folder `out`.
fn charts(args: &args::Report, folder: &Path) -> Outcome {
    let group_by = crate::logdir::group_by(&args.grouping)?;
    let mut sections = Vec::new();
    for path in &args.paths {
        let n_before = sections.len();
        sections.extend(trace_section(path)?);
        sections.extend(logdir::section(path, group_by.as_ref())?);
        if sections.len() == n_before {
            return Err(Failure::wrong_use(format_args!("{}: neither a trace nor event files in it", path.display())));
        }
    }
    number_figures(&mut sections);
    let title = args.paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    let page = page::html(&title, &sections).map_err(anyhow::Error::from)?;
    let mut files = vec![(folder.join("index.html"), page.into_bytes())];
    for figure in sections.iter().flat_map(|s| &s.figures) {
        for (theme, name) in THEMES {
            let file = |ending: &str| folder.join(format!("{}-{name}.{ending}", figure.name));
            let svg = figure.chart.svg(style(theme)).map_err(anyhow::Error::from)?;
            files.push((file("svg"), format!("{MARK}\n{svg}").into_bytes()));
            files.push((file("png"), figure.chart.png(style(theme)).map_err(anyhow::Error::from)?));
        }
    }
    write(folder, &files)?;
    out::line(folder.join("index.html").display());
    Ok(())
}

/// Numbers the figures, so that the names of their files differ.
fn number_figures(sections: &mut [Section]) {
    for (i, figure) in sections.iter_mut().flat_map(|s| &mut s.figures).enumerate() {
        let letters = figure.name.chars().take(80).map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        figure.name = format!("{:02}-{}", i + 1, letters.collect::<String>());
    }
}

/// Writes all files; refuses where one of them exists and was not written by this command.
fn write(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Outcome {
    // The first chunks of a PNG name the program that wrote it.
    let marks = [MARK.as_bytes(), b"tEXtSoftware\0stepscope"];
    for (path, _) in files {
        let is_ours = |bytes: &[u8]| {
            let head = &bytes[..bytes.len().min(256)];
            marks.iter().any(|mark| head.windows(mark.len()).any(|part| part == *mark))
        };
        let is_foreign = match fs::read(path) {
            Ok(bytes) => !is_ours(&bytes),
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
    for (path, bytes) in files {
        fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The section of the trace at a path, if there is one.
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
        text::count(stats.slices),
        store.tracks().len(),
        text::count(store.steps().len() as u64),
        text::duration(analysis.range.end - analysis.range.start)
    )];
    let bar = |(name, ns)| Bar { name, value: ms(ns), value_text: text::duration(ns) };
    let bars = |rows: Vec<(String, i64)>| Shape::Bars(rows.into_iter().take(MAX_ROWS).map(bar).collect());
    let parts = figures::named_parts(&analysis.breakdown).map(|(name, ns)| (name.replace('_', " "), ns));
    let mut figures = vec![
        figure("breakdown", "Where the time went", bars(parts.into_iter().filter(|(_, ns)| *ns > 0).collect())),
        figure("critical-path", "The critical path", bars(figures::path_kinds(&analysis.paths))),
        figure(
            "ops",
            "Ops by self time",
            bars(analysis.ops.iter().map(|op| (op_label(op), op.figures.self_ns)).collect()),
        ),
        figure(
            "stalls",
            "Stalls by cause",
            bars(analysis.causes.iter().map(|c| (c.cause.to_string(), c.total_ns)).collect()),
        ),
    ];
    figures.extend(step_figure(&store));
    figures.extend(memory_figures(&analysis));
    let findings = analysis.findings.iter().take(MAX_ROWS).map(|f| vec![text::duration(f.saves_ns), f.text.clone()]);
    let mut tables = vec![("What to change first, with what it would save at most".to_owned(), findings.collect())];
    if let Some(table) = counters::table(&analysis) {
        tables.push(("What processor and kernel counted".to_owned(), names_last(&table)));
    }
    for line in &analysis.rooflines {
        let title = format!("Roofline of {}", roofline::limits(line));
        tables.push((title, names_last(&roofline::table(line, "roofline"))));
    }
    let warnings = store.warnings().iter().map(|w| w.text.clone()).collect();
    Ok(Some(Section { title: format!("Trace {}", path.display()), facts, warnings, tables, figures }))
}

/// Titles and rows of a table, with the column of names moved to the end.
fn names_last(table: &text::Table) -> Vec<Vec<String>> {
    let moved = |line: &[String]| [&line[1..], &line[..1]].concat();
    table.lines().map(moved).collect()
}

/// The label of an op, with its category if it is no op of the graph.
fn op_label(op: &OpRow) -> String {
    if op.category == "op" { op.name.clone() } else { format!("{} ({})", op.name, op.category) }
}

fn figure(name: &str, title: &str, shape: Shape) -> Figure {
    Figure { name: name.to_owned(), chart: Chart { title: title.to_owned(), shape } }
}

fn curves(x: &str, y: &str, curves: Vec<Curve>) -> Shape {
    Shape::Curves { x: x.to_owned(), y: y.to_owned(), curves }
}

/// The durations of steps, with a curve for each kind of step (`train`, `test`).
fn step_figure(store: &Store) -> Option<Figure> {
    let mut lines: Vec<Curve> = Vec::new();
    for step in store.steps() {
        let label = store.sites().get(step.site as usize).map_or("step", |s| s.name.as_str());
        let point = (step.summary_step as f64, (step.end - step.start) as f64 / 1e6);
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push(point),
            None => lines.push(Curve { label: label.to_owned(), points: vec![point], band: Vec::new() }),
        }
    }
    lines.retain(|line| line.points.len() > 1);
    (!lines.is_empty()).then(|| figure("step-time", "Step time", curves("step", "ms", lines)))
}

fn memory_figures(analysis: &Analysis) -> impl Iterator<Item = Figure> + '_ {
    analysis.memory.iter().map(|memory| {
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * memory.points.len());
        for (time, bytes) in &memory.points {
            let x = *time as f64 / 1e9;
            // A step: the value holds until the next change.
            points.extend(points.last().map(|last| (x, last.1)));
            points.push((x, *bytes as f64 / (1024.0 * 1024.0)));
        }
        let device = &memory.device;
        let shape = curves("seconds", "MiB", vec![Curve { label: String::new(), points, band: Vec::new() }]);
        figure(&format!("memory-{device}"), &format!("Memory of {device}"), shape)
    })
}
