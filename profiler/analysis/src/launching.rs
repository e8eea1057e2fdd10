//! The host's work that launches: calls that launch a device's work, the ops and functions around them, and what these
//! do besides.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::{Line, LineKind, PieceId};
use rayon::prelude::*;

/// The slices of hosts that launch work of a device, have a slice nested that does, or are nested in such a slice.
pub(crate) struct Launching {
    /// By line and slice.
    slices: Vec<Vec<bool>>,
}

impl Launching {
    pub(crate) fn new(deps: &Deps<'_>) -> Launching {
        Launching { slices: deps.lines.lines.par_iter().map(launching_slices).collect() }
    }

    /// Whether a piece is work of a host that launches. Functions that enclose most of a step are not, nor is what they
    /// do besides: that is all else in the step.
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
    let n_slices = line.slices.len();
    let (mut is_launch, mut is_enclosing) = (vec![false; n_slices], vec![false; n_slices]);
    for piece in &line.pieces {
        is_launch[piece.slice as usize] |= piece.activity == Activity::Launch;
        is_enclosing[piece.slice as usize] |= piece.activity == Activity::Enclosing;
    }
    let mut launching = is_launch.clone();
    visit(line, |open, index| {
        if is_launch[index] {
            // Those further out have been marked with the first.
            open.iter().rev().take_while(|outer| !std::mem::replace(&mut launching[**outer], true)).for_each(drop);
        }
    });
    visit(line, |open, index| {
        launching[index] |= open.last().is_some_and(|outer| launching[*outer] && !is_enclosing[*outer]);
    });
    launching
}

/// Passes each slice of a line with the slices that it is nested in, by their indices, the outermost first.
fn visit(line: &Line, mut take: impl FnMut(&[usize], usize)) {
    let mut open: Vec<usize> = Vec::new();
    for (index, slice) in line.slices.iter().enumerate() {
        while open.pop_if(|outer| line.slices[*outer].end <= slice.start).is_some() {}
        take(&open, index);
        open.push(index);
    }
}
