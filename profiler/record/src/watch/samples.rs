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

/// The samples of a command's threads, with the mappings and stacks that they refer to.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) maps: Maps,
    pub(super) stacks: Stacks,
    cache: Cache,
    tracks: FxHashMap<u32, TrackNo>,
    site: Option<SiteId>,
    /// Origin and stack of samples that are not written to a track yet.
    unwritten: Vec<(Origin, u32)>,
    /// The number of samples that were written.
    pub(super) n_written: u64,
}

impl Samples {
    pub(super) fn add(&mut self, origin: Origin, sample: &Sample) {
        let (kernel, user) = {
            let process = self.maps.process(origin.pid);
            unwind::stack(sample, &process.unwinder, &mut self.cache)
        };
        let mut stack = ROOT;
        // Outermost first. All addresses except the innermost are return addresses; the byte before lies in the call.
        let call_addresses =
            |frames: Vec<u64>| (0..frames.len()).rev().map(move |i| frames[i].saturating_sub(u64::from(i > 0)));
        for address in call_addresses(user) {
            let (module, address_in_file) = self.locate(origin.pid, address);
            stack = self.push(stack, module, address_in_file);
        }
        let module = if kernel.is_empty() { 0 } else { self.maps.path_row(symbols::KERNEL) };
        for address in call_addresses(kernel) {
            stack = self.push(stack, module, address);
        }
        self.unwritten.push((origin, stack));
    }

    fn push(&mut self, stack: u32, module: u32, address: u64) -> u32 {
        let path = &self.maps.paths[module as usize];
        let pushed = self.stacks.frame(module, address, path).and_then(|frame| self.stacks.push(stack, frame));
        self.stacks.n_cut += u64::from(pushed.is_none());
        pushed.unwrap_or(stack)
    }

    /// Returns the row of the file that is mapped at an address, and the address in the file.
    fn locate(&mut self, pid: u32, address: u64) -> (u32, u64) {
        let found =
            self.maps.process(pid).find(address).map(|mapping| (mapping.path_row, address.wrapping_add(mapping.bias)));
        match found {
            Some((path, in_file)) if self.maps.paths[path as usize].starts_with('/') => (path, in_file),
            // Code without a file was generated at run time, and its process may write a map of its functions.
            _ => (self.maps.path_row(&symbols::perf_map(pid)), address),
        }
    }

    /// Writes the waiting samples to their threads' tracks.
    pub(super) fn flush(&mut self, tracks: &mut Tracks) {
        // A stack must be in the meta file before a chunk has a record with it.
        let new = self.stacks.take_new();
        if !new.is_empty() {
            tracks.append_entries(new.into_iter());
        }
        for (origin, stack) in std::mem::take(&mut self.unwritten) {
            let site = *self.site.get_or_insert_with(|| tracks.site("sample", "CPU clock"));
            let track = *self.tracks.entry(origin.tid).or_insert_with(|| {
                let title = format!("{} {}, samples", proc::name(origin.tid).text(), origin.tid);
                tracks.add_track(TrackKind::Thread, origin.pid, origin.tid, ORDER, title.trim_start())
            });
            let time = tracks.ticks_at(origin.time.cast_signed());
            tracks.add_point(Kind::Instant, track, time, site, origin.cpu, u64::from(stack));
            self.n_written += 1;
        }
    }

    /// Looks up the functions of all frames. Reads symbol tables, which may take seconds.
    pub(super) fn symbols(&self) -> Vec<Entry> {
        let paths = &self.maps.paths;
        symbols::resolve(
            self.stacks.frames().map(|(module, address, id)| (paths[module as usize].as_str(), address, id)),
        )
    }
}
