//! The input slots that a step's workers share.

use std::cell::UnsafeCell;

use engine_core::kernel::Slot;

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
