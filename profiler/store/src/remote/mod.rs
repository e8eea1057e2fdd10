//! A trace that another process has: only what is shown comes from there.
//!
//! The other process has the trace in a [`Store`](crate::store::Store), whatever it is (being recorded, gathered, sealed, another tool's),
//! and a [`Server`] answers requests for it. Here a [`Viewer`] makes a store of its own, whose lanes are *remote*:
//!
//! 1. *State*: what is not a slice comes whole, as the tables of a [sealed](crate::seal) trace; those that did not change
//!    since are left out. Of each lane come its numbers of slices, and the start of each 4,096th (a *fence*).
//! 2. *Tiles*: pictures are made of tiles. One is 512 pixels of 2^n ns wide and holds the slices of a lane that begin in it, joined
//!    while they fit into a pixel, as [`lod`](trace_model::lod) does: at most 1,026 pieces, however many slices there are. Where each piece
//!    is a slice, no smaller tile is asked for.
//! 3. *Rows*: details and analyses need whole slices: they come by blocks of 4,096.
//!
//! Nothing here waits for the network but [`Viewer::poll`] and [`Pages::load_requested`](trace_model::Pages::load_requested), which
//! a loader's thread calls. A picture that lacks tiles shows larger ones, or a lane as one span; what it lacked is a page request. An
//! analysis asks [`Store::residency`](crate::store::Store::residency) first.
//!
//! Requests and responses are bytes ([`message`]); a [`Transport`] carries them: over gRPC, or through a program's standard input and output.
//! What comes is not trusted: every number is checked before it is used.

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
