//! Emitting events: the hot path.
//!
//! While recording is off each call is one relaxed load and a predictable branch. While it is on, an event is a 32-byte
//! store into the thread's own ring and a release store that publishes it: no lock, no allocation, no system call; the
//! thread's first event makes its ring.
//!
//! Depth: slices that are open on the thread ([`slice`], [`open`]) are counted; an event carries how many were open around
//! it. Up to 64 of them are visible to other processes while they run.

use crate::clock;
use crate::names::{NodeId, SiteId};
use crate::record::{Kind, Record, site_word};
use crate::ring::{Header, RingFile, Slot};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// [`STATE`] while nothing is recorded.
pub(crate) const OFF: u32 = 0;
/// The generation of a thread that is ending: it gets no ring any more.
const ENDED: u32 = u32::MAX;

/// The switch: [`OFF`], or the number of the session that records. One load tells both whether to emit and whether the
/// thread's ring belongs to this session.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(OFF);
/// Events of threads without a ring, not yet added to the control page.
pub(crate) static LOST: AtomicU64 = AtomicU64::new(0);

/// A thread's ring as the hot path needs it. No destructor, so that reaching it is one instruction and it may be used until
/// the thread's very end; the mapping is kept alive by [`crate::session`].
pub(crate) struct Local {
    generation: Cell<u32>,
    depth: Cell<u32>,
    /// Records published.
    head: Cell<u64>,
    /// Where `head` must stop: the consumer's tail when last read, and the capacity.
    limit: Cell<u64>,
    mask: Cell<u64>,
    /// Null without a ring; then `head == limit` for good.
    header: Cell<*const Header>,
    slots: Cell<*const Slot>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            generation: Cell::new(OFF),
            depth: Cell::new(0),
            head: Cell::new(0),
            limit: Cell::new(0),
            mask: Cell::new(0),
            header: Cell::new(std::ptr::null()),
            slots: Cell::new(std::ptr::null()),
        }
    };
}

impl Local {
    /// The header of the thread's ring.
    #[inline]
    fn header(&self) -> Option<&Header> {
        // SAFETY: null, or the header of the ring that `session::OWNED` keeps mapped; `detach` nulls it before that ends.
        unsafe { self.header.get().as_ref() }
    }

    /// Room for `n` records.
    #[inline]
    fn has_room(&self, n: u64) -> bool {
        self.limit.get().wrapping_sub(self.head.get()) >= n || self.refill(n)
    }

    /// Looks how far the consumer got; counts the records as dropped when there is still no room.
    #[cold]
    #[inline(never)]
    fn refill(&self, n: u64) -> bool {
        let Some(header) = self.header() else {
            LOST.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let (head, capacity) = (self.head.get(), self.mask.get() + 1);
        let tail = header.consumer.tail.load(Ordering::Acquire);
        // A tail that cannot be is another process's mistake; the ring counts as full then.
        if tail <= head && head - tail <= capacity - n.min(capacity) {
            self.limit.set(tail + capacity);
            return true;
        }
        let dropped = header.producer.dropped.load(Ordering::Relaxed);
        header
            .producer
            .dropped
            .store(dropped + n, Ordering::Relaxed);
        false
    }

    /// Writes the record at `head`; `has_room` said that it fits.
    #[inline]
    fn put(&self, record: Record, head: u64) {
        // SAFETY: `has_room` was true, so there is a ring, and the mask keeps the index below its capacity.
        unsafe { &*self.slots.get().add((head & self.mask.get()) as usize) }.store(record.words());
    }

    /// Publishes every record before `head`.
    #[inline]
    fn publish(&self, head: u64) {
        self.head.set(head);
        if let Some(header) = self.header() {
            header.producer.head.store(head, Ordering::Release);
        }
    }

    #[inline]
    fn push(&self, record: Record) {
        if self.has_room(1) {
            let head = self.head.get();
            self.put(record, head);
            self.publish(head + 1);
        }
    }

    #[inline]
    fn push_slice(&self, depth: u32, end: u64, record: Record) {
        let ticks = end.saturating_sub(record.begin);
        let site = SiteId::from_bits(record.site);
        let slice = Record {
            site: site_word(Kind::Slice, depth, site),
            dur: ticks as u32,
            ..record
        };
        if ticks < u64::from(u32::MAX) {
            self.push(slice);
        } else {
            self.push_long(ticks, slice);
        }
    }

    /// Two records, published at once.
    #[cold]
    #[inline(never)]
    fn push_long(&self, ticks: u64, slice: Record) {
        if self.has_room(2) {
            let head = self.head.get();
            let site = site_word(Kind::LongSlice, slice.depth(), slice.site_id());
            self.put(
                Record {
                    site,
                    dur: 0,
                    arg: ticks,
                    ..slice
                },
                head,
            );
            self.put(
                Record {
                    dur: u32::MAX,
                    ..slice
                },
                head + 1,
            );
            self.publish(head + 2);
        }
    }

    /// Enters a slice: shows it as running, returns its depth.
    #[inline]
    pub(crate) fn enter(&self, begin: u64, site: SiteId, node: NodeId) -> u32 {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.open(begin, site.get(), node.get());
        }
        depth
    }

    /// Leaves the slice at `depth`.
    #[inline]
    pub(crate) fn leave(&self, depth: u32) {
        // Not `depth - 1` of the counter: guards may be dropped in any order.
        self.depth.set(self.depth.get().saturating_sub(1));
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.close();
        }
    }

    /// Makes the thread write to `ring` (or, with `None`, count its events as lost) for session `generation`.
    fn attach(&self, generation: u32, ring: Option<&RingFile>) {
        self.depth.set(0);
        self.head.set(0);
        self.limit.set(ring.map_or(0, |r| u64::from(r.capacity())));
        self.mask
            .set(ring.map_or(0, |r| u64::from(r.capacity()) - 1));
        self.header
            .set(ring.map_or(std::ptr::null(), |r| std::ptr::from_ref(r.header())));
        self.slots
            .set(ring.map_or(std::ptr::null(), RingFile::slots));
        self.generation.set(generation);
    }
}

/// Lets go of the thread's ring; `ended` forbids another one. Must run before the ring's mapping ends.
pub(crate) fn detach(ended: bool) {
    LOCAL.with(|local| local.attach(if ended { ENDED } else { OFF }, None));
}

/// Runs `f` on the thread's ring when recording is on.
#[inline]
pub(crate) fn with_local<R>(f: impl FnOnce(&Local, u32) -> R) -> Option<R> {
    let state = STATE.load(Ordering::Relaxed);
    if state == OFF {
        return None;
    }
    LOCAL.with(|local| {
        if local.generation.get() != state && !begin(local, state) {
            return None;
        }
        Some(f(local, state))
    })
}

/// Runs `f` on the thread's ring when it still belongs to session `generation`, even if recording was switched off since.
#[inline]
pub(crate) fn with_session<R>(generation: u32, f: impl FnOnce(&Local) -> R) -> Option<R> {
    LOCAL.with(|local| (local.generation.get() == generation).then(|| f(local)))
}

/// The thread's first event in a session.
#[cold]
#[inline(never)]
fn begin(local: &Local, state: u32) -> bool {
    if local.generation.get() == ENDED {
        LOST.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    crate::session::with_thread_ring(state, |ring| local.attach(state, ring))
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
        let record = Record {
            begin,
            dur: 0,
            site: site.get(),
            node: node.get(),
            correlation,
            arg,
        };
        local.push_slice(local.depth.get(), end, record);
    });
}

/// A slice that runs. Dropping it emits the slice, ending now; [`emit_close`] gives the end, correlation and argument.
///
/// Belongs to its thread. Guards may end in any order, but only properly nested ones have meaningful depths.
#[must_use = "the slice ends when the guard is dropped"]
pub struct SliceGuard {
    begin: u64,
    /// [`OFF`] when recording was off at the begin: nothing will be emitted.
    generation: u32,
    depth: u32,
    site: SiteId,
    node: NodeId,
    correlation: u32,
    arg: u64,
    not_send: PhantomData<*const ()>,
}

impl SliceGuard {
    const INACTIVE: Self = Self {
        begin: 0,
        generation: OFF,
        depth: 0,
        site: SiteId::OTHER,
        node: NodeId::NONE,
        correlation: 0,
        arg: 0,
        not_send: PhantomData,
    };

    /// Sets the record's `arg`.
    #[inline]
    pub fn set_arg(&mut self, arg: u64) {
        self.arg = arg;
    }

    /// Sets the record's `correlation`.
    #[inline]
    pub fn set_correlation(&mut self, correlation: u32) {
        self.correlation = correlation;
    }

    #[inline]
    fn end(&self, end: u64) {
        with_session(self.generation, |local| {
            let Self {
                begin,
                node,
                correlation,
                arg,
                ..
            } = *self;
            let record = Record {
                begin,
                dur: 0,
                site: self.site.get(),
                node: node.get(),
                correlation,
                arg,
            };
            local.push_slice(self.depth, end, record);
            local.leave(self.depth);
        });
    }
}

impl Drop for SliceGuard {
    #[inline]
    fn drop(&mut self) {
        if self.generation != OFF {
            self.end(clock::now());
        }
    }
}

/// Begins a slice at this moment; it ends with the guard.
#[inline]
pub fn slice(site: SiteId) -> SliceGuard {
    slice_of(site, NodeId::NONE)
}

/// As [`slice`], for a node.
#[inline]
pub fn slice_of(site: SiteId, node: NodeId) -> SliceGuard {
    if is_on() {
        open(clock::now(), site, node)
    } else {
        SliceGuard::INACTIVE
    }
}

/// Begins a slice at a given time, visible to other processes while it runs.
#[inline]
pub fn open(begin: u64, site: SiteId, node: NodeId) -> SliceGuard {
    with_local(|local, generation| {
        let depth = local.enter(begin, site, node);
        SliceGuard {
            begin,
            generation,
            depth,
            site,
            node,
            correlation: 0,
            arg: 0,
            not_send: PhantomData,
        }
    })
    .unwrap_or(SliceGuard::INACTIVE)
}

/// Ends a slice at a given time.
#[inline]
pub fn emit_close(mut guard: SliceGuard, end: u64, correlation: u32, arg: u64) {
    if guard.generation != OFF {
        guard.correlation = correlation;
        guard.arg = arg;
        guard.end(end);
        guard.generation = OFF; // the drop has nothing to do
    }
}

/// Emits an event without duration, now.
#[inline]
fn point(kind: Kind, site: SiteId, node: NodeId, correlation: u32, arg: u64) {
    with_local(|local, _| {
        let site = site_word(kind, local.depth.get(), site);
        local.push(Record {
            begin: clock::now(),
            dur: 0,
            site,
            node: node.get(),
            correlation,
            arg,
        });
    });
}

/// Something happened.
#[inline]
pub fn instant(site: SiteId, arg: u64) {
    point(Kind::Instant, site, NodeId::NONE, 0, arg);
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

/// A node allocated memory.
#[inline]
pub fn alloc(site: SiteId, node: NodeId, bytes: u64) {
    point(Kind::Alloc, site, node, 0, bytes);
}

/// A node's memory was freed.
#[inline]
pub fn free(site: SiteId, node: NodeId, bytes: u64) {
    point(Kind::Free, site, node, 0, bytes);
}
