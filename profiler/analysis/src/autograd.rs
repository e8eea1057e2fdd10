//! The threads on which PyTorch's autograd engine computes gradients, and the threads that wait for them there.
//!
//! `backward` hands the graph to a thread per device, and returns when that thread has computed all gradients
//! (torch/csrc/autograd/engine.cpp). No slice says so; what the engine evaluates has slices of its own name, and arrows
//! from the ops whose gradients they are.

use super::incoming::IncomingFlow;
use super::lines::{Lines, PieceId};
use rustc_hash::FxHashMap;
use trace_store::Store;

/// The beginning of the names of what the engine evaluates.
const EVALUATION: &str = "autograd::engine::evaluate_function";

/// The threads of autograd engines, and their callers.
#[derive(Default)]
pub(crate) struct Autograd {
    /// The line of the caller by the line of the engine's thread.
    callers: FxHashMap<u32, u32>,
    /// The lines of engines' threads by the line of the caller.
    engines: FxHashMap<u32, Vec<u32>>,
}

impl Autograd {
    /// Finds the engines' threads among the lines: those that evaluate gradients of another thread's ops. The caller is
    /// the thread of most of these ops.
    pub(crate) fn new(store: &Store, lines: &Lines, flows: &[IncomingFlow]) -> Autograd {
        let is_evaluation: Vec<bool> = store.sites().iter().map(|site| site.name.starts_with(EVALUATION)).collect();
        let mut autograd = Autograd::default();
        if !is_evaluation.contains(&true) {
            return autograd;
        }
        for (row, line) in (0..).zip(&lines.lines) {
            if !line.slices.iter().any(|slice| is_evaluation.get(slice.site as usize) == Some(&true)) {
                continue;
            }
            let begin = flows.partition_point(|flow| flow.line < row);
            let mut n_ops: FxHashMap<u32, u32> = FxHashMap::default();
            for flow in flows[begin..].iter().take_while(|flow| flow.line == row) {
                if lines.lines.get(flow.from_line as usize).is_some_and(|from| from.process == line.process) {
                    *n_ops.entry(flow.from_line).or_default() += 1;
                }
            }
            if let Some((&caller, _)) = n_ops.iter().max_by_key(|(line, n)| (**n, std::cmp::Reverse(**line))) {
                autograd.callers.insert(row, caller);
                autograd.engines.entry(caller).or_default().push(row);
            }
        }
        autograd
    }

    /// The piece of the caller that ran last before `time`, if it began at or after `idle_since`, when the engine's
    /// thread `line` had no more work: the engine could not begin earlier.
    pub(crate) fn called_by(&self, lines: &Lines, line: u32, idle_since: i64, time: i64) -> Option<PieceId> {
        let caller = *self.callers.get(&line)?;
        let piece = lines.line(caller).row_before(time)?;
        let piece_id = PieceId { line: caller, piece };
        (lines.piece(piece_id).start >= idle_since).then_some(piece_id)
    }

    /// The last piece of the engines of a caller's line that ended after `after`, by `time`: the caller could not go on
    /// earlier.
    pub(crate) fn awaited_by(&self, lines: &Lines, line: u32, after: i64, time: i64) -> Option<PieceId> {
        let ended = self.engines.get(&line)?.iter().filter_map(|engine| {
            let pieces = &lines.line(*engine).pieces;
            let row = pieces.partition_point(|piece| piece.end <= time).checked_sub(1)?;
            Some(PieceId { line: *engine, piece: row as u32 })
        });
        ended.max_by_key(|piece_id| lines.piece(*piece_id).end).filter(|piece_id| lines.piece(*piece_id).end > after)
    }
}
