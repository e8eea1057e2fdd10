//! Emitting events: the hot path.
//!
//! While recording is off each call is one relaxed load and a predictable branch. While it is on, an event is a 32-byte
//! store into the thread's own ring and a release store that publishes it: no lock, no allocation, no system call. Only
//! the thread's first event does more: it creates the ring.
//!
//! Depth: each thread counts its open slices ([`fn@slice`], [`open`]), and an event records how many slices were open
//! around it. Other processes see up to 64 open slices of a thread while they run.

use crate::clock;
use crate::local::{ENDED, Local, OFF, STATE, SliceFields, count_lost, local, with_session};
use crate::names::{NodeId, SiteId};
use crate::record::{Kind, Record, site_word};
use crate::rings::{name_thread, with_thread_ring};
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs `f` on the thread's ring when recording is on.
#[inline(always)]
pub(crate) fn with_local<R>(f: impl FnOnce(&Local, u32) -> R) -> Option<R> {
    let state = STATE.load(Ordering::Relaxed);
    if state == OFF {
        return None;
    }
    // SAFETY: `Local` has no destructor, so it lives as long as the thread, and the reference does not leave this call.
    let local = unsafe { &*local() };
    if local.generation.get() != state && !attach_ring(local, state) {
        return None;
    }
    Some(f(local, state))
}

/// Gives the thread a ring before its first event in a session. Returns false where the thread can have none.
#[cold]
#[inline(never)]
fn attach_ring(local: &Local, state: u32) -> bool {
    if local.generation.get() == ENDED {
        count_lost();
        return false;
    }
    with_thread_ring(state, |ring| local.attach(state, ring))
}

/// Whether events are recorded now.
#[inline]
#[must_use]
pub fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Names the calling thread, and gives it its ring now, which otherwise its first slice of a session would wait for. For
/// threads that Rust did not make: the names of others are known. An empty name changes nothing.
pub fn prepare_thread(name: &str) {
    name_thread(name);
    with_local(|_, _| ());
}

/// Emits a slice that has ended; `begin` and `end` are time stamps of [`now`](crate::clock::now). In a chain of slices
/// one stamp serves as the end of a slice and the begin of the next. An `end` before `begin` counts as `begin`.
#[inline]
pub fn emit_slice(begin: u64, end: u64, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| {
        local.push_slice(local.depth.get(), end, SliceFields { begin, site, node, correlation, arg });
    });
}

/// An open slice. Dropping the guard ends the slice now and emits it; [`emit_close`] ends it at a given time, with a
/// correlation and an argument.
///
/// A guard stays on its thread. Guards may be dropped in any order, but only properly nested slices get meaningful
/// depths.
#[must_use = "the slice ends when the guard is dropped"]
pub struct SliceGuard {
    slice: SliceFields,
    /// The session's number; `OFF` when recording was off at the begin, and then nothing is emitted.
    generation: u32,
    depth: u32,
    not_send: PhantomData<*const ()>,
}

impl SliceGuard {
    #[inline]
    fn new(generation: u32, depth: u32, begin: u64, site: SiteId, node: NodeId) -> Self {
        Self {
            slice: SliceFields { begin, site, node, correlation: 0, arg: 0 },
            generation,
            depth,
            not_send: PhantomData,
        }
    }

    #[inline]
    fn inactive() -> Self {
        Self::new(OFF, 0, 0, SiteId::OTHER, NodeId::NONE)
    }

    /// Sets the record's `arg`.
    #[inline]
    pub fn set_arg(&mut self, arg: u64) {
        self.slice.arg = arg;
    }

    /// Sets the record's `correlation`.
    #[inline]
    pub fn set_correlation(&mut self, correlation: u32) {
        self.slice.correlation = correlation;
    }

    #[inline]
    fn end(&self, end: u64) {
        with_session(self.generation, |local| {
            local.push_slice(self.depth, end, self.slice);
            local.leave(self.depth);
        });
    }
}

impl Drop for SliceGuard {
    /// Small, so that it is inlined into the caller: while recording is off a drop is one comparison.
    #[inline]
    fn drop(&mut self) {
        if self.generation != OFF {
            end_now(self);
        }
    }
}

/// Not inlined, so that the caller's code stays small.
#[inline(never)]
fn end_now(guard: &SliceGuard) {
    guard.end(clock::now());
}

/// Begins a slice now; the slice ends when the guard is dropped.
#[inline]
pub fn slice(site: SiteId) -> SliceGuard {
    slice_for_node(site, NodeId::NONE)
}

/// As [`fn@slice`], for a graph node.
#[inline]
pub fn slice_for_node(site: SiteId, node: NodeId) -> SliceGuard {
    if is_on() { open(clock::now(), site, node) } else { SliceGuard::inactive() }
}

/// Begins a slice at a given time, visible to other processes while it runs.
#[inline]
pub fn open(begin: u64, site: SiteId, node: NodeId) -> SliceGuard {
    let entered = with_local(|local, generation| (local.enter(begin, site, node), generation));
    // Not `unwrap_or`: that would construct and drop an inactive guard on each call.
    match entered {
        Some((depth, generation)) => SliceGuard::new(generation, depth, begin, site, node),
        None => SliceGuard::inactive(),
    }
}

/// Ends a slice at a given time.
#[inline]
pub fn emit_close(mut guard: SliceGuard, end: u64, correlation: u32, arg: u64) {
    if guard.generation != OFF {
        guard.slice.correlation = correlation;
        guard.slice.arg = arg;
        guard.end(end);
    }
    std::mem::forget(guard); // dropping the guard would end the slice again
}

/// Ends a slice at a given time, with its arguments: a JSON object's text, cut to
/// [`MAX_TEXT`](crate::record::MAX_TEXT) bytes.
pub fn emit_close_with_args(guard: SliceGuard, end: u64, args: &str) {
    if guard.generation != OFF {
        with_session(guard.generation, |local| {
            local.push_slice_with_text(args, guard.depth, end, guard.slice);
            local.leave(guard.depth);
        });
    }
    std::mem::forget(guard); // as above
}

/// The record of an event without duration, at the thread's current depth.
#[inline]
fn point_record(
    local: &Local,
    kind: Kind,
    time: u64,
    site: SiteId,
    node: NodeId,
    correlation: u32,
    arg: u64,
) -> Record {
    let site = site_word(kind, local.depth.get(), site);
    Record { begin: time, dur: 0, site, node: node.get(), correlation, arg }
}

/// Emits an event without duration (an instant, a counter's value, an end of a flow, an allocation), now.
#[inline]
fn emit_now(kind: Kind, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| local.push(point_record(local, kind, clock::now(), site, node, correlation, arg).words()));
}

/// Emits an event without duration that happened at time `at`, with every field of a record.
#[inline]
pub fn emit_event_at(kind: Kind, at: u64, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| local.push(point_record(local, kind, at, site, node, correlation, arg).words()));
}

/// Emits an instant, now; the category of the site says what `arg` means.
#[inline]
pub fn instant(site: SiteId, arg: u64) {
    emit_now(Kind::Instant, site, NodeId::NONE, 0, arg);
}

/// Emits an instant with a text, such as a log message. The text is cut to 1,024 bytes.
pub fn log(site: SiteId, text: &str) {
    log_value(site, 0, text);
}

/// As [`log`], with a value; the category of the site says what `arg` means.
pub fn log_value(site: SiteId, arg: u64, text: &str) {
    with_local(|local, _| {
        let event = point_record(local, Kind::Instant, clock::now(), site, NodeId::NONE, 0, arg);
        local.push_with_text(text, &[event]);
    });
}

/// Emits a counter's value, which holds from now on.
#[inline]
pub fn counter(site: SiteId, value: f64) {
    emit_now(Kind::Counter, site, NodeId::NONE, 0, value.to_bits());
}

/// As [`counter`], for a value that a graph node changed.
#[inline]
pub fn counter_for_node(site: SiteId, node: NodeId, value: f64) {
    emit_now(Kind::Counter, site, node, 0, value.to_bits());
}

/// Begins a flow in the open slice; the [`flow_in`] with the same correlation ends it.
#[inline]
pub fn flow_out(site: SiteId, correlation: u32) {
    emit_now(Kind::FlowOut, site, NodeId::NONE, correlation, 0);
}

/// Ends a flow in the open slice.
#[inline]
pub fn flow_in(site: SiteId, correlation: u32) {
    emit_now(Kind::FlowIn, site, NodeId::NONE, correlation, 0);
}

/// Returns the correlation for a flow from one process to another (categories `edge`, `remote transfer`), never 0. It
/// must differ only from those of flows that are under way at the same time, so the numbers wrap around. Each process
/// starts from a random number, because a trace joins the flows of several processes by their correlation.
#[must_use]
pub fn next_flow_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static FIRST: OnceLock<u32> = OnceLock::new();
    let first = FIRST.get_or_init(|| RandomState::new().hash_one(std::process::id()) as u32);
    first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

/// Emits that a node allocated `bytes`; `in_use` is the number of bytes that are allocated in the site's memory now.
#[inline]
pub fn alloc(site: SiteId, node: NodeId, bytes: u64, in_use: u64) {
    emit_now(Kind::Alloc, site, node, in_use_word(in_use), bytes);
}

/// Emits that a node freed `bytes`; `in_use` is the number of bytes that are allocated in the site's memory now.
#[inline]
pub fn free(site: SiteId, node: NodeId, bytes: u64, in_use: u64) {
    emit_now(Kind::Free, site, node, in_use_word(in_use), bytes);
}

/// The `correlation` of a memory event: `in_use / 64 + 1`, so that 0 stands for "unknown". Saturates at 256 GiB.
#[inline]
fn in_use_word(in_use: u64) -> u32 {
    u32::try_from(in_use / 64 + 1).unwrap_or(u32::MAX)
}
