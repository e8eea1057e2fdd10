//! Linux scheduling: the threads that ran on each CPU, and the reasons why threads did not run.
//!
//! [`mod@format`] and [`page`] decode the kernel's trace ring, [`mod@derive`] derives slices from its events, for
//! recordings and imports.
//!
//! A thread has a track with slices of category `off cpu`, one for each [state](ThreadState) that it was in
//! (docs/formats/trace-format.md); a CPU has a track with slices of category `running`.

pub mod derive;
pub mod format;
pub mod page;

use crate::thread_state::ThreadState;

/// The name of a thread, as the kernel stores it.
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

/// A scheduler event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// Time, in the ticks of the output.
    pub time: u64,
    /// The CPU on which the event happened.
    pub cpu: u32,
    /// Kind, with the fields of the kernel's event.
    pub kind: SchedKind,
}

/// The kinds of scheduler events.
#[allow(missing_docs, reason = "the fields are named as in the kernel's events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedKind {
    /// A CPU switches from one thread to another; 0 is the idle thread.
    Switch { prev: u32, prev_name: Comm, left: ThreadState, next: u32, next_name: Comm },
    /// A thread leaves its CPU; which thread gets it is unknown.
    Off { thread: u32, left: ThreadState },
    /// A thread gets a CPU; which thread left it is unknown.
    On { thread: u32 },
    /// Thread `by` made another thread runnable, on CPU `cpu`.
    Waking { by: u32, thread: u32, cpu: u32 },
    /// A thread created another thread, in its process or as a new process.
    Fork { parent: u32, thread: u32, in_process: bool, name: Comm },
    /// A process runs another program from now on.
    Exec { process: u32, name: Comm },
    /// A thread was renamed.
    Renamed { thread: u32, name: Comm },
    /// A thread ended.
    Exit { thread: u32 },
    /// A request to a disk begins or ends.
    Disk { device: u32, sector: u64, bytes: u32, by: u32, is_write: bool, ends: bool },
    /// A page fault for which a page was read from a disk.
    MajorFault { thread: u32, address: u64 },
}

impl SchedKind {
    /// The thread on whose CPU the event occurred, with its name if that is reported; `None` if the event does not say.
    pub fn waker(&self) -> Option<(u32, Option<Comm>)> {
        match *self {
            SchedKind::Switch { prev, prev_name, .. } => Some((prev, Some(prev_name))),
            SchedKind::Waking { by, .. } => Some((by, None)),
            SchedKind::Fork { parent, .. } => Some((parent, None)),
            SchedKind::Exit { thread } => Some((thread, None)),
            _ => None,
        }
    }
}
