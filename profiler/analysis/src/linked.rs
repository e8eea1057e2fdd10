//! The slice that another one names by its correlation: found once for all slices, for a walk comes by each of them several times.
//!
//! | slice | what it names |
//! |---|---|
//! | an op | the node whose end made it ready: that node's last execution that had ended when the op began |
//! | a call of a device's library | the work that it gave the device |
//! | a device's work | the call that gave it |
//!
//! Slices of a line come by time, and so do what they name, nearly: a search begins where the one before ended.

use super::activity::{Activities, Activity};
use super::line::{Line, LineKind, Lines, PieceId};
use super::near::near;
use rayon::prelude::*;
use trace_model::NO_NODE;

const NOTHING: PieceId = PieceId { line: u32::MAX, piece: u32::MAX };

pub(super) struct Linked {
    /// By line and slice.
    by_slice: Vec<Vec<PieceId>>,
}

impl Linked {
    pub(super) fn new(
        lines: &Lines,
        doings: &Activities<'_>,
        ops: &Executions,
        launches: &Calls,
        works: &Calls,
    ) -> Linked {
        let of_line = |cursors: &mut Vec<usize>, line: &Line| {
            if line.pieces.is_empty() {
                return Vec::new();
            }
            cursors.fill(0);
            let (mut launch, mut work) = (0, 0);
            let of_slice = |slice: &trace_model::SliceRef| {
                let doing = doings.of(slice);
                let found = match doing {
                    _ if line.kind == LineKind::Device || doing.is_device() => {
                        launches.find_near(&mut launch, line.process, slice.correlation)
                    }
                    Activity::Op => {
                        let cursor = cursors.get_mut(slice.correlation as usize);
                        cursor.and_then(|cursor| ops.ended_near(cursor, slice.correlation, slice.start))
                    }
                    Activity::Launch | Activity::Memory | Activity::Call => {
                        works.find_near(&mut work, line.process, slice.correlation)
                    }
                    _ => None,
                };
                found.unwrap_or(NOTHING)
            };
            line.slices.iter().map(of_slice).collect()
        };
        Linked { by_slice: lines.lines.par_iter().map_init(|| vec![0; ops.n_nodes()], of_line).collect() }
    }

    /// The piece that the slice of a piece names.
    pub(super) fn of(&self, lines: &Lines, at: PieceId) -> Option<PieceId> {
        let slice = lines.piece(at).slice;
        Some(self.by_slice[at.line as usize][slice as usize]).filter(|found| *found != NOTHING)
    }
}

/// The executions of each node: when they end, in order, and the pieces at which they begin.
pub(super) struct Executions {
    /// By node, where its rows begin; and the end of the last one's.
    begins: Vec<u32>,
    rows: Vec<(i64, PieceId)>,
}

impl Executions {
    /// From (node, end, piece) line by line; nodes are below `n_nodes`.
    pub(super) fn new(n_nodes: usize, found: &[(u32, i64, PieceId)]) -> Executions {
        let mut begins = vec![0u32; n_nodes + 1];
        found.iter().for_each(|(node, ..)| begins[*node as usize + 1] += 1);
        for node in 0..n_nodes {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        let mut rows = vec![(0, NOTHING); found.len()];
        for (node, end, at) in found {
            let place = &mut next[*node as usize];
            rows[*place as usize] = (*end, *at);
            *place += 1;
        }
        for own in begins.windows(2) {
            rows[own[0] as usize..own[1] as usize].sort_by_key(|(end, _)| *end);
        }
        Executions { begins, rows }
    }

    fn n_nodes(&self) -> usize {
        self.begins.len() - 1
    }

    fn of(&self, node: u32) -> &[(i64, PieceId)] {
        let bounds = self.begins.get(node as usize).zip(self.begins.get(node as usize + 1));
        bounds.map_or(&[], |(begin, end)| &self.rows[*begin as usize..*end as usize])
    }

    /// The last execution of a node that ended by `time`; `cursor` is how many had for what was asked before.
    fn ended_near(&self, cursor: &mut usize, node: u32, time: i64) -> Option<PieceId> {
        let ops = self.of(node);
        *cursor = near(ops, *cursor, |(end, _)| *end <= time);
        Some(ops.get(cursor.checked_sub(1)?)?.1)
    }

    /// The last execution of a node that had started by `time`.
    pub(super) fn started_by(&self, lines: &Lines, node: u32, time: i64) -> Option<PieceId> {
        // Executions of one node rarely overlap: the one that ends after `time`, or the last that ended.
        let ops = self.of(node);
        let after = ops.partition_point(|(end, _)| *end <= time);
        let running = ops[after..].iter().take(64).filter(|(_, at)| lines.slice(*at).start <= time);
        let running = running.max_by_key(|(_, at)| lines.slice(*at).start);
        running.or_else(|| ops.get(after.checked_sub(1)?)).map(|(_, at)| *at)
    }
}

/// Pieces by correlation: in their process, or in the whole trace where only one process has it.
#[derive(Default)]
pub(super) struct Calls {
    /// By correlation and process; of equal ones in the order in which they were added.
    rows: Vec<(u64, PieceId)>,
}

impl Calls {
    /// Adds a piece, before [`Calls::sort`].
    pub(super) fn add(&mut self, process: u32, correlation: u32, at: PieceId) {
        if correlation != 0 && correlation != NO_NODE {
            self.rows.push((key(correlation, process), at));
        }
    }

    pub(super) fn sort(&mut self) {
        self.rows.par_sort_by_key(|(key, _)| *key);
    }

    pub(super) fn find(&self, process: u32, correlation: u32) -> Option<PieceId> {
        self.find_near(&mut 0, process, correlation)
    }

    /// The last one in the process, or the first in the only process that has the correlation. `cursor` is where the last search
    /// ended.
    fn find_near(&self, cursor: &mut usize, process: u32, correlation: u32) -> Option<PieceId> {
        *cursor = near(&self.rows, *cursor, |(row, _)| *row < key(correlation, 0));
        let same = |row: &&(u64, PieceId)| row.0 >> 32 == u64::from(correlation);
        let first = self.rows.get(*cursor).filter(same)?;
        let Some(_) = self.rows.get(*cursor + 1).filter(same) else { return Some(first.1) };
        let rest = &self.rows[*cursor..];
        let own = rest.partition_point(|(row, _)| *row <= key(correlation, process)).checked_sub(1).map(|i| rest[i]);
        let last = rest[rest.partition_point(|(row, _)| *row <= key(correlation, u32::MAX)) - 1];
        match own {
            Some((row, at)) if row == key(correlation, process) => Some(at),
            _ => (first.0 == last.0).then_some(first.1),
        }
    }
}

fn key(correlation: u32, process: u32) -> u64 {
    u64::from(correlation) << 32 | u64::from(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    proptest! {
        #[test]
        fn a_call_is_of_its_process_or_of_the_only_one(
            added in prop::collection::vec((0u32..3, 0u32..9), 0..40), from in 0usize..50, asked in (0u32..4, 0u32..10)
        ) {
            let (mut calls, mut here, mut processes) = (Calls::default(), FxHashMap::default(), FxHashMap::default());
            for ((process, correlation), piece) in added.into_iter().zip(0..) {
                let at = PieceId { line: process, piece };
                calls.add(process, correlation, at);
                if correlation != 0 {
                    here.insert((process, correlation), at);
                    let of_all: &mut Vec<PieceId> = processes.entry(correlation).or_default();
                    of_all.push(at);
                }
            }
            calls.sort();
            let alone = processes.get(&asked.1).filter(|all| all.iter().all(|at| at.line == all[0].line));
            let expected = here.get(&asked).or(alone.and_then(|all| all.first())).copied();
            prop_assert_eq!(calls.find_near(&mut from.clone(), asked.0, asked.1), expected);
        }
    }
}
