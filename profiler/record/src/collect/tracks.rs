//! Tracks without a ring: threads, CPUs and disks that a recorder observes from outside.
//!
//! The tracks are written as rings of the recorder's process, into a meta file with names and clock, and into chunks.
//! So readers need only the entries [`Entry::Track`] and [`Entry::Other`] in addition.

use events::clock::Source as ClockSource;
use events::meta::{self, Entry, NoteKind, TrackKind};
use events::record::site_word;
use events::{Kind, NodeId, Record, SiteId, clock};
use rustc_hash::FxHashMap;
use std::io;
use std::path::Path;
use trace_model::chunks::{self, ChunkHeader, FLAG_LAST};

/// The most records of a track that wait for the next write; further records are dropped and counted. Only a full disk
/// makes so many wait.
const MAX_WAITING: usize = 1 << 18;
/// The time between two clock anchors, ns.
const ANCHOR_NS: i64 = 1_000_000_000;

/// The number of a track, which is its ring's number in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrackNo(u32);

/// The records of a track that are not written yet.
#[derive(Debug, Default)]
struct UnwrittenRecords {
    /// The sequence number of the first of `records`.
    first: u64,
    records: Vec<Record>,
    dropped: u64,
}

/// Tracks without a ring, written as the rings of one more process.
pub struct Tracks {
    pid: u32,
    made: u64,
    meta: meta::Writer,
    sites: FxHashMap<(&'static str, String), SiteId>,
    unwritten: Vec<UnwrittenRecords>,
    /// The first and the last anchor of the clock, which determine its rate.
    first_anchor: events::Anchor,
    last_anchor: events::Anchor,
    is_ns: bool,
    n_slices: u64,
}

impl Tracks {
    /// Creates tracks in a trace folder as rings of process `pid`, called `name`. Times are ticks of `clock`.
    ///
    /// # Errors
    /// The meta file cannot be created.
    pub fn create(trace_dir: &Path, pid: u32, name: &str, clock: ClockSource) -> io::Result<Tracks> {
        let mut meta = meta::Writer::create(trace_dir, pid)?;
        meta.append(&Entry::Process {
            pid,
            start_ns: clock::wall_now_ns(),
            clock,
            host: events::session::host_name(),
            exe: name.to_owned(),
            args: Vec::new(),
            born: events::session::born(pid),
        });
        let is_ns = clock == ClockSource::MonotonicRaw;
        let first_anchor = anchor(is_ns);
        meta.append(&Entry::Anchor(first_anchor));
        let last_anchor = anchor(is_ns);
        meta.append(&Entry::Anchor(last_anchor));
        let (sites, unwritten) = (FxHashMap::default(), Vec::new());
        let made = first_anchor.ticks + 1;
        Ok(Tracks { pid, made, meta, sites, unwritten, first_anchor, last_anchor, is_ns, n_slices: 0 })
    }

    /// The id of the process to which the tracks belong in the files.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Adds a track.
    pub fn add_track(&mut self, kind: TrackKind, process: u32, tid: u32, order: i32, name: &str) -> TrackNo {
        let track = TrackNo(self.unwritten.len() as u32);
        self.unwritten.push(UnwrittenRecords::default());
        self.rename(track, kind, process, tid, order, name);
        track
    }

    /// Changes a track's kind, owner, order and name.
    pub fn rename(&mut self, track: TrackNo, kind: TrackKind, process: u32, tid: u32, order: i32, name: &str) {
        self.meta.append(&Entry::Track { ring: track.0, kind, process, tid, order, name: name.to_owned() });
    }

    /// Names a process that is recorded from outside.
    pub fn name_process(&mut self, pid: u32, name: &str) {
        self.meta.append(&Entry::Other { pid, name: name.to_owned() });
    }

    /// Writes a note for the user.
    pub fn note(&mut self, kind: NoteKind, count: u64, source: &str, text: &str) {
        self.meta.append(&Entry::Note { kind, count, source: source.to_owned(), text: text.to_owned() });
    }

    /// Writes further entries to the meta file: frames, stacks, symbols.
    pub fn append_entries(&mut self, entries: impl Iterator<Item = Entry>) {
        self.meta.append_all(entries);
    }

    /// Returns the site with this category and name; writes it if new.
    pub fn site(&mut self, category: &'static str, name: &str) -> SiteId {
        if let Some(id) = self.sites.get(&(category, name.to_owned())) {
            return *id;
        }
        let id = SiteId::from_bits(self.sites.len() as u32);
        self.meta.append(&Entry::Site { id: id.get(), category: category.to_owned(), name: name.to_owned() });
        self.sites.insert((category, name.to_owned()), id);
        id
    }

    /// Adds a slice, in ticks.
    pub fn add_slice(&mut self, track: TrackNo, begin: u64, end: u64, site: SiteId, correlation: u32, arg: u64) {
        let ticks = end.saturating_sub(begin);
        let word = |kind| site_word(kind, 0, site);
        let slice = Record { begin, dur: 0, site: word(Kind::Slice), node: NodeId::NONE.get(), correlation, arg };
        self.n_slices += 1;
        if let Some(dur) = u32::try_from(ticks).ok().filter(|dur| *dur != u32::MAX) {
            self.push(track, &[Record { dur, ..slice }]);
        } else {
            let long = Record { site: word(Kind::LongSlice), arg: ticks, ..slice };
            self.push(track, &[long, Record { dur: u32::MAX, ..slice }]);
        }
    }

    /// Adds an event without duration, at a time in ticks.
    pub fn add_point(&mut self, kind: Kind, track: TrackNo, at: u64, site: SiteId, correlation: u32, arg: u64) {
        let site = site_word(kind, 0, site);
        self.push(track, &[Record { begin: at, dur: 0, site, node: NodeId::NONE.get(), correlation, arg }]);
    }

    fn push(&mut self, track: TrackNo, records: &[Record]) {
        let Some(unwritten) = self.unwritten.get_mut(track.0 as usize) else { return };
        if unwritten.records.len() + records.len() > MAX_WAITING {
            unwritten.dropped += records.len() as u64;
        } else {
            unwritten.records.extend_from_slice(records);
        }
    }

    /// Converts a time of `CLOCK_MONOTONIC_RAW` to ticks, accurate to tens of nanoseconds.
    #[must_use]
    pub fn ticks_at(&self, mono_ns: i64) -> u64 {
        if self.is_ns {
            return mono_ns.max(0).unsigned_abs();
        }
        let (from, to) = (self.first_anchor, self.last_anchor);
        let span_ns = i128::from(to.mono_ns.saturating_sub(from.mono_ns)).max(1);
        let span_ticks = i128::from(to.ticks.saturating_sub(from.ticks));
        let ticks = i128::from(to.ticks) + (i128::from(mono_ns) - i128::from(to.mono_ns)) * span_ticks / span_ns;
        u64::try_from(ticks).unwrap_or(0)
    }

    /// Appends the waiting records to `batch`, as chunks; returns the number of records of each track. `is_last`: no
    /// record will follow.
    pub(crate) fn append_chunks(&self, is_last: bool, written_ns: i64, batch: &mut Vec<Record>) -> Vec<usize> {
        for (ring, unwritten) in self.unwritten.iter().enumerate() {
            let n_chunks = unwritten.records.len().div_ceil(chunks::MAX_RECORDS).max(usize::from(is_last));
            for i in 0..n_chunks {
                let from = i * chunks::MAX_RECORDS;
                let part = &unwritten.records[from..unwritten.records.len().min(from + chunks::MAX_RECORDS)];
                let header = ChunkHeader {
                    pid: self.pid,
                    ring: ring as u32,
                    made: self.made,
                    first: unwritten.first + from as u64,
                    dropped: unwritten.dropped,
                    written_ns,
                    flags: if is_last && i + 1 == n_chunks { FLAG_LAST } else { 0 },
                    ..ChunkHeader::default()
                };
                let at = chunks::begin_chunk(batch);
                batch.extend_from_slice(part);
                chunks::end_chunk(header, at, batch);
            }
        }
        self.unwritten.iter().map(|w| w.records.len()).collect()
    }

    /// Removes the first records of each track, which were written.
    pub(crate) fn remove_written(&mut self, counts: &[usize]) {
        for (unwritten, n) in self.unwritten.iter_mut().zip(counts) {
            unwritten.records.drain(..n);
            unwritten.first += *n as u64;
        }
    }

    /// The number of records that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.unwritten.iter().map(|w| w.dropped).sum()
    }

    /// The current time in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        if self.is_ns { clock::mono_now().max(0).unsigned_abs() } else { clock::now() }
    }

    /// Writes a clock anchor if the previous one is old enough, or `is_last` is set.
    pub(crate) fn write_anchor_if_due(&mut self, is_last: bool) {
        let age = clock::mono_now() - self.last_anchor.mono_ns;
        // The first anchors follow each other quickly, so that the rate is soon accurate.
        let since_first = self.last_anchor.mono_ns - self.first_anchor.mono_ns;
        if is_last || age > ANCHOR_NS.min((10 * since_first).max(10_000_000)) {
            self.last_anchor = anchor(self.is_ns);
            self.meta.append(&Entry::Anchor(self.last_anchor));
        }
    }

    /// Takes the number of slices since the previous call.
    pub(crate) fn take_n_slices(&mut self) -> u64 {
        std::mem::take(&mut self.n_slices)
    }
}

/// Reads an anchor whose ticks are nanoseconds of `CLOCK_MONOTONIC_RAW` (`is_ns`), or the counter's.
fn anchor(is_ns: bool) -> events::Anchor {
    let anchor = clock::anchor();
    if is_ns { events::Anchor { ticks: anchor.mono_ns.max(0).unsigned_abs(), ..anchor } } else { anchor }
}
