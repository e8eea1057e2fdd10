//! The store's tables of names: processes, call sites, graph nodes.
//!
//! Producers use ids of their own; here each (process, id) maps to a row of one table for the whole trace.
//! Sites with the same category and name are one row, and nodes with the same name, op and device too,
//! so that several processes of one job share them.

use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

/// What a site's slices mean; the producers write it as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Category {
    /// `op`: one execution of a node's kernel.
    Op,
    /// `shard`: a part of a kernel that ran on another thread.
    Shard,
    /// `step`: one execution of the graph.
    Step,
    /// `wait`: a worker with nothing to do.
    Wait,
    /// `parked`: an op that waits without a thread, for a row of a queue, room in it, a value; `arg` says for which.
    Parked,
    /// `alloc`: memory of a device.
    Alloc,
    /// `transfer`: a stamp of a value's way between devices.
    Transfer,
    /// `launch`: a host's call that gives a device work; `correlation` is that of the work.
    Launch,
    /// `kernel`: a device's computation; `correlation` is its launch's.
    Kernel,
    /// `copy`: memory copied or set by a device, `arg` bytes; `correlation` is its launch's.
    Copy,
    /// `collective`: a computation that waits for the same of other devices (all-reduce and the like).
    Collective,
    /// `sync`: a host's call, or a stream, that waits for a device.
    Sync,
    /// `input`: making the step's input (a data loader's work).
    Input,
    /// `running`: on a CPU's track, the thread that ran; `correlation` is its kernel's id.
    Running,
    /// `off cpu`: a thread that did not run; the site's name says why, `correlation` is the waker's thread id.
    #[serde(rename = "off cpu")]
    OffCpu,
    /// `sample`: a running thread's call stack was taken; `arg` is its row of `Store::stacks`.
    Sample,
    /// `thread counter`: a counter of the thread on whose track it is, not of the process.
    #[serde(rename = "thread counter")]
    ThreadCounter,
    /// `python`: a function of an interpreter.
    Python,
    /// `remote transfer`: the same between processes, joined in the whole trace.
    #[serde(rename = "remote transfer")]
    RemoteTransfer,
    /// `edge`: arrows whose `correlation` is unique in the whole trace, not only in a process.
    Edge,
    /// `numerics`: an instant, whose name is a node's: whether its results are finite from now on; `arg` 1 NaN, 2 infinity, 4 minus infinity.
    Numerics,
    /// Anything else: spans and events of `tracing`, imports.
    #[serde(other)]
    Other,
}

impl Category {
    /// Whether it is a stamp of a value on its way between devices.
    #[must_use]
    pub fn is_transfer(self) -> bool {
        matches!(self, Category::Transfer | Category::RemoteTransfer)
    }

    /// Whether its `correlation` joins what several processes wrote.
    #[must_use]
    pub fn joins_processes(self) -> bool {
        matches!(self, Category::Edge | Category::RemoteTransfer)
    }

    /// From the text in the trace.
    #[must_use]
    pub fn from_name(name: &str) -> Category {
        Category::deserialize(StrDeserializer::<ValueError>::new(name)).unwrap_or(Category::Other)
    }
}

/// A call site: what a slice is called, and what its numbers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteInfo {
    /// What its slices mean.
    pub category: Category,
    /// The category as written (`op`, a `tracing` target, ...).
    pub category_name: String,
    /// Name: the op type, the step's label, the span's name.
    pub name: String,
    waits: bool,
}

impl SiteInfo {
    /// A site by what the producer wrote.
    #[must_use]
    pub fn new(category_name: &str, name: &str) -> SiteInfo {
        let category = Category::from_name(category_name);
        let waits = match category {
            Category::Wait | Category::Parked | Category::OffCpu => true,
            // Calls about events return at once.
            Category::Sync => !has_word(name, &["streamwaitevent", "eventquery"]),
            Category::Launch => has_word(name, &["synchroni"]),
            _ => false,
        };
        SiteInfo { category, category_name: category_name.to_owned(), name: name.to_owned(), waits }
    }

    /// Whether its slices wait, for work, a value, a device or a CPU, rather than do something.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits
    }
}

/// Whether a name has one of these words, which are in small letters.
pub fn has_word(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// A graph node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Full name, with scopes: `layer1/MatMul`.
    pub name: String,
    /// Op type.
    pub op: String,
    /// Device it was placed on.
    pub device: String,
}

/// A process that wrote into the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its id; from [`FIRST_OWN_PID`] on one that this program made up.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Its command.
    pub name: String,
    /// In a trace of several hosts: how its times were laid on the collector's clock.
    pub clock: Option<ClockOffset>,
    /// Nanoseconds per tick of its clock.
    pub ns_per_tick: f64,
    /// Whether the process records itself, rather than being recorded from outside.
    pub is_recorder: bool,
}

/// Processes of imported files whose id is taken, or is no number, are numbered from here.
pub const FIRST_OWN_PID: u32 = 1 << 31;

impl Process {
    /// Its rank in a job, which importers of several files say with the host: `rank 3`, or `node7, rank 3`.
    #[must_use]
    pub fn rank(&self) -> Option<u32> {
        let (before, rank) = self.host.rsplit_once("rank ")?;
        rank.parse().ok().filter(|_| before.is_empty() || before.ends_with(", "))
    }

    /// Its name, and its id where it has one of its own.
    #[must_use]
    pub fn title(&self) -> String {
        self.titled(&self.name)
    }

    /// The same, called `name`.
    #[must_use]
    pub fn titled(&self, name: &str) -> String {
        match self.pid {
            FIRST_OWN_PID.. => name.to_owned(),
            pid => format!("{name} ({pid})"),
        }
    }
}

/// How a host's times were laid on the collector's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockOffset {
    /// What was added to its latest times, ns; it grows or shrinks with the drift.
    pub offset_ns: i64,
    /// How much faster its clock runs than the collector's, parts per billion.
    pub drift_ppb: f64,
    /// No time of it is further from where it belongs, ns; 0 for the collector's own clock.
    pub bound_ns: u64,
}
