//! Sends and receives that have not ended, and whether the other side has called its part.

use std::collections::BTreeMap;

use super::{
    members::Member,
    model::{Entry, State},
    operation::{Transfer, operation, transfer},
};

/// A send or receive that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransfer {
    /// The global rank that called it.
    pub rank: u32,
    /// Its index among the entries of the rank's recording.
    pub entry: u32,
    /// Whether it is a send.
    pub is_send: bool,
    /// The global rank on the other side. `None` for a receive from any rank.
    pub peer: Option<u32>,
    /// How far it is.
    pub state: State,
    /// Whether the other side has an open counterpart: if not, it has not called it, has ended it, or has no recording. Always
    /// `false` where the peer is unknown.
    pub has_counterpart: bool,
}

/// The open sends and receives of a process group, by rank in the order of their calls.
pub(super) fn open_transfers(members: &[Member<'_>], ranks: &[u32]) -> Vec<OpenTransfer> {
    let mut open = Vec::new();
    for member in members {
        let Some(recording) = member.recording else { continue };
        let entry = |index: &u32| Some((*index, recording.entries.get(*index as usize)?));
        let own: Vec<(u32, &Entry)> = member.all.iter().filter_map(entry).filter(|(_, entry)| entry.is_p2p).collect();
        // In a coalesced group of sends and receives only the entry that ends it has a state.
        let is_end = |entry: &Entry| operation(recording.stacks.text(entry.profiling_name)) == "coalesced";
        let ends = own.iter().filter(|(_, entry)| is_end(entry));
        let ends: BTreeMap<u64, State> = ends.map(|(_, entry)| (entry.p2p_seq_id, recording.state_of(entry))).collect();
        for (index, entry) in own {
            let Some(transfer) = transfer(recording.stacks.text(entry.profiling_name)) else { continue };
            let state = ends.get(&entry.p2p_seq_id).copied().unwrap_or(State::Scheduled).max(recording.state_of(entry));
            let (is_send, peer) = match transfer {
                Transfer::Send(peer) => (true, Some(peer)),
                Transfer::Receive(peer) => (false, peer),
            };
            let peer = peer.and_then(|peer| ranks.get(peer).copied());
            if state != State::Completed {
                open.push(OpenTransfer {
                    rank: recording.rank,
                    entry: index,
                    is_send,
                    peer,
                    state,
                    has_counterpart: false,
                });
            }
        }
    }
    pair(&mut open);
    open
}

/// Marks those that have a counterpart: between two ranks sends and receives match in the order of their calls.
fn pair(open: &mut [OpenTransfer]) {
    // How many sends and receives there are from one rank to another.
    let mut counts: BTreeMap<(u32, u32), [usize; 2]> = BTreeMap::new();
    let route = |one: &OpenTransfer| {
        let peer = one.peer?;
        Some(if one.is_send { (one.rank, peer) } else { (peer, one.rank) })
    };
    for one in open.iter() {
        if let Some(route) = route(one) {
            counts.entry(route).or_default()[usize::from(one.is_send)] += 1;
        }
    }
    let mut seen: BTreeMap<(u32, u32, bool), usize> = BTreeMap::new();
    for one in open.iter_mut() {
        let Some((from, to)) = route(one) else { continue };
        let n_seen = seen.entry((from, to, one.is_send)).or_default();
        let n_others = counts.get(&(from, to)).map_or(0, |counts| counts[usize::from(!one.is_send)]);
        one.has_counterpart = *n_seen < n_others;
        *n_seen += 1;
    }
}
