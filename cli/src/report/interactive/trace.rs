//! The page's data of a trace: tracks with their slices, steps, counters, instants, flows, stalls and findings.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use trace_analysis::report::{Analysis, analyse};
use trace_model::{Category, SliceRef};
use trace_store::{Store, Track};

use super::array::{array, deltas, thinned};
use super::slices::{Bars, bars, columns, shares};
use crate::analyze::figures;
use crate::outcome::Failure;
use crate::trace_file;

/// The most stalls that are listed, the longest ones.
const MAX_STALLS: usize = 200;
/// The most points of a counter: beyond it the least and the greatest value of equal parts.
const MAX_COUNTER_POINTS: usize = 20_000;
/// The most characters of a slice's arguments, and of all of them together.
const MAX_ARGS: [usize; 2] = [400, 4 << 20];
/// The number of colours of slices.
const N_COLORS: u64 = 12;
/// The colours of steps, which cover everything below them, and of waits.
const STEP_COLOR: i64 = -1;
const WAIT_COLOR: i64 = -2;

/// The data of the trace at a path, if there is one.
pub fn trace(path: &Path, max_slices: usize) -> Result<Option<Value>, Failure> {
    if !trace_file::has_trace(path) {
        return Ok(None);
    }
    let store = trace_file::open(path)?;
    let analysis = analyse(&store, store.range());
    let mut builder = Builder { store: &store, names: Names::default(), notes: Vec::new(), max: max_slices };
    let tracks = builder.tracks();
    let (counters, flows) = (builder.counters(), builder.flows());
    let range = store.range();
    let steps = store.steps();
    let step_column = |value: &dyn Fn(&trace_model::Step) -> f64| array(&steps.iter().map(value).collect::<Vec<_>>());
    let stats = store.stats();
    Ok(Some(json!({
        "title": path.display().to_string(),
        "facts": format!(
            "{} slices, {} tracks, {} steps, {}", text::count(stats.slices), store.tracks().len(),
            text::count(steps.len() as u64), text::duration(range.end - range.start)
        ),
        "range_ns": range.end - range.start,
        "slices": stats.slices,
        "processes": store.processes().iter().map(|process| json!({ "title": process.title(), "host": process.host })).collect::<Vec<_>>(),
        "tracks": tracks,
        "names": builder.names.rows,
        "totals": {
            "count": array(&builder.names.totals.iter().map(|(count, _)| *count as f64).collect::<Vec<_>>()),
            "ns": array(&builder.names.totals.iter().map(|(_, ns)| *ns as f64).collect::<Vec<_>>()),
        },
        "counters": counters,
        "flows": flows,
        "steps": {
            "begin": step_column(&|step| (step.start - range.start) as f64),
            "dur": step_column(&|step| (step.end - step.start) as f64),
            "number": step_column(&|step| step.summary_step as f64),
            "track": step_column(&|step| f64::from(step.slice.track)),
            "label": steps.iter().map(|step| site_name(&store, step.site)).collect::<Vec<_>>(),
        },
        "stalls": stalls(&store, &analysis),
        "stalls_total": analysis.stalls.len(),
        "findings": findings(&store, &analysis),
        "breakdown": figures::named_parts(&analysis.breakdown).map(|(name, ns)| json!([name.replace('_', " "), ns])),
        "warnings": store.warnings().iter().map(|warning| &warning.text).collect::<Vec<_>>(),
        "notes": builder.notes,
    })))
}

/// The part of a device's name that is unique in its process: `CPU:0` of `/job:localhost/device:CPU:0`.
fn short_device(name: &str) -> &str {
    name.rsplit('/').next().map_or(name, |last| last.strip_prefix("device:").unwrap_or(last))
}

fn site_name(store: &Store, site: u32) -> &str {
    store.sites().get(site as usize).map_or("?", |site| &site.name)
}

fn stalls(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let origin = store.range().start;
    let row = |stall: &trace_analysis::stalls::Stall| {
        json!({
            "track": stall.track.0, "begin": stall.start - origin, "dur": stall.dur(), "cause": stall.cause.to_string(),
            "text": stall.text(store),
        })
    };
    analysis.stalls.iter().take(MAX_STALLS).map(row).collect()
}

fn findings(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let origin = store.range().start;
    let row = |finding: &trace_analysis::findings::Finding| {
        json!({
            "title": finding.title, "text": finding.text, "saves": text::duration(finding.saves_ns),
            "begin": finding.range.start - origin, "dur": finding.range.end - finding.range.start,
            "track": finding.slices.first().map(|slice| slice.track),
        })
    };
    analysis.findings.iter().map(row).collect()
}

/// The names of slices, each with its category and colour, and over all slices their number and total duration.
#[derive(Default)]
struct Names {
    /// Name, category, colour.
    rows: Vec<Value>,
    totals: Vec<(u64, i64)>,
    by_ids: HashMap<(u32, u32), usize>,
    by_text: HashMap<(String, u32), usize>,
}

impl Names {
    /// The row of a slice's name.
    fn row(&mut self, store: &Store, name: &str, node: u32, site: u32) -> usize {
        if let Some(row) = self.by_ids.get(&(node, site)) {
            return *row;
        }
        let next = self.rows.len();
        let row = *self.by_text.entry((name.to_owned(), site)).or_insert(next);
        if row == next {
            self.rows.push(name_row(store, name, site));
            self.totals.push((0, 0));
        }
        self.by_ids.insert((node, site), row);
        row
    }
}

fn name_row(store: &Store, name: &str, site: u32) -> Value {
    let site = store.sites().get(site as usize);
    let color = match site {
        Some(site) if site.category == Category::Step => STEP_COLOR,
        Some(site) if site.waits() => WAIT_COLOR,
        Some(site) => color_of(&site.name),
        None => color_of(name),
    };
    json!([name, site.map_or("", |site| &site.category_name), color])
}

/// The number of a name's colour, as in the window: FNV-1a.
fn color_of(name: &str) -> i64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    ((hash >> 32) % N_COLORS).cast_signed()
}

/// Makes the parts of the data that share names and notes.
struct Builder<'a> {
    store: &'a Store,
    names: Names,
    /// What the page leaves out or draws merged.
    notes: Vec<String>,
    max: usize,
}

impl Builder<'_> {
    fn tracks(&mut self) -> Vec<Value> {
        let store = self.store;
        let counts: Vec<usize> = store.tracks().iter().map(Track::n_slices).collect();
        let (mut args_left, mut n_without_args) = (MAX_ARGS[1], 0);
        let mut rows = Vec::with_capacity(counts.len());
        for (track, share) in store.tracks().iter().zip(shares(&counts, self.max)) {
            let mut row = json!({
                "name": track.name.trim(), "process": track.process, "kind": track.kind.name(), "order": track.order,
                "slices": track.n_slices(), "marks": self.marks(track),
            });
            let bars = self.track_bars(track, share);
            row["columns"] = columns(&bars, store.range().start);
            row["args"] = self.args(&bars, &mut args_left, &mut n_without_args);
            if bars.n_merged > 0 {
                self.notes.push(format!(
                    "{}: {} shorter than {} are drawn merged",
                    track.name.trim(),
                    text::count_of(bars.n_merged, "slice"),
                    text::duration(bars.merged_below_ns)
                ));
            }
            rows.push(row);
        }
        if n_without_args > 0 {
            self.notes.push(format!("The arguments of {} are left out", text::count_of(n_without_args, "slice")));
        }
        rows
    }

    /// The bars of a track; counts its slices by name.
    fn track_bars(&mut self, track: &Track, share: usize) -> Bars {
        let (store, names) = (self.store, &mut self.names);
        for lane in &track.lanes {
            lane.visit(&(i64::MIN..i64::MAX), |slice| {
                let row = names.row(store, store.slice_name(slice), slice.node, slice.site);
                names.totals[row].0 += 1;
                names.totals[row].1 += slice.dur();
            });
        }
        let mut name_of = |slice: &SliceRef| names.row(store, store.slice_name(slice), slice.node, slice.site);
        bars(track, &store.range(), share, &mut name_of)
    }

    /// The arguments of slices, as rows of bars and texts.
    fn args(&self, bars: &Bars, left: &mut usize, n_without: &mut u64) -> Value {
        let mut reader = self.store.args().reader();
        let (mut rows, mut texts) = (Vec::new(), Vec::new());
        for (row, bar) in bars.bars.iter().enumerate().filter(|(_, bar)| bar.count == 1) {
            let Some(text) = reader.get(bar.args) else { continue };
            if text.is_empty() || text == "{}" {
                continue;
            }
            if text.len() > MAX_ARGS[0] || text.len() > *left {
                *n_without += 1;
                continue;
            }
            *left -= text.len();
            rows.push(row as f64);
            texts.push(text.to_owned());
        }
        json!({ "row": deltas(&rows), "text": texts })
    }

    /// The instants of a track.
    fn marks(&mut self, track: &Track) -> Value {
        let (store, max) = (self.store, (self.max / 4).max(1));
        let stride = track.instants.len().div_ceil(max).max(1);
        if stride > 1 {
            let n_all = text::count_of(track.instants.len() as u64, "instant");
            self.notes.push(format!("{}: one in {stride} of {n_all} is drawn", track.name.trim()));
        }
        let mut marks: Vec<_> = track.instants.iter().step_by(stride).collect();
        marks.sort_by_key(|mark| mark.time);
        let origin = store.range().start;
        let times: Vec<f64> = marks.iter().map(|mark| (mark.time - origin) as f64).collect();
        let no_node = u32::MAX;
        let names: Vec<f64> = marks
            .iter()
            .map(|mark| self.names.row(store, site_name(store, mark.site), no_node, mark.site) as f64)
            .collect();
        json!({ "time": deltas(&times), "name": array(&names) })
    }

    fn counters(&mut self) -> Vec<Value> {
        let store = self.store;
        let origin = store.range().start;
        let mut rows = Vec::new();
        for counter in store.counters() {
            let values: Vec<f64> = counter.value.iter().copied().collect();
            let kept = thinned(&values, MAX_COUNTER_POINTS);
            let is_bytes = store.sites().get(counter.site as usize).is_some_and(|s| s.category == Category::Alloc);
            let title = store.counter_title(counter);
            let title = if is_bytes { format!("memory {}", short_device(&title)) } else { title };
            if kept.len() < values.len() {
                let n_all = text::count_of(values.len() as u64, "point");
                self.notes.push(format!("{title}: {} of {n_all} are drawn", text::count(kept.len() as u64)));
            }
            let time = |row: &usize| counter.time.get(*row).map_or(0.0, |time| (time - origin) as f64);
            rows.push(json!({
                "title": title, "process": counter.process, "bytes": is_bytes,
                "time": deltas(&kept.iter().map(time).collect::<Vec<_>>()),
                "value": array(&kept.iter().map(|row| values[*row]).collect::<Vec<_>>()),
            }));
        }
        rows
    }

    /// Flows of which both ends are known.
    fn flows(&mut self) -> Value {
        let origin = self.store.range().start;
        let complete = || self.store.flows().filter_map(|flow| Some((flow.from?, flow.to?)));
        let (n_all, max) = (complete().count(), (self.max / 2).max(1));
        if n_all > max {
            let n_shown = text::count(max as u64);
            self.notes.push(format!("{n_shown} of {} have arrows", text::count_of(n_all as u64, "flow")));
        }
        let flows: Vec<_> = complete().take(max).collect();
        let column = |value: &dyn Fn(&(trace_model::FlowEnd, trace_model::FlowEnd)) -> f64| {
            array(&flows.iter().map(value).collect::<Vec<_>>())
        };
        json!({
            "from_track": column(&|(from, _)| f64::from(from.track.0)),
            "from_time": column(&|(from, _)| (from.time - origin) as f64),
            "to_track": column(&|(_, to)| f64::from(to.track.0)),
            "to_time": column(&|(_, to)| (to.time - origin) as f64),
        })
    }
}
