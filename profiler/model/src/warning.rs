//! Warnings: problems of a trace that the user has to know about.

/// The kind of problem that a warning reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A producer's ring was full: events are missing.
    Dropped,
    /// A file has damaged parts, which were skipped.
    Damage,
    /// A file's last chunk was cut in the middle of being written.
    TornTail,
    /// A file could not be read or written.
    Io,
    /// The trace reached its size limit.
    SizeLimit,
    /// Times could not be placed exactly on the trace's clock.
    Clock,
    /// Events refer to names that the trace does not have.
    UnknownName,
    /// Begins, ends or flows whose counterpart is missing.
    Unpaired,
    /// A file has contents that are not supported.
    Unsupported,
    /// Slices were clipped because all lanes were taken.
    Clipped,
    /// Old slices or events were evicted to stay in the memory budget.
    Evicted,
    /// Something cannot be recorded on the machine; the text says how to enable it.
    Unavailable,
    /// The collector ended without finishing the trace; records that were left in the rings were read.
    Recovered,
}

impl WarningKind {
    const NAMES: [(WarningKind, &'static str); 13] = [
        (WarningKind::Dropped, "dropped"),
        (WarningKind::Damage, "damage"),
        (WarningKind::TornTail, "torn tail"),
        (WarningKind::Io, "io"),
        (WarningKind::SizeLimit, "size limit"),
        (WarningKind::Clock, "clock"),
        (WarningKind::UnknownName, "unknown name"),
        (WarningKind::Unpaired, "unpaired"),
        (WarningKind::Unsupported, "unsupported"),
        (WarningKind::Clipped, "clipped"),
        (WarningKind::Evicted, "evicted"),
        (WarningKind::Unavailable, "unavailable"),
        (WarningKind::Recovered, "recovered"),
    ];

    /// Name of the kind in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("damage", |(_, name)| name)
    }

    /// The inverse of [`WarningKind::name`]; [`WarningKind::Damage`] for an unknown name, as of a later version.
    pub fn from_name(name: &str) -> WarningKind {
        Self::NAMES.iter().find(|(_, n)| *n == name).map_or(WarningKind::Damage, |(kind, _)| *kind)
    }
}

/// A problem that the user has to know about, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Kind of the problem.
    pub kind: WarningKind,
    /// The file or thread with the problem. There is one warning for each kind and source.
    pub source: String,
    /// How often the problem occurred, in total.
    pub count: u64,
    /// The text for the user.
    pub text: String,
}

impl Warning {
    /// A warning about a source.
    pub fn new(kind: WarningKind, source: impl Into<String>, count: u64, text: impl Into<String>) -> Warning {
        Warning { kind, source: source.into(), count, text: text.into() }
    }
}
