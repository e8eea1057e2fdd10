//! The store's tables of names: processes, call sites, graph nodes.
//!
//! Producers use ids of their own; the store maps each (process, id) to a row of one table for the entire trace. Sites
//! with the same category and name are one row, as are nodes with the same name, op and device: processes of one job
//! share them.

use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

/// The meaning of a site's slices and their numbers. Producers write it as text.
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
    /// `parked`: an op that waits, without blocking a thread, for a row of a queue, for room in a queue or for a value;
    /// `arg` says which.
    Parked,
    /// `alloc`: memory of a device.
    Alloc,
    /// `transfer`: a stamp of a value that is sent between devices.
    Transfer,
    /// `launch`: a host's call that enqueues work for a device; `correlation` is that of the work.
    Launch,
    /// `kernel`: a device's computation; `correlation` is that of the launch.
    Kernel,
    /// `copy`: memory copied or set by a device, `arg` bytes; `correlation` is that of the launch.
    Copy,
    /// `collective`: a computation that waits for the same of other devices (all-reduce and the like).
    Collective,
    /// `sync`: a host's call, or a stream, that waits for a device.
    Sync,
    /// `input`: the work of a data loader, which makes the step's input.
    Input,
    /// `running`: on a CPU's track, the thread that ran; `correlation` is the kernel's id of the thread.
    Running,
    /// `off cpu`: a thread that did not run; the site's name is the reason, `correlation` is the waker's thread id.
    #[serde(rename = "off cpu")]
    OffCpu,
    /// `sample`: a running thread's call stack was taken; `arg` is its row of `Store::stacks`.
    Sample,
    /// `thread counter`: a counter of one thread, on that thread's track.
    #[serde(rename = "thread counter")]
    ThreadCounter,
    /// `python`: a function of an interpreter.
    Python,
    /// `remote transfer`: a stamp of a value that is sent between processes, joined by its number across processes.
    #[serde(rename = "remote transfer")]
    RemoteTransfer,
    /// `edge`: flows whose `correlation` is unique in the entire trace, not only in a process.
    Edge,
    /// `numerics`: an instant from which on the results of the node that it names have the bits of `arg`: 1 NaN, 2
    /// infinity, 4 minus infinity, 0 only finite values.
    Numerics,
    /// Anything else: spans and events of `tracing`, imports.
    #[serde(other)]
    Other,
}

impl Category {
    /// Whether events of the category are stamps of transfers.
    #[must_use]
    pub fn is_transfer(self) -> bool {
        matches!(self, Category::Transfer | Category::RemoteTransfer)
    }

    /// Whether `correlation` joins events of several processes.
    #[must_use]
    pub fn joins_processes(self) -> bool {
        matches!(self, Category::Edge | Category::RemoteTransfer)
    }

    /// The category with a name; [`Category::Other`] for an unknown name.
    #[must_use]
    pub fn from_name(name: &str) -> Category {
        Category::deserialize(StrDeserializer::<ValueError>::new(name)).unwrap_or(Category::Other)
    }
}

/// A call site: category and name of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteInfo {
    /// Category of the slices.
    pub category: Category,
    /// The category as written (`op`, a `tracing` target, ...).
    pub category_name: String,
    /// Name: the op type, the step's label, the span's name.
    pub name: String,
    waits: bool,
}

impl SiteInfo {
    /// A site with the texts of a producer.
    #[must_use]
    pub fn new(category_name: &str, name: &str) -> SiteInfo {
        let category = Category::from_name(category_name);
        let waits = match category {
            Category::Wait | Category::Parked | Category::OffCpu => true,
            // Calls that query an event, or make a stream wait for one, return at once.
            Category::Sync => !has_word(name, &["streamwaitevent", "eventquery"]),
            Category::Launch => has_word(name, &["synchroni"]),
            _ => false,
        };
        SiteInfo { category, category_name: category_name.to_owned(), name: name.to_owned(), waits }
    }

    /// Whether the site's slices wait (for work, a value, a device, a CPU) rather than work.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits
    }
}

/// Whether a name, in any case, contains one of these lower-case words.
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
    /// Device on which the node was placed.
    pub device: String,
}

/// A process that wrote into the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// The process id; from [`FIRST_SYNTHETIC_PID`] on, an importer chose it.
    pub pid: u32,
    /// The host.
    pub host: String,
    /// The command.
    pub name: String,
    /// How times were converted to the collector's clock, in a trace of several hosts.
    pub clock: Option<ClockOffset>,
    /// Nanoseconds per tick of the process's clock.
    pub ns_per_tick: f64,
    /// Whether the process records itself, rather than being recorded from outside.
    pub is_recorder: bool,
}

/// The first id for processes of imported files whose own id is in use or is not a number.
pub const FIRST_SYNTHETIC_PID: u32 = 1 << 31;

impl Process {
    /// The rank in a job, which importers of several files add to the host: `rank 3`, or `node7, rank 3`.
    #[must_use]
    pub fn rank(&self) -> Option<u32> {
        let (prefix, rank) = self.host.rsplit_once("rank ")?;
        rank.parse().ok().filter(|_| prefix.is_empty() || prefix.ends_with(", "))
    }

    /// Name and id; only the name if an importer chose the id.
    #[must_use]
    pub fn title(&self) -> String {
        self.titled(&self.name)
    }

    /// As [`Process::title`], with another name.
    #[must_use]
    pub fn titled(&self, name: &str) -> String {
        match self.pid {
            FIRST_SYNTHETIC_PID.. => name.to_owned(),
            pid => format!("{name} ({pid})"),
        }
    }
}

/// How a host's times were converted to the collector's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockOffset {
    /// The offset, ns, that is added to the host's latest times; it changes with the drift.
    pub offset_ns: i64,
    /// How much faster the host's clock runs than the collector's, parts per billion.
    pub drift_ppb: f64,
    /// Error of the converted times, ns, at most; 0 for the collector's clock.
    pub bound_ns: u64,
}
