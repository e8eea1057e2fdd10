//! Writes the Firefox profiler's format (profiler.firefox.com): threads with markers, call stacks of samples, counters.
//!
//! Every track is a thread. Slices and instants are markers with their arguments, which may overlap; log messages are
//! markers of the type `Log`, the ends of flows markers with the flow's id, stalls markers with their causes; samples
//! are samples. The format has no lanes of slices. The entire profile is in memory while it is written.

mod flows;
mod markers;

use super::rows::{counter_names, instant_args, open_names, site_names, slice_args, slices, thread_ids};
use flows::WithFlows;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerTiming, MarkerTypeHandle,
    ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use markers::{ARRIVES, Kind, LEAVES, LOG, SLICE, STALL, TextMarker};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::io::{self, Write};
use trace_analysis::flame::stack_names;
use trace_analysis::stalls::stalls;
use trace_model::{Category, InstantEvent, TrackId};
use trace_store::{Store, Track};

/// Colours of categories, in turn.
const COLORS: [CategoryColor; 8] = [
    CategoryColor::Blue,
    CategoryColor::Green,
    CategoryColor::Orange,
    CategoryColor::Purple,
    CategoryColor::Yellow,
    CategoryColor::LightBlue,
    CategoryColor::Magenta,
    CategoryColor::Brown,
];

pub(super) fn write(store: &Store, out: &mut dyn Write, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
    let begin_ms = (i128::from(store.origin_ns()) + i128::from(store.range().start)) as f64 / 1e6;
    let reference = ReferenceTimestamp::from_millis_since_unix_epoch(begin_ms.max(0.0));
    let mut profile = Profile::new("stepscope", reference, SamplingInterval::from_millis(1));
    profile.set_symbolicated(true);
    let begin = Timestamp::from_nanos_since_reference(0);
    let processes: Vec<ProcessHandle> =
        store.processes().iter().map(|p| profile.add_process(&p.name, p.pid, begin)).collect();
    let (categories, kinds) = Default::default();
    let mut writer = Writer { store, profile, processes, threads: Vec::new(), categories, kinds };
    let n_tracks = store.tracks().len().max(1) as f64;
    for (idx, (track, tid)) in store.tracks().iter().zip(thread_ids(store)).enumerate() {
        writer.track(track, tid);
        progress(idx as f64 / n_tracks);
    }
    writer.flows();
    writer.stalls();
    writer.counters();
    writer.memory();
    let mut out = WithFlows::new(out);
    serde_json::to_writer(&mut out, &writer.profile)?;
    out.finish()?;
    progress(1.0);
    Ok(())
}

struct Writer<'a> {
    store: &'a Store,
    profile: Profile,
    processes: Vec<ProcessHandle>,
    /// The thread of each track; `None` if its process is unknown.
    threads: Vec<Option<ThreadHandle>>,
    categories: FxHashMap<&'a str, CategoryHandle>,
    /// Registered types of markers, by name.
    kinds: FxHashMap<&'static str, MarkerTypeHandle>,
}

impl<'a> Writer<'a> {
    /// A time as nanoseconds from the begin of the trace.
    fn time(&self, time: i64) -> Timestamp {
        let since = i128::from(time) - i128::from(self.store.range().start);
        Timestamp::from_nanos_since_reference(u64::try_from(since).unwrap_or(0))
    }

    fn category(&mut self, name: &'a str) -> CategoryHandle {
        if name.is_empty() {
            return CategoryHandle::OTHER;
        }
        let color = COLORS[self.categories.len() % COLORS.len()];
        let profile = &mut self.profile;
        *self.categories.entry(name).or_insert_with(|| profile.add_category(name, color))
    }

    fn marker<const N: usize>(
        &mut self,
        kind: &Kind,
        thread: ThreadHandle,
        timing: MarkerTiming,
        category: &'a str,
        name: &str,
        fields: [&str; N],
    ) {
        let category = self.category(category);
        let name = self.profile.intern_string(name);
        let fields = fields.map(|field| self.profile.intern_string(field));
        let profile = &mut self.profile;
        let kind = *self.kinds.entry(kind.name()).or_insert_with(|| kind.register(profile));
        self.profile.add_marker(thread, timing, TextMarker { kind, name, category, fields });
    }

    fn track(&mut self, track: &Track, tid: u32) {
        let Some(process) = self.processes.get(track.process as usize).copied() else {
            return self.threads.push(None);
        };
        let begin = Timestamp::from_nanos_since_reference(0);
        // The profiler ignores the name of a process's main thread, so none is one.
        let thread = self.profile.add_thread(process, tid, begin, false);
        self.threads.push(Some(thread));
        self.profile.set_thread_name(thread, &track.name);
        let store = self.store;
        for slice in slices(track) {
            let (_, category) = site_names(store, slice.site);
            let timing = MarkerTiming::Interval(self.time(slice.start), self.time(slice.end));
            let args = slice_args(store, &slice).unwrap_or_default();
            self.marker(&SLICE, thread, timing, category, store.slice_name(&slice), [&args]);
        }
        for open in &track.open {
            let (name, category) = open_names(store, open);
            self.marker(&SLICE, thread, MarkerTiming::IntervalStart(self.time(open.start)), category, name, [""]);
        }
        for instant in &track.instants {
            if !self.sample(thread, instant) {
                self.instant(thread, instant);
            }
        }
    }

    /// Adds a marker for an instant; one whose arguments have a `message` is a log message.
    fn instant(&mut self, thread: ThreadHandle, instant: &InstantEvent) {
        let (store, timing) = (self.store, MarkerTiming::Instant(self.time(instant.time)));
        let (name, category) = site_names(store, instant.site);
        let args = instant_args(store, instant).unwrap_or_default();
        let object: Option<Value> = serde_json::from_str(&args).ok();
        match object.as_ref().and_then(|args| args["message"].as_str()) {
            Some(message) => self.marker(&LOG, thread, timing, category, category, ["", message, name]),
            None => self.marker(&SLICE, thread, timing, category, name, [&args]),
        }
    }

    fn thread(&self, track: TrackId) -> Option<ThreadHandle> {
        self.threads.get(track.0 as usize).copied().flatten()
    }

    /// Adds a marker at both ends of each flow: the profiler connects markers with the same id.
    fn flows(&mut self) {
        let store = self.store;
        for (id, flow) in (1u64..).zip(store.flows()) {
            let (name, category) = site_names(store, flow.site);
            let id = format!("{id:x}");
            for (end, kind) in [(flow.from, LEAVES), (flow.to, ARRIVES)] {
                if let Some((end, thread)) = end.and_then(|end| Some((end, self.thread(end.track)?))) {
                    let timing = MarkerTiming::Instant(self.time(end.time));
                    self.marker(&kind, thread, timing, category, name, [&id]);
                }
            }
        }
    }

    fn stalls(&mut self) {
        let store = self.store;
        for stall in stalls(store, store.range()) {
            let Some(thread) = self.thread(stall.track) else { continue };
            let timing = MarkerTiming::Interval(self.time(stall.start), self.time(stall.end));
            let (cause, text) = (stall.cause.name(), stall.text(store));
            self.marker(&STALL, thread, timing, "stall", &format!("stall: {cause}"), [cause, &text]);
        }
    }

    /// Adds a sample for an instant; returns false if the instant is not a sample.
    fn sample(&mut self, thread: ThreadHandle, instant: &InstantEvent) -> bool {
        let store = self.store;
        let Some(site) = store.sites().get(instant.site as usize) else { return false };
        if site.category != Category::Sample {
            return false;
        }
        let mut names = stack_names(store, instant.arg as u32);
        if names.is_empty() {
            names = stack_of_args(store, instant);
        }
        let category = self.category(&site.category_name);
        let mut stack: Option<StackHandle> = None;
        for name in names {
            let frame = Frame::Label(self.profile.intern_string(&name));
            let info = FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
            let frame = self.profile.intern_frame(thread, info);
            stack = Some(self.profile.intern_stack(thread, stack, frame));
        }
        self.profile.add_sample(thread, self.time(instant.time), stack, CpuDelta::ZERO, 1);
        true
    }

    /// Adds counters; the format has the differences between values.
    fn counters(&mut self) {
        for counter in self.store.counters() {
            let Some(process) = self.processes.get(counter.process as usize).copied() else { continue };
            let (title, category) = counter_names(self.store, counter);
            let handle = self.profile.add_counter(process, &title, category, &title);
            let mut previous = 0.0;
            for (time, value) in counter.time.iter().zip(&counter.value).filter(|(_, value)| value.is_finite()) {
                self.profile.add_counter_sample(handle, self.time(*time), value - previous, 1);
                previous = *value;
            }
        }
    }

    /// Adds a counter of allocated bytes for each device of a process.
    fn memory(&mut self) {
        let mut counters = FxHashMap::default();
        for event in self.store.memory() {
            let process = self.store.track(event.track).and_then(|t| self.processes.get(t.process as usize).copied());
            let Some(process) = process else { continue };
            let (device, _) = site_names(self.store, event.site);
            let profile = &mut self.profile;
            let new = || profile.add_counter(process, device, "Memory", "Memory allocated and freed");
            let counter = *counters.entry((process, event.site)).or_insert_with(new);
            self.profile.add_counter_sample(counter, self.time(event.time), event.bytes as f64, 1);
        }
    }
}

/// The call stack in a sample's arguments, outermost first; `perf script` imports have one there, innermost first.
fn stack_of_args(store: &Store, instant: &InstantEvent) -> Vec<String> {
    let args: Option<Value> = instant_args(store, instant).and_then(|args| serde_json::from_str(&args).ok());
    let stack = args.as_ref().and_then(|args| args["stack"].as_array());
    stack.into_iter().flatten().rev().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
