//! Framed channels between the processes of a job.
//!
//! In the order in which a channel comes to be: where a process listens ([`Address`]), who it lets in ([`Identity`],
//! [`hello`]), what goes over a connection ([`frame`], `reader`) and what goes outside it (`transport`): within a host
//! (`memory`), or by MPI (`mpi`, a feature); who sends it ([`Outbox`]) and who takes it ([`Channel`], [`Handler`]).
//!
//! Every wait ends: an opening that takes longer than [`Limits::hello`] is closed, a connection on which nothing came
//! for [`Limits::silence`] counts as lost, heartbeats fill pauses. Before it introduced itself, a connection gets no
//! memory but for a hello. Between hosts every connection is encrypted, and both ends show a certificate of the job's
//! authority ([`Security`]); without that, addresses beyond the host are refused.

mod address;
mod authority;
mod channel;
pub mod frame;
pub mod hello;
mod listener;
mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "no_mpi.rs"]
mod mpi;
mod outbox;
mod reader;
pub mod simulated;
mod stream;
mod tls;
mod transport;

use std::time::Duration;

pub use address::{Address, AddressError};
pub use authority::{Authority, Issued, certify};
pub use channel::{Channel, Connection, Handler};
pub use frame::{Body, Frame};
pub use hello::{Identity, Peer};
pub use listener::Listener;
pub use outbox::Outbox;
pub use reader::Incoming;
pub use stream::Stream;
pub use tls::{Security, SecurityError};

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a frame's head.
    pub head: usize,
    /// Bytes of a frame's body.
    pub body: u64,
    /// Bytes that wait to be sent.
    pub outbox: u64,
    /// How long a step of the opening may take.
    pub hello: Duration,
    /// A pause after which a heartbeat is sent.
    pub heartbeat: Duration,
    /// A pause after which the other end counts as lost, and the longest time that a write may make no progress.
    pub silence: Duration,
    /// Connections that may be opening at once.
    pub openings: usize,
    /// Whether processes of the same host and user may take large bodies from this process's memory, rather than
    /// through the socket.
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
            // Where packets go in one direction only, the other end is heard for another half second, until it waits
            // for acknowledgements.
            silence: Duration::from_millis(2000),
            openings: 64,
            lends: true,
        }
    }
}

/// Why a connection did not come to be, or ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The system says.
    #[error("{0}")]
    Io(std::sync::Arc<std::io::Error>),
    /// The other end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// Nothing came for too long, or nothing could be sent.
    #[error("the other end is silent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// What came is not this protocol, or another version of it.
    #[error("{0}")]
    Protocol(String),
    /// The other end does not let this one in, and says why.
    #[error("refused: {0}")]
    Refused(String),
    /// More than a limit allows.
    #[error("{what} of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// MPI refuses a call.
    #[error("MPI: {call} failed with code {code}")]
    Mpi {
        /// The call.
        call: &'static str,
        /// MPI's number of the reason.
        code: i32,
    },
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
