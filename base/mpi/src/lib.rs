//! Large bodies by MPI, where both ends are in one world: processes that one `mpirun` (or Slurm's `srun --mpi`)
//! started. MPI uses the fastest path of the hosts: shared memory, InfiniBand and other RDMA, TCP. The connection still
//! carries all other data, and authenticates the processes.
//!
//! ```text
//! sender                                                      receiver
//! FABRIC_OFFER  the 16 bytes of the world's id, u32 rank  ->
//! a frame with the flag BY_FABRIC, and in its body's
//! place u32 rank of the sender, u32 tag, then for each
//! piece u64 bytes                                         ->
//! the pieces, as MPI messages of at most 4 MiB, in order  ->
//! ```
//!
//! MPI does not survive a lost process: `mpirun` then ends the entire world. A wait for a message ends with its
//! connection, or when no message was received for `net::Limits::silence`. Only where a part of a message was
//! received and the rest does not follow, MPI may write to the message's memory at any time, and the entire world is
//! ended (`World`).
//!
//! MPI's own traffic is not encrypted, even where the connections are.
//!
//! Without the feature `mpi` this crate is empty.
#![cfg(feature = "mpi")]

mod calls;
mod receive;
mod send;
mod sends;
mod world;

use std::sync::Arc;

use net::{BodySource, Fabric, Outbox, Transport};

use receive::MpiBody;
use send::Peer;
use world::Membership;
pub use world::{LeaveRequest, World};

impl Fabric for Membership {
    fn address(&self) -> Vec<u8> {
        [&self.id[..], &self.rank.to_le_bytes()].concat()
    }

    fn transport_to(self: Arc<Self>, address: &[u8]) -> Option<Box<dyn Transport>> {
        Some(Box::new(Peer::from_address(self, address)?))
    }

    fn open(self: Arc<Self>, list: &[u8], outbox: &Outbox) -> Option<(Box<dyn BodySource>, u64)> {
        let (body, bytes) = MpiBody::parse(self, list, outbox)?;
        Some((Box::new(body), bytes))
    }
}
