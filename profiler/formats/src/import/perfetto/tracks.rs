//! The tree of track descriptors, and the stage's track of each.

use crate::export::ExtraProperties;
use crate::import::ids::{ProcessIdx, TrackIdx};
use crate::import::stage::{Stage, TrackOf};
use formats::perfetto::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// `sibling_merge_behavior`: tracks of one parent stay apart whatever they are called.
const MERGE_NONE: u32 = 2;
const MERGE_BY_KEY: u32 = 3;
/// Parents that are followed; descriptors of a damaged trace may go in circles.
const MAX_DEPTH: usize = 64;

#[derive(Default)]
pub(super) struct Tracks {
    described: FxHashMap<u64, TrackDescriptor>,
    found: FxHashMap<u64, TrackIdx>,
    /// The process of each thread, from descriptors.
    pub(super) process_of: FxHashMap<i64, i64>,
}

impl Tracks {
    pub(super) fn describe(&mut self, descriptor: &TrackDescriptor, stage: &mut Stage) {
        let uuid = descriptor.uuid.unwrap_or(0);
        if let Some(process) = &descriptor.process {
            name_process(process, stage);
            if let Some(host) = about(descriptor).and_then(|about| about.host) {
                let idx = stage.process(process.pid.unwrap_or(0).into()) as usize;
                (stage.processes[idx].host, stage.processes[idx].label) = (host, String::new());
            }
        }
        if let Some(thread) = &descriptor.thread {
            name_thread(thread, stage);
            self.process_of.insert(thread.tid.unwrap_or(0), thread.pid.unwrap_or(0).into());
        }
        self.described.insert(uuid, descriptor.clone());
        // Described again, or after its first event.
        if let Some(track) = self.found.get(&uuid).copied()
            && descriptor.thread.is_none()
        {
            stage.tracks[track as usize].process = self.process(uuid, stage);
            self.name(uuid, track, stage);
        }
    }

    /// The stage's track of a track event.
    pub(super) fn track(&mut self, uuid: u64, stage: &mut Stage) -> TrackIdx {
        if let Some(track) = self.found.get(&uuid) {
            return *track;
        }
        let about = self.described.get(&uuid).and_then(about);
        if about.as_ref().is_some_and(|about| about.overlaps) {
            return self.overlapping(uuid, stage);
        }
        let thread = self.described.get(&uuid).and_then(|d| d.thread.as_ref());
        let thread = thread.map(|thread| (thread.pid.unwrap_or(0), thread.tid.unwrap_or(0)));
        let track = match thread {
            Some((pid, tid)) => stage.thread(pid.into(), tid),
            None => {
                let process = self.process(uuid, stage);
                stage.track(process, TrackOf::Other(uuid))
            }
        };
        self.found.insert(uuid, track);
        if thread.is_none() {
            self.name(uuid, track, stage);
        }
        if let Some(about) = about {
            let order = self.described.get(&uuid).and_then(|d| d.sibling_order_rank);
            let track = &mut stage.tracks[track as usize];
            track.kind = about.kind().unwrap_or(track.kind);
            (track.device, track.stream) = (about.device, about.stream);
            (track.tid, track.order) = (about.tid.unwrap_or(track.tid), order.unwrap_or(track.order));
            track.merge = Some(FxBuildHasher.hash_one(uuid));
        }
        track
    }

    /// Merges a child track that our exporter wrote for overlapping slices into its parent, which is first and gives
    /// the name.
    fn overlapping(&mut self, uuid: u64, stage: &mut Stage) -> TrackIdx {
        let parent = self
            .described
            .get(&uuid)
            .and_then(|d| d.parent_uuid)
            .filter(|parent| self.described.get(parent).and_then(about).is_none_or(|about| !about.overlaps));
        let own = self.track(parent.unwrap_or(0), stage) as usize;
        let (process, merge) = (stage.tracks[own].process, stage.tracks[own].merge);
        let track = stage.track(process, TrackOf::Other(uuid));
        stage.tracks[track as usize].name = stage.tracks[own].name.clone();
        stage.tracks[track as usize].merge = merge;
        self.found.insert(uuid, track);
        track
    }

    /// The process of a track: its own, or that of the nearest parent that has one.
    pub(super) fn process(&self, uuid: u64, stage: &mut Stage) -> ProcessIdx {
        let mut next = Some(uuid);
        for _ in 0..MAX_DEPTH {
            let Some(descriptor) = next.and_then(|uuid| self.described.get(&uuid)) else { break };
            let pid = match (&descriptor.process, &descriptor.thread) {
                (Some(process), _) => process.pid,
                (None, Some(thread)) => thread.pid,
                (None, None) => None,
            };
            if let Some(pid) = pid {
                return stage.process(pid.into());
            }
            next = descriptor.parent_uuid.filter(|parent| *parent != 0);
        }
        let id = stage.text_id("tracks of no process");
        let process = stage.process(id);
        stage.processes[process as usize].name = "global".to_owned();
        process
    }

    fn name(&self, uuid: u64, track: TrackIdx, stage: &mut Stage) {
        let descriptor = self.described.get(&uuid);
        let name = descriptor.and_then(name_of).unwrap_or("events").to_owned();
        let process = stage.tracks[track as usize].process;
        let behaviour = descriptor.and_then(|d| d.sibling_merge_behavior).unwrap_or(0);
        let parent = descriptor.and_then(|d| d.parent_uuid).unwrap_or(0);
        let key = match (behaviour, descriptor.and_then(|d| d.sibling_merge_key.as_ref())) {
            (MERGE_NONE, _) => None,
            (MERGE_BY_KEY, Some(key)) => Some(key.as_str()),
            _ => Some(name.as_str()),
        };
        let merge = key.map(|key| FxBuildHasher.hash_one((process, parent, key)));
        let track = &mut stage.tracks[track as usize];
        (track.name, track.merge) = (name, merge);
        track.order = descriptor.and_then(|d| d.sibling_order_rank).unwrap_or(0);
    }

    /// The category of a counter.
    pub(super) fn counter_category(&self, uuid: u64) -> String {
        let about = self.described.get(&uuid).and_then(about);
        about.and_then(|about| about.category).unwrap_or_else(|| "counter".to_owned())
    }

    /// The counter that a track is, with its name.
    pub(super) fn counter(&self, uuid: u64) -> (Option<&CounterDescriptor>, String) {
        let descriptor = self.described.get(&uuid);
        let name = descriptor.and_then(name_of).map_or_else(|| format!("counter {uuid}"), str::to_owned);
        let thread = descriptor.and_then(|d| self.described.get(&d.parent_uuid?)?.thread.as_ref());
        let name = match thread.and_then(|t| t.tid) {
            Some(tid) => format!("{name} of thread {tid}"),
            None => name,
        };
        (descriptor.and_then(|d| d.counter.as_ref()), name)
    }
}

fn about(descriptor: &TrackDescriptor) -> Option<ExtraProperties> {
    descriptor.description.as_deref().and_then(ExtraProperties::parse)
}

fn name_of(descriptor: &TrackDescriptor) -> Option<&str> {
    let names = [&descriptor.name, &descriptor.static_name, &descriptor.atrace_name];
    names.into_iter().find_map(|name| name.as_deref().filter(|name| !name.is_empty()))
}

pub(super) fn name_process(process: &ProcessDescriptor, stage: &mut Stage) {
    let idx = stage.process(process.pid.unwrap_or(0).into()) as usize;
    let name = process.process_name.as_ref().filter(|n| !n.is_empty()).or(process.cmdline.first());
    if let Some(name) = name {
        stage.processes[idx].name.clone_from(name);
    }
    if !process.process_labels.is_empty() {
        stage.processes[idx].label = process.process_labels.join(", ");
    }
}

pub(super) fn name_thread(thread: &ThreadDescriptor, stage: &mut Stage) {
    let track = stage.thread(thread.pid.unwrap_or(0).into(), thread.tid.unwrap_or(0)) as usize;
    if let Some(name) = thread.thread_name.as_ref().filter(|name| !name.is_empty()) {
        stage.tracks[track].name.clone_from(name);
    }
}
