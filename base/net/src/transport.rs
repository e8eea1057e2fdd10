//! Transports of large bodies outside a connection: the frame's flag names the transport, and in the body's place the
//! frame carries a list by which the other end fetches the body.

use crate::frame::{Body, Frame};
use crate::{Limits, NetError};

/// The smallest body that goes outside the connection: for smaller ones a socket's copies cost less than the list and
/// the release.
const MIN_BYTES: u64 = 64 << 10;
/// A body of more pieces than this goes over the connection.
const MAX_PIECES: usize = 4096;
/// The longest list, in bytes: one u64 for the body, two for each piece.
pub const MAX_LIST: u64 = 8 + 16 * MAX_PIECES as u64;

/// Whether a frame's body should go outside the connection: a large body with at most [`MAX_PIECES`] pieces.
pub fn is_sent_outside(frame: &Frame) -> bool {
    frame.body.len() <= MAX_PIECES && frame.body_len() >= MIN_BYTES
}

/// A transport of bodies.
pub trait Transport: Send + Sync {
    /// Sends a body of `bytes`, which the transport owns until it is sent. Returns the list for the other end. Never
    /// waits.
    ///
    /// # Errors
    /// More than [`Limits::outbox`] bytes would be under way.
    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError>;

    /// The number of bodies that were sent so far.
    fn n_sent(&self) -> u64;
}

/// A body that is received outside the connection.
pub trait BodySource: Send {
    /// Fills `to` with the body's next bytes; the caller checked that at least as many are left.
    ///
    /// # Errors
    /// The bytes cannot be received.
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError>;

    /// Releases the body, whether it was read or its rest is skipped.
    ///
    /// # Errors
    /// The transport has to receive the rest, and cannot.
    fn release(self: Box<Self>) -> Result<(), NetError>;
}

/// Checks that so many `bytes` may be under way at once.
///
/// # Errors
/// They are more than [`Limits::outbox`].
pub fn check_under_way(bytes: u64, limits: &Limits) -> Result<(), NetError> {
    match bytes > limits.outbox {
        true => Err(NetError::TooLarge { what: "what waits to be sent", bytes, limit: limits.outbox }),
        false => Ok(()),
    }
}
