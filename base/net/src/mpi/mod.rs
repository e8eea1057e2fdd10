//! Large bodies by MPI, where both ends are in one world: processes that one `mpirun` (or Slurm's `srun --mpi`)
//! started. MPI uses the fastest path of the hosts: shared memory, InfiniBand and other RDMA, TCP. The connection still
//! carries all other data, and authenticates the processes.
//!
//! ```text
//! sender                                                      receiver
//! MPI_OFFER  the 16 bytes of the world's id, u32 rank     ->
//! a frame with the flag BY_MPI, and in its body's place
//! u32 rank of the sender, u32 tag, then for each piece
//! u64 bytes                                               ->
//! the pieces, as MPI messages of at most 4 MiB, in order  ->
//! ```
//!
//! MPI does not survive a lost process: `mpirun` then ends the entire world. A wait for a message ends with its
//! connection, or when no message was received for [`Limits::silence`](crate::Limits). Only where a part of a message
//! was received and the rest does not follow, MPI may write to the message's memory at any time, and the entire world
//! is ended ([`World`]).
//!
//! MPI's own traffic is not encrypted, even where the connections are.

mod calls;
mod receive;
mod send;
mod sends;
mod world;

pub use receive::MpiBody;
pub use send::Peer;
pub(crate) use world::offer;
pub use world::{LeaveRequest, World};
