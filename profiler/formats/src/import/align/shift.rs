//! Shifts of the times of files, and the warnings about them.

use crate::import::stage::Stage;
use trace_model::clocks::{Fact, Line};
use trace_model::{Warning, WarningKind};

/// The shift of a file's times, ns to add.
#[derive(Clone, Copy, Debug)]
pub(in crate::import) enum Shift {
    /// The same for all times.
    Constant(i64),
    /// A line, since one clock is faster, and a constant in addition.
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

/// The possible differences of two clocks, given facts.
pub(super) struct Fit {
    /// Bounds of a constant difference; the first is the larger one if none is possible.
    pub(super) low: i64,
    pub(super) high: i64,
    /// Where the clocks may drift, as far as the facts do not contradict that too.
    line: Option<Line>,
    /// The times of the first and the last fact.
    times: [i64; 2],
}

impl Fit {
    /// The fit to these facts; `None` if one side has none.
    pub(super) fn new(least: &[Fact], most: &[Fact]) -> Option<Fit> {
        let difference = |fact: &Fact| fact.limit.saturating_sub(fact.at);
        let (low, high) = (least.iter().map(difference).max()?, most.iter().map(difference).min()?);
        let times = || least.iter().chain(most).map(|fact| fact.at);
        let times = [times().min()?, times().max()?];
        let line = Line::feasible(i64::midpoint(times[0], times[1]), least, most);
        Some(Fit { low, high, line, times })
    }

    /// Whether a constant difference is possible.
    pub(super) fn is_constant(&self) -> bool {
        self.low <= self.high
    }

    /// The error bound of a constant difference.
    pub(super) fn bound(&self, difference: i64) -> i64 {
        // Less than the line's would only be true of clocks that run alike.
        let of_line = self.line.and_then(|line| self.times.map(|time| line.error(difference, time)).into_iter().max());
        let of_ends = difference.saturating_sub(self.low).max(self.high.saturating_sub(difference));
        of_line.map_or(of_ends, |of_line| of_line.max(of_ends))
    }

    /// A line through what is possible, and how wrong it may be at the first and the last fact.
    pub(super) fn drifting(&self) -> Option<(Line, i64)> {
        let line = self.line?;
        let error = |time| line.error(line.difference(time), time);
        Some((line, error(self.times[0]).max(error(self.times[1]))))
    }
}

/// The shifts of all files, and the error bounds of those that are aligned with the first one.
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
