//! The collectives of each process group over all ranks: a matrix of states, what does not fit, and where it hangs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    matching::{Call, Mismatch, mismatches},
    model::{Entry, Recording, State},
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
    /// Its collectives in order of their numbers. Sends and receives are not among them.
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
        entry: usize,
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
    pub entry: Option<usize>,
}

/// Combines the recordings of all ranks: process groups in the order of their names. Of several recordings with one rank the
/// first counts.
pub fn groups(recordings: &[Recording]) -> Vec<Group> {
    let mut by_rank: BTreeMap<u32, &Recording> = BTreeMap::new();
    for recording in recordings {
        by_rank.entry(recording.rank).or_insert(recording);
    }
    members(&by_rank)
        .into_iter()
        .map(|((name, ranks), is_inferred)| group(&by_rank, name, ranks, is_inferred))
        .collect()
}

/// The groups by name and ranks, with whether the ranks are inferred.
fn members<'a>(by_rank: &BTreeMap<u32, &'a Recording>) -> BTreeMap<(&'a str, Vec<u32>), bool> {
    let mut groups = BTreeMap::new();
    let mut inferred: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (rank, recording) in by_rank {
        for entry in &recording.entries {
            let name = recording.stacks.text(entry.group);
            match recording.groups.get(name).filter(|group| group.ranks.contains(rank)) {
                Some(group) => _ = groups.insert((name, group.ranks.clone()), false),
                None => _ = inferred.entry(name).or_default().insert(*rank),
            }
        }
        // A rank that called nothing in a group is a member nevertheless.
        let configured = recording.groups.iter().filter(|(_, group)| group.ranks.contains(rank));
        // Gloo's recorder has its groups under no name.
        for (name, group) in configured.filter(|(name, _)| !name.is_empty()) {
            groups.insert((name, group.ranks.clone()), false);
        }
    }
    for (name, ranks) in inferred {
        let is_known =
            groups.keys().any(|(known, members)| *known == name && ranks.iter().all(|r| members.contains(r)));
        if !is_known {
            groups.insert((name, ranks.into_iter().collect()), true);
        }
    }
    groups
}

/// The entries of a rank in a group, by number and part.
struct Member<'a> {
    rank: u32,
    recording: Option<&'a Recording>,
    entries: BTreeMap<(u64, u32), usize>,
    /// The number of the latest collective that it called.
    last: i64,
    /// Whether its group of that name has other ranks.
    is_other: bool,
}

impl<'a> Member<'a> {
    fn new(rank: u32, recording: Option<&'a Recording>, name: &str, ranks: &[u32]) -> Self {
        let mut new = Self { rank, recording, entries: BTreeMap::new(), last: -1, is_other: false };
        let Some(recording) = recording else { return new };
        let configured = recording.groups.get(name).filter(|group| group.ranks.contains(&rank));
        new.is_other = configured.is_some_and(|group| group.ranks != ranks);
        if new.is_other {
            return new;
        }
        let own = |entry: &Entry| recording.stacks.text(entry.group) == name;
        let mut parts: BTreeMap<u64, u32> = BTreeMap::new();
        for (index, entry) in recording.entries.iter().enumerate().filter(|(_, entry)| own(entry)) {
            let status = recording.status.get(&entry.pg_id);
            new.last = new.last.max(status.map_or(-1, |status| status.enqueued));
            if !entry.is_p2p {
                let seq = entry.collective_seq_id;
                let part = parts.entry(seq).or_default();
                new.entries.insert((seq, *part), index);
                *part += 1;
                new.last = new.last.max(i64::try_from(seq).unwrap_or(i64::MAX));
            }
        }
        new
    }

    fn cell(&self, key: (u64, u32)) -> Cell {
        let Some(recording) = self.recording else { return Cell::NoRecording };
        match self.entries.get(&key) {
            Some(index) => {
                let state = |index: &usize| {
                    recording.entries.get(*index).map_or(State::Scheduled, |entry| recording.state_of(entry))
                };
                // In a coalesced group only the entry that ends it has a state.
                let last = self.entries.range((key.0, 0)..=(key.0, u32::MAX)).next_back();
                Cell::Recorded {
                    entry: *index,
                    state: state(index).max(last.map_or(State::Scheduled, |(_, last)| state(last))),
                }
            }
            None if i64::try_from(key.0).is_ok_and(|seq| seq <= self.last) => Cell::NotRecorded,
            None => Cell::Absent,
        }
    }

    fn call(&self, key: (u64, u32)) -> Option<Call<'a>> {
        let recording = self.recording?;
        let entry = recording.entries.get(*self.entries.get(&key)?)?;
        Some(Call { rank: self.rank, entry, stacks: &recording.stacks })
    }
}

fn group(by_rank: &BTreeMap<u32, &Recording>, name: &str, ranks: Vec<u32>, is_inferred: bool) -> Group {
    let members: Vec<Member<'_>> =
        ranks.iter().map(|rank| Member::new(*rank, by_rank.get(rank).copied(), name, &ranks)).collect();
    let keys: BTreeSet<(u64, u32)> = members.iter().flat_map(|member| member.entries.keys().copied()).collect();
    let collective = |key: (u64, u32)| {
        let calls: Vec<Call<'_>> = members.iter().filter_map(|member| member.call(key)).collect();
        Collective {
            seq: key.0,
            part: key.1,
            operation: calls.first().map(|call| call.operation().to_owned()).unwrap_or_default(),
            cells: members.iter().map(|member| member.cell(key)).collect(),
            mismatches: mismatches(&calls, ranks.len()),
        }
    };
    let collectives: Vec<Collective> = keys.into_iter().map(collective).collect();
    let description = members.iter().find_map(|member| {
        let recording = member.recording?;
        let of_entry = || member.entries.values().next().and_then(|index| recording.entries.get(*index));
        let configured = recording.groups.get(name).map(|group| group.description.clone());
        configured.or_else(|| of_entry().map(|entry| recording.stacks.text(entry.description).to_owned()))
    });
    let stall = stall(&members, &collectives);
    let missing = members.iter().filter(|member| member.recording.is_none()).map(|member| member.rank).collect();
    let description = description.unwrap_or_default();
    let of_group: Vec<_> =
        members.iter().filter(|member| !member.is_other).filter_map(|member| member.recording).collect();
    let transfers = open_transfers(&of_group, name, &ranks);
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
                stall.absent.push(WaitingRank { rank: member.rank, entry: latest });
            }
        }
    }
    Some(stall)
}
