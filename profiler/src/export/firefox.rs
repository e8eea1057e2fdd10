//! The Firefox profiler's format (profiler.firefox.com): threads with markers, call stacks of samples, counters.
//!
//! Every track is a thread. Slices and instants are markers with their arguments, so that overlapping ones are all there;
//! samples are samples. Not kept: arrows, and which lane a slice had. The whole profile is in memory while it is written.

use super::{instant_args, site_names, slice_args, slices, thread_ids};
use crate::flame::stack_names;
use crate::store::{Category, InstantEvent, Store, Track};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags, MarkerFieldFormat,
    MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::io::{self, Write};

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
    let mut writer = Writer { store, profile, processes, categories: FxHashMap::default() };
    let n_tracks = store.tracks().len().max(1) as f64;
    for (idx, (track, tid)) in store.tracks().iter().zip(thread_ids(store)).enumerate() {
        writer.track(track, tid);
        progress(idx as f64 / n_tracks);
    }
    writer.counters();
    writer.memory();
    serde_json::to_writer(out, &writer.profile)?;
    progress(1.0);
    Ok(())
}

struct Writer<'a> {
    store: &'a Store,
    profile: Profile,
    processes: Vec<ProcessHandle>,
    categories: FxHashMap<&'a str, CategoryHandle>,
}

/// A slice or an instant.
struct Marker {
    name: StringHandle,
    category: CategoryHandle,
    args: StringHandle,
}

impl StaticSchemaMarker for Marker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "slice";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.args}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "args",
        label: "Arguments",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.args
    }

    fn number_field_value(&self, _: u32) -> f64 {
        // No field is a number.
        f64::NAN
    }
}

impl<'a> Writer<'a> {
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

    fn marker(&mut self, name: &str, category: &'a str, args: Option<&str>) -> Marker {
        let category = self.category(category);
        let name = self.profile.intern_string(name);
        Marker { name, category, args: self.profile.intern_string(args.unwrap_or_default()) }
    }

    fn track(&mut self, track: &Track, tid: u32) {
        let Some(process) = self.processes.get(track.process as usize).copied() else { return };
        let begin = Timestamp::from_nanos_since_reference(0);
        // A main thread would lose its name.
        let thread = self.profile.add_thread(process, tid, begin, false);
        self.profile.set_thread_name(thread, &track.name);
        let store = self.store;
        for slice in slices(track) {
            let (_, category) = site_names(store, slice.site);
            let marker = self.marker(store.slice_name(&slice), category, slice_args(store, &slice).as_deref());
            let timing = MarkerTiming::Interval(self.time(slice.start), self.time(slice.end));
            self.profile.add_marker(thread, timing, marker);
        }
        for open in &track.open {
            let (name, category) = site_names(store, open.site);
            let name = store.nodes().get(open.node as usize).map_or(name, |node| &node.name);
            let marker = self.marker(name, category, None);
            self.profile.add_marker(thread, MarkerTiming::IntervalStart(self.time(open.start)), marker);
        }
        for instant in &track.instants {
            if !self.sample(thread, instant) {
                let (name, category) = site_names(store, instant.site);
                let marker = self.marker(name, category, instant_args(store, instant).as_deref());
                self.profile.add_marker(thread, MarkerTiming::Instant(self.time(instant.time)), marker);
            }
        }
    }

    /// Adds an instant that is a sample; false where it is none.
    fn sample(&mut self, thread: ThreadHandle, instant: &InstantEvent) -> bool {
        let store = self.store;
        let Some(site) = store.sites().get(instant.site as usize) else { return false };
        if site.category != Category::Sample {
            return false;
        }
        let mut names = stack_names(store, instant.arg as u32);
        if names.is_empty() {
            names = told_stack(store, instant);
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

    /// The format has differences.
    fn counters(&mut self) {
        for counter in self.store.counters() {
            let Some(process) = self.processes.get(counter.process as usize).copied() else { continue };
            let (name, category) = site_names(self.store, counter.site);
            let handle = self.profile.add_counter(process, name, category, name);
            let mut before = 0.0;
            for (time, value) in counter.time.iter().zip(&counter.value).filter(|(_, value)| value.is_finite()) {
                self.profile.add_counter_sample(handle, self.time(*time), value - before, 1);
                before = *value;
            }
        }
    }

    fn memory(&mut self) {
        let mut counters = FxHashMap::default();
        for event in self.store.memory() {
            let process = self.store.track(event.track).and_then(|t| self.processes.get(t.process as usize).copied());
            let Some(process) = process else { continue };
            let (device, _) = site_names(self.store, event.site);
            let profile = &mut self.profile;
            let new = || profile.add_counter(process, device, "Memory", "Memory taken and given back");
            let counter = *counters.entry((process, event.site)).or_insert_with(new);
            self.profile.add_counter_sample(counter, self.time(event.time), event.bytes as f64, 1);
        }
    }
}

/// The stack in a sample's arguments (those of `perf script` have it, innermost first), outermost first.
fn told_stack(store: &Store, instant: &InstantEvent) -> Vec<String> {
    let args: Option<Value> = instant_args(store, instant).and_then(|args| serde_json::from_str(&args).ok());
    let stack = args.as_ref().and_then(|args| args["stack"].as_array());
    stack.into_iter().flatten().rev().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
