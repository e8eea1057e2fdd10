//! By what the times of files are shifted, and the warnings about it.

use crate::import::stage::Stage;
use trace_model::clocks::Line;
use trace_model::{Warning, WarningKind};

/// What to add to a file's times.
#[derive(Clone, Copy, Debug)]
pub(in crate::import) enum Shift {
    /// The same to all.
    Constant(i64),
    /// As the two clocks part, and the same to all.
    Drifting(Line, i64),
}

impl Shift {
    pub(in crate::import) fn apply(self, time: i64) -> i64 {
        time.saturating_add(match self {
            Shift::Constant(ns) => ns,
            Shift::Drifting(line, more) => line.difference(time).saturating_add(more),
        })
    }
}

/// By what the files' times are shifted, and for those that are aligned with the first one how wrong that may be.
pub(super) struct ClockShifts {
    pub(super) shifts: Vec<Shift>,
    pub(super) bounds: Vec<Option<i64>>,
    pub(super) warnings: Vec<Warning>,
}

impl ClockShifts {
    pub(super) fn place(&mut self, idx: usize, shift: Shift, bound: i64) {
        (self.shifts[idx], self.bounds[idx]) = (shift, Some(bound));
    }

    /// Warns about the clock of a file.
    pub(super) fn warn(&mut self, stage: &Stage, text: String) {
        let source = format!("{} (rank {})", stage.source, stage.rank.unwrap_or(0));
        self.warnings.push(Warning::new(WarningKind::Clock, source, 1, text));
    }

    /// Says that a file was aligned with another one, by what.
    pub(super) fn warn_aligned(&mut self, stage: &Stage, other: &Stage, by: &str, shift: Shift, bound: i64) {
        let drift = match shift {
            Shift::Constant(_) => String::new(),
            Shift::Drifting(line, _) => format!("; its clock drifts by {} ns in a second", line.rate_ppb()),
        };
        self.warn(stage, format!("aligned with {} by {by}, to within {bound} ns{drift}", other.source));
    }
}
