//! Linux scheduling: who ran on each CPU, and for what a thread waited when it did not run.
//!
//! [`mod@format`] and [`page`] take the kernel's ring apart, [`mod@derive`] makes slices of its events, for recordings and for imports.
//!
//! A thread gets a track of slices in category `off cpu`, one per [state](ThreadState) that it was in (docs/formats/trace-format.md), and each CPU one
//! of slices in category `running`.

pub mod derive;
pub mod format;
pub mod page;

use crate::thread_state::ThreadState;

/// A thread's name as the kernel keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The first 15 bytes of a name.
    pub fn new(text: &[u8]) -> Comm {
        let mut name = [0; 16];
        let len = text.len().min(15);
        name[..len].copy_from_slice(&text[..len]);
        Comm(name)
    }

    /// The name as text.
    pub fn text(&self) -> String {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(16);
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

/// Something that the kernel reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// When, in the ticks of the output.
    pub time: u64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// What happened.
    pub kind: SchedKind,
}

/// The kinds of scheduler events.
#[allow(missing_docs, reason = "the fields are named as in the kernel's events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedKind {
    /// A CPU goes from one thread to another; 0 is the idle thread.
    Switch { prev: u32, prev_name: Comm, left: ThreadState, next: u32, next_name: Comm },
    /// A thread leaves its CPU, to whom is not known.
    Off { thread: u32, left: ThreadState },
    /// A thread gets a CPU, from whom is not known.
    On { thread: u32 },
    /// Thread `by` made another one runnable, on CPU `cpu`.
    Waking { by: u32, thread: u32, cpu: u32 },
    /// A thread made another one, in its own process or as a new process.
    Born { parent: u32, thread: u32, in_process: bool, name: Comm },
    /// A process runs another program from now on.
    Exec { process: u32, name: Comm },
    /// A thread has another name.
    Renamed { thread: u32, name: Comm },
    /// A thread ended.
    Exit { thread: u32 },
    /// A request to a disk begins or ends.
    Disk { device: u32, sector: u64, bytes: u32, by: u32, is_write: bool, ends: bool },
    /// A page that had to be read from a disk.
    MajorFault { thread: u32, address: u64 },
}

impl SchedKind {
    /// The thread that had the CPU when this happened there, and its name where that is reported.
    pub fn by(&self) -> Option<(u32, Option<Comm>)> {
        match *self {
            SchedKind::Switch { prev, prev_name, .. } => Some((prev, Some(prev_name))),
            SchedKind::Waking { by, .. } => Some((by, None)),
            SchedKind::Born { parent, .. } => Some((parent, None)),
            SchedKind::Exit { thread } => Some((thread, None)),
            _ => None,
        }
    }
}
