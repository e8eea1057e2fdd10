//! Why a connection could not be made, or ended.

use std::time::Duration;

use crate::address::AddressError;

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
