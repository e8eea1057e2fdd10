//! What the flight recorder of a rank has.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    stacks::{StackId, Stacks},
    texts::TextId,
    warnings::Warnings,
};

/// The dump of a rank.
#[derive(Debug)]
pub struct Recording {
    /// The global rank, which the file itself does not have.
    pub rank: u32,
    /// The version of the format, as "2.10".
    pub version: String,
    /// The version of the library that communicates, as NCCL's; empty where unknown.
    pub library_version: String,
    /// The process groups that the rank has, by name. Gloo's recorder has only some.
    pub groups: BTreeMap<String, GroupConfig>,
    /// How far each process group is, by `pg_id`.
    pub status: BTreeMap<i64, GroupStatus>,
    /// The latest operations, in the order in which the program called them. Their number is limited: earlier ones are lost.
    pub entries: Vec<Entry>,
    /// The stacks and texts that the entries refer to.
    pub stacks: Stacks,
    /// What was passed over.
    pub warnings: Warnings,
}

/// A process group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// What the program called it.
    pub description: String,
    /// Its global ranks, in ascending order.
    pub ranks: Vec<u32>,
}

/// How far a rank is in a process group: numbers of collectives; -1 where there was none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupStatus {
    /// The latest one that the program called.
    pub enqueued: i64,
    /// The latest one that began. Gloo does not record it.
    pub started: i64,
    /// The latest one that ended.
    pub completed: i64,
}

/// An operation on a process group.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number in the recorder, from 0 on. An entry with a number above 0 at the beginning says that earlier ones are lost.
    pub record_id: u64,
    /// The number of the process group in its process.
    pub pg_id: i64,
    /// The name of the process group, which all its ranks have in common.
    pub group: TextId,
    /// What the program called the process group.
    pub description: TextId,
    /// The number of the collective in its process group. The operations of a coalesced group share it.
    pub collective_seq_id: u64,
    /// The number of the send or receive in its process group.
    pub p2p_seq_id: u64,
    /// The number of the operation in its process group, also within a coalesced group.
    pub op_id: u64,
    /// Whether it is a send or a receive.
    pub is_p2p: bool,
    /// The library and the operation, as "nccl:all_reduce" or "gloo:send 0->1".
    pub profiling_name: TextId,
    /// What it reads.
    pub inputs: Arc<Tensors>,
    /// What it writes.
    pub outputs: Arc<Tensors>,
    /// How far it is, as the recorder has it. [`Recording::state_of`] also knows what gloo leaves out.
    pub state: State,
    /// Whether its process group no longer waits for it: it ended, or timed out.
    pub is_retired: bool,
    /// When the program called it, in nanoseconds since 1970.
    pub created_ns: i64,
    /// When the recorder saw that it had begun.
    pub started_ns: Option<i64>,
    /// When the recorder saw that it had ended.
    pub completed_ns: Option<i64>,
    /// How long it ran, in milliseconds, where the recorder measured it.
    pub duration_ms: Option<f64>,
    /// After how many milliseconds it times out.
    pub timeout_ms: i64,
    /// Where the program called it. Dumps in JSON have no stacks.
    pub stack: StackId,
}

/// The tensors that an operation reads or writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tensors {
    /// The shape of each.
    pub sizes: Vec<Vec<i64>>,
    /// The type of each, as "Float".
    pub dtypes: Vec<String>,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The program called it.
    Scheduled,
    /// It began.
    Started,
    /// It ended.
    Completed,
}

impl Recording {
    /// How far an entry of this recording is. Gloo records no beginnings and ends of operations, but how far the process
    /// group is: an entry that the group no longer waits for and has passed is complete.
    pub fn state_of(&self, entry: &Entry) -> State {
        let has_passed =
            |status: &GroupStatus| i64::try_from(entry.collective_seq_id).is_ok_and(|seq| seq <= status.completed);
        let status = self.status.get(&entry.pg_id);
        if entry.is_retired && !entry.is_p2p && status.is_some_and(has_passed) { State::Completed } else { entry.state }
    }
}
