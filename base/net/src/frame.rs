//! Frames: a head, which is a message, and a body, which is bulk data that is sent and received without copies.
//!
//! ```text
//! 0   u32  bytes of the head
//! 4   u64  bytes of the body
//! 12  u8   kind of the message; 255 is a heartbeat, whose head and body are empty
//! 13  u8   flag. 0: the body follows. Otherwise a list of the body's pieces follows in its place, and the body is
//!          1: in the sender's memory (`memory`), 2: sent by a fabric (`negotiation`)
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
/// The kind of the frame that offers the sender's memory.
pub(crate) const MEMORY_OFFER: u8 = 254;
/// The kind of the frame that reports that the other end's memory can be read.
pub(crate) const MEMORY_READS: u8 = 253;
/// The kind of the frame that releases a body in the receiving end's memory.
pub(crate) const MEMORY_RELEASE: u8 = 252;
/// The kind of the frame that has the sender's address in a fabric.
pub(crate) const FABRIC_OFFER: u8 = 251;
/// The first of the kinds that belong to the connection's own protocol.
pub const FIRST_CONTROL_KIND: u8 = FABRIC_OFFER;
/// The flag of a frame whose body lies in the sender's memory.
pub(crate) const IN_MEMORY: u8 = 1;
/// The flag of a frame whose body is sent by a fabric.
pub(crate) const BY_FABRIC: u8 = 2;

/// A piece of a frame's body, which lives until it is sent.
pub type Body = Box<dyn AsRef<[u8]> + Send>;

/// A frame to be sent.
pub struct Frame {
    /// The kind of the message; below [`FIRST_CONTROL_KIND`].
    pub kind: u8,
    /// The message.
    pub head: Vec<u8>,
    /// Bulk data, in pieces.
    pub body: Vec<Body>,
}

impl Frame {
    /// A frame without a body.
    pub fn message(kind: u8, head: Vec<u8>) -> Frame {
        Frame { kind, head, body: Vec::new() }
    }

    /// The body's length, bytes.
    pub fn body_len(&self) -> u64 {
        self.body.iter().map(|piece| (**piece).as_ref().len() as u64).sum()
    }

    /// The frame's length including the prefix, bytes.
    pub fn len(&self) -> u64 {
        PREFIX as u64 + self.head.len() as u64 + self.body_len()
    }

    /// Always false: a frame has at least its prefix.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns an error where a receiver with the same limits would refuse the frame.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), NetError> {
        check(self.head.len() as u64, self.body_len(), limits)
    }
}

/// A frame to be written: with its body, or with a list of the body's pieces in place of the body.
pub(crate) struct Outgoing {
    frame: Frame,
    flag: u8,
}

impl From<Frame> for Outgoing {
    fn from(frame: Frame) -> Outgoing {
        Outgoing { frame, flag: 0 }
    }
}

impl Outgoing {
    /// A frame with `list` in the body's place.
    pub fn with_list(kind: u8, head: Vec<u8>, flag: u8, list: Vec<u8>) -> Outgoing {
        Outgoing { frame: Frame { kind, head, body: vec![Box::new(list)] }, flag }
    }

    /// The number of bytes that are written.
    pub fn len(&self) -> u64 {
        self.frame.len()
    }

    fn prefix(&self) -> [u8; PREFIX] {
        let mut prefix = [0; PREFIX];
        // `check` limits the head's length to a u32.
        prefix[..4].copy_from_slice(&(self.frame.head.len() as u32).to_le_bytes());
        prefix[4..12].copy_from_slice(&self.frame.body_len().to_le_bytes());
        prefix[12] = self.frame.kind;
        prefix[13] = self.flag;
        prefix
    }

    /// Writes the frame without copying it, with as few system calls as possible. `timeout` is the writer's, for the
    /// error message.
    pub fn write(&self, to: &mut impl Write, timeout: Duration) -> Result<(), NetError> {
        let prefix = self.prefix();
        let Frame { head, body, .. } = &self.frame;
        let pieces = body.iter().map(|piece| (**piece).as_ref());
        let parts = [&prefix[..], head].into_iter().chain(pieces).filter(|piece| !piece.is_empty());
        let mut slices: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
        let mut unwritten = &mut slices[..];
        while !unwritten.is_empty() {
            match to.write_vectored(unwritten) {
                Ok(0) => return Err(NetError::Closed),
                Ok(n) => IoSlice::advance_slices(&mut unwritten, n),
                Err(error) => check_retry(error, timeout)?,
            }
        }
        Ok(())
    }
}

/// The error of bytes that are no frame.
pub(crate) fn malformed_frame() -> NetError {
    NetError::Protocol("what came is no frame".into())
}

/// Returns `Ok` where an interrupted call should be repeated. A call that timed out means that the other end is silent.
pub(crate) fn check_retry(error: std::io::Error, timeout: Duration) -> Result<(), NetError> {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Ok(()),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Err(NetError::Silent(timeout)),
        _ => Err(error.into()),
    }
}

/// Returns an error where `head` or `body`, in bytes, is over its limit.
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
