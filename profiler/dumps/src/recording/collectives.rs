//! The collectives of each process group over all ranks: a matrix of states, what does not fit, and where it hangs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    matching::{Call, Mismatch, mismatches},
    members::{Member, Source, memberships},
    model::{Recording, State},
    transfers::{OpenTransfer, open_transfers},
};

/// A process group over all recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name, which its ranks have in common. Groups with other ranks may have the same name.
    pub name: String,
    /// What the program called it.
    pub description: String,
    /// Its global ranks, in ascending order.
    pub ranks: Vec<u32>,
    /// Whether no recording says which ranks it has: they are those that recorded operations of it.
    pub is_inferred: bool,
    /// The ranks without a recording.
    pub missing: Vec<u32>,
    /// Its collectives in order of their numbers, of millions the latest ones. Sends and receives are not among them.
    pub collectives: Vec<Collective>,
    /// The first collective that is not complete on all ranks that have a recording.
    pub stall: Option<Stall>,
    /// The sends and receives that have not ended.
    pub transfers: Vec<OpenTransfer>,
}

/// A collective over the ranks of its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Collective {
    /// Its number in the group.
    pub seq: u64,
    /// Which of the operations that share this number: 0, or more within a coalesced group.
    pub part: u32,
    /// The operation that the lowest rank called, as "all_reduce".
    pub operation: String,
    /// What each rank of the group has, in the order of the group's ranks.
    pub cells: Vec<Cell>,
    /// The ranks that called something else.
    pub mismatches: Vec<Mismatch>,
}

/// A collective on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// The rank has no recording.
    NoRecording,
    /// The rank has not called it.
    Absent,
    /// The rank is past it, but its recording does not have it: it was overwritten, or left out as complete.
    NotRecorded,
    /// The rank called it.
    Recorded {
        /// Its index among the entries of the rank's recording.
        entry: u32,
        /// How far it is.
        state: State,
    },
}

/// Where a group hangs, or where it was when the dumps were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// The index of the collective in the group.
    pub collective: usize,
    /// The ranks that called it and wait in it.
    pub waiting: Vec<WaitingRank>,
    /// The ranks that have not called it, with the latest operation of any group that they called: its stack is the last
    /// that is known of them.
    pub absent: Vec<WaitingRank>,
}

/// A rank with an entry of its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRank {
    /// The global rank.
    pub rank: u32,
    /// The index of the entry. `None` where the recording has none.
    pub entry: Option<u32>,
}

/// So many cells of a group at most: of more collectives the latest ones remain.
const MAX_CELLS: usize = 1 << 26;

/// Combines the recordings of all ranks: process groups in the order of their names. Of several recordings with one rank the
/// first counts.
pub fn groups(recordings: &[Recording]) -> Vec<Group> {
    let mut by_rank: BTreeMap<u32, Source<'_>> = BTreeMap::new();
    for recording in recordings {
        by_rank.entry(recording.rank).or_insert_with(|| Source::new(recording));
    }
    let all = memberships(&by_rank).into_iter();
    all.map(|((name, ranks), is_inferred)| group(&by_rank, name, ranks, is_inferred)).collect()
}

fn cell(member: &Member<'_>, key: (u64, u32)) -> Cell {
    let Some(recording) = member.recording else { return Cell::NoRecording };
    match member.entries.get(&key) {
        Some(index) => {
            let state = |index: &u32| {
                recording.entries.get(*index as usize).map_or(State::Scheduled, |entry| recording.state_of(entry))
            };
            // In a coalesced group only the entry that ends it has a state.
            let end = member.entries.range((key.0, 0)..=(key.0, u32::MAX)).next_back();
            let state = state(index).max(end.map_or(State::Scheduled, |(_, end)| state(end)));
            Cell::Recorded { entry: *index, state }
        }
        None if i64::try_from(key.0).is_ok_and(|seq| seq <= member.last) => Cell::NotRecorded,
        None => Cell::Absent,
    }
}

fn call<'a>(member: &Member<'a>, key: (u64, u32)) -> Option<Call<'a>> {
    let recording = member.recording?;
    let entry = recording.entries.get(*member.entries.get(&key)? as usize)?;
    Some(Call { rank: member.rank, entry, stacks: &recording.stacks })
}

fn group(by_rank: &BTreeMap<u32, Source<'_>>, name: &str, ranks: Vec<u32>, is_inferred: bool) -> Group {
    let members: Vec<Member<'_>> =
        ranks.iter().map(|rank| Member::new(*rank, by_rank.get(rank), name, &ranks)).collect();
    let mut keys: BTreeSet<(u64, u32)> = members.iter().flat_map(|member| member.entries.keys().copied()).collect();
    while keys.len() > MAX_CELLS / ranks.len().max(1) {
        keys.pop_first();
    }
    let collective = |key: (u64, u32)| {
        let calls: Vec<Call<'_>> = members.iter().filter_map(|member| call(member, key)).collect();
        Collective {
            seq: key.0,
            part: key.1,
            operation: calls.first().map(|call| call.operation().to_owned()).unwrap_or_default(),
            cells: members.iter().map(|member| cell(member, key)).collect(),
            mismatches: mismatches(&calls, ranks.len()),
        }
    };
    let collectives: Vec<Collective> = keys.into_iter().map(collective).collect();
    let description = members.iter().find_map(|member| {
        let recording = member.recording?;
        let of_entry = || recording.entries.get(*member.all.first()? as usize);
        let configured = recording.groups.get(name).map(|group| group.description.clone());
        configured.or_else(|| of_entry().map(|entry| recording.stacks.text(entry.description).to_owned()))
    });
    let stall = stall(&members, &collectives);
    let missing = members.iter().filter(|member| member.recording.is_none()).map(|member| member.rank).collect();
    let description = description.unwrap_or_default();
    let transfers = open_transfers(&members, &ranks);
    Group { name: name.to_owned(), description, ranks, is_inferred, missing, collectives, stall, transfers }
}

fn stall(members: &[Member<'_>], collectives: &[Collective]) -> Option<Stall> {
    let is_open = |cell: &Cell| match cell {
        Cell::Absent => true,
        Cell::Recorded { state, .. } => *state != State::Completed,
        Cell::NoRecording | Cell::NotRecorded => false,
    };
    let at = collectives.iter().position(|collective| collective.cells.iter().any(is_open))?;
    let mut stall = Stall { collective: at, waiting: Vec::new(), absent: Vec::new() };
    for (member, cell) in members.iter().zip(&collectives[at].cells).filter(|(_, cell)| is_open(cell)) {
        match cell {
            Cell::Recorded { entry, .. } => stall.waiting.push(WaitingRank { rank: member.rank, entry: Some(*entry) }),
            _ => {
                let latest = member.recording.and_then(|recording| recording.entries.len().checked_sub(1));
                let latest = latest.map(|latest| latest as u32);
                stall.absent.push(WaitingRank { rank: member.rank, entry: latest });
            }
        }
    }
    Some(stall)
}
