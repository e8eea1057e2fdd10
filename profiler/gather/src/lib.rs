//! Gathers the trace folders of many processes and hosts into one, over gRPC, and answers distant viewers from it.
//!
//! In reading order:
//!
//! 1. `identity`: a trace folder's id and a machine's clock, which outlive connections.
//! 2. `tail`, `exchange`, [`Sender`]: a folder's growing files and its clock's stamps, to a collector; [`Unsealed`]: those of a sealed one.
//! 3. `mirror`, `hub`: the collector's copies, what of them is safe, the clocks' files.
//! 4. `receive`, `limits`, [`Server`]: the collector's side of connections.
//! 5. `far`, [`Viewer`]: pictures of the gathered trace for those who are far away, and how to ask for them.
//!
//! A member of its own, not a part of `profiler`: what it needs for gRPC (tonic, hyper, tokio: about 60 crates, a minute of CPU time) would
//! else be compiled into the engine's tests and the dashboard too. docs/collection.md tells how to use it, docs/trace-format.md what it promises.

mod exchange;
mod far;
mod hub;
mod identity;
mod limits;
mod mirror;
mod receive;
mod sender;
mod server;
mod tail;
mod unsealed;
mod viewer;

/// The messages, generated from `proto/gather.proto`.
pub mod wire {
    #![allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)] // Generated; the .proto file has the comments.
    tonic::include_proto!("stepscope.gather.v1");
}

pub use identity::Clock;
pub use sender::{SendError, Sender, SenderOptions, SenderReport};
pub use server::{ServeError, Server, ServerOptions, ServerReport};
pub use unsealed::Unsealed;
pub use viewer::{FarSpan, ViewError, Viewer, spans};

/// Of the protocol.
pub(crate) const VERSION: u32 = 1;
/// The longest message that a collector and its senders take, bytes.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;
