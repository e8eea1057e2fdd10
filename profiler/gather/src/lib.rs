//! Gathers the trace folders of many processes and hosts into one, over gRPC, and answers remote viewers from it.
//!
//! In reading order:
//!
//! 1. `identity`: a trace folder's id and a machine's clock, which outlive connections.
//! 2. `tail`, `exchange`, [`Sender`]: send a folder's growing files and its clock's stamps to a collector;
//!    [`transport()`]: over connections that the caller makes; [`Unsealed`]: of a sealed trace.
//! 3. `mirror`, `hub`: the collector's copies, the acknowledgements and the clocks' files.
//! 4. `receive`, `incoming`, [`Server`]: the collector's side of connections.
//! 5. `remote`, `folder`, [`Host`]: serve a gathered trace, or a folder of traces and event files, to remote viewers.
//! 6. [`Connection`], [`LogdirCopy`]: the viewer's side, to an address or through a program's standard input and
//!    output; [`Scratch`]: the temporary folder of a copy.
//! 7. `error`: the errors of starting a sender and of starting a collector.
//!
//! A member of its own, since its gRPC libraries (tonic, hyper, tokio: about 60 crates, a minute of CPU time) would
//! otherwise be compiled into the engine's tests and the dashboard too. docs/use/collection.md has the usage,
//! docs/formats/trace-format.md the guarantees.

mod connection;
mod copy;
mod error;
mod exchange;
mod folder;
mod hub;
mod identity;
mod incoming;
mod mirror;
mod receive;
mod remote;
mod scratch;
mod sender;
mod serve;
mod server;
mod tail;
mod transport;
mod unsealed;

/// The messages, generated from `proto/gather.proto`.
pub mod wire {
    #![allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)] // Generated; the .proto file has the comments.
    tonic::include_proto!("stepscope.gather.v1");
}

pub use connection::{Connection, ViewError};
pub use copy::{CopyError, CopyResult, LogdirCopy};
pub use error::{SendError, ServeError};
pub use hub::ServerReport;
pub use identity::Clock;
pub use scratch::Scratch;
pub use sender::{Sender, SenderOptions, SenderReport};
pub use serve::{Host, HostError, serve_stdio};
pub use server::{Server, ServerOptions};
pub use transport::{Transport, TransportProvider, transport};
pub use unsealed::Unsealed;

/// The version of the protocol.
pub(crate) const VERSION: u32 = 1;
/// A server's HTTP/2 flow-control windows of one stream and of a connection, bytes.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 2 << 20;
/// The longest message that a collector and its senders accept, bytes.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;
