//! Shows a trace that is in another process, and fetches only what is shown.
//!
//! The other process has any trace (live, gathered, sealed, imported) in a [`Store`](crate::store::Store), and a
//! [`Server`] responds to requests for it. In this process a [`Viewer`] makes a store of its own, whose lanes are
//! *remote*:
//!
//! 1. *State*: everything but slices is sent completely, as the tables of a [sealed](crate::seal) trace; tables that
//!    did not change are left out. For each lane the state has the number of slices, and the start of each 4,096th (a
//!    *fence*).
//! 2. *Tiles*: lanes are drawn from tiles. A tile is 512 pixels of 2^n ns wide and has the slices of a lane that begin
//!    in it, joined while they fit into a pixel, as [`lod`](trace_model::lod) does: at most 1,026 spans for any number
//!    of slices. If each span is one slice, no tile of a lower level is requested.
//! 3. *Rows*: details and analyses need slices with all fields, which are fetched in blocks of 4,096.
//!
//! Only [`Viewer::poll`] and [`PageLoader::load_requested`](trace_model::PageLoader::load_requested), which a loader
//! thread calls, wait for the network. A picture that lacks tiles shows those of a higher level, or a lane as one span,
//! and requests the missing ones. An analysis asks [`Store::residency`](crate::store::Store::residency) first.
//!
//! Requests and responses are bytes ([`message`]); a [`Transport`] carries them over gRPC, or through a program's
//! standard input and output. Responses are not trusted: every number is checked before it is used.

mod block;
mod key;
mod lane;
mod message;
mod pages;
mod server;
mod tile;
mod transport;
mod viewer;

#[cfg(test)]
mod tests;

pub use server::Server;
pub use transport::{RemoteError, Transport};
pub use viewer::Viewer;
