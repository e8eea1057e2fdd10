//! Tracks that are not fed by a thread's own ring: the work of a device, or of a thread as another library timed it.
//!
//! A track has a separate ring in the process, so its events are as bounded, counted and safe against a `kill -9` as
//! those of a thread. The track's holder writes events with given times, which may lie in the past.

use crate::local::{Local, SliceFields, fork_depth};
use crate::meta::{Entry, NoteKind, TrackKind};
use crate::names::{self, NodeId, SiteId};
use crate::record::{Kind, Record, site_word};
use crate::ring::RingFile;
use crate::rings;
use std::sync::Arc;

/// The subject of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackSubject<'a> {
    /// The work of a thread of this process, reported by another thread.
    Thread {
        /// The system's id of the thread.
        tid: u32,
    },
    /// The work of a device's stream, in its order of execution.
    Stream {
        /// The device's name for users.
        device: &'a str,
        /// The stream's number on the device; `None` for work on no stream.
        stream: Option<u64>,
    },
    /// Operations that begin and end on no thread.
    Operations,
}

/// A slice for [`Track::slice`].
#[derive(Clone, Copy, Debug)]
pub struct TrackSlice<'a> {
    /// The number of the track's slices around this one.
    pub depth: u32,
    /// The begin, ticks of [`crate::clock`].
    pub begin: u64,
    /// The end, ticks; not before `begin`.
    pub end: u64,
    /// The site: category and name.
    pub site: SiteId,
    /// The graph node that the slice belongs to.
    pub node: NodeId,
    /// Meaning by category (docs/formats/trace-format.md).
    pub correlation: u32,
    /// Meaning by category.
    pub arg: u64,
    /// A JSON object's text, at most [`MAX_TEXT`](crate::record::MAX_TEXT) bytes; empty for none.
    pub args: &'a str,
}

/// A track of the running session, written by its holder. In a forked child it takes no events: it is the parent's.
pub struct Track {
    local: Local,
    /// Keeps the memory mapped to which `local` points.
    _ring: Arc<RingFile>,
    generation: u32,
    /// [`fork_depth`] of the process whose track it is.
    fork_depth: u32,
}

// SAFETY: `local`'s pointers lead into the mapping that `_ring` keeps, which belongs to no thread; its cells are
// reached through `&mut self` only.
unsafe impl Send for Track {}

impl Track {
    /// Adds a track to the running session; the process's tracks are sorted by `order`. `None` where no session runs,
    /// or the session has as many rings as it may have (counted as a lost thread).
    #[must_use]
    pub fn open(subject: TrackSubject<'_>, name: &str, order: i32) -> Option<Track> {
        let tid = if let TrackSubject::Thread { tid } = subject { tid } else { 0 };
        let name = name.to_owned();
        let track_entry = |kind, ring, name| Entry::Track { ring, kind, process: std::process::id(), tid, order, name };
        let (generation, ring) = rings::track_ring(&name.clone(), tid, |ring| match subject {
            TrackSubject::Thread { .. } => track_entry(TrackKind::Thread, ring, name),
            TrackSubject::Operations => track_entry(TrackKind::Async, ring, name),
            TrackSubject::Stream { device, stream } => {
                Entry::Stream { ring, stream: stream.unwrap_or(u64::MAX), order, device: device.to_owned(), name }
            }
        })?;
        let local = Local::detached();
        local.attach(generation, Some(&ring));
        Some(Track { local, _ring: ring, generation, fork_depth: fork_depth() })
    }

    /// Whether the track's session still runs; events written after its end are lost.
    #[must_use]
    pub fn is_open(&self) -> bool {
        rings::is_running(self.generation)
    }

    /// Whether a parent process opened the track, which alone may write to its ring.
    fn is_parents(&self) -> bool {
        self.fork_depth != fork_depth()
    }

    /// Writes a slice. A full ring drops it and counts it.
    pub fn slice(&mut self, slice: TrackSlice<'_>) {
        if self.is_parents() {
            return;
        }
        let TrackSlice { depth, begin, end, site, node, correlation, arg, args } = slice;
        let fields = SliceFields { begin, site, node, correlation, arg };
        if args.is_empty() {
            self.local.push_slice(depth, end, fields);
        } else {
            self.local.push_slice_with_text(args, depth, end, fields);
        }
    }

    /// Writes an event without duration: an instant, an end of a flow.
    pub fn point(&mut self, kind: Kind, at: u64, site: SiteId, node: NodeId, correlation: u32, args: &str) {
        if self.is_parents() {
            return;
        }
        let site = site_word(kind, 0, site);
        let record = Record { begin: at, dur: 0, site, node: node.get(), correlation, arg: 0 };
        if args.is_empty() {
            self.local.push(record.words());
        } else {
            self.local.push_with_text(args, &[record]);
        }
    }
}

/// Writes a message for the users of the trace; `count` is the total of `source`. A later note with the same kind and
/// source replaces it. Does nothing where no session runs.
pub fn note(kind: NoteKind, count: u64, source: &str, text: &str) {
    names::append(&Entry::Note { kind, count, source: source.to_owned(), text: text.to_owned() });
}
