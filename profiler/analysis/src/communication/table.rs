//! The collectives by kind, group, message and type.

use super::exchange::ExchangeRow;
use crate::collectives::{CollectiveKind, Signature};
use crate::deps::Deps;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// The executions of a collective with one group, message size and type. Times are sums over all ranks, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveRow {
    /// The kind.
    pub kind: CollectiveKind,
    /// The kind's name; where the trace has nothing but the kernel's name, that.
    pub name: String,
    /// Row of [`Communication::groups`](super::Communication::groups).
    pub group: Option<usize>,
    /// The message, by the definitions of nccl-tests: what a rank sends, or has in the end where it gathers.
    pub bytes: Option<u64>,
    /// The type of the elements, as PyTorch names it; empty where it is not known.
    pub dtype: String,
    /// Executions, over all ranks.
    pub count: u64,
    /// Exchanges between ranks of the trace.
    pub exchanges: u64,
    /// Time.
    pub total_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// Time in which ranks waited for the last one.
    pub waiting_ns: i64,
    /// Time in which the device computed nothing.
    pub exposed_ns: i64,
    /// The message by the time that it took, bytes per second: of exchanges the shortest execution, else each
    /// execution, whose waits are then in it.
    pub algorithm_bytes_per_s: Option<f64>,
    /// What the links carried by nccl-tests' model, bytes per second.
    pub bus_bytes_per_s: Option<f64>,
}

/// The rows while they are filled.
pub(super) struct Table {
    rows: Vec<Row>,
    /// By row of the signatures.
    by_signature: FxHashMap<u32, usize>,
}

struct Row {
    signature: Signature,
    durations: Vec<i64>,
    exposed_ns: i64,
}

impl Table {
    /// The executions that begin in the range.
    pub(super) fn new(deps: &Deps<'_>, range: &Range<i64>, exposed_ns: &[i64]) -> Table {
        let mut table = Table { rows: Vec::new(), by_signature: FxHashMap::default() };
        let calls = &deps.exchanges.calls;
        let mut rows: FxHashMap<Signature, usize> = FxHashMap::default();
        for (call, exposed_ns) in calls.rows.iter().zip(exposed_ns).filter(|(call, _)| range.contains(&call.start)) {
            let row = *table.by_signature.entry(call.signature).or_insert_with(|| {
                // The other rank of a transfer makes no row of its own.
                let signature = Signature { peer: None, ..calls.signature(call).clone() };
                *rows.entry(signature.clone()).or_insert_with(|| {
                    table.rows.push(Row { signature, durations: Vec::new(), exposed_ns: 0 });
                    table.rows.len() - 1
                })
            });
            table.rows[row].durations.push(call.end - call.start);
            table.rows[row].exposed_ns += exposed_ns;
        }
        table.sort();
        table
    }

    /// Sorts by time, the most first.
    fn sort(&mut self) {
        let total = |row: &Row| row.durations.iter().sum::<i64>();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|at| (Reverse(total(&self.rows[*at])), *at));
        let mut new_row = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, from)| new_row[*from] = to);
        self.by_signature.values_mut().for_each(|row| *row = new_row[*row]);
        let mut rows: Vec<(usize, Row)> = new_row.into_iter().zip(std::mem::take(&mut self.rows)).collect();
        rows.sort_by_key(|(to, _)| *to);
        self.rows = rows.into_iter().map(|(_, row)| row).collect();
    }

    /// The row of the executions with a signature.
    pub(super) fn row_of(&self, signature: u32) -> Option<usize> {
        self.by_signature.get(&signature).copied()
    }

    pub(super) fn into_rows(self, deps: &Deps<'_>, exchanges: &[ExchangeRow]) -> Vec<CollectiveRow> {
        let mut sums = vec![Sums::default(); self.rows.len()];
        for exchange in exchanges {
            let sums = &mut sums[exchange.collective];
            sums.exchanges += 1;
            if exchange.synchronises {
                sums.synchronised += 1;
                sums.shortest_ns += exchange.shortest_ns();
            }
            sums.waiting_ns += exchange.waiting_ns();
        }
        self.rows.into_iter().zip(sums).map(|(row, sums)| row.finish(deps, &sums)).collect()
    }
}

/// Sums over the exchanges of a row.
#[derive(Clone, Default)]
struct Sums {
    exchanges: u64,
    /// Those whose ranks wait for each other, and the sum of the shortest execution of each.
    synchronised: u64,
    shortest_ns: i64,
    waiting_ns: i64,
}

impl Row {
    fn finish(mut self, deps: &Deps<'_>, sums: &Sums) -> CollectiveRow {
        self.durations.sort_unstable();
        let (n, total_ns) = (self.durations.len(), self.durations.iter().sum::<i64>());
        let Signature { kind, site, group, bytes, dtype, .. } = self.signature;
        let (times, time_ns) =
            if sums.synchronised > 0 { (sums.synchronised, sums.shortest_ns) } else { (n as u64, total_ns) };
        let rate = |bytes: u64| bytes as f64 * times as f64 * 1e9 / time_ns as f64;
        let algorithm = bytes.filter(|bytes| *bytes > 0 && time_ns > 0).map(rate);
        let size = group.and_then(|group| deps.exchanges.calls.groups.get(group as usize)?.size);
        let factor = size.and_then(|size| kind.bus_factor(size));
        let kernel = site.filter(|_| dtype.is_empty()).and_then(|site| deps.store.sites().get(site as usize));
        // Without the types of the kernel's arguments.
        let kernel = kernel.map(|site| site.name.split('(').next().unwrap_or(&site.name));
        CollectiveRow {
            kind,
            name: kernel.unwrap_or(kind.name()).to_owned(),
            group: group.map(|group| group as usize),
            bytes,
            dtype,
            count: n as u64,
            exchanges: sums.exchanges,
            total_ns,
            mean_ns: total_ns as f64 / n.max(1) as f64,
            // The nearest rank.
            p50_ns: self.durations.get(n.div_ceil(2).saturating_sub(1)).copied().unwrap_or(0),
            max_ns: self.durations.last().copied().unwrap_or(0),
            waiting_ns: sums.waiting_ns,
            exposed_ns: self.exposed_ns,
            algorithm_bytes_per_s: algorithm,
            bus_bytes_per_s: algorithm.zip(factor).map(|(rate, factor)| rate * factor),
        }
    }
}
