//! Recordings of the flight recorder: which collectives each rank started and which ended.

mod collectives;
mod matching;
mod members;
mod model;
mod operation;
mod read;
mod transfers;

pub use collectives::{Cell, Collective, Group, Stall, WaitingRank, groups};
pub use matching::{Mismatch, MismatchKind};
pub use model::{Entry, GroupConfig, GroupStatus, Recording, State, Tensors};
pub(crate) use read::{is_recording, recording_of};
pub use read::{rank_of_file, read_recording};
pub use transfers::OpenTransfer;
