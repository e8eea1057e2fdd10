//! What workers have to themselves, and the slots that they share.

use std::cell::UnsafeCell;

use crossbeam_deque::{Steal, Stealer, Worker};

use crate::compile::plan::Plan;
use crate::kernel::Slot;

/// What one worker has to itself. Only thread `i` of the pool locks seat `i`, so nobody ever waits for the lock.
pub(crate) struct Seat<T> {
    /// Ready nodes that only this worker runs: cheap ones. The last in runs first, while its inputs are in the cache.
    pub local: Vec<T>,
    /// Ready nodes that others may take.
    pub shared: Worker<T>,
    /// Outputs of the node that runs.
    pub outputs: Vec<Slot>,
}

impl<T> Seat<T> {
    pub fn new(plan: &Plan) -> Seat<T> {
        Seat {
            local: Vec::new(),
            shared: Worker::new_lifo(),
            outputs: std::iter::repeat_with(|| None).take(plan.max_outputs).collect(),
        }
    }

    /// Drops what a step that ended early left behind.
    pub fn clear(&mut self) {
        self.local.clear();
        while self.shared.pop().is_some() {}
        self.outputs.fill_with(|| None);
    }
}

/// A ready node of another worker than `worker`.
pub(crate) fn steal<T>(stealers: &[Stealer<T>], worker: usize) -> Option<T> {
    let n = stealers.len();
    for i in 1..n {
        let victim = &stealers[(worker + i) % n];
        loop {
            match victim.steal() {
                Steal::Success(ready) => return Some(ready),
                Steal::Empty => break,
                Steal::Retry => {}
            }
        }
    }
    None
}

/// The input slots of all nodes.
pub(crate) struct Slots(Box<[UnsafeCell<Slot>]>);

// SAFETY: a slot is written by its one producer before the consumer's pending count falls (release), and used by the
// consumer after it fell to zero (acquire); see the contracts of `put` and `inputs`.
unsafe impl Sync for Slots {}

impl Slots {
    pub fn new(n: usize) -> Slots {
        Slots(std::iter::repeat_with(|| UnsafeCell::new(None)).take(n).collect())
    }

    /// Puts a value into a slot.
    ///
    /// # Safety
    /// The caller runs the slot's producer (or feeds it before the step), and has not yet counted the arrival at
    /// the slot's consumer.
    #[inline]
    pub unsafe fn put(&self, slot: u32, value: Slot) {
        // SAFETY: by the contract nobody else has this slot.
        unsafe { *self.0[slot as usize].get() = value };
    }

    /// The slots of a node's inputs.
    ///
    /// # Safety
    /// The caller runs the node whose slots these are, which all arrivals made ready, or no thread runs nodes.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the contract gives the caller sole access")]
    pub unsafe fn inputs(&self, first: usize, n: usize) -> &mut [Slot] {
        let cells = &self.0[first..first + n];
        // SAFETY: `UnsafeCell<Slot>` has the layout of `Slot`; by the contract nobody else has these.
        unsafe { std::slice::from_raw_parts_mut(cells.as_ptr().cast_mut().cast::<Slot>(), n) }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        for slot in &mut self.0 {
            *slot.get_mut() = None;
        }
    }
}
