//! What was wrong with a file: counted, and reported in one line per kind.

use std::collections::BTreeMap;
use trace_model::{Warning, WarningKind};

/// Something that an importer met and went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    /// Bytes that are not of the format; reading went on behind them.
    Damaged,
    /// The file ends within something.
    Truncated,
    /// The compressed file expands beyond what is believed.
    Bomb,
    /// A slice that ends before it begins; shown without length.
    NegativeDuration,
    /// A time that no clock shows (more than 146 years from zero); the event is left out.
    AbsurdTime,
    /// A time that cannot be read; the event is left out.
    NoTime,
    /// A time of a clock that has no relation to the trace's; the event is left out.
    UnknownClock,
    /// Times count ticks of which the rate is not known; shown as nanoseconds.
    TicksAsNs,
    /// Clocks of several files without a relation.
    NoCommonClock,
    /// An end without a begin.
    EndWithoutBegin,
    /// A begin without an end; the slice is closed at the trace's end.
    BeginWithoutEnd,
    /// Slices that were still open when an outer one ended; closed with it.
    ClosedByOuter,
    /// Arrows of which one end is missing.
    UnpairedFlow,
    /// Events of a kind that this importer does not know; left out.
    UnknownEvent,
    /// Names that the file does not have (interned ones that were lost).
    MissingName,
    /// Packets, events or pages that the recording lost.
    LostByRecorder,
    /// Parts that could not be decompressed.
    BadCompression,
    /// Switches of threads that a recording should have and has not.
    MissingSwitch,
    /// More threads than are distinguished.
    TooManyThreads,
}

impl Problem {
    fn kind(self) -> WarningKind {
        use Problem as P;
        match self {
            P::Damaged | P::BadCompression => WarningKind::Damage,
            P::Truncated => WarningKind::TornTail,
            P::Bomb => WarningKind::SizeLimit,
            P::NegativeDuration | P::AbsurdTime | P::NoTime | P::UnknownClock | P::TicksAsNs | P::NoCommonClock => {
                WarningKind::Clock
            }
            P::EndWithoutBegin | P::BeginWithoutEnd | P::ClosedByOuter | P::UnpairedFlow => WarningKind::Unpaired,
            P::UnknownEvent => WarningKind::Unsupported,
            P::MissingName => WarningKind::UnknownName,
            P::LostByRecorder | P::MissingSwitch => WarningKind::Dropped,
            P::TooManyThreads => WarningKind::SizeLimit,
        }
    }

    /// Whether it is said of the file once, and not counted.
    fn is_of_the_file(self) -> bool {
        matches!(self, Problem::Truncated | Problem::Bomb | Problem::TicksAsNs | Problem::NoCommonClock)
    }

    fn text(self) -> &'static str {
        match self {
            Problem::Damaged => "damaged places skipped",
            Problem::Truncated => "the file ends in the middle of something",
            Problem::Bomb => "the compressed file expands more than a thousandfold: the rest is left out",
            Problem::NegativeDuration => "slices end before they begin (shown without length)",
            Problem::AbsurdTime => "events with a time beyond 146 years left out",
            Problem::NoTime => "events without a readable time left out",
            Problem::UnknownClock => "events left out: their clock has no relation to the trace's",
            Problem::TicksAsNs => "its times count ticks of an unknown rate: each is shown as a nanosecond",
            Problem::NoCommonClock => "its clock has no relation to the other files': it begins where they begin",
            Problem::EndWithoutBegin => "ends without a begin left out",
            Problem::BeginWithoutEnd => "slices without an end (closed at the trace's end)",
            Problem::ClosedByOuter => "slices still open when an outer one ended (closed with it)",
            Problem::UnpairedFlow => "ends of arrows whose other end is missing",
            Problem::UnknownEvent => "events of unknown kinds left out",
            Problem::MissingName => "names are missing in the file",
            Problem::LostByRecorder => "records were lost while the trace was recorded",
            Problem::BadCompression => "compressed parts cannot be read",
            Problem::MissingSwitch => "switches to threads are missing: those threads ran from when they were woken",
            Problem::TooManyThreads => "threads beyond the limit have no track",
        }
    }
}

/// Counts, and where it was met first (a byte of the file, unpacked).
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    met: BTreeMap<Problem, (u64, Option<u64>)>,
}

impl Problems {
    pub(crate) fn count(&mut self, problem: Problem) {
        self.add(problem, 1, None);
    }

    pub(crate) fn at(&mut self, problem: Problem, offset: u64) {
        self.add(problem, 1, Some(offset));
    }

    pub(crate) fn add(&mut self, problem: Problem, n: u64, offset: Option<u64>) {
        if n > 0 {
            let (count, first) = self.met.entry(problem).or_insert((0, None));
            *count += n;
            *first = first.or(offset);
        }
    }

    /// Where a total is reported again and again.
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
            let text = match problem.is_of_the_file() {
                true => format!("{}{}", problem.text(), at("")),
                false => format!("{n} {}{}", problem.text(), at("the first ")),
            };
            match warnings.iter_mut().find(|warning| warning.kind == problem.kind()) {
                Some(warning) => {
                    warning.count += n;
                    warning.text = format!("{}; {text}", warning.text);
                }
                None => warnings.push(Warning::new(problem.kind(), source, *n, text)),
            }
        }
        warnings
    }
}
