//! Transfers between devices: the stamps of a `_Send` and its `_Recv`, joined by their number.

use super::queue::KeyedQueue;
use std::collections::VecDeque;
use trace_model::{EventKind, NO_NODE, TrackId, Transfer};

/// A stamp of a transfer, as its producer emitted it.
pub(crate) struct Stamp<'a> {
    /// Row of the process; `u32::MAX` for a transfer between processes.
    pub scope: u32,
    pub track: TrackId,
    pub kind: EventKind,
    /// Name of the site: which of the transfer's stamps this is.
    pub name: &'a str,
    pub node: u32,
    /// Number that all stamps of the transfer have.
    pub number: u32,
    /// Step id in the upper half, bytes in the lower.
    pub arg: u64,
    pub time: i64,
}

/// Transfers, in the order in which their first stamps were read.
#[derive(Debug, Default)]
pub(crate) struct Transfers(KeyedQueue<TransferKey, Transfer>);

/// (scope, number, step). Several processes may use the same number, but hardly in the same step.
type TransferKey = (u32, u32, u32);

impl Transfers {
    pub(crate) fn from_rows(rows: Vec<Transfer>) -> Transfers {
        Transfers(KeyedQueue::from_rows(rows, |transfer| Some(transfer_key(transfer))))
    }

    pub(crate) fn rows(&self) -> &VecDeque<Transfer> {
        self.0.rows()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Adds a stamp. Returns the number of transfers that were evicted to retain at most `keep`.
    pub(crate) fn push(&mut self, stamp: &Stamp<'_>, keep: usize) -> u64 {
        let mut transfer = new_transfer(stamp);
        if self.0.get_mut(&transfer_key(&transfer)).is_some_and(|existing| add_stamp(existing, stamp)) {
            return 0;
        }
        // A new transfer; its number may have been used before, since it wraps around after four billion.
        if !add_stamp(&mut transfer, stamp) {
            return 0;
        }
        self.0.push(transfer_key(&transfer), transfer);
        self.drain(keep).len() as u64
    }

    /// Removes and returns all but the last `keep` transfers.
    pub(crate) fn drain(&mut self, keep: usize) -> Vec<Transfer> {
        let n_over = self.rows().len().saturating_sub(keep);
        (0..n_over).filter_map(|_| self.0.pop(transfer_key)).collect()
    }
}

/// Returns a transfer with the identity of the one that `stamp` belongs to, without stamps.
fn new_transfer(stamp: &Stamp<'_>) -> Transfer {
    Transfer {
        scope: stamp.scope,
        number: stamp.number,
        step_id: (stamp.arg >> 32) as u32,
        bytes: stamp.arg as u32,
        sender: NO_NODE,
        receiver: NO_NODE,
        ..Transfer::default()
    }
}

fn transfer_key(transfer: &Transfer) -> TransferKey {
    (transfer.scope, transfer.number, transfer.step_id)
}

/// Sets a stamp of a transfer. Returns false if the transfer has this stamp already, or if no stamp has this name and
/// kind.
fn add_stamp(transfer: &mut Transfer, stamp: &Stamp<'_>) -> bool {
    let (slot, node) = match (stamp.name, stamp.kind) {
        ("enqueue", _) => (&mut transfer.enqueued, &mut transfer.sender),
        ("send", _) => (&mut transfer.sent, &mut transfer.sender),
        ("edge", EventKind::FlowOut) => {
            transfer.from = Some(stamp.track);
            (&mut transfer.left, &mut transfer.sender)
        }
        ("arrive", _) => (&mut transfer.arrived, &mut transfer.receiver),
        ("edge", EventKind::FlowIn) => {
            transfer.to = Some(stamp.track);
            (&mut transfer.unblocked, &mut transfer.receiver)
        }
        _ => return false,
    };
    if slot.is_some() {
        return false;
    }
    (*slot, *node) = (Some(stamp.time), stamp.node);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(name: &str, kind: EventKind, number: u32, time: i64) -> Stamp<'_> {
        let node = if matches!(name, "arrive") || kind == EventKind::FlowIn { 8 } else { 7 };
        Stamp { scope: 0, track: TrackId(0), kind, name, node, number, arg: 5 << 32 | 64, time }
    }

    #[test]
    fn stamps_of_two_processes_are_joined_by_number_and_step() {
        let mut transfers = Transfers::default();
        let step_stamp =
            |name, kind, step: u64, time| Stamp { scope: u32::MAX, arg: step << 32, ..stamp(name, kind, 1, time) };
        // Another process has the same number in another step; one process's stamps all come before the other's.
        for step in [5, 6] {
            transfers.push(&step_stamp("send", EventKind::Instant, step, 10 * step as i64), 10);
        }
        for step in [6, 5] {
            transfers.push(&step_stamp("arrive", EventKind::Instant, step, 10 * step as i64 + 3), 10);
        }
        let found = transfers.rows().iter().map(|t| (t.step_id, t.sent, t.arrived));
        assert_eq!(found.collect::<Vec<_>>(), [(5, Some(50), Some(53)), (6, Some(60), Some(63))]);
    }

    #[test]
    fn stamps_of_one_number_are_one_transfer_in_any_order() {
        let mut transfers = Transfers::default();
        let stamps_of = |number, at| {
            [
                stamp("arrive", EventKind::Instant, number, at + 30),
                stamp("edge", EventKind::FlowIn, number, at + 40),
                stamp("enqueue", EventKind::Instant, number, at),
                stamp("send", EventKind::Instant, number, at + 10),
                stamp("edge", EventKind::FlowOut, number, at + 20),
            ]
        };
        for stamp in stamps_of(1, 0).iter().chain(&stamps_of(2, 5)) {
            transfers.push(stamp, 10);
        }
        assert_eq!(transfers.rows().len(), 2);
        let first = transfers.rows()[0];
        assert_eq!((first.sender, first.receiver, first.step_id, first.bytes), (7, 8, 5, 64));
        let stamps = [first.enqueued, first.sent, first.left, first.arrived, first.unblocked];
        assert_eq!(stamps, [Some(0), Some(10), Some(20), Some(30), Some(40)]);
        // A number that is used again is another transfer; a stamp of an unknown name is ignored.
        transfers.push(&stamp("send", EventKind::Instant, 1, 99), 10);
        transfers.push(&stamp("pigeon", EventKind::Instant, 3, 99), 10);
        assert_eq!((transfers.rows().len(), transfers.rows()[2].sent), (3, Some(99)));
        assert_eq!(transfers.push(&stamp("send", EventKind::Instant, 9, 1), 3), 1, "the oldest is evicted");
        assert_eq!(transfers.rows()[0].number, 2);
    }
}
