//! The page's data of a logdir: scalars, histograms, images and hyperparameters of all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use formats::FileKind;
use serde_json::{Value, json};
use summaries::{EncodedImage, HParam, HistogramSeries, MediaSeries, Run, Runs, Sample, ScalarSeries, Series};

use super::array::{array, thinned};
use crate::logdir;
use crate::outcome::Failure;
use crate::source;

/// The most histograms of a series, evenly spaced, and the most series of histograms.
const MAX_HISTOGRAMS: [usize; 2] = [40, 120];
/// The most bytes of all images.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// The most images of a series, evenly spaced.
const MAX_IMAGES: usize = 10;
/// The fewest points to which a curve is thinned.
const MIN_POINTS: usize = 200;

/// The data of the logdir at a path, if there is one.
pub fn summaries(path: &Path, max_points: usize) -> Result<Option<Value>, Failure> {
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
    let mut notes = Vec::new();
    let n_damaged: u64 = runs.by_name.values().map(|run| run.n_damaged).sum();
    let warnings = (n_damaged > 0).then(|| format!("{n_damaged} damaged places in the event files were skipped"));
    let scalars = scalars(&runs, max_points, &mut notes);
    let histograms = histograms(&runs, &mut notes);
    let images = images(&runs, &mut notes);
    Ok(Some(json!({
        "title": path.display().to_string(),
        "runs": runs.by_name.values().map(|run| &run.name).collect::<Vec<_>>(),
        "scalars": scalars, "histograms": histograms, "images": images, "hparams": hparams(&runs),
        "warnings": warnings.into_iter().collect::<Vec<_>>(), "notes": notes,
    })))
}

/// All series of a kind, by tag, with the rows of their runs.
fn by_tag<'a, T>(runs: &'a Runs, select: impl Fn(&'a Series) -> Option<T>) -> BTreeMap<&'a str, Vec<(usize, T)>> {
    let mut tags: BTreeMap<&str, Vec<(usize, T)>> = BTreeMap::new();
    for (row, run) in runs.by_name.values().enumerate() {
        for (tag, series) in &run.series {
            if let Some(series) = select(series) {
                tags.entry(tag).or_default().push((row, series));
            }
        }
    }
    tags
}

fn scalars(runs: &Runs, max_points: usize, notes: &mut Vec<String>) -> Vec<Value> {
    let tags = by_tag(runs, |series| if let Series::Scalar(scalars) = series { Some(&**scalars) } else { None });
    let n_points: usize = tags.values().flatten().map(|(_, series)| series.len()).sum();
    let share = if n_points <= max_points { 1.0 } else { max_points as f64 / n_points as f64 };
    let max_of = |series: &ScalarSeries| match share {
        1.0 => series.len(),
        share => ((series.len() as f64 * share) as usize).max(MIN_POINTS),
    };
    if share < 1.0 {
        let n_all = text::count(n_points as u64);
        notes.push(format!("{n_all} points are thinned to the least and the greatest of equal parts of each curve"));
    }
    let curve = |(run, series): &(usize, &ScalarSeries)| scalar_curve(*run, series, max_of(series));
    tags.iter().map(|(tag, all)| json!({ "tag": tag, "curves": all.iter().map(curve).collect::<Vec<_>>() })).collect()
}

/// Steps, wall times and values of a series, and the rows at which the run was started again.
fn scalar_curve(run: usize, series: &ScalarSeries, max: usize) -> Value {
    let points: Vec<_> = series.points().collect();
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let kept = thinned(&values, max);
    let starts = series.pieces().map(|piece| piece.start).filter(|start| *start > 0);
    let restarts: Vec<usize> = starts.map(|start| kept.partition_point(|row| *row < start)).collect();
    let first_wall = points.first().map_or(0.0, |point| point.wall);
    json!({
        "run": run, "n": points.len(), "restarts": restarts,
        "step": array(&kept.iter().map(|row| points[*row].step as f64).collect::<Vec<_>>()),
        "first_wall": logdir::json_number(first_wall),
        "wall": array(&kept.iter().map(|row| points[*row].wall).collect::<Vec<_>>()),
        "value": array(&kept.iter().map(|row| values[*row]).collect::<Vec<_>>()),
    })
}

/// `n` evenly spaced rows of a series of `len`, of which the newest is one.
fn sample_rows(len: usize, n: usize) -> impl Iterator<Item = usize> {
    let n = n.min(len);
    (0..n).map(move |i| (i + 1) * len / n - 1)
}

fn histograms(runs: &Runs, notes: &mut Vec<String>) -> Vec<Value> {
    let tags = by_tag(runs, |series| if let Series::Histogram(all) = series { Some(&**all) } else { None });
    let all: Vec<_> = tags.iter().flat_map(|(tag, all)| all.iter().map(move |(run, all)| (*tag, *run, *all))).collect();
    if all.len() > MAX_HISTOGRAMS[1] {
        notes.push(format!("The first {} of {} series of histograms are shown", MAX_HISTOGRAMS[1], all.len()));
    }
    let row = |(tag, run, series): &(&str, usize, &HistogramSeries)| {
        let rows: Vec<Value> =
            sample_rows(series.len(), MAX_HISTOGRAMS[0]).filter_map(|row| histogram_row(series, row)).collect();
        json!({ "tag": tag, "run": run, "n": series.len(), "rows": rows })
    };
    all.iter().take(MAX_HISTOGRAMS[1]).map(row).collect()
}

fn histogram_row(series: &HistogramSeries, row: usize) -> Option<Value> {
    let histogram = series.histogram(row).ok()?;
    let column = |value: fn(&summaries::Bucket) -> f64| array(&histogram.buckets.iter().map(value).collect::<Vec<_>>());
    Some(json!({
        "step": series.step[row], "left": column(|b| b.left), "right": column(|b| b.right), "count": column(|b| b.count),
    }))
}

fn images(runs: &Runs, notes: &mut Vec<String>) -> Vec<Value> {
    let tags = by_tag(runs, |series| if let Series::Media(media) = series { Some(&**media) } else { None });
    let (mut rows, mut left, mut n_without) = (Vec::new(), MAX_IMAGE_BYTES, 0_u64);
    for (tag, all) in &tags {
        for (run, series) in all.iter().filter(|(_, series)| series.kind() == "images") {
            let images: Vec<Value> = sample_rows(series.len(), MAX_IMAGES)
                .filter_map(|row| image(series, row, &mut left, &mut n_without))
                .collect();
            if !images.is_empty() {
                rows.push(json!({ "tag": tag, "run": run, "n": series.len(), "rows": images }));
            }
        }
    }
    if n_without > 0 {
        let max = text::bytes(MAX_IMAGE_BYTES as u64);
        notes.push(format!("{} beyond {max} are left out", text::count_of(n_without, "image")));
    }
    rows
}

fn image(series: &MediaSeries, row: usize, left: &mut usize, n_without: &mut u64) -> Option<Value> {
    let step = series.rows().get(row)?.step;
    let Ok(Sample::Images(images)) = series.read(row) else { return None };
    let image: &EncodedImage = images.first()?;
    let kind = image_type(&image.bytes)?;
    if image.bytes.len() > *left {
        *n_without += 1;
        return None;
    }
    *left -= image.bytes.len();
    Some(json!({ "step": step, "url": format!("data:{kind};base64,{}", STANDARD.encode(&image.bytes)) }))
}

/// The MIME type of an encoded image that browsers draw.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => None,
    }
}

/// The table of hyperparameters: the names, and for each run that has any its values.
fn hparams(runs: &Runs) -> Value {
    let all: Vec<(usize, BTreeMap<String, HParam>)> = runs.by_name.values().map(Run::hparams).enumerate().collect();
    let names: BTreeSet<&String> = all.iter().flat_map(|(_, values)| values.keys()).collect();
    let cell = |value: Option<&HParam>| match value {
        Some(HParam::Number(number)) => logdir::json_number(*number),
        Some(HParam::Text(text)) => text.as_str().into(),
        Some(HParam::Bool(is_on)) => (*is_on).into(),
        None => Value::Null,
    };
    let row = |(run, values): &(usize, BTreeMap<String, HParam>)| {
        let cells: Vec<Value> = names.iter().map(|name| cell(values.get(*name))).collect();
        json!({ "run": run, "values": cells })
    };
    let rows: Vec<Value> = all.iter().filter(|(_, values)| !values.is_empty()).map(row).collect();
    json!({ "names": names, "rows": rows })
}
