//! Large bodies by MPI, where both ends are of one world: processes that one `mpirun` (or Slurm's `srun --mpi`)
//! started. MPI takes what the hosts have: shared memory, InfiniBand and other RDMA, TCP. Everything else, and who may
//! join, stays with the connection.
//!
//! ```text
//! one end                                                      the other
//! OFFER    the 16 bytes of the world's id, u32 rank       ->
//! a frame with flag 2; in its body's place u32 rank of
//! the sender, u32 tag, then of each piece u64 bytes       ->
//! the pieces, as messages of at most 4 MiB, in order      ->
//! ```
//!
//! MPI has no lost processes: where one is lost, `mpirun` ends all of its world. What waits for a message ends with its
//! connection all the same, or when no message came for [`Limits::silence`](crate::Limits); only where half of a
//! message came, and the rest does not, is its memory MPI's for good, and the whole world is ended ([`World`]).
//!
//! MPI's own traffic is not encrypted, whatever the connections are.

mod calls;
mod receive;
mod send;
mod sends;
mod world;

pub use receive::Messages;
pub use send::Peer;
pub(crate) use world::offer;
pub use world::{Leaving, World};
