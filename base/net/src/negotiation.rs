//! What the two ends of a connection agree on for large bodies: each offers the other its memory, if both are on one
//! host, and its address in a [`Fabric`], if it is in one.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::frame::{FABRIC_OFFER, Frame, IN_MEMORY, MEMORY_OFFER, MEMORY_READS, MEMORY_RELEASE, malformed_frame};
use crate::memory::{BorrowedBody, RemoteMemory};
use crate::outbox::Outbox;
use crate::stream::Stream;
use crate::transport::{BodySource, Transport};
use crate::{Limits, NetError};

/// A network other than that of the connections which this process is in, such as the processes of one MPI launcher.
pub trait Fabric: Send + Sync {
    /// This process's address in the fabric, in at most 32 bytes.
    fn address(&self) -> Vec<u8>;

    /// The transport to the process with this address. `None` where it is malformed, or of another fabric.
    fn transport_to(self: Arc<Self>, address: &[u8]) -> Option<Box<dyn Transport>>;

    /// Opens the body that the sender's [`Transport::send`] described by `list`; returns it with its length in bytes.
    /// Its reads end with the connection of `outbox`. `None` where `list` is malformed.
    fn open(self: Arc<Self>, list: &[u8], outbox: &Outbox) -> Option<(Box<dyn BodySource>, u64)>;
}

/// The fabric that this process is in.
static FABRIC: Mutex<Option<Arc<dyn Fabric>>> = Mutex::new(None);

/// Enters a fabric, which connections that start from now on offer, or with `None` leaves it.
pub fn set_fabric(fabric: Option<Arc<dyn Fabric>>) {
    *FABRIC.lock() = fabric;
}

fn fabric() -> Option<Arc<dyn Fabric>> {
    FABRIC.lock().clone()
}

/// The transports other than the connection that its two ends have agreed on.
pub struct Transports {
    /// Sends answers to the other end's offers.
    outbox: Outbox,
    /// The other end's memory, where it can be read.
    memory: Option<Arc<RemoteMemory>>,
}

impl Transports {
    /// Offers this end's transports. There are none between both ends of a simulated stream, which are in this process.
    pub fn offer(outbox: Outbox, stream: &Stream, limits: &Limits) -> Result<Transports, NetError> {
        if limits.lends && stream.is_within_host() {
            outbox.post(Frame::message(MEMORY_OFFER, outbox.lender().offer()))?;
        }
        if let Some(fabric) = fabric().filter(|_| !stream.is_simulated()) {
            outbox.post(Frame::message(FABRIC_OFFER, fabric.address()))?;
        }
        Ok(Transports { outbox, memory: None })
    }

    /// Handles a frame of the connection's own protocol.
    pub fn handle(&mut self, kind: u8, head: &[u8]) -> Result<(), NetError> {
        match kind {
            MEMORY_OFFER => {
                self.memory = RemoteMemory::from_offer(head).map(Arc::new);
                if self.memory.is_some() {
                    self.outbox.post(Frame::message(MEMORY_READS, Vec::new()))?;
                }
            }
            MEMORY_READS => self.outbox.lender().set_readable(),
            MEMORY_RELEASE => {
                let ticket = head.try_into().map_err(|_| malformed_frame())?;
                self.outbox.lender().release(u64::from_le_bytes(ticket));
            }
            FABRIC_OFFER => {
                if let Some(transport) = fabric().and_then(|fabric| fabric.transport_to(head)) {
                    self.outbox.set_fabric(transport);
                }
            }
            _ => return Err(malformed_frame()),
        }
        Ok(())
    }

    /// Opens the body that `list` describes; returns it with its length in bytes.
    pub fn open(&self, flag: u8, list: &[u8]) -> Option<(Box<dyn BodySource>, u64)> {
        if flag != IN_MEMORY {
            return fabric()?.open(list, &self.outbox);
        }
        let (borrowed, bytes) = BorrowedBody::parse(list, self.memory.as_ref()?, &self.outbox)?;
        Some((Box::new(borrowed), bytes))
    }
}
