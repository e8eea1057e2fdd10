//! Dumps of flight recorders: which rank has not called the collective in which the others wait, and what does not fit.

use serde_json::{Value, json};
use torch_dumps::{Cell, Collective, Group, MismatchKind, Recording, Stall, State, WaitingRank, groups};

use super::snapshot::place;
use crate::out;

const SCHEMA_VERSION: u32 = 1;
/// The most collectives of which mismatches are printed.
const MAX_MISMATCHES: usize = 20;
/// The most ranks that a line lists.
const MAX_RANKS: usize = 16;

/// Prints what the dumps of a job say.
pub fn explain(recordings: &[Recording], is_json: bool) {
    let groups = groups(recordings);
    if is_json {
        let groups: Vec<Value> = groups.iter().map(|group| group_json(recordings, group)).collect();
        let ranks: Vec<u32> = recordings.iter().map(|recording| recording.rank).collect();
        out::object(SCHEMA_VERSION, json!({ "ranks": ranks, "groups": groups }));
        return;
    }
    if groups.is_empty() {
        say!("no collective was recorded");
    }
    groups.iter().for_each(|group| print_group(recordings, group));
}

fn print_group(recordings: &[Recording], group: &Group) {
    let name = if group.name.is_empty() { "(without a name)" } else { &group.name };
    let about = if group.description.is_empty() { String::new() } else { format!(", {}", group.description) };
    say!(
        "group {name}{about}: {}, {}",
        text::count_of(group.ranks.len() as u64, "rank"),
        text::count_of(group.collectives.len() as u64, "collective")
    );
    if !group.missing.is_empty() {
        say!("  there is no dump of {}: a process that has ended, or did not dump", ranks(&group.missing));
    }
    match &group.stall {
        Some(stall) => print_stall(recordings, group, stall),
        None => say!("  every collective is complete on the ranks with a dump"),
    }
    let with_mismatches: Vec<&Collective> = group.collectives.iter().filter(|c| !c.mismatches.is_empty()).collect();
    for collective in with_mismatches.iter().take(MAX_MISMATCHES) {
        for mismatch in &collective.mismatches {
            let who = mismatch.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
            let kind = kind_name(mismatch.kind);
            let (found, expected) = (&mismatch.found, &mismatch.expected);
            say!("  {}: {who} has the {kind} {found}, others {expected}", called(collective));
        }
    }
    if with_mismatches.len() > MAX_MISMATCHES {
        say!("  and {} more collectives that do not fit; --json has all", with_mismatches.len() - MAX_MISMATCHES);
    }
    for transfer in &group.transfers {
        let (what, other) = if transfer.is_send { ("sends to", "received") } else { ("receives from", "sent") };
        let peer = transfer.peer.map_or_else(|| "an unknown rank".to_owned(), |peer| format!("rank {peer}"));
        let wait = if transfer.has_counterpart { String::new() } else { format!(", which has not {other}") };
        let at = place_of(recordings, WaitingRank { rank: transfer.rank, entry: Some(transfer.entry) });
        say!("  rank {} {what} {peer}{wait}: {at}", transfer.rank);
    }
}

fn print_stall(recordings: &[Recording], group: &Group, stall: &Stall) {
    let Some(collective) = group.collectives.get(stall.collective) else { return };
    let waiting: Vec<u32> = stall.waiting.iter().map(|waiting| waiting.rank).collect();
    say!("  {} is not complete: {} called it", called(collective), ranks(&waiting));
    for absent in stall.absent.iter().take(MAX_RANKS) {
        say!("  rank {} has not called it; its last call: {}", absent.rank, place_of(recordings, *absent));
    }
    if stall.absent.len() > MAX_RANKS {
        say!("  and {} more ranks have not; --json has all", stall.absent.len() - MAX_RANKS);
    }
    if let Some(first) = stall.waiting.first() {
        say!("  rank {} waits at {}", first.rank, place_of(recordings, *first));
    }
}

fn called(collective: &Collective) -> String {
    let part = if collective.part > 0 { format!(", part {}", collective.part) } else { String::new() };
    format!("{} {}{part}", collective.operation, collective.seq)
}

fn kind_name(kind: MismatchKind) -> &'static str {
    match kind {
        MismatchKind::Operation => "operation",
        MismatchKind::Sizes => "sizes",
        MismatchKind::Dtypes => "types",
    }
}

/// `ranks 0-3, 5, 9`, shortened.
fn ranks(ranks: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let n_more = parts.len().saturating_sub(MAX_RANKS);
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let mut all: Vec<String> = parts.iter().take(MAX_RANKS).map(text).collect();
    if n_more > 0 {
        all.push(format!("{n_more} more ranges"));
    }
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, all.join(", "))
}

/// What a rank called, and where.
fn place_of(recordings: &[Recording], at: WaitingRank) -> String {
    let recording = recordings.iter().find(|recording| recording.rank == at.rank);
    let entry = recording.zip(at.entry).and_then(|(r, entry)| Some((r, r.entries.get(entry as usize)?)));
    let Some((recording, entry)) = entry else { return "nothing was recorded".to_owned() };
    let name = recording.stacks.text(entry.profiling_name);
    format!("{name} at {}", place(&recording.stacks, entry.stack))
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Scheduled => "scheduled",
        State::Started => "started",
        State::Completed => "completed",
    }
}

fn group_json(recordings: &[Recording], group: &Group) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::NoRecording => Value::Null,
        Cell::Absent => "absent".into(),
        Cell::NotRecorded => "not recorded".into(),
        Cell::Recorded { state, .. } => state_name(*state).into(),
    };
    let collective = |c: &Collective| {
        let mismatches = c.mismatches.iter().map(|mismatch| {
            json!({
                "rank": mismatch.rank, "kind": kind_name(mismatch.kind), "expected": mismatch.expected,
                "found": mismatch.found,
            })
        });
        json!({
            "seq": c.seq, "part": c.part, "operation": c.operation,
            "states": c.cells.iter().map(cell).collect::<Vec<_>>(), "mismatches": mismatches.collect::<Vec<_>>(),
        })
    };
    let at = |waiting: &WaitingRank| json!({ "rank": waiting.rank, "call": place_of(recordings, *waiting) });
    let stall = group.stall.as_ref().map(|stall| {
        json!({
            "collective": stall.collective, "waiting": stall.waiting.iter().map(at).collect::<Vec<_>>(),
            "absent": stall.absent.iter().map(at).collect::<Vec<_>>(),
        })
    });
    let transfers = group.transfers.iter().map(|transfer| {
        json!({
            "rank": transfer.rank, "peer": transfer.peer, "send": transfer.is_send, "state": state_name(transfer.state),
            "has_counterpart": transfer.has_counterpart,
        })
    });
    json!({
        "name": group.name, "description": group.description, "ranks": group.ranks, "missing": group.missing,
        "ranks_inferred": group.is_inferred, "collectives": group.collectives.iter().map(collective).collect::<Vec<_>>(),
        "stall": stall, "transfers": transfers.collect::<Vec<_>>(),
    })
}
