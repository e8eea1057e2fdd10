//! Transports of large bodies outside a connection: the frame's flag names the transport, and in the body's place it carries a list by
//! which the other end takes the body. The connection's own frames negotiate them: for both ends on one host (`memory`), and for
//! both in one MPI world (`mpi`).

use crate::frame::{Body, Frame};
use crate::{Limits, NetError};

/// Bodies from this size on go outside the connection: below, a socket's copies cost less than what else it takes.
const MIN_BYTES: u64 = 64 << 10;
/// A body of more pieces goes over the connection.
const MAX_PIECES: usize = 4096;
/// Bytes of a list, at most: a number for the body, two for each piece.
pub const MAX_LIST: u64 = 8 + 16 * MAX_PIECES as u64;

/// Whether a body is worth it: large, and not of too many pieces.
pub fn is_worth_it(frame: &Frame) -> bool {
    frame.body.len() <= MAX_PIECES && frame.body_len() >= MIN_BYTES
}

/// A transport of bodies.
pub trait Transport: Send + Sync {
    /// Its flag in a frame.
    fn flag(&self) -> u8;

    /// Takes a body of `bytes`, holds it as long as it takes to send it, and gives the list for the other end. Never waits.
    ///
    /// # Errors
    /// More would be under way than may wait to be sent.
    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError>;
}

/// A body that came.
pub trait Source: Send {
    /// Fills `to` with its next bytes; there are so many.
    ///
    /// # Errors
    /// They do not come.
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError>;

    /// It was read, or nobody wants the rest.
    ///
    /// # Errors
    /// What is left has to be taken, and does not come.
    fn done(self: Box<Self>) -> Result<(), NetError>;
}

/// An error where more than `limits` allow would be under way.
pub fn check_under_way(bytes: u64, limits: &Limits) -> Result<(), NetError> {
    match bytes > limits.outbox {
        true => Err(NetError::TooLarge { what: "what waits to be sent", bytes, limit: limits.outbox }),
        false => Ok(()),
    }
}
