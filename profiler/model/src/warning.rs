//! What a user has to know about a trace: damage, losses, limits.

/// What a warning is about.
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
    /// A time could not be placed.
    Clock,
    /// Events refer to names that the trace does not have.
    UnknownName,
    /// Begins, ends or arrows without their other half.
    Unpaired,
    /// A file holds what is not read.
    Unsupported,
    /// Slices were clipped because all lanes were taken.
    Clipped,
    /// Old slices or events were evicted to stay in the memory budget.
    Evicted,
    /// Something cannot be recorded on the machine; the sentence says how to get it.
    Unavailable,
    /// The collector ended without finishing the trace; what was left in the rings was read.
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

    /// What it is called in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("damage", |(_, name)| name)
    }

    /// The inverse of [`WarningKind::name`]; damage, where the name is of a later version.
    pub fn from_name(name: &str) -> WarningKind {
        Self::NAMES.iter().find(|(_, n)| *n == name).map_or(WarningKind::Damage, |(kind, _)| *kind)
    }
}

/// Something that the user has to know, with how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The file or thread that it is about; one line per (kind, source).
    pub source: String,
    /// How many, in total since the beginning.
    pub count: u64,
    /// The sentence.
    pub text: String,
}

impl Warning {
    /// A warning about a source.
    pub fn new(kind: WarningKind, source: impl Into<String>, count: u64, text: impl Into<String>) -> Warning {
        Warning { kind, source: source.into(), count, text: text.into() }
    }
}
