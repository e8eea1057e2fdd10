//! The host's work that launches: calls that launch a device's work, and the ops and functions around them.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::{Line, LineKind, PieceId};
use rayon::prelude::*;

/// The slices of hosts that launch work of a device, or have a slice nested that does.
pub(crate) struct Launching {
    /// By line and slice.
    slices: Vec<Vec<bool>>,
}

impl Launching {
    pub(crate) fn new(deps: &Deps<'_>) -> Launching {
        Launching { slices: deps.lines.lines.par_iter().map(launching_slices).collect() }
    }

    /// Whether a piece is work of a host that launches. Functions that enclose most of a step are not: they do all else
    /// that it does, too.
    pub(crate) fn has(&self, deps: &Deps<'_>, piece_id: PieceId) -> bool {
        let piece = deps.lines.piece(piece_id);
        let is_launching = self.slices[piece_id.line as usize].get(piece.slice as usize) == Some(&true);
        is_launching && is_host_work(piece.activity)
    }
}

fn is_host_work(activity: Activity) -> bool {
    matches!(activity, Activity::Launch | Activity::Call | Activity::HostOp | Activity::Host)
}

fn launching_slices(line: &Line) -> Vec<bool> {
    if line.kind == LineKind::Device {
        return Vec::new();
    }
    let mut is_launch = vec![false; line.slices.len()];
    for piece in line.pieces.iter().filter(|piece| piece.activity == Activity::Launch) {
        is_launch[piece.slice as usize] = true;
    }
    let mut launching = is_launch.clone();
    let mut open: Vec<usize> = Vec::new();
    for (index, slice) in line.slices.iter().enumerate() {
        while open.pop_if(|outer| line.slices[*outer].end <= slice.start).is_some() {}
        if is_launch[index] {
            // Those further out have been marked with the first.
            open.iter().rev().take_while(|outer| !std::mem::replace(&mut launching[**outer], true)).for_each(drop);
        }
        open.push(index);
    }
    launching
}
