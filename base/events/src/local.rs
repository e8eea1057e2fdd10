//! A thread's ring as the hot path writes to it, and the process-wide recording switch.

use crate::names::{NodeId, SiteId};
use crate::record::{Kind, MAX_TEXT, Record, TEXT_BYTES, site_word};
use crate::ring::{Header, RingFile, Slot, protocol};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// [`STATE`] while nothing is recorded.
pub(crate) const OFF: u32 = 0;
/// The generation of a thread that is ending and gets no other ring.
pub(crate) const ENDED: u32 = u32::MAX;

/// The switch: [`OFF`], or the number of the session that records. One load answers both whether to emit and whether
/// the thread's ring belongs to this session.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(OFF);
/// The number of forks since the process that first used the crate: see [`fork_depth`].
pub(crate) static FORK_DEPTH: AtomicU32 = AtomicU32::new(0);
/// Events of threads without a ring, not yet added to the control page.
pub(crate) static N_LOST_EVENTS: AtomicU64 = AtomicU64::new(0);

/// How many forks lie between this process and the one that first used the crate. What was made at another depth is a
/// parent's.
pub(crate) fn fork_depth() -> u32 {
    FORK_DEPTH.load(Ordering::Relaxed)
}

/// A thread's ring as the hot path uses it. It has no destructor, so that access takes one instruction and is possible
/// until the thread's very end; [`crate::rings`] keeps the mapping alive.
pub(crate) struct Local {
    /// The session in which the thread last asked for a ring; [`OFF`] before that, [`ENDED`] at the thread's end.
    pub(crate) generation: Cell<u32>,
    /// The number of open slices.
    pub(crate) depth: Cell<u32>,
    /// The number of slices that were entered, by which the entries of the open-slice table are numbered.
    n_entered: Cell<u64>,
    /// The number of records that were published.
    head: Cell<u64>,
    /// The slot of record `head`. The slots from `next` to `stop` are free and contiguous. Without a ring both are
    /// null.
    next: Cell<*const Slot>,
    stop: Cell<*const Slot>,
    /// Null without a ring.
    header: Cell<*const Header>,
    slots: Cell<*const Slot>,
    capacity: Cell<u64>,
    /// Whether the ring is a flight recorder's, where new records overwrite the oldest.
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
            n_entered: Cell::new(0),
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
        // SAFETY: null, or the header of the ring that `rings::THREAD_RING` keeps mapped; `detach` nulls it before that
        // ends.
        unsafe { self.header.get().as_ref() }
    }

    /// Reads the consumer's position and sets `next` and `stop` to the free slots from `head` on. Where fewer than `n`
    /// slots are free, counts `n` records as dropped and returns false.
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
        let (next, stop) = unsafe { (self.slot(index), self.slots.get().add((index + run) as usize)) };
        self.next.set(next);
        self.stop.set(stop);
        true
    }

    /// The slot with this index.
    ///
    /// # Safety
    /// There is a ring and the index is below its capacity.
    unsafe fn slot(&self, index: u64) -> *const Slot {
        // SAFETY: as the caller promises.
        unsafe { self.slots.get().add(index as usize) }
    }

    /// Publishes the records before `head`.
    #[inline]
    fn publish(&self, head: u64) {
        self.head.set(head);
        // SAFETY: only called when a slot was free, so there is a ring (see `header`).
        protocol::publish(&unsafe { &*self.header.get() }.producer.head, head);
    }

    #[inline]
    pub(crate) fn push(&self, words: [u64; 4]) {
        if self.next.get() == self.stop.get() && !self.refill(1) {
            return;
        }
        // Needed only by a flight recorder's ring; on x86 the fence compiles to no instruction.
        protocol::before_overwriting();
        let next = self.next.get();
        // SAFETY: `next` is before `stop`: a slot of the ring, which `rings::THREAD_RING` keeps mapped. One further is
        // at most `stop`.
        let after = unsafe {
            (*next).store(words);
            next.add(1)
        };
        self.next.set(after);
        self.publish(self.head.get() + 1);
    }

    #[inline]
    pub(crate) fn push_slice(&self, depth: u32, end: u64, slice: SliceFields) {
        let ticks = end.saturating_sub(slice.begin);
        if ticks < u64::from(u32::MAX) {
            self.push(slice.record(Kind::Slice, depth, ticks as u32, slice.arg).words());
        } else {
            self.push_long(depth, ticks, slice);
        }
    }

    /// Emits a slice with the text of its arguments.
    pub(crate) fn push_slice_with_text(&self, text: &str, depth: u32, end: u64, slice: SliceFields) {
        let ticks = end.saturating_sub(slice.begin);
        match u32::try_from(ticks).ok().filter(|dur| *dur != u32::MAX) {
            Some(dur) => self.push_with_text(text, &[slice.record(Kind::Slice, depth, dur, slice.arg)]),
            None => {
                let first = slice.record(Kind::LongSlice, depth, 0, ticks);
                self.push_with_text(text, &[first, slice.record(Kind::Slice, depth, u32::MAX, slice.arg)]);
            }
        }
    }

    /// Emits a slice whose duration does not fit into one record: two records, published together.
    #[cold]
    #[inline(never)]
    fn push_long(&self, depth: u32, ticks: u64, slice: SliceFields) {
        if !self.refill(2) {
            return;
        }
        let (head, mask) = (self.head.get(), self.capacity.get() - 1);
        let first = slice.record(Kind::LongSlice, depth, 0, ticks);
        let second = slice.record(Kind::Slice, depth, u32::MAX, slice.arg);
        protocol::before_overwriting();
        for (at, record) in [(head, first), (head + 1, second)] {
            // SAFETY: there is a ring (it had room), and the mask keeps the index below its capacity.
            unsafe { (*self.slot(at & mask)).store(record.words()) };
        }
        self.publish(head + 2);
        // The records may wrap around the ring's end: the next event calls `refill` to find `next` anew.
        self.next.set(self.stop.get());
    }

    /// Emits a text and the event that it belongs to (two records for a long slice), published together. A text is cut
    /// to [`MAX_TEXT`] bytes and to the capacity of a quarter of the ring.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_with_text(&self, text: &str, event: &[Record]) {
        let len = text.floor_char_boundary(MAX_TEXT.min(self.capacity.get() as usize / 4 * TEXT_BYTES));
        let parts = text.as_bytes()[..len].chunks(TEXT_BYTES);
        let n = (parts.len() + event.len()) as u64;
        if !self.refill(n) {
            return;
        }
        let (head, mask) = (self.head.get(), self.capacity.get() - 1);
        let records = parts.map(Record::from_text).chain(event.iter().copied());
        protocol::before_overwriting();
        for (at, record) in (head..).zip(records) {
            // SAFETY: there is a ring (it had room), and the mask keeps the index below its capacity.
            unsafe { (*self.slot(at & mask)).store(record.words()) };
        }
        self.publish(head + n);
        // As in `push_long`.
        self.next.set(self.stop.get());
    }

    /// Enters a slice: shows it in the open-slice table and returns its depth.
    #[inline]
    pub(crate) fn enter(&self, begin: u64, site: SiteId, node: NodeId) -> u32 {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let number = self.n_entered.get() + 1;
        self.n_entered.set(number);
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.open(number, begin, site.get(), node.get());
        }
        depth
    }

    /// Leaves the slice at `depth`.
    #[inline]
    pub(crate) fn leave(&self, depth: u32) {
        // Counted down, not set to `depth`: guards may be dropped in any order.
        self.depth.set(self.depth.get().saturating_sub(1));
        if let Some(header) = self.header()
            && let Some(entry) = header.open.get(depth as usize)
        {
            entry.close();
        }
    }

    /// Makes the thread write to `ring` in session `generation`; with `None` the thread's events count as lost.
    pub(crate) fn attach(&self, generation: u32, ring: Option<&RingFile>) {
        self.depth.set(0);
        self.head.set(0);
        self.capacity.set(ring.map_or(0, |r| u64::from(r.capacity())));
        self.overwrites.set(ring.is_some_and(RingFile::overwrites));
        self.header.set(ring.map_or(std::ptr::null(), |r| std::ptr::from_ref(r.header())));
        let slots = ring.map_or(std::ptr::null(), RingFile::slots);
        for pointer in [&self.slots, &self.next, &self.stop] {
            pointer.set(slots); // `next` equals `stop`: the first record calls `refill`
        }
        self.generation.set(generation);
    }
}

/// A slice's record without its duration.
#[derive(Clone, Copy)]
pub(crate) struct SliceFields {
    pub(crate) begin: u64,
    pub(crate) site: SiteId,
    pub(crate) node: NodeId,
    pub(crate) correlation: u32,
    pub(crate) arg: u64,
}

impl SliceFields {
    #[inline]
    fn record(&self, kind: Kind, depth: u32, dur: u32, arg: u64) -> Record {
        let Self { begin, site, node, correlation, .. } = *self;
        Record { begin, dur, site: site_word(kind, depth, site), node: node.get(), correlation, arg }
    }
}

/// The calling thread's `Local`. The closure captures nothing, so that this compiles to one address computation: where
/// the closure is large, the compiler does not inline `LocalKey::with`, and passes everything through memory.
#[inline]
pub(crate) fn local() -> *const Local {
    LOCAL.with(std::ptr::from_ref)
}

/// Detaches the thread from its ring; with `is_ending` it gets no other. Must run before the ring's mapping ends.
pub(crate) fn detach(is_ending: bool) {
    LOCAL.with(|local| local.attach(if is_ending { ENDED } else { OFF }, None));
}

/// Runs `f` on the thread's ring if the ring belongs to session `generation`, even if recording is switched off by now.
#[inline(always)]
pub(crate) fn with_session<R>(generation: u32, f: impl FnOnce(&Local) -> R) -> Option<R> {
    // SAFETY: as in `with_local`.
    let local = unsafe { &*local() };
    (local.generation.get() == generation).then(|| f(local))
}

/// Counts an event that reaches no ring.
pub(crate) fn count_lost() {
    N_LOST_EVENTS.fetch_add(1, Ordering::Relaxed);
}
