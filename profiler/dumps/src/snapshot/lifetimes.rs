//! From when to when each allocation was live.

use rustc_hash::FxHashMap;

use super::model::{Action, BlockState, Device};
use crate::stacks::StackId;

/// An allocation, with the events at which it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Its first byte.
    pub address: u64,
    /// In bytes, as the program asked for them.
    pub size: u64,
    /// Where it was allocated. For one that was live before the trace begins this is known if it is live at its end; else it
    /// is what its first event has, which may be where it was freed.
    pub stack: StackId,
    /// The event that allocated it. `None` where it was live before the trace begins.
    pub begin: Option<u32>,
    /// The event at which the program freed it.
    pub requested: Option<u32>,
    /// The event from which on it can be allocated again. `None` where it is live at the end of the trace.
    pub end: Option<u32>,
}

/// The allocations of a device: first those that were live before its trace begins, then the others in order of their
/// beginning. In one pass over the events.
pub fn lifetimes(device: &Device) -> Vec<Allocation> {
    let mut tracker = Tracker::default();
    for (number, event) in device.events.iter().enumerate() {
        // Their number is that of a file's values.
        let number = number as u32;
        let new = Allocation {
            address: event.address,
            size: event.size,
            stack: event.stack,
            begin: None,
            requested: None,
            end: None,
        };
        match event.action {
            Action::Alloc => tracker.begin(Allocation { begin: Some(number), ..new }, number),
            Action::FreeRequested => tracker.known(new).requested = Some(number),
            Action::FreeCompleted => {
                tracker.known(new).end = Some(number);
                tracker.live.remove(&event.address);
            }
            _ => {}
        }
    }
    for block in device.blocks.iter().filter(|block| block.state != BlockState::Free) {
        let (address, size, stack) = (block.address, block.requested, block.stack);
        tracker.known(Allocation { address, size, stack, begin: None, requested: None, end: None });
    }
    let mut all = tracker.before;
    all.append(&mut tracker.during);
    all
}

#[derive(Default)]
struct Tracker {
    before: Vec<Allocation>,
    during: Vec<Allocation>,
    /// By address: whether it began during the trace, and its index.
    live: FxHashMap<u64, (bool, usize)>,
}

impl Tracker {
    fn begin(&mut self, new: Allocation, number: u32) {
        let index = self.during.len();
        if let Some((is_during, old)) = self.live.insert(new.address, (true, index)) {
            // The event that freed it was not recorded.
            let old = if is_during { self.during.get_mut(old) } else { self.before.get_mut(old) };
            old.into_iter().for_each(|old| old.end = Some(number));
        }
        self.during.push(new);
    }

    /// The live allocation with the address of `new`; if there is none, `new` was live before the trace begins.
    fn known(&mut self, new: Allocation) -> &mut Allocation {
        let before = &mut self.before;
        let (is_during, index) = *self.live.entry(new.address).or_insert_with(|| {
            before.push(new);
            (false, before.len() - 1)
        });
        if is_during { &mut self.during[index] } else { &mut self.before[index] }
    }
}
