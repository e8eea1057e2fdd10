//! Framed channels between the processes of a job.
//!
//! In the order in which a channel is set up: the address at which a process listens ([`Address`]), the handshake
//! ([`Identity`], [`hello`]), the frames that a connection carries ([`frame`]), the transports that carry large bodies
//! outside it ([`Transport`]), within a host (`memory`), the sender ([`Outbox`]), the agreement of both ends on a
//! transport (`negotiation`), which may be another crate's ([`Fabric`]), then the receiver (`reader`, [`Channel`],
//! [`Handler`]).
//!
//! Every wait is bounded: a connection is closed where a step of its handshake takes longer than [`Limits::hello`], and
//! counts as lost where nothing was received for [`Limits::silence`]; heartbeats fill pauses. Before its handshake a
//! connection gets no memory except for a hello. Between hosts every connection is encrypted, and both ends show a
//! certificate of the job's authority ([`Security`]); without certificates, addresses of other hosts are refused.

mod address;
mod authority;
mod channel;
pub mod frame;
pub mod hello;
mod listener;
mod memory;
mod negotiation;
mod outbox;
mod reader;
pub mod simulated;
mod stream;
mod tls;
mod transport;

use std::time::Duration;

pub use address::{Address, AddressError};
pub use authority::{Authority, IssuedCertificate, certify};
pub use channel::{Channel, Connection, Handler};
pub use frame::{Body, Frame};
pub use hello::{Identity, Peer};
pub use listener::Listener;
pub use negotiation::{Fabric, set_fabric};
pub use outbox::Outbox;
pub use reader::Incoming;
pub use stream::Stream;
pub use tls::{Security, SecurityError};
pub use transport::{BodySource, Transport, check_under_way};

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

/// Why a connection could not be made, or ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// An error of the system.
    #[error("{0}")]
    Io(std::sync::Arc<std::io::Error>),
    /// The other end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// Nothing was received, or nothing could be sent, for too long.
    #[error("the other end is silent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The received bytes are not of this protocol, or of another version.
    #[error("{0}")]
    Protocol(String),
    /// One end refused the other, with the reason.
    #[error("refused: {0}")]
    Refused(String),
    /// A message, a body or a queue is over its limit.
    #[error("{what} of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// The kind of data that is too large.
        what: &'static str,
        /// The size of the data.
        bytes: u64,
        /// The limit, in the same unit.
        limit: u64,
    },
    /// A transport other than the connection failed.
    #[error("{0}")]
    Transport(String),
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
}

impl From<std::io::Error> for NetError {
    fn from(error: std::io::Error) -> NetError {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return NetError::Refused(format!("TLS: {tls}"));
        }
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe => NetError::Closed,
            _ => NetError::Io(std::sync::Arc::new(error)),
        }
    }
}
