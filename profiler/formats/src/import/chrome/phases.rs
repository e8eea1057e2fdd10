//! Stages events by their phase (`ph`).

use super::event::{Fields, Part};
use super::json::{members, text};
use super::kineto::{self, KinetoArgs};
use super::onnxruntime::{self, NodeRun};
use super::time::{NoTime, Time};
use crate::export::TRACK_EVENT;
use crate::import::async_slices::AsyncKey;
use crate::import::flows::{FlowKey, FlowPart};
use crate::import::ids::{ProcessIdx, SiteIdx, TrackIdx};
use crate::import::input::Input;
use crate::import::problems::Problem;
use crate::import::stage::Stage;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::fs::File;
use std::hash::BuildHasher;
use std::sync::Arc;
use trace_model::{Category, Event, EventKind, NO_ARGS, TrackKind};

/// State that is needed from event to event.
pub(super) struct Phases {
    file: Arc<File>,
    /// Tracks by the texts of process and thread in the file.
    tracks: FxHashMap<(i64, i64), TrackIdx>,
    /// Devices' names by number.
    devices: Vec<(i64, String)>,
    /// `stackFrames`: each frame's name and parent.
    frames: FxHashMap<String, (String, Option<String>)>,
    /// Arguments that wait for the frames: row of the stage's, frame.
    stacks: Vec<(u32, String)>,
    /// Runs of ONNX Runtime's model so far.
    model_runs: u32,
}

/// The bytes of one event, and their offset in the file.
struct Bytes<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Bytes<'a> {
    fn get(&self, part: Part) -> &'a [u8] {
        &self.bytes[part.0..part.1]
    }

    /// The content of a string, or the text of a number.
    fn content(&self, part: Part) -> &'a [u8] {
        let value = self.get(part);
        value.strip_prefix(b"\"").map_or(value, |v| v.strip_suffix(b"\"").unwrap_or(v))
    }
}

impl Phases {
    pub(super) fn new(input: &Input) -> Phases {
        Phases {
            file: input.file.clone(),
            tracks: FxHashMap::default(),
            devices: Vec::new(),
            frames: FxHashMap::default(),
            stacks: Vec::new(),
            model_runs: 0,
        }
    }

    /// Handles a member of the outer object.
    pub(super) fn outer(&mut self, key: &[u8], value: &[u8], stage: &mut Stage) {
        match key {
            b"baseTimeNanoseconds" => stage.wall_offset = kineto::integer(value),
            b"distributedInfo" => stage.rank = kineto::rank(value),
            b"deviceProperties" => self.devices = kineto::devices(value),
            b"hostname" | b"host_name" => stage.host = text(value),
            b"stackFrames" => {
                for (id, frame) in members(value) {
                    let field = |name: &[u8]| members(frame).find(|(key, _)| *key == name).map(|(_, v)| text(v));
                    let frame = (field(b"name").unwrap_or_default(), field(b"parent"));
                    self.frames.insert(String::from_utf8_lossy(id).into_owned(), frame);
                }
            }
            _ => {}
        }
    }

    /// Stages an event.
    pub(super) fn take(&mut self, bytes: &[u8], offset: u64, fields: &Fields, stage: &mut Stage) {
        let b = Bytes { bytes, offset };
        if fields.phase == b'M' {
            return self.metadata(&b, fields, stage);
        }
        let time = match Time::parse(b.get(fields.ts)) {
            Ok(time) => time,
            Err(why) => return no_time(why, stage, &b, fields),
        };
        if fields.phase == b'C' {
            return self.counter(&b, fields, time.ns(), stage);
        }
        let track = self.track(&b, fields, stage);
        let site = site(&b, fields, stage);
        match fields.phase {
            b'X' => match onnxruntime::node_run(b.content(fields.category), b.content(fields.name), b.get(fields.args))
            {
                Some(run) => self.node_run(&b, fields, (time, track), &run, stage),
                None => self.complete(&b, fields, time, track, site, stage),
            },
            b'B' | b'E' => {
                let args = self.args(&b, fields, stage);
                let named = fields.phase == b'B' || fields.name != (0, 0);
                stage.mark(track, time.ns(), fields.phase == b'E', named.then_some(site), args);
                self.binding(&b, fields, time.ns(), track, site, stage);
            }
            b'i' | b'I' | b'R' | b'P' | b'N' | b'O' | b'D' | b'c' | b'v' | b'V' => {
                self.instant(&b, fields, time.ns(), track, site, stage);
            }
            b'b' | b'S' | b'e' | b'F' | b'n' | b'T' | b'p' => {
                let args = self.args(&b, fields, stage);
                let process = stage.tracks[track as usize].process;
                let key = async_key(&b, fields, process, stage);
                let is_end = matches!(fields.phase, b'e' | b'F');
                match fields.phase {
                    b'n' | b'T' | b'p' => stage.async_instant(key, time.ns(), site, args),
                    _ if is_end && fields.name == (0, 0) => {
                        stage.async_mark(key, time.ns(), is_end, SiteIdx::NONE, args);
                    }
                    _ => stage.async_mark(key, time.ns(), is_end, site, args),
                }
            }
            b's' | b't' | b'f' => {
                let part = match fields.phase {
                    b's' => FlowPart::Start,
                    b't' => FlowPart::Step,
                    _ => FlowPart::Finish,
                };
                let key = flow_key(&b, fields, fields.id, stage);
                stage.flows.point(key, part, track, time.ns(), site);
            }
            // Context events say which process the following events belong to; there is nothing to show.
            b'(' | b')' => {}
            _ => stage.problems.count_at(Problem::UnknownEvent, b.offset),
        }
    }

    fn track(&mut self, b: &Bytes<'_>, fields: &Fields, stage: &mut Stage) -> TrackIdx {
        let pid = identity(b.content(fields.pid), stage);
        let tid = identity(b.content(fields.tid), stage);
        if let Some(track) = self.tracks.get(&(pid, tid)) {
            return *track;
        }
        let track = stage.thread(pid, tid);
        if pid < 0 && fields.pid != (0, 0) {
            let process = stage.tracks[track as usize].process as usize;
            stage.processes[process].name = text(b.get(fields.pid));
        }
        if tid < 0 && fields.tid != (0, 0) {
            stage.tracks[track as usize].name = text(b.get(fields.tid));
        }
        self.tracks.insert((pid, tid), track);
        track
    }

    /// The row of the arguments, which stay in the file.
    fn args(&mut self, b: &Bytes<'_>, fields: &Fields, stage: &mut Stage) -> u32 {
        if fields.frame != (0, 0) || fields.stack != (0, 0) {
            return self.args_with_stack(b, fields, stage);
        }
        let (begin, end) = fields.args;
        // An empty object has no arguments.
        if end - begin <= 2 {
            return NO_ARGS;
        }
        stage.args.push_at(&self.file, b.offset + begin as u64, end - begin)
    }

    /// The arguments with the stack among them: here if it stands in the event, at the end if it is a frame's number.
    fn args_with_stack(&mut self, b: &Bytes<'_>, fields: &Fields, stage: &mut Stage) -> u32 {
        let own = String::from_utf8_lossy(b.get(fields.args)).into_owned();
        if fields.stack != (0, 0) {
            let stack = String::from_utf8_lossy(b.get(fields.stack));
            return stage.args.push(&with_member(&own, "stack", &stack));
        }
        let row = stage.args.push(&own);
        self.stacks.push((row, text(b.get(fields.frame))));
        row
    }

    /// Stages an execution of one of ONNX Runtime's nodes.
    fn node_run(
        &mut self,
        b: &Bytes<'_>,
        f: &Fields,
        (time, track): (Time, TrackIdx),
        run: &NodeRun,
        stage: &mut Stage,
    ) {
        let Ok(span) = Time::parse(b.get(f.dur)) else { return stage.problems.count_at(Problem::NoTime, b.offset) };
        let args = if run.dims.is_empty() {
            self.args(b, f, stage)
        } else {
            let own = String::from_utf8_lossy(b.get(f.args));
            stage.args.push(&with_member(&with_member(&own, "Input Dims", &run.dims), "Input type", &run.types))
        };
        let node = stage.node(&run.name, &run.op, &run.device);
        let site = stage.site("op", &run.op);
        let slice = site.slice(time.ns(), time.plus(span).ns());
        // The runtime does not say what a node waited for.
        let (correlation, arg) = (trace_model::NO_NODE, u64::from(trace_model::NO_STEP) << 32);
        stage.slice(track, Event { node, correlation, arg, args, ..slice });
    }

    fn complete(&mut self, b: &Bytes<'_>, f: &Fields, time: Time, track: TrackIdx, site: SiteIdx, stage: &mut Stage) {
        let span = match f.dur {
            (0, 0) => Time::ZERO,
            dur => match Time::parse(b.get(dur)) {
                Ok(span) => span,
                Err(why) => return no_time(why, stage, b, f),
            },
        };
        let end = if span.is_negative() {
            stage.problems.count_at(Problem::NegativeDuration, b.offset);
            time.ns()
        } else {
            time.plus(span).ns()
        };
        let mut slice = Event { args: self.args(b, f, stage), ..site.slice(time.ns(), end) };
        self.numbers(b, f, track, &mut slice, stage);
        if onnxruntime::is_model_run(b.content(f.category), b.content(f.name)) {
            (slice.correlation, slice.arg) = (self.model_runs, u64::from(self.model_runs));
            self.model_runs += 1;
        }
        stage.slice(track, slice);
        self.binding(b, f, time.ns(), track, site, stage);
    }

    /// Sets the numbers of a slice from its arguments, if its category has numbers.
    fn numbers(&mut self, b: &Bytes<'_>, f: &Fields, track: TrackIdx, slice: &mut Event, stage: &mut Stage) {
        let means = stage.sites.means(slice.site);
        let numbers = if kineto::has_numbers(means) { KinetoArgs::parse(b.get(f.args)) } else { KinetoArgs::default() };
        match means {
            Category::Op => slice.correlation = trace_model::NO_NODE,
            Category::Step => {
                let named = kineto::step_number(stage.sites.name(SiteIdx(slice.site)));
                slice.correlation = named.or(numbers.step.0).unwrap_or(0);
                slice.arg = numbers.step.1.unwrap_or(u64::from(slice.correlation));
            }
            Category::Running | Category::OffCpu => slice.correlation = numbers.thread.unwrap_or(0),
            _ => {
                slice.correlation = numbers.correlation.unwrap_or(0);
                slice.arg = numbers.bytes.unwrap_or(0);
            }
        }
        if kineto::is_of_device(means) {
            self.make_stream(b, f, track, numbers, stage);
        }
    }

    /// Makes the track of a thread that has work of a device a stream.
    fn make_stream(&mut self, b: &Bytes<'_>, f: &Fields, track: TrackIdx, numbers: KinetoArgs, stage: &mut Stage) {
        let t = &mut stage.tracks[track as usize];
        if t.kind == TrackKind::Stream {
            return;
        }
        let number = |part: Part| kineto::integer(b.get(part));
        let device = numbers.device.or_else(|| number(f.pid)).unwrap_or(0);
        let name = self.devices.iter().find(|(id, _)| *id == device).map(|(_, name)| name);
        t.kind = TrackKind::Stream;
        t.device = name.map_or(format!("GPU {device}"), |name| format!("GPU {device} {name}"));
        t.stream = numbers.stream.or_else(|| number(f.tid)).and_then(|n| u64::try_from(n).ok());
        t.tid = 0;
    }

    fn instant(&mut self, b: &Bytes<'_>, f: &Fields, time: i64, track: TrackIdx, site: SiteIdx, stage: &mut Stage) {
        if stage.sites.name(site) == "[memory]"
            && let Some((bytes, device)) = kineto::memory(b.get(f.args))
        {
            let kind = if bytes < 0 { EventKind::Free } else { EventKind::Alloc };
            let event = stage.site("alloc", &device).at(kind, time);
            return stage.point(track, Event { arg: bytes.unsigned_abs(), ..event });
        }
        let args = self.args(b, f, stage);
        stage.instant(track, time, site, args);
    }

    /// Stages the ends of flows that are fields of a slice.
    fn binding(&mut self, b: &Bytes<'_>, f: &Fields, time: i64, track: TrackIdx, site: SiteIdx, stage: &mut Stage) {
        if f.bind_id == (0, 0) {
            return;
        }
        let part = match (f.flow_in, f.flow_out) {
            (false, true) => FlowPart::Start,
            (true, true) => FlowPart::Step,
            (true, false) => FlowPart::Finish,
            (false, false) => return,
        };
        let key = FlowKey { space: stage.flows.shared_space(b"bind_id"), id: id_number(b.content(f.bind_id)) };
        stage.flows.point(key, part, track, time, site);
    }

    /// Stages counters: each member of the arguments is one. If there are several, the event's name is part of theirs.
    fn counter(&mut self, b: &Bytes<'_>, f: &Fields, time: i64, stage: &mut Stage) {
        let pid = identity(b.content(f.pid), stage);
        let process = stage.process(pid);
        let mut name = text(b.get(f.name));
        if f.id != (0, 0) {
            name = format!("{name} {}", text(b.get(f.id)));
        }
        let series: Vec<(String, f64)> = members(b.get(f.args))
            .filter_map(|(key, value)| {
                let number = text(value).parse().ok()?;
                Some((String::from_utf8_lossy(key).into_owned(), number))
            })
            .collect();
        if series.is_empty() {
            stage.problems.count_at(Problem::UnknownEvent, b.offset);
        }
        let category = if f.category == (0, 0) { "counter".to_owned() } else { text(b.get(f.category)) };
        let is_one = series.len() == 1;
        for (key, value) in series {
            let full = if is_one && (key == "value" || key == name) { name.clone() } else { format!("{name}.{key}") };
            let site = stage.site(&category, &full);
            stage.counter(process, time, site, value);
        }
    }

    fn metadata(&mut self, b: &Bytes<'_>, f: &Fields, stage: &mut Stage) {
        let arg = |name: &[u8]| members(b.get(f.args)).find(|(key, _)| *key == name).map(|(_, v)| v);
        let order = |v: &[u8]| kineto::integer(v).map_or(0, |n| n.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
        let kind = b.content(f.name);
        let known: [&[u8]; 6] = [
            b"process_name",
            b"process_labels",
            b"process_sort_index",
            b"thread_name",
            b"thread_sort_index",
            TRACK_EVENT.as_bytes(),
        ];
        if !known.contains(&kind) {
            return;
        }
        let pid = identity(b.content(f.pid), stage);
        let process = stage.process(pid) as usize;
        match kind {
            b"process_name" => {
                stage.processes[process].name = arg(b"name").map(text).unwrap_or_default();
                stage.processes[process].host = arg(b"host").map(text).unwrap_or_default();
            }
            b"process_labels" => stage.processes[process].label = arg(b"labels").map(text).unwrap_or_default(),
            b"process_sort_index" => stage.processes[process].order = arg(b"sort_index").map_or(0, order),
            b"thread_name" => {
                let track = self.track(b, f, stage);
                stage.tracks[track as usize].name = arg(b"name").map(text).unwrap_or_default();
            }
            b"thread_sort_index" => {
                let track = self.track(b, f, stage);
                stage.tracks[track as usize].order = arg(b"sort_index").map_or(0, order);
            }
            // The metadata event that our exporter writes.
            _ => {
                let track = self.track(b, f, stage);
                let track = &mut stage.tracks[track as usize];
                track.kind = arg(b"kind").and_then(|v| TrackKind::from_name(&text(v))).unwrap_or(track.kind);
                track.device = arg(b"device").map(text).unwrap_or_default();
                track.stream = arg(b"stream").and_then(kineto::integer).and_then(|n| u64::try_from(n).ok());
                track.tid = arg(b"tid").and_then(kineto::integer).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            }
        }
    }

    /// Completes what needs all events: stacks, steps of ops, processes of devices.
    pub(super) fn finish(&mut self, stage: &mut Stage) {
        for (row, frame) in std::mem::take(&mut self.stacks) {
            let stack = self.stack(&frame);
            let own = stage.args.get(row).unwrap_or_default().into_owned();
            stage.args.replace(row, &with_member(&own, "stack", &stack));
        }
        super::devices::finish(stage);
    }

    /// A frame and its callers as a JSON array, innermost first.
    fn stack(&self, frame: &str) -> String {
        let (mut names, mut next) = (Vec::new(), Some(frame.to_owned()));
        // A damaged table may go in circles.
        while let Some(id) = next.take_if(|_| names.len() < 1_024) {
            let Some((name, parent)) = self.frames.get(&id) else {
                names.push(json_string(&format!("frame {id}")));
                break;
            };
            names.push(json_string(name));
            next.clone_from(parent);
        }
        format!("[{}]", names.join(","))
    }
}

/// Adds a member to the text of an object.
fn with_member(object: &str, key: &str, value: &str) -> String {
    let inner = object.trim().strip_prefix('{').and_then(|o| o.strip_suffix('}')).unwrap_or("").trim();
    let comma = if inner.is_empty() { "" } else { "," };
    format!("{{{inner}{comma}\"{key}\":{value}}}")
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn no_time(why: NoTime, stage: &mut Stage, b: &Bytes<'_>, fields: &Fields) {
    // An object that is not an event is not counted as one without a time.
    let problem = match why {
        _ if fields.phase == 0 => Problem::UnknownEvent,
        NoTime::Unreadable => Problem::NoTime,
        NoTime::Absurd => Problem::AbsurdTime,
    };
    stage.problems.count_at(problem, b.offset);
}

/// The id of a process or thread; a text gets a number of its own.
fn identity(content: &[u8], stage: &mut Stage) -> i64 {
    let mut n = 0_i64;
    for c in content {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 || n > i64::MAX / 10 - 9 {
            return text_identity(content, stage);
        }
        n = n * 10 + i64::from(digit);
    }
    n
}

fn text_identity(content: &[u8], stage: &mut Stage) -> i64 {
    match kineto::integer(content) {
        Some(n) if n >= 0 => n,
        _ => stage.text_id(&String::from_utf8_lossy(content)),
    }
}

/// Category and name of an event; categories of Kineto are mapped to ours.
fn site(b: &Bytes<'_>, fields: &Fields, stage: &mut Stage) -> SiteIdx {
    let (category, name) = (b.content(fields.category), b.content(fields.name));
    stage.sites.of_raw(category, name, || {
        let (category, name) = (super::json::unescape(category), super::json::unescape(name));
        let is_run = onnxruntime::is_model_run(category.as_bytes(), name.as_bytes());
        (if is_run { "step" } else { kineto::category(&category, &name) }.to_owned(), name)
    })
}

/// The number of an id: its value if it is a number, else a hash of its text.
fn id_number(content: &[u8]) -> u64 {
    match kineto::integer(content) {
        Some(n) => n as u64,
        None => FxBuildHasher.hash_one(content) | 1 << 63,
    }
}

fn flow_key(b: &Bytes<'_>, f: &Fields, id: Part, stage: &mut Stage) -> FlowKey {
    let mut space = b.content(f.category).to_vec();
    space.push(0);
    space.extend_from_slice(b.content(f.name));
    space.push(0);
    space.extend_from_slice(b.content(f.scope));
    let space = match kineto::is_of_process(b.content(f.category)) {
        true => stage.flows.space(&space),
        false => stage.flows.shared_space(&space),
    };
    FlowKey { space, id: id_number(b.content(id)) }
}

/// `id` is the process's own; `id2` says whose.
fn async_key(b: &Bytes<'_>, f: &Fields, process: ProcessIdx, stage: &mut Stage) -> AsyncKey {
    let mut space = b.content(f.category).to_vec();
    space.push(0);
    space.extend_from_slice(b.content(f.scope));
    // Ids of the old kind belong to a name too.
    if matches!(f.phase, b'S' | b'T' | b'p' | b'F') {
        space.push(1);
        space.extend_from_slice(b.content(f.name));
    }
    let (mut process, mut id) = (process, b.content(f.id));
    if let Some((key, value)) = members(b.get(f.id2)).next() {
        id = value;
        if key == b"global" {
            process = 0;
            space.push(2);
        }
    }
    (process, stage.flows.space(&space), id_number(id))
}
