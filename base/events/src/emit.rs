//! Emitting events: the hot path.
//!
//! While recording is off each call is one relaxed load and a predictable branch. While it is on, an event is a 32-byte
//! store into the thread's own ring and a release store that publishes it: no lock, no allocation, no system call; the
//! thread's first event makes its ring.
//!
//! Depth: slices that are open on the thread ([`fn@slice`], [`open`]) are counted; an event carries how many were open around
//! it. Up to 64 of them are visible to other processes while they run.

use crate::clock;
use crate::local::{ENDED, Local, OFF, STATE, Slice, count_lost, local, with_session};
use crate::names::{NodeId, SiteId};
use crate::record::{Kind, Record, site_word};
use crate::rings::with_thread_ring;
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
    if local.generation.get() != state && !begin(local, state) {
        return None;
    }
    Some(f(local, state))
}

/// The thread's first event in a session.
#[cold]
#[inline(never)]
fn begin(local: &Local, state: u32) -> bool {
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

/// Emits a slice that has ended; stamps are [`now`](crate::clock::now)'s. A chain of slices needs one stamp each: the end of
/// one is the begin of the next. An `end` before `begin` counts as `begin`.
#[inline]
pub fn emit_slice(begin: u64, end: u64, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| {
        local.push_slice(local.depth.get(), end, Slice { begin, site, node, correlation, arg });
    });
}

/// A slice that runs. Dropping it emits the slice, ending now; [`emit_close`] gives the end, correlation and argument.
///
/// Belongs to its thread. Guards may end in any order, but only properly nested ones have meaningful depths.
#[must_use = "the slice ends when the guard is dropped"]
pub struct SliceGuard {
    slice: Slice,
    /// `OFF` when recording was off at the begin: nothing will be emitted.
    generation: u32,
    depth: u32,
    not_send: PhantomData<*const ()>,
}

impl SliceGuard {
    #[inline]
    fn new(generation: u32, depth: u32, begin: u64, site: SiteId, node: NodeId) -> Self {
        Self { slice: Slice { begin, site, node, correlation: 0, arg: 0 }, generation, depth, not_send: PhantomData }
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
    /// Small, so that it disappears into the caller: while recording is off it is one comparison.
    #[inline]
    fn drop(&mut self) {
        if self.generation != OFF {
            end_now(self);
        }
    }
}

#[inline(never)]
fn end_now(guard: &SliceGuard) {
    guard.end(clock::now());
}

/// Begins a slice at this moment; it ends with the guard.
#[inline]
pub fn slice(site: SiteId) -> SliceGuard {
    slice_of(site, NodeId::NONE)
}

/// As [`fn@slice`], for a node.
#[inline]
pub fn slice_of(site: SiteId, node: NodeId) -> SliceGuard {
    if is_on() { open(clock::now(), site, node) } else { SliceGuard::inactive() }
}

/// Begins a slice at a given time, visible to other processes while it runs.
#[inline]
pub fn open(begin: u64, site: SiteId, node: NodeId) -> SliceGuard {
    let entered = with_local(|local, generation| (local.enter(begin, site, node), generation));
    // Not `unwrap_or`: that would make, and drop, an inactive guard each time.
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
    std::mem::forget(guard); // its drop would end it again
}

/// Emits an event without duration, now.
#[inline]
fn point(kind: Kind, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| {
        let site = site_word(kind, local.depth.get(), site);
        local.push(Record { begin: clock::now(), dur: 0, site, node: node.get(), correlation, arg }.words());
    });
}

/// Emits an event without duration that happened at a given time, with all that a record can say.
#[inline]
pub fn emit_point(kind: Kind, at: u64, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| {
        let site = site_word(kind, local.depth.get(), site);
        local.push(Record { begin: at, dur: 0, site, node: node.get(), correlation, arg }.words());
    });
}

/// Something happened.
#[inline]
pub fn instant(site: SiteId, arg: u64) {
    point(Kind::Instant, site, NodeId::NONE, 0, arg);
}

/// Something happened that has a text: a message of a log. Longer ones are cut to 1,024 bytes.
pub fn log(site: SiteId, text: &str) {
    log_value(site, 0, text);
}

/// As [`log`], with a value; the category of the site says which.
pub fn log_value(site: SiteId, arg: u64, text: &str) {
    with_local(|local, _| {
        let site = site_word(Kind::Instant, local.depth.get(), site);
        let event = Record { begin: clock::now(), site, node: NodeId::NONE.get(), arg, ..Record::default() };
        local.push_with_text(text, &[event]);
    });
}

/// A quantity has this value from now on.
#[inline]
pub fn counter(site: SiteId, value: f64) {
    point(Kind::Counter, site, NodeId::NONE, 0, value.to_bits());
}

/// As [`counter`], caused by a node.
#[inline]
pub fn counter_at(site: SiteId, node: NodeId, value: f64) {
    point(Kind::Counter, site, node, 0, value.to_bits());
}

/// An arrow begins here; the [`flow_in`] with the same correlation is its end.
#[inline]
pub fn flow_out(site: SiteId, correlation: u32) {
    point(Kind::FlowOut, site, NodeId::NONE, correlation, 0);
}

/// An arrow ends here.
#[inline]
pub fn flow_in(site: SiteId, correlation: u32) {
    point(Kind::FlowIn, site, NodeId::NONE, correlation, 0);
}

/// A number for an arrow from one process to another (categories `edge`, `remote transfer`), never 0. It only has to differ from
/// those of a moment, so it wraps around; each process begins at a place of its own, for a trace joins the ends of several.
#[must_use]
pub fn arrow_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static FIRST: OnceLock<u32> = OnceLock::new();
    let first = FIRST.get_or_init(|| RandomState::new().hash_one(std::process::id()) as u32);
    first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

/// A node allocated memory; `in_use` bytes of the site's memory are handed out now.
#[inline]
pub fn alloc(site: SiteId, node: NodeId, bytes: u64, in_use: u64) {
    point(Kind::Alloc, site, node, in_use_word(in_use), bytes);
}

/// A node's memory was freed; `in_use` bytes of the site's memory are handed out now.
#[inline]
pub fn free(site: SiteId, node: NodeId, bytes: u64, in_use: u64) {
    point(Kind::Free, site, node, in_use_word(in_use), bytes);
}

/// Bytes in use as memory events carry them: in 64 bytes and one more, so that 0 stands for "unknown". Saturates at 256 GiB.
#[inline]
fn in_use_word(in_use: u64) -> u32 {
    u32::try_from(in_use / 64 + 1).unwrap_or(u32::MAX)
}
