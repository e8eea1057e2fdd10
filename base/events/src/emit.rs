//! Emitting events: the hot path.
//!
//! While recording is off each call is one relaxed load and a predictable branch. While it is on, an event is a 32-byte
//! store into the thread's own ring and a release store that publishes it: no lock, no allocation, no system call; the
//! thread's first event makes its ring.
//!
//! Depth: slices that are open on the thread ([`fn@slice`], [`open`]) are counted; an event carries how many were open around
//! it. Up to 64 of them are visible to other processes while they run.

use crate::clock;
use crate::names::{NodeId, SiteId};
use crate::record::{Kind, MAX_TEXT, Record, TEXT_BYTES, site_word};
use crate::ring::{Header, RingFile, Slot, protocol};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::sync::OnceLock;
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
    /// How many slices were entered: numbers the entries of the open-slice table.
    entered: Cell<u64>,
    /// Records published.
    head: Cell<u64>,
    /// The place of record `head`; places up to `stop` are free and lie in one run. Without a ring both are null.
    next: Cell<*const Slot>,
    stop: Cell<*const Slot>,
    /// Null without a ring.
    header: Cell<*const Header>,
    slots: Cell<*const Slot>,
    capacity: Cell<u64>,
    /// A flight recorder: the oldest records make room.
    overwrites: Cell<bool>,
}

thread_local! {
    static LOCAL: Local = const { Local::detached() };
}

impl Local {
    pub(crate) const fn detached() -> Local {
        Local {
            generation: Cell::new(OFF),
            depth: Cell::new(0),
            entered: Cell::new(0),
            head: Cell::new(0),
            next: Cell::new(std::ptr::null()),
            stop: Cell::new(std::ptr::null()),
            header: Cell::new(std::ptr::null()),
            slots: Cell::new(std::ptr::null()),
            capacity: Cell::new(0),
            overwrites: Cell::new(false),
        }
    }

    /// The header of the thread's ring.
    #[inline]
    fn header(&self) -> Option<&Header> {
        // SAFETY: null, or the header of the ring that `session::OWNED` keeps mapped; `detach` nulls it before that ends.
        unsafe { self.header.get().as_ref() }
    }

    /// Looks how far the consumer got, and sets the run of free places that begins at `head`. False, and `n` records
    /// counted as dropped, when fewer than `n` places are free.
    #[cold]
    #[inline(never)]
    fn refill(&self, n: u64) -> bool {
        let Some(header) = self.header() else {
            count_lost();
            return false;
        };
        let (head, capacity) = (self.head.get(), self.capacity.get());
        let overwrites = self.overwrites.get();
        let free = if overwrites { capacity } else { protocol::free(head, &header.consumer.tail, capacity) };
        if free < n {
            let dropped = header.producer.dropped.load(Ordering::Relaxed);
            header.producer.dropped.store(dropped + n, Ordering::Relaxed);
            return false;
        }
        let index = head & (capacity - 1);
        let run = free.min(capacity - index);
        // SAFETY: `index + run` is at most the capacity: inside the ring's slots, or one past their end.
        let (next, stop) = unsafe { (self.place(index), self.slots.get().add((index + run) as usize)) };
        self.next.set(next);
        self.stop.set(stop);
        true
    }

    /// The place with this index.
    ///
    /// # Safety
    /// There is a ring and the index is below its capacity.
    unsafe fn place(&self, index: u64) -> *const Slot {
        // SAFETY: as the caller promises.
        unsafe { self.slots.get().add(index as usize) }
    }

    /// Publishes the records before `head`.
    #[inline]
    fn publish(&self, head: u64) {
        self.head.set(head);
        // SAFETY: only called when a place was free, so there is a ring (see `header`).
        protocol::publish(&unsafe { &*self.header.get() }.producer.head, head);
    }

    #[inline]
    pub(crate) fn push(&self, words: [u64; 4]) {
        if self.next.get() == self.stop.get() && !self.refill(1) {
            return;
        }
        // For a ring that is written over; on x86 it is no instruction.
        protocol::before_overwriting();
        let next = self.next.get();
        // SAFETY: `next` is before `stop`: a place of the ring, which `session::OWNED` keeps mapped. One further is at most `stop`.
        let after = unsafe {
            (*next).store(words);
            next.add(1)
        };
        self.next.set(after);
        self.publish(self.head.get() + 1);
    }

    #[inline]
    pub(crate) fn push_slice(&self, depth: u32, end: u64, slice: Slice) {
        let ticks = end.saturating_sub(slice.begin);
        if ticks < u64::from(u32::MAX) {
            self.push(slice.record(Kind::Slice, depth, ticks as u32, slice.arg).words());
        } else {
            self.push_long(depth, ticks, slice);
        }
    }

    /// A slice with its arguments' text.
    pub(crate) fn push_slice_with_text(&self, text: &str, depth: u32, end: u64, slice: Slice) {
        let ticks = end.saturating_sub(slice.begin);
        match u32::try_from(ticks).ok().filter(|dur| *dur != u32::MAX) {
            Some(dur) => self.push_with_text(text, &[slice.record(Kind::Slice, depth, dur, slice.arg)]),
            None => {
                let first = slice.record(Kind::LongSlice, depth, 0, ticks);
                self.push_with_text(text, &[first, slice.record(Kind::Slice, depth, u32::MAX, slice.arg)]);
            }
        }
    }

    /// Two records, published at once.
    #[cold]
    #[inline(never)]
    fn push_long(&self, depth: u32, ticks: u64, slice: Slice) {
        if !self.refill(2) {
            return;
        }
        let (head, mask) = (self.head.get(), self.capacity.get() - 1);
        let first = slice.record(Kind::LongSlice, depth, 0, ticks);
        let second = slice.record(Kind::Slice, depth, u32::MAX, slice.arg);
        protocol::before_overwriting();
        for (at, record) in [(head, first), (head + 1, second)] {
            // SAFETY: there is a ring (it had room), and the mask keeps the index below its capacity.
            unsafe { (*self.place(at & mask)).store(record.words()) };
        }
        self.publish(head + 2);
        // The two may lie on both ends of the ring: let the next record look again.
        self.next.set(self.stop.get());
    }

    /// A text and the event whose it is (two records where it is long), published at once. A text is cut to what a quarter
    /// of the ring holds.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_with_text(&self, text: &str, event: &[Record]) {
        let fits = text.floor_char_boundary(MAX_TEXT.min(self.capacity.get() as usize / 4 * TEXT_BYTES));
        let parts = text.as_bytes()[..fits].chunks(TEXT_BYTES);
        let n = (parts.len() + event.len()) as u64;
        if !self.refill(n) {
            return;
        }
        let (head, mask) = (self.head.get(), self.capacity.get() - 1);
        let records = parts.map(Record::of_text).chain(event.iter().copied());
        protocol::before_overwriting();
        for (at, record) in (head..).zip(records) {
            // SAFETY: there is a ring (it had room), and the mask keeps the index below its capacity.
            unsafe { (*self.place(at & mask)).store(record.words()) };
        }
        self.publish(head + n);
        // They may lie on both ends of the ring: let the next record look again.
        self.next.set(self.stop.get());
    }

    /// Enters a slice: shows it as running, returns its depth.
    #[inline]
    fn enter(&self, begin: u64, site: SiteId, node: NodeId) -> u32 {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let number = self.entered.get() + 1;
        self.entered.set(number);
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.open(number, begin, site.get(), node.get());
        }
        depth
    }

    /// Leaves the slice at `depth`.
    #[inline]
    fn leave(&self, depth: u32) {
        // Not `depth` itself: guards may be dropped in any order.
        self.depth.set(self.depth.get().saturating_sub(1));
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.close();
        }
    }

    /// Makes the thread write to `ring` (or, with `None`, count its events as lost) for session `generation`.
    pub(crate) fn attach(&self, generation: u32, ring: Option<&RingFile>) {
        self.depth.set(0);
        self.head.set(0);
        self.capacity.set(ring.map_or(0, |r| u64::from(r.capacity())));
        self.overwrites.set(ring.is_some_and(RingFile::overwrites));
        self.header.set(ring.map_or(std::ptr::null(), |r| std::ptr::from_ref(r.header())));
        let slots = ring.map_or(std::ptr::null(), RingFile::slots);
        for place in [&self.slots, &self.next, &self.stop] {
            place.set(slots); // no free run: the first record looks for one
        }
        self.generation.set(generation);
    }
}

/// What a slice's record says, without its duration.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) begin: u64,
    pub(crate) site: SiteId,
    pub(crate) node: NodeId,
    pub(crate) correlation: u32,
    pub(crate) arg: u64,
}

impl Slice {
    #[inline]
    fn record(&self, kind: Kind, depth: u32, dur: u32, arg: u64) -> Record {
        let Self { begin, site, node, correlation, .. } = *self;
        Record { begin, dur, site: site_word(kind, depth, site), node: node.get(), correlation, arg }
    }
}

/// The thread's ring. The closure captures nothing, so that this is one address computation everywhere: the compiler keeps
/// `LocalKey::with` as a call when its closure is large, and passes everything through memory.
#[inline]
fn local() -> *const Local {
    LOCAL.with(std::ptr::from_ref)
}

/// Lets go of the thread's ring; `ended` forbids another one. Must run before the ring's mapping ends.
pub(crate) fn detach(ended: bool) {
    LOCAL.with(|local| local.attach(if ended { ENDED } else { OFF }, None));
}

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

/// Runs `f` on the thread's ring when it still belongs to session `generation`, even if recording was switched off since.
#[inline(always)]
pub(crate) fn with_session<R>(generation: u32, f: impl FnOnce(&Local) -> R) -> Option<R> {
    // SAFETY: as in `with_local`.
    let local = unsafe { &*local() };
    (local.generation.get() == generation).then(|| f(local))
}

/// Counts an event that reaches no ring.
pub(crate) fn count_lost() {
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// The thread's first event in a session.
#[cold]
#[inline(never)]
fn begin(local: &Local, state: u32) -> bool {
    if local.generation.get() == ENDED {
        count_lost();
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
        local.push_slice(local.depth.get(), end, Slice { begin, site, node, correlation, arg });
    });
}

/// A slice that runs. Dropping it emits the slice, ending now; [`emit_close`] gives the end, correlation and argument.
///
/// Belongs to its thread. Guards may end in any order, but only properly nested ones have meaningful depths.
#[must_use = "the slice ends when the guard is dropped"]
pub struct SliceGuard {
    slice: Slice,
    /// [`OFF`] when recording was off at the begin: nothing will be emitted.
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

/// Bytes in use as memory events carry them: in 64 bytes and one more, so that 0 stands for "not told". Saturates at 256 GiB.
#[inline]
fn in_use_word(in_use: u64) -> u32 {
    u32::try_from(in_use / 64 + 1).unwrap_or(u32::MAX)
}
