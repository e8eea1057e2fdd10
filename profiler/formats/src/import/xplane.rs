//! Reads XPlane protobuf files of XLA's profilers (TensorFlow, JAX).
//!
//! A file is one machine, and becomes one process. Lines of a device's plane become streams, lines of the host threads.
//! Times are picoseconds; they are added before they are rounded to nanoseconds.

use super::flows::{FlowKey, FlowPart};
use super::ids::{ProcessIdx, TrackIdx};
use super::input::{Input, MAX_EVENT, Window, varint};
use super::problems::Problem;
use super::reader::Reader;
use super::stage::{Stage, TrackOf};
use formats::profile::{XEvent, XEventMetadata, XLine, XPlane as Plane, XStat, x_event, x_stat};
use formats::wire::{Fields, Value as Wire};
use prost::Message;
use serde_json::{Map, Value};
use std::io;
use trace_analysis::roofline::is_peak;
use trace_model::TrackKind;

/// The longest text of an op's description, bytes, that is added to the arguments of its executions.
const MAX_TEXT: usize = 256;

pub(super) struct XPlane {
    window: Window,
    n_planes: i64,
}

impl XPlane {
    pub(super) fn new(input: &Input) -> XPlane {
        XPlane { window: Window::new(input), n_planes: 0 }
    }
}

impl Reader for XPlane {
    /// Reads a plane.
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        self.window.fill(16)?;
        if self.window.bytes().is_empty() {
            return Ok(false);
        }
        let Some((field, begin, end)) = length_delimited(self.window.bytes()) else {
            stage.problems.count_at(Problem::Damaged, self.window.offset());
            return Ok(false);
        };
        if end > MAX_EVENT.saturating_mul(8) || !self.window.fill(end)? {
            stage.problems.count_at(Problem::Truncated, self.window.offset());
            // The file ends in this plane: its complete lines are imported.
            if field == 1 {
                take(&intact(self.window.bytes().get(begin..).unwrap_or_default()), self.n_planes, stage);
            }
            return Ok(false);
        }
        let bytes = &self.window.bytes()[begin..end];
        match field {
            1 => match Plane::decode(bytes) {
                Ok(plane) => take(&plane, self.n_planes, stage),
                Err(_) => {
                    stage.problems.count_at(Problem::Damaged, self.window.offset());
                    take(&intact(bytes), self.n_planes, stage);
                }
            },
            4 => stage.host = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
        self.n_planes += i64::from(field == 1);
        self.window.consume(end);
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }
}

/// Field number, begin and end of a message in a message; `None` for another field.
fn length_delimited(bytes: &[u8]) -> Option<(u64, usize, usize)> {
    let (key, n_key) = varint(bytes).filter(|(key, _)| key & 7 == 2)?;
    let (length, n) = varint(&bytes[n_key..])?;
    Some((key >> 3, n_key + n, usize::try_from(length).ok()?.checked_add(n_key + n)?))
}

/// The complete lines and descriptions of a damaged plane.
fn intact(bytes: &[u8]) -> Plane {
    let mut plane = Plane::default();
    for field in Fields::new(bytes) {
        let Ok((number, Wire::Bytes(value))) = field else { continue };
        let mut one = vec![(number << 3 | 2) as u8];
        prost::encoding::encode_varint(value.len() as u64, &mut one);
        one.extend_from_slice(value);
        // A field that does not decode leaves the plane as it was.
        if Plane::decode(&*one).is_ok() {
            let _ = plane.merge(&*one);
        }
    }
    plane
}

/// The owner of a plane.
enum Owner {
    Host,
    /// `GPU:0`, `TPU:1`.
    Device(String),
}

fn take(plane: &Plane, number: i64, stage: &mut Stage) {
    let owner = match plane.name.strip_prefix("/device:") {
        Some(device) => Owner::Device(device.to_owned()),
        None => Owner::Host,
    };
    let machine = stage.text_id("machine");
    let process = stage.process(machine);
    stage.name_process(process, "XLA");
    for line in &plane.lines {
        if line.events.is_empty() {
            continue;
        }
        let track = track(plane, line, number, &owner, process, stage);
        for event in &line.events {
            add_event(plane, line, event, &owner, track, stage);
        }
    }
    if let Owner::Device(device) = &owner {
        limits(plane, device, process, stage);
    }
}

/// Stages the peak rates of a device as counters that do not change.
fn limits(plane: &Plane, device: &str, process: ProcessIdx, stage: &mut Stage) {
    let Some(time) = plane.lines.iter().filter(|line| !line.events.is_empty()).map(|line| line.timestamp_ns).min()
    else {
        return;
    };
    let stats = Stats { plane, of_event: &plane.stats, metadata: None };
    for (name, stat) in stats.stats().filter(|(name, _)| is_peak(name)) {
        let value = match stat.value {
            Some(x_stat::Value::DoubleValue(n)) => n,
            Some(x_stat::Value::Uint64Value(n)) => n as f64,
            Some(x_stat::Value::Int64Value(n)) => n as f64,
            _ => continue,
        };
        let site = stage.site("device", &format!("{device} {name}"));
        stage.counter(process, time, site, value);
    }
}

fn track(plane: &Plane, line: &XLine, number: i64, owner: &Owner, process: ProcessIdx, stage: &mut Stage) -> TrackIdx {
    let id = if line.display_id != 0 { line.display_id } else { line.id };
    let name = if line.display_name.is_empty() { &line.name } else { &line.display_name };
    match owner {
        Owner::Host => {
            // Threads with the same id in several planes of the host are different.
            let of = if plane.name.ends_with("CPU") { TrackOf::Thread(id) } else { TrackOf::Stream(number, id) };
            let track = stage.track(process, of);
            let t = &mut stage.tracks[track as usize];
            (t.kind, t.name) = (TrackKind::Thread, name.clone());
            track
        }
        Owner::Device(device) => {
            let track = stage.track(process, TrackOf::Stream(number, id));
            let t = &mut stage.tracks[track as usize];
            t.name = if name.is_empty() { format!("{device} line {id}") } else { format!("{device} {name}") };
            t.device.clone_from(device);
            t.stream = if line.name.starts_with("Stream") { u64::try_from(id).ok() } else { None };
            t.order = 1_000 * i32::try_from(number + 1).unwrap_or(0) + i32::try_from(id).unwrap_or(999).clamp(0, 999);
            track
        }
    }
}

fn add_event(plane: &Plane, line: &XLine, event: &XEvent, owner: &Owner, track: TrackIdx, stage: &mut Stage) {
    let metadata = plane.event_metadata.get(&event.metadata_id);
    let Some(x_event::Data::OffsetPs(offset)) = event.data.or(Some(x_event::Data::OffsetPs(0))) else {
        // An event that aggregates many executions has no time.
        return stage.problems.count(Problem::UnknownEvent);
    };
    let begin = i128::from(line.timestamp_ns) * 1_000 + i128::from(offset);
    let ns = |ps: i128| i64::try_from((ps + 500).div_euclid(1_000)).ok().filter(|ns| ns.unsigned_abs() < 1 << 62);
    let (Some(start), Some(end)) = (ns(begin), ns(begin + i128::from(event.duration_ps.max(0)))) else {
        return stage.problems.count(Problem::AbsurdTime);
    };
    if event.duration_ps < 0 {
        stage.problems.count(Problem::NegativeDuration);
    }
    let name = metadata.map_or("?", |m| if m.display_name.is_empty() { &m.name } else { &m.display_name });
    if metadata.is_none() {
        stage.problems.count(Problem::MissingName);
    }
    let stats = Stats { plane, of_event: &event.stats, metadata };
    let step = stats.number("step_num").or(stats.number("group_id")).map(|n| n as u32);
    let category = category(line, name, owner, &stats);
    let site = stage.site(category, name);
    let mut slice = site.slice(start, end);
    match category {
        "step" => {
            let step = name.parse().ok().or(step).unwrap_or(0);
            (slice.correlation, slice.arg) = (step, u64::from(step));
        }
        "op" => (slice.correlation, slice.arg) = (trace_model::NO_NODE, u64::from(step.unwrap_or(0)) << 32),
        _ => slice.correlation = stats.number("correlation_id").unwrap_or(0) as u32,
    }
    if let Some(json) = stats.json() {
        slice.args = stage.args.push(&json);
    }
    stage.slice(track, slice);
    for (kind, id, part) in [("_pt", "_p", FlowPart::Start), ("_ct", "_c", FlowPart::Finish)] {
        if let Some(id) = stats.number(id) {
            let space = stats.number(kind).unwrap_or(0);
            stage.flows.point(FlowKey { space, id }, part, track, start, site);
        }
    }
}

/// Our category of an event, by its line.
fn category<'a>(line: &'a XLine, name: &str, owner: &Owner, stats: &Stats<'_>) -> &'a str {
    const COLLECTIVES: [&str; 6] =
        ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-", "ncclDevKernel"];
    let is_collective = COLLECTIVES.iter().any(|c| name.starts_with(c));
    match (owner, line.name.as_str()) {
        (Owner::Device(_), "Steps") => "step",
        (Owner::Device(_), "XLA Ops") if is_collective => "collective",
        (Owner::Device(_), "XLA Ops") => "kernel",
        (Owner::Device(_), stream) if stream.starts_with("Stream") => match name {
            _ if is_collective || name.starts_with("nccl") => "collective",
            _ if name.starts_with("Memcpy") || name.starts_with("Memset") => "copy",
            _ => "kernel",
        },
        (Owner::Device(_), other) => other,
        (Owner::Host, _) if stats.number("step_num").is_some() => "step",
        (Owner::Host, _) if stats.number("correlation_id").is_some() => "launch",
        (Owner::Host, _) if stats.has_stat("tf_op") => "op",
        (Owner::Host, _) => "host",
    }
}

/// The statistics of an event and of its description.
struct Stats<'a> {
    plane: &'a Plane,
    of_event: &'a [XStat],
    metadata: Option<&'a XEventMetadata>,
}

impl Stats<'_> {
    fn stats(&self) -> impl Iterator<Item = (&str, &XStat)> {
        let of_kind = self.metadata.map_or(&[][..], |m| &m.stats);
        let name = |stat: &XStat| self.plane.stat_metadata.get(&stat.metadata_id).map_or("?", |m| m.name.as_str());
        self.of_event.iter().chain(of_kind).map(move |stat| (name(stat), stat))
    }

    fn has_stat(&self, name: &str) -> bool {
        self.stats().any(|(n, _)| n == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        match &self.stats().find(|(n, _)| *n == name)?.1.value {
            Some(x_stat::Value::Uint64Value(n)) => Some(*n),
            Some(x_stat::Value::Int64Value(n)) => Some(*n as u64),
            _ => None,
        }
    }

    fn json(&self) -> Option<String> {
        let mut map = Map::new();
        for (name, stat) in self.stats() {
            if let Some(value) = self.value(stat) {
                map.entry(name).or_insert(value);
            }
        }
        (!map.is_empty()).then(|| Value::Object(map).to_string())
    }

    fn value(&self, stat: &XStat) -> Option<Value> {
        use x_stat::Value as V;
        let text = |t: &str| {
            let cut = t.char_indices().nth(MAX_TEXT).map_or(t.len(), |(at, _)| at);
            Value::from(&t[..cut])
        };
        Some(match stat.value.as_ref()? {
            V::DoubleValue(n) => serde_json::Number::from_f64(*n).map_or_else(|| n.to_string().into(), Value::Number),
            V::Uint64Value(n) => (*n).into(),
            V::Int64Value(n) => (*n).into(),
            V::StrValue(t) => text(t),
            V::RefValue(n) => text(&self.plane.stat_metadata.get(&(*n as i64))?.name),
            // Programs and the like.
            V::BytesValue(_) => return None,
        })
    }
}
