//! Frames: a head, which is a message, and a body, which is bulk data that goes from and to memory uncopied.
//!
//! ```text
//! 0   u32  bytes of the head
//! 4   u64  bytes of the body
//! 12  u8   kind: what the head is; 255 is a heartbeat, empty
//! 13  u8   flags, of a body that does not go over the connection, with a list in its place: 1, it lies in the sender's memory
//!          (`memory`); 2, it comes by MPI
//! 14  2 bytes, zero
//! 16  head
//!     body
//! ```
//!
//! Numbers are little-endian.

use std::io::{IoSlice, Write};
use std::time::Duration;

use crate::{Limits, NetError};

/// Bytes before a frame's head.
pub const PREFIX: usize = 16;
/// The kind of heartbeats.
pub const HEARTBEAT: u8 = 255;
/// The kind of the frame that shows the sender's memory.
pub(crate) const MEMORY_OFFER: u8 = 254;
/// The kind of the frame that reports that the other end's memory can be read.
pub(crate) const MEMORY_READS: u8 = 253;
/// The kind of the frame that releases a body in the other end's memory.
pub(crate) const MEMORY_RELEASE: u8 = 252;
/// The kind of the frame that names the sender's MPI world.
pub(crate) const MPI_OFFER: u8 = 251;
/// Kinds from here on are the connection's own.
pub const FIRST_OWN_KIND: u8 = MPI_OFFER;
/// The flag of a frame whose body lies in the sender's memory.
pub(crate) const IN_MEMORY: u8 = 1;
/// The flag of a frame whose body comes by MPI.
pub(crate) const BY_MPI: u8 = 2;

/// Bytes that a frame's body consists of, held until they are sent.
pub type Body = Box<dyn AsRef<[u8]> + Send>;

/// A frame to be sent.
pub struct Frame {
    /// What the head is; below [`FIRST_OWN_KIND`].
    pub kind: u8,
    /// The message.
    pub head: Vec<u8>,
    /// Bulk data, piece after piece.
    pub body: Vec<Body>,
}

impl Frame {
    /// A frame without a body.
    pub fn message(kind: u8, head: Vec<u8>) -> Frame {
        Frame { kind, head, body: Vec::new() }
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> u64 {
        self.body.iter().map(|piece| (**piece).as_ref().len() as u64).sum()
    }

    /// All bytes.
    pub fn len(&self) -> u64 {
        PREFIX as u64 + self.head.len() as u64 + self.body_len()
    }

    /// A frame is never empty.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether a receiver with the same limits takes it.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), NetError> {
        check(self.head.len() as u64, self.body_len(), limits)
    }
}

/// A frame as it is written: with its body, or with a list of where that lies.
pub(crate) struct Outgoing {
    frame: Frame,
    flags: u8,
}

impl From<Frame> for Outgoing {
    fn from(frame: Frame) -> Outgoing {
        Outgoing { frame, flags: 0 }
    }
}

impl Outgoing {
    /// In place of a body, the list by which it is taken.
    pub fn with_list(kind: u8, head: Vec<u8>, flags: u8, list: Vec<u8>) -> Outgoing {
        Outgoing { frame: Frame { kind, head, body: vec![Box::new(list)] }, flags }
    }

    /// All bytes that are written.
    pub fn len(&self) -> u64 {
        self.frame.len()
    }

    fn prefix(&self) -> [u8; PREFIX] {
        let mut prefix = [0; PREFIX];
        // Checked against the limits before.
        prefix[..4].copy_from_slice(&(self.frame.head.len() as u32).to_le_bytes());
        prefix[4..12].copy_from_slice(&self.frame.body_len().to_le_bytes());
        prefix[12] = self.frame.kind;
        prefix[13] = self.flags;
        prefix
    }

    /// Writes it with as few calls as the system allows, nothing copied.
    pub fn write(&self, to: &mut impl Write, patience: Duration) -> Result<(), NetError> {
        let prefix = self.prefix();
        let Frame { head, body, .. } = &self.frame;
        let pieces = body.iter().map(|piece| (**piece).as_ref());
        let all = [&prefix[..], head].into_iter().chain(pieces).filter(|piece| !piece.is_empty());
        let mut slices: Vec<IoSlice<'_>> = all.map(IoSlice::new).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            match to.write_vectored(left) {
                Ok(0) => return Err(NetError::Closed),
                Ok(n) => IoSlice::advance_slices(&mut left, n),
                Err(error) => retried(error, patience)?,
            }
        }
        Ok(())
    }
}

/// Interrupted calls are made again; one that timed out means that the other end is silent.
pub(crate) fn retried(error: std::io::Error, patience: Duration) -> Result<(), NetError> {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Ok(()),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Err(NetError::Silent(patience)),
        _ => Err(error.into()),
    }
}

/// An error where head or body are over the limits.
pub(crate) fn check(head: u64, body: u64, limits: &Limits) -> Result<(), NetError> {
    let head_limit = (limits.head as u64).min(u64::from(u32::MAX));
    if head > head_limit {
        return Err(NetError::TooLarge { what: "a message", bytes: head, limit: head_limit });
    }
    if body > limits.body {
        return Err(NetError::TooLarge { what: "a tensor", bytes: body, limit: limits.body });
    }
    Ok(())
}
