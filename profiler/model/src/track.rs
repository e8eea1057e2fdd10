//! Tracks: their ids and kinds, and the instants and open slices on them.

/// Row of `Store::tracks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// A process and one of its rings, which report the events of a track. Each thread has a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackKey {
    /// The process's id.
    pub pid: u32,
    /// The ring's number in the process, from 0.
    pub ring: u32,
}

/// The most lanes of a track, so that a hostile trace cannot create lanes without limit. A slice that finds no free
/// lane is clipped to fit the last one. An import splits a track that needs more lanes into several tracks.
pub const MAX_LANES: usize = 256;

/// The kind of thing that a track stands for.
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

    /// Name of the kind in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("thread", |(_, name)| name)
    }

    /// The inverse of [`TrackKind::name`]; `None` for an unknown name, as of a later version.
    pub fn from_name(name: &str) -> Option<TrackKind> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }

    /// Whether the track is that of a thread.
    #[must_use]
    pub fn is_thread(self) -> bool {
        matches!(self, TrackKind::Thread | TrackKind::Worker)
    }
}

/// A slice that has begun and not ended. In a batch the ids are those of the process, as in an [`Event`](crate::Event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice {
    /// Begin, ns from the origin.
    pub start: i64,
    /// Row of the sites.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Nesting depth: the lane in which the slice is drawn.
    pub depth: u8,
}

/// An event without duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantEvent {
    /// Time, ns from the origin.
    pub time: i64,
    /// Row of the sites.
    pub site: u32,
    /// A number, whose meaning depends on the category.
    pub arg: u64,
    /// Row of `Store::args`: a log message's text; `u32::MAX` for none.
    pub args: u32,
}
