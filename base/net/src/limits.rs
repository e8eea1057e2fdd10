//! The limits of a connection.

use std::time::Duration;

/// The limits of a connection's memory and time.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest head of a frame, bytes.
    pub head: usize,
    /// The longest body of a frame, bytes.
    pub body: u64,
    /// The most bytes that may wait to be sent.
    pub outbox: u64,
    /// The longest time of one read or write of the handshake.
    pub hello: Duration,
    /// A pause after which a heartbeat is sent.
    pub heartbeat: Duration,
    /// A pause after which the other end counts as lost, and the longest time that a write may make no progress.
    pub silence: Duration,
    /// The most connections that may be in their handshake at once.
    pub openings: usize,
    /// Whether processes of the same host and user may read large bodies from this process's memory, not from the
    /// socket.
    pub lends: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: 256 << 20,
            body: 4 << 30,
            outbox: 16 << 30,
            hello: Duration::from_millis(1000),
            heartbeat: Duration::from_millis(400),
            // Where the network carries packets in one direction only, the other end's packets still arrive for half a
            // second, until it waits for acknowledgements.
            silence: Duration::from_millis(2000),
            openings: 64,
            lends: true,
        }
    }
}
