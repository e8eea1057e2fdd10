//! Problems of a file: counted by kind, and reported as one warning per kind of warning.

use std::collections::BTreeMap;
use trace_model::{Warning, WarningKind};

/// A problem that does not end an import; [`Problem::meaning`] has the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    Damaged,
    Truncated,
    Bomb,
    NegativeDuration,
    AbsurdTime,
    NoTime,
    UnknownClock,
    TicksAsNs,
    NoCommonClock,
    EndWithoutBegin,
    BeginWithoutEnd,
    ClosedByOuter,
    UnpairedFlow,
    UnknownEvent,
    MissingName,
    LostByRecorder,
    BadCompression,
    MissingSwitch,
    TooManyThreads,
}

impl Problem {
    /// The kind of warning, and its text.
    fn meaning(self) -> (WarningKind, &'static str) {
        use Problem as P;
        use WarningKind as W;
        match self {
            P::Damaged => (W::Damage, "damaged places skipped"),
            P::Truncated => (W::TornTail, "the file ends in the middle of something"),
            P::Bomb => (W::SizeLimit, "the compressed file expands more than a thousandfold: the rest is left out"),
            P::NegativeDuration => (W::Clock, "slices end before they begin (shown without length)"),
            P::AbsurdTime => (W::Clock, "events with a time beyond 146 years left out"),
            P::NoTime => (W::Clock, "events without a readable time left out"),
            P::UnknownClock => (W::Clock, "events left out: their clock has no relation to the trace's"),
            P::TicksAsNs => (W::Clock, "its times count ticks of an unknown rate: each is shown as a nanosecond"),
            P::NoCommonClock => (W::Clock, "its clock has no relation to the other files': it begins where they begin"),
            P::EndWithoutBegin => (W::Unpaired, "ends without a begin left out"),
            P::BeginWithoutEnd => (W::Unpaired, "slices without an end (closed at the trace's end)"),
            P::ClosedByOuter => (W::Unpaired, "slices still open when an outer one ended (closed with it)"),
            P::UnpairedFlow => (W::Unpaired, "ends of arrows whose other end is missing"),
            P::UnknownEvent => (W::Unsupported, "events of unknown kinds left out"),
            P::MissingName => (W::UnknownName, "names are missing in the file"),
            P::LostByRecorder => (W::Dropped, "records were lost while the trace was recorded"),
            P::BadCompression => (W::Damage, "compressed parts cannot be read"),
            P::MissingSwitch => {
                (W::Dropped, "switches to threads are missing: those threads ran from when they were woken")
            }
            P::TooManyThreads => (W::SizeLimit, "threads beyond the limit have no track"),
        }
    }

    /// Whether the problem concerns the entire file, and is not counted.
    fn is_of_the_file(self) -> bool {
        matches!(self, Problem::Truncated | Problem::Bomb | Problem::TicksAsNs | Problem::NoCommonClock)
    }
}

/// Counts of problems, and the offset of the first in the unpacked file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    met: BTreeMap<Problem, (u64, Option<u64>)>,
}

impl Problems {
    pub(crate) fn count(&mut self, problem: Problem) {
        self.add(problem, 1, None);
    }

    pub(crate) fn count_at(&mut self, problem: Problem, offset: u64) {
        self.add(problem, 1, Some(offset));
    }

    pub(crate) fn add(&mut self, problem: Problem, n: u64, offset: Option<u64>) {
        if n > 0 {
            let (count, first) = self.met.entry(problem).or_insert((0, None));
            *count += n;
            *first = first.or(offset);
        }
    }

    /// Raises the count of a problem to a total, which files report repeatedly.
    pub(crate) fn at_least(&mut self, problem: Problem, total: u64) {
        let known = self.met.get(&problem).map_or(0, |(count, _)| *count);
        self.add(problem, total.saturating_sub(known), None);
    }

    #[cfg(test)]
    pub(crate) fn n(&self, problem: Problem) -> u64 {
        self.met.get(&problem).map_or(0, |(count, _)| *count)
    }

    /// One line per kind of warning.
    pub(crate) fn warnings(&self, source: &str) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for (problem, (n, first)) in &self.met {
            let at = |before: &str| first.map_or(String::new(), |offset| format!(", {before}at byte {offset}"));
            let (kind, sentence) = problem.meaning();
            let text = match problem.is_of_the_file() {
                true => format!("{sentence}{}", at("")),
                false => format!("{n} {sentence}{}", at("the first ")),
            };
            match warnings.iter_mut().find(|warning| warning.kind == kind) {
                Some(warning) => {
                    warning.count += n;
                    warning.text = format!("{}; {text}", warning.text);
                }
                None => warnings.push(Warning::new(kind, source, *n, text)),
            }
        }
        warnings
    }
}
