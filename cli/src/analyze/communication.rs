//! Collectives and the ranks that take part in them, as `analyze` prints them.

use serde_json::{Value, json};
use trace_analysis::communication::{
    CollectiveRow, Communication, Doing, ExchangeRow, Participant, ProcessGroup, RankRow,
};
use trace_model::Process;
use trace_store::Store;

use super::figures::merged;
use super::objects::{process, slice};
use super::roofline::rate;
use text::{Table, truncated};

/// The most rows of the printed table of collectives, and of ranks.
const MAX_ROWS: usize = 16;
/// The most executions whose exchanges are listed as JSON, those to which the last rank came latest; the sums include all.
const MAX_PARTICIPANTS: usize = 20_000;

pub fn to_json(store: &Store, communication: &Communication) -> Value {
    let mut latest: Vec<&ExchangeRow> = communication.exchanges.iter().collect();
    latest.sort_by_key(|exchange| (std::cmp::Reverse(exchange.late_ns()), exchange.collective));
    let mut n_participants = 0;
    let listed = latest.into_iter().take_while(|exchange| {
        n_participants += exchange.participants.len();
        n_participants <= MAX_PARTICIPANTS
    });
    json!({
        "collectives": communication.collectives.iter().map(|row| collective(communication, row)).collect::<Vec<_>>(),
        "ranks": communication.ranks.iter().map(|row| rank(store, row)).collect::<Vec<_>>(),
        "exchanges": listed.map(|row| exchange(store, row)).collect::<Vec<_>>(),
        "exchanges_total": communication.exchanges.len(),
    })
}

fn collective(communication: &Communication, row: &CollectiveRow) -> Value {
    let group = row.group.and_then(|group| communication.groups.get(group)).map(group_json);
    json!({
        "name": row.name, "kind": row.kind.name(), "group": group, "bytes": row.bytes,
        "dtype": Some(&row.dtype).filter(|dtype| !dtype.is_empty()), "count": row.count, "exchanges": row.exchanges,
        "total_ns": row.total_ns, "mean_ns": row.mean_ns, "p50_ns": row.p50_ns, "max_ns": row.max_ns,
        "waiting_ns": row.waiting_ns, "exposed_ns": row.exposed_ns,
        "algorithm_bytes_per_s": row.algorithm_bytes_per_s, "bus_bytes_per_s": row.bus_bytes_per_s,
    })
}

fn group_json(group: &ProcessGroup) -> Value {
    json!({ "name": group.name, "description": group.description, "size": group.size, "ranks": group.ranks })
}

fn rank(store: &Store, row: &RankRow) -> Value {
    let doings = |doings: &[Doing]| -> Vec<Value> {
        let doing = |doing: &Doing| {
            let slice = doing.slice.map(|id| slice(store, id));
            json!({ "text": doing.text, "ns": doing.ns, "others_ns": doing.other_ns, "slice": slice })
        };
        doings.iter().map(doing).collect()
    };
    let fields = json!({
        "count": row.count, "total_ns": row.total_ns, "waiting_ns": row.waiting_ns, "exposed_ns": row.exposed_ns,
        "overlapped_ns": row.overlapped_ns, "exchanges": row.exchanges, "times_last": row.times_last,
        "late_ns": row.late_ns, "own_late_ns": row.own_late_ns, "waited_ns": row.waited_ns,
        "reasons": doings(&row.reasons), "unlike_others": doings(&row.unlike_others),
    });
    merged(process(store, row.process), fields)
}

fn exchange(store: &Store, row: &ExchangeRow) -> Value {
    let participant = |participant: &Participant| {
        let slice = participant.slice;
        json!({
            "process_id": participant.process, "track_id": slice.track, "lane": slice.lane, "ordinal": slice.ordinal,
            "rank": store.processes().get(participant.process as usize).and_then(Process::rank),
            "start_ns": participant.start, "dur_ns": participant.end - participant.start,
            "wait_ns": participant.wait_ns, "transfer_ns": participant.transfer_ns(),
            "late_ns": participant.late_ns, "own_late_ns": participant.own_late_ns(),
        })
    };
    json!({
        "collective": row.collective, "late_ns": row.late_ns(),
        "shortest_ns": row.shortest_ns(), "participants": row.participants.iter().map(participant).collect::<Vec<_>>(),
    })
}

/// The collectives, with the columns for which the trace has figures.
pub fn collectives_table(communication: &Communication) -> Table {
    let has_group = communication.collectives.iter().any(|row| row.group.is_some());
    let has_peers = !communication.exchanges.is_empty();
    let mut titles = vec!["collectives"];
    titles.extend(["<group", "<type", "message"].iter().filter(|_| has_group));
    titles.extend(["count", "total", "mean", "p50", "max"]);
    titles.extend(["waiting"].iter().filter(|_| has_peers));
    titles.push("exposed");
    titles.extend(["algorithm", "bus"].iter().filter(|_| has_group));
    let mut table = Table::new(titles);
    for row in communication.collectives.iter().take(MAX_ROWS) {
        let mut cells = vec![truncated(&row.name, 40)];
        if has_group {
            let group = row.group.and_then(|group| communication.groups.get(group));
            cells.extend([
                group.map_or_else(String::new, group_title),
                row.dtype.clone(),
                row.bytes.map_or_else(String::new, text::bytes),
            ]);
        }
        cells.push(text::count(row.count));
        cells.extend([row.total_ns, row.mean_ns as i64, row.p50_ns, row.max_ns].map(text::duration));
        if has_peers {
            cells.push(text::duration(row.waiting_ns));
        }
        cells.push(text::duration(row.exposed_ns));
        if has_group {
            let speed = |rate_of: Option<f64>| rate_of.map_or_else(String::new, |speed| rate(speed, "B/s"));
            cells.extend([row.algorithm_bytes_per_s, row.bus_bytes_per_s].map(speed));
        }
        table.row(cells);
    }
    table
}

/// `default_pg, 2 ranks`.
fn group_title(group: &ProcessGroup) -> String {
    let size = group.size.map_or_else(String::new, |size| format!(", {}", text::count_of(u64::from(size), "rank")));
    format!("{}{size}", truncated(group.title(), 32))
}

/// The ranks, where several take part in collectives of the trace: those first that came last by most.
pub fn ranks_table(store: &Store, communication: &Communication) -> Table {
    let titles = [
        "ranks",
        "collectives",
        "time",
        "waiting",
        "exposed",
        "times last",
        "late",
        "own delay",
        "<took longer than on other ranks",
    ];
    let mut table = Table::new(titles);
    let mut ranks: Vec<&RankRow> = communication.ranks.iter().filter(|row| row.exchanges > 0).collect();
    ranks.sort_by_key(|row| (std::cmp::Reverse(row.own_late_ns), row.process));
    for row in ranks.into_iter().take(MAX_ROWS) {
        let process = store.processes().get(row.process as usize);
        let name = process.map_or_else(String::new, |process| match process.rank() {
            Some(rank) => format!("{rank}: {}", process.title()),
            None => process.title(),
        });
        let longer = row.unlike_others.first().or_else(|| row.reasons.iter().find(|reason| reason.slice.is_some()));
        let longer = longer.map_or_else(String::new, |doing| {
            format!("{}: {}", text::duration(doing.ns - doing.other_ns), truncated(&doing.text, 64))
        });
        let mut cells = vec![truncated(&name, 40), text::count(row.count)];
        cells.extend([row.total_ns, row.waiting_ns, row.exposed_ns].map(text::duration));
        cells.push(text::count(row.times_last));
        cells.extend([row.late_ns, row.own_late_ns].map(text::duration));
        table.row(cells.into_iter().chain([longer]));
    }
    table
}
