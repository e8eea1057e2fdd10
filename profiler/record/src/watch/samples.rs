//! Turns samples from the kernel's rings into instants of tracks, with their stacks.

use crate::collect::{TrackNo, Tracks};
use crate::proc;
use crate::sample::maps::Maps;
use crate::sample::parse::{Origin, Sample};
use crate::sample::stacks::{ROOT, Stacks};
use crate::sample::unwind;
use crate::sample::unwind::Cache;
use crate::symbols;
use events::meta::{Entry, TrackKind};
use events::{Kind, SiteId};
use rustc_hash::FxHashMap;

/// The order of tracks of samples, after those of scheduling.
const ORDER: i32 = 1_000_001;

#[derive(Default)]
pub(super) struct Samples {
    pub(super) maps: Maps,
    pub(super) stacks: Stacks,
    cache: Cache,
    tracks: FxHashMap<u32, TrackNo>,
    site: Option<SiteId>,
    /// Origin and stack of samples that are not written to a track yet.
    waiting: Vec<(Origin, u32)>,
    pub(super) n: u64,
}

impl Samples {
    pub(super) fn take(&mut self, from: Origin, sample: &Sample) {
        let (kernel, user) = {
            let process = self.maps.process(from.pid);
            unwind::stack(sample, &process.unwinder, &mut self.cache)
        };
        let mut stack = ROOT;
        // Outermost first. All addresses but the innermost are return addresses: one byte less lies in the call.
        let calls = |frames: Vec<u64>| (0..frames.len()).rev().map(move |n| frames[n].saturating_sub(u64::from(n > 0)));
        for address in calls(user) {
            let (module, at) = self.locate(from.pid, address);
            stack = self.push(stack, module, at);
        }
        let module = if kernel.is_empty() { 0 } else { self.maps.path(symbols::KERNEL) };
        for address in calls(kernel) {
            stack = self.push(stack, module, address);
        }
        self.waiting.push((from, stack));
    }

    fn push(&mut self, stack: u32, module: u32, address: u64) -> u32 {
        let path = &self.maps.paths[module as usize];
        let pushed = self.stacks.frame(module, address, path).and_then(|frame| self.stacks.push(stack, frame));
        self.stacks.cut += u64::from(pushed.is_none());
        pushed.unwrap_or(stack)
    }

    /// The row of the file that is mapped at an address, and the address in the file.
    fn locate(&mut self, pid: u32, address: u64) -> (u32, u64) {
        let found = self.maps.process(pid).find(address).map(|m| (m.path, address.wrapping_add(m.bias)));
        match found {
            Some((path, in_file)) if self.maps.paths[path as usize].starts_with('/') => (path, in_file),
            // Code without a file was generated at run time: its process may write a map of it.
            _ => (self.maps.path(&symbols::perf_map(pid)), address),
        }
    }

    /// Writes the waiting samples to their threads' tracks.
    pub(super) fn flush(&mut self, tracks: &mut Tracks) {
        // A stack must be in the meta file before a chunk has a record with it.
        let new = self.stacks.take_new();
        if !new.is_empty() {
            tracks.entries(new.into_iter());
        }
        for (from, stack) in std::mem::take(&mut self.waiting) {
            let site = *self.site.get_or_insert_with(|| tracks.site("sample", "CPU clock"));
            let track = *self.tracks.entry(from.tid).or_insert_with(|| {
                let title = format!("{} {}, samples", proc::name(from.tid).text(), from.tid);
                tracks.track(TrackKind::Thread, from.pid, from.tid, ORDER, title.trim_start())
            });
            let time = tracks.ticks_at(from.time.cast_signed());
            tracks.point(Kind::Instant, track, time, site, from.cpu, u64::from(stack));
            self.n += 1;
        }
    }

    /// The functions of all frames. Reads symbol tables, which may take seconds.
    pub(super) fn symbols(&self) -> Vec<Entry> {
        let paths = &self.maps.paths;
        symbols::resolve(
            self.stacks.frames().map(|(module, address, id)| (paths[module as usize].as_str(), address, id)),
        )
    }
}
