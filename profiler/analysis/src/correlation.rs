//! The slices that other slices name by their correlation. They are found once for all slices, since a walk passes each
//! slice several times.
//!
//! | slice | named slice |
//! |---|---|
//! | an op | the node whose end made it ready: that node's last execution that had ended when the op began |
//! | a call of a device's library | the work that the call enqueued on the device |
//! | a device's work | the call that enqueued the work |
//!
//! The slices of a line are in order of time, and so, nearly, are the slices that they name: each search begins where
//! the last ended.

use super::activity::{Activities, Activity};
use super::lines::{Line, LineKind, Lines, PieceId};
use super::search::partition_point_near;
use rayon::prelude::*;
use trace_model::NO_NODE;

/// Maximum number of executions of one node that run at one time; further executions are not searched.
const MAX_CONCURRENT: usize = 64;
/// Stands for the piece that a slice names if the slice names none.
const NO_PIECE: PieceId = PieceId { line: u32::MAX, piece: u32::MAX };

pub(super) struct Correlations {
    /// The named pieces by line and slice; [`NO_PIECE`] for a slice that names none.
    by_slice: Vec<Vec<PieceId>>,
}

impl Correlations {
    pub(super) fn new(
        lines: &Lines,
        activities: &Activities<'_>,
        ops: &Executions,
        launches: &PiecesByCorrelation,
        works: &PiecesByCorrelation,
    ) -> Correlations {
        let correlate_line = |cursors: &mut Vec<usize>, line: &Line| {
            if line.pieces.is_empty() {
                return Vec::new();
            }
            cursors.fill(0);
            let (mut launch, mut work) = (0, 0);
            let correlate_slice = |slice: &trace_model::SliceRef| {
                let activity = activities.get(slice);
                let named = match activity {
                    _ if line.kind == LineKind::Device || activity.is_device() => {
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
                named.unwrap_or(NO_PIECE)
            };
            line.slices.iter().map(correlate_slice).collect()
        };
        Correlations { by_slice: lines.lines.par_iter().map_init(|| vec![0; ops.n_nodes()], correlate_line).collect() }
    }

    /// The piece that the slice of a piece names.
    pub(super) fn find(&self, lines: &Lines, piece_id: PieceId) -> Option<PieceId> {
        let slice = lines.piece(piece_id).slice;
        Some(self.by_slice[piece_id.line as usize][slice as usize]).filter(|found| *found != NO_PIECE)
    }
}

/// The executions of each node: their ends, in order, and the pieces at which they begin.
pub(super) struct Executions {
    /// The index in `rows` at which each node's rows begin, and the length of `rows`.
    first_rows: Vec<u32>,
    /// End and first piece of each execution, by node and end.
    rows: Vec<(i64, PieceId)>,
}

impl Executions {
    /// Sorts (node, end, piece) by node, then by end; nodes are below `n_nodes`.
    pub(super) fn new(n_nodes: usize, executions: &[(u32, i64, PieceId)]) -> Executions {
        let mut first_rows = vec![0u32; n_nodes + 1];
        executions.iter().for_each(|(node, ..)| first_rows[*node as usize + 1] += 1);
        for node in 0..n_nodes {
            first_rows[node + 1] += first_rows[node];
        }
        let mut next = first_rows.clone();
        let mut rows = vec![(0, NO_PIECE); executions.len()];
        for (node, end, piece_id) in executions {
            let row = &mut next[*node as usize];
            rows[*row as usize] = (*end, *piece_id);
            *row += 1;
        }
        for bounds in first_rows.windows(2) {
            rows[bounds[0] as usize..bounds[1] as usize].sort_by_key(|(end, _)| *end);
        }
        Executions { first_rows, rows }
    }

    fn n_nodes(&self) -> usize {
        self.first_rows.len() - 1
    }

    fn rows_of(&self, node: u32) -> &[(i64, PieceId)] {
        let bounds = self.first_rows.get(node as usize).zip(self.first_rows.get(node as usize + 1));
        bounds.map_or(&[], |(begin, end)| &self.rows[*begin as usize..*end as usize])
    }

    /// The last execution of a node that ended by `time`. `cursor` is the number of executions that had ended by the
    /// time of the previous query.
    fn ended_near(&self, cursor: &mut usize, node: u32, time: i64) -> Option<PieceId> {
        let ops = self.rows_of(node);
        *cursor = partition_point_near(ops, *cursor, |(end, _)| *end <= time);
        Some(ops.get(cursor.checked_sub(1)?)?.1)
    }

    /// The last execution of a node that had started by `time`.
    pub(super) fn started_by(&self, lines: &Lines, node: u32, time: i64) -> Option<PieceId> {
        // Executions of one node rarely overlap: the result is the one that ends after `time`, or the last that ended.
        let ops = self.rows_of(node);
        let n_ended = ops.partition_point(|(end, _)| *end <= time);
        let running =
            ops[n_ended..].iter().take(MAX_CONCURRENT).filter(|(_, piece_id)| lines.slice(*piece_id).start <= time);
        let running = running.max_by_key(|(_, piece_id)| lines.slice(*piece_id).start);
        running.or_else(|| ops.get(n_ended.checked_sub(1)?)).map(|(_, piece_id)| *piece_id)
    }
}

/// Pieces by correlation and process.
#[derive(Default)]
pub(super) struct PiecesByCorrelation {
    /// Sorted by [`row_key`]; rows with equal keys are in the order in which they were added.
    rows: Vec<(u64, PieceId)>,
}

impl PiecesByCorrelation {
    /// Adds a piece, before [`PiecesByCorrelation::sort`].
    pub(super) fn add(&mut self, process: u32, correlation: u32, piece_id: PieceId) {
        if correlation != 0 && correlation != NO_NODE {
            self.rows.push((row_key(correlation, process), piece_id));
        }
    }

    pub(super) fn sort(&mut self) {
        self.rows.par_sort_by_key(|(key, _)| *key);
    }

    pub(super) fn find(&self, process: u32, correlation: u32) -> Option<PieceId> {
        self.find_near(&mut 0, process, correlation)
    }

    /// The last piece with the correlation in the process; if only one other process has the correlation, the first
    /// piece there. `cursor` is the row at which the last search ended.
    fn find_near(&self, cursor: &mut usize, process: u32, correlation: u32) -> Option<PieceId> {
        *cursor = partition_point_near(&self.rows, *cursor, |(row, _)| *row < row_key(correlation, 0));
        let same = |row: &&(u64, PieceId)| row.0 >> 32 == u64::from(correlation);
        let first = self.rows.get(*cursor).filter(same)?;
        let Some(_) = self.rows.get(*cursor + 1).filter(same) else { return Some(first.1) };
        let rest = &self.rows[*cursor..];
        let of_process =
            rest.partition_point(|(row, _)| *row <= row_key(correlation, process)).checked_sub(1).map(|i| rest[i]);
        let last = rest[rest.partition_point(|(row, _)| *row <= row_key(correlation, u32::MAX)) - 1];
        match of_process {
            Some((row, piece_id)) if row == row_key(correlation, process) => Some(piece_id),
            _ => (first.0 == last.0).then_some(first.1),
        }
    }
}

fn row_key(correlation: u32, process: u32) -> u64 {
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
            let (mut calls, mut here, mut processes) = (PiecesByCorrelation::default(), FxHashMap::default(), FxHashMap::default());
            for ((process, correlation), piece) in added.into_iter().zip(0..) {
                let piece_id = PieceId { line: process, piece };
                calls.add(process, correlation, piece_id);
                if correlation != 0 {
                    here.insert((process, correlation), piece_id);
                    let of_all: &mut Vec<PieceId> = processes.entry(correlation).or_default();
                    of_all.push(piece_id);
                }
            }
            calls.sort();
            let alone = processes.get(&asked.1).filter(|all| all.iter().all(|piece_id| piece_id.line == all[0].line));
            let expected = here.get(&asked).or(alone.and_then(|all| all.first())).copied();
            prop_assert_eq!(calls.find_near(&mut from.clone(), asked.0, asked.1), expected);
        }
    }
}
