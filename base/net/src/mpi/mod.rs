//! Large bodies by MPI, where both ends are of one world: processes that one `mpirun` (or Slurm's `srun --mpi`) started. MPI takes what
//! the hosts have: shared memory, InfiniBand and other RDMA, TCP. Everything else, and who may join, stays with the connection.
//!
//! ```text
//! one end                                                      the other
//! OFFER    the 16 bytes of the world's id, u32 rank       ->
//! a frame with flag 2; in its body's place u32 rank of
//! the sender, u32 tag, then of each piece u64 bytes       ->
//! the pieces, as messages of at most 4 MiB, in order      ->
//! ```
//!
//! MPI has no lost processes: where one is lost, `mpirun` ends all of its world. What waits for a message ends with its connection all the
//! same, or when no message came for [`Limits::silence`](crate::Limits); only where half of a message came, and the rest does not, is its
//! memory MPI's for good, and the whole world is ended ([`World`]).
//!
//! MPI's own traffic is not encrypted, whatever the connections are.

mod calls;
mod receive;
mod send;
mod world;

pub use receive::Messages;
pub use send::Peer;
pub use world::{Leaving, World};

use crate::frame::Frame;

/// Kind of the frame that says of which world the sender is.
pub const OFFER: u8 = 251;
/// What says in a frame's flags that its body comes by MPI.
pub const FLAG: u8 = 2;

/// Bytes of a message, at most: one that makes no progress for [`Limits::silence`](crate::Limits) counts as lost.
const MESSAGE: usize = 4 << 20;

/// What says of which world this process is, if it is of one.
pub(crate) fn offer() -> Option<Frame> {
    let here = world::here()?;
    let mut head = here.id.to_vec();
    head.extend(here.rank.to_le_bytes());
    Some(Frame::message(OFFER, head))
}
