//! Tracks: what they stand for, and the events on them that are no slices.

/// Row of `Store::tracks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// Whose events: a process and one of its rings (one ring per thread).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackKey {
    /// The process's id.
    pub pid: u32,
    /// The ring's number in the process, from 0.
    pub ring: u32,
}

/// Lanes of a track; beyond it a slice is clipped to fit the last one (a hostile trace must not make lanes without end). An import gives
/// what needs more to further tracks first.
pub const MAX_LANES: usize = 256;

/// What kind of thing a track stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrackKind {
    /// A thread that has run no op and no shard.
    #[default]
    Thread,
    /// A thread that runs ops or shards of them.
    Worker,
    /// A CPU: its slices are the threads that ran on it.
    Cpu,
    /// A device's stream: kernels and copies in order.
    Stream,
    /// A copy engine (DMA).
    Copy,
    /// A network link.
    Network,
    /// Operations of a process that begin and end on no thread of their own.
    Async,
}

impl TrackKind {
    const NAMES: [(TrackKind, &'static str); 7] = [
        (TrackKind::Thread, "thread"),
        (TrackKind::Worker, "worker"),
        (TrackKind::Cpu, "cpu"),
        (TrackKind::Stream, "stream"),
        (TrackKind::Copy, "copy"),
        (TrackKind::Network, "network"),
        (TrackKind::Async, "async"),
    ];

    /// What it is called in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("thread", |(_, name)| name)
    }

    /// The inverse of [`TrackKind::name`]; `None` where the name is of a later version.
    pub fn from_name(name: &str) -> Option<TrackKind> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }

    /// Whether it stands for a thread.
    #[must_use]
    pub fn is_thread(self) -> bool {
        matches!(self, TrackKind::Thread | TrackKind::Worker)
    }
}

/// A slice that has begun and not ended: no end is known. In a batch, as an [`Event`](crate::Event), it has the process's own ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice {
    /// Begin, ns from the origin.
    pub start: i64,
    /// Row of the sites.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Nesting depth: the lane to draw it in.
    pub depth: u8,
}

/// Something that happened at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantEvent {
    /// When, ns from the origin.
    pub time: i64,
    /// Row of the sites.
    pub site: u32,
    /// The number that came with it.
    pub arg: u64,
    /// Row of `Store::args`: a log message's text; `u32::MAX` for none.
    pub args: u32,
}
