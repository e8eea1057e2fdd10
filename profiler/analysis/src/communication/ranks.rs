//! The ranks: their time in collectives, how much of it waits, and who came last.

use super::doing::Doing;
use super::exchange::ExchangeRow;
use super::{late, unlike};
use crate::breakdown::DeviceBreakdown;
use crate::deps::Deps;
use std::collections::BTreeMap;
use std::ops::Range;

/// A rank's communication. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRow {
    /// Row of the processes.
    pub process: u32,
    /// Executions of collectives.
    pub count: u64,
    /// The sum of their times.
    pub total_ns: i64,
    /// The time in which it waited for other ranks.
    pub waiting_ns: i64,
    /// The time in which its devices communicate and compute nothing.
    pub exposed_ns: i64,
    /// The time in which its devices communicate and compute.
    pub overlapped_ns: i64,
    /// Exchanges with other ranks of the trace, for which ranks wait.
    pub exchanges: u64,
    /// Those to which it came last.
    pub times_last: u64,
    /// The sum of its delays after the rank in the middle.
    pub late_ns: i64,
    /// The part of `late_ns` that did not come with the collective before.
    pub own_late_ns: i64,
    /// The sum of the other ranks' waits for it.
    pub waited_ns: i64,
    /// What it did longer than the rank in the middle, on the way to the collectives to which it came late.
    pub reasons: Vec<Doing>,
    /// What its host did more than twice as long as the other ranks' hosts, whether or not anything waited for that.
    pub unlike_others: Vec<Doing>,
}

/// The ranks, by process.
pub(super) fn ranks(
    deps: &Deps<'_>,
    range: &Range<i64>,
    devices: &[DeviceBreakdown],
    exchanges: &mut [ExchangeRow],
) -> Vec<RankRow> {
    let mut rows: BTreeMap<u32, RankRow> = BTreeMap::new();
    for call in deps.exchanges.calls.rows.iter().filter(|call| range.contains(&call.start)) {
        let row = rows.entry(call.process).or_default();
        row.count += 1;
        row.total_ns += call.end - call.start;
    }
    for device in devices {
        if let Some(row) = rows.get_mut(&device.process) {
            row.exposed_ns += device.times.communication_exposed_ns;
            row.overlapped_ns += device.times.communication_overlapped_ns;
        }
    }
    let mut reasons = late::explain(deps, exchanges);
    add_exchanges(&mut rows, exchanges);
    let processes: Vec<u32> = rows.keys().copied().collect();
    let mut unlike = unlike::unlike_others(deps, range, &processes);
    for (process, row) in &mut rows {
        row.process = *process;
        row.reasons = reasons.remove(process).unwrap_or_default();
        row.unlike_others = unlike.remove(process).unwrap_or_default();
    }
    rows.into_values().collect()
}

fn add_exchanges(rows: &mut BTreeMap<u32, RankRow>, exchanges: &[ExchangeRow]) {
    for exchange in exchanges.iter().filter(|exchange| exchange.is_waited_for()) {
        for participant in &exchange.participants {
            let row = rows.entry(participant.process).or_default();
            row.exchanges += 1;
            row.waiting_ns += participant.wait_ns;
            row.late_ns += participant.late_ns;
            row.own_late_ns += participant.own_late_ns();
        }
        if let Some(last) = exchange.participants.last() {
            let row = rows.entry(last.process).or_default();
            row.times_last += 1;
            row.waited_ns += exchange.waiting_ns();
        }
    }
}
