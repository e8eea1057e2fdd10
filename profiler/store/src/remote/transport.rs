//! Transports, which carry requests to the process that has the trace.

use super::message::{Request, RequestKind, Response, ResponseKind, VERSION};
use bytes::Bytes;
use prost::Message;

/// Carries requests to the process that has the trace.
pub trait Transport: Send + Sync {
    /// Sends a request, waits, and returns the response of [`Server::respond`](super::Server::respond).
    ///
    /// # Errors
    /// Fails if no response was received.
    fn request(&self, request: &[u8]) -> Result<Bytes, RemoteError>;

    /// Location of the trace, for messages.
    fn location(&self) -> String;
}

/// Why a remote trace could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The connection failed or was lost.
    #[error("{0}")]
    Connection(String),
    /// The server refused the request, for this reason.
    #[error("the other side says: {0}")]
    Answer(String),
    /// The response is invalid, or belongs to another request.
    #[error("the response is invalid: {0}")]
    Invalid(&'static str),
    /// A table cannot be read.
    #[error("the response is invalid: {0}")]
    Table(String),
}

/// Sends a request and checks the response.
pub(super) fn call(transport: &dyn Transport, kind: RequestKind) -> Result<ResponseKind, RemoteError> {
    let response = transport.request(&Request { kind: Some(kind), version: VERSION }.encode_to_vec())?;
    let response = Response::decode(response).map_err(|_| RemoteError::Invalid("it is damaged"))?;
    if response.version != VERSION && !matches!(response.kind, Some(ResponseKind::Problem(_))) {
        return Err(RemoteError::Invalid("the two programs are of different versions"));
    }
    match response.kind.ok_or(RemoteError::Invalid("it is empty"))? {
        ResponseKind::Problem(problem) => Err(RemoteError::Answer(problem)),
        kind => Ok(kind),
    }
}
