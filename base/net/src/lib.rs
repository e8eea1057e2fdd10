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
mod error;
pub mod frame;
pub mod hello;
mod limits;
mod listener;
mod memory;
mod negotiation;
mod outbox;
mod reader;
pub mod simulated;
mod stream;
mod tls;
mod transport;

pub use address::{Address, AddressError};
pub use authority::{Authority, IssuedCertificate, certify};
pub use channel::{Channel, Connection, Handler};
pub use error::NetError;
pub use frame::{Body, Frame};
pub use hello::{Identity, Peer};
pub use limits::Limits;
pub use listener::Listener;
pub use negotiation::{Fabric, set_fabric};
pub use outbox::Outbox;
pub use reader::Incoming;
pub use stream::Stream;
pub use tls::{Security, SecurityError};
pub use transport::{BodySource, Transport, check_under_way};
