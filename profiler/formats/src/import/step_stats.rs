//! Reads TensorFlow's StepStats: alone, in RunMetadata, or in the `tagged_run_metadata` of event files, where a tag is
//! a step.

use super::input::{Input, MAX_EVENT, Window};
use super::problems::Problem;
use super::reader::Reader;
use super::stage::{Stage, TrackOf};
use formats::profile::{DeviceStepStats, NodeExecStats, RunMetadata, StepStats as Message};
use formats::tfrecord::{RecordScanner, Scan, begins_with_record};
use formats::wire::{Fields, Value};
use prost::Message as _;
use std::io;
use trace_model::{Event, NO_NODE, TrackKind};

/// Field number of `Event.tagged_run_metadata`.
const TAGGED_RUN_METADATA: u32 = 8;
/// Field number of `TaggedRunMetadata.run_metadata`.
const RUN_METADATA: u32 = 2;
/// Field number of `Event.step`.
const STEP: u32 = 2;

pub(super) struct StepStats {
    window: Window,
}

impl StepStats {
    pub(super) fn new(input: &Input) -> StepStats {
        StepStats { window: Window::new(input) }
    }
}

impl Reader for StepStats {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        self.window.fill(MAX_EVENT)?;
        let bytes = self.window.bytes();
        if begins_with_record(bytes) {
            event_file(bytes, stage);
        } else {
            message(bytes, None, stage);
        }
        if !self.window.is_last() {
            stage.problems.count_at(Problem::Truncated, MAX_EVENT as u64);
        }
        self.window.consume(usize::MAX);
        Ok(false)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }
}

fn event_file(bytes: &[u8], stage: &mut Stage) {
    let mut scanner = RecordScanner::default();
    loop {
        let at = scanner.offset();
        match scanner.scan(&bytes[(at as usize).min(bytes.len())..]) {
            Scan::Record(record) => of_event(&bytes[at as usize..][record.data], stage),
            Scan::Damage(_) => stage.problems.count_at(Problem::Damaged, at),
            Scan::More => return,
        }
    }
}

/// Stages the steps in an event of an event file.
fn of_event(event: &[u8], stage: &mut Stage) {
    let mut step = 0;
    for field in Fields::new(event).map_while(Result::ok) {
        match field {
            (STEP, Value::Varint(n)) => step = n as u32,
            (TAGGED_RUN_METADATA, Value::Bytes(tagged)) => {
                for field in Fields::new(tagged).map_while(Result::ok) {
                    if let (RUN_METADATA, Value::Bytes(metadata)) = field {
                        message(metadata, Some(step), stage);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Stages a RunMetadata or StepStats message.
pub(super) fn message(bytes: &[u8], step: Option<u32>, stage: &mut Stage) {
    let is_named = |stats: &Message| stats.dev_stats.iter().any(|d| d.device.starts_with('/'));
    let in_metadata = RunMetadata::decode(bytes).ok().and_then(|m| m.step_stats).filter(is_named);
    let Some(stats) = in_metadata.or_else(|| Message::decode(bytes).ok().filter(is_named)) else {
        return stage.problems.count_at(Problem::Damaged, 0);
    };
    for device in &stats.dev_stats {
        take(device, step.unwrap_or(0), stage);
    }
    if let Some(step) = step {
        mark_step(&stats, step, stage);
    }
}

/// Stages a slice from the begin to the end of a step.
fn mark_step(stats: &Message, step: u32, stage: &mut Stage) {
    let spans = stats.dev_stats.iter().flat_map(|d| &d.node_stats).filter_map(span);
    let Some((start, end)) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
    let process = stage.text_id("tensorflow");
    let process = stage.process(process);
    let track = stage.track(process, TrackOf::Other(0));
    stage.tracks[track as usize].name = "steps".to_owned();
    stage.tracks[track as usize].order = -1;
    let site = stage.site("step", "step");
    stage.slice(track, Event { correlation: step, arg: u64::from(step), ..site.slice(start, end) });
}

fn take(device: &DeviceStepStats, step: u32, stage: &mut Stage) {
    let process = stage.text_id("tensorflow");
    let process = stage.process(process);
    stage.processes[process as usize].name = "TensorFlow".to_owned();
    // `.../device:GPU:0/stream:7`, `.../device:CPU:0`.
    let (name, stream) = match device.device.split_once("/stream:") {
        Some((name, stream)) => (name, Some(stream)),
        None => (device.device.as_str(), None),
    };
    let is_device = stream.is_some() || name.to_ascii_lowercase().contains("gpu");
    for node in &device.node_stats {
        let Some((start, end)) = span(node) else {
            stage.problems.count(Problem::AbsurdTime);
            continue;
        };
        let line = stage.text_id(&format!("{} {}", device.device, node.thread_id));
        let track = stage.track(process, TrackOf::Stream(0, line));
        let t = &mut stage.tracks[track as usize];
        if t.name.is_empty() {
            let thread = device.thread_names.get(&node.thread_id);
            t.kind = if is_device { TrackKind::Stream } else { TrackKind::Worker };
            t.name = match (thread, stream) {
                (Some(thread), _) => thread.clone(),
                (None, Some(stream)) => format!("{} stream {stream}", short(name)),
                (None, None) => format!("{} thread {}", short(name), node.thread_id),
            };
            t.device = name.to_owned();
            t.stream = stream.and_then(|s| s.parse().ok());
        }
        let op = op_of(node);
        let category = if is_device { "kernel" } else { "op" };
        let site = stage.site(category, op);
        let mut slice = Event { node: stage.node(&node.node_name, op, name), ..site.slice(start, end) };
        if !is_device {
            let wait = start.saturating_sub(scheduled(node).unwrap_or(start)).clamp(0, u32::MAX.into());
            (slice.correlation, slice.arg) = (NO_NODE, u64::from(step) << 32 | wait as u64);
        }
        slice.args = stage.args.push(&serde_json::json!({"label": node.timeline_label}).to_string());
        stage.slice(track, slice);
    }
}

/// `device:GPU:0` of a device's full name.
fn short(device: &str) -> &str {
    device.rsplit('/').next().unwrap_or(device)
}

/// A time from the field in nanoseconds if it is set, else from the one in microseconds.
fn span(node: &NodeExecStats) -> Option<(i64, i64)> {
    let (start, length) = if node.all_start_nanos != 0 {
        (node.all_start_nanos, node.all_end_rel_nanos)
    } else {
        (node.all_start_micros.checked_mul(1_000)?, node.all_end_rel_micros.checked_mul(1_000)?)
    };
    (start.unsigned_abs() < 1 << 62).then_some(())?;
    Some((start, start.checked_add(length)?))
}

fn scheduled(node: &NodeExecStats) -> Option<i64> {
    match (node.scheduled_nanos, node.scheduled_micros) {
        (0, 0) => None,
        (0, micros) => micros.checked_mul(1_000),
        (nanos, _) => Some(nanos),
    }
}

/// `name = Op(inputs)` in the label has the op's type; kernels are called by their node.
fn op_of(node: &NodeExecStats) -> &str {
    let labelled = node.timeline_label.split_once(" = ").and_then(|(_, call)| call.split_once('('));
    match labelled {
        Some((op, _)) if !op.is_empty() => op,
        _ => node.node_name.rsplit_once(':').map_or(&node.node_name, |(_, op)| op),
    }
}
