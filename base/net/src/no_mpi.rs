//! Without the feature `mpi` no process is of a world, and nothing goes that way.

use crate::frame::{Body, Frame};
use crate::outbox::Outbox;
use crate::transport::{Source, Transport};
use crate::{Limits, NetError};

/// What says of which world this process is: of none.
pub fn offer() -> Option<Frame> {
    None
}

/// Another process of the world: there is none.
pub enum Peer {}

impl Peer {
    pub fn of(_: &[u8]) -> Option<Peer> {
        None
    }

    pub fn n_sent(&self) -> u64 {
        match *self {}
    }
}

impl Transport for Peer {
    fn flag(&self) -> u8 {
        match *self {}
    }

    fn send(&self, _: Vec<Body>, _: u64, _: &Limits) -> Result<Vec<u8>, NetError> {
        match *self {}
    }
}

/// A body that comes by MPI: there is none.
pub enum Messages {}

impl Messages {
    pub fn parse(_: &[u8], _: &Outbox) -> Option<(Messages, u64)> {
        None
    }
}

impl Source for Messages {
    fn read(&mut self, _: &mut [u8]) -> Result<(), NetError> {
        match *self {}
    }

    fn release(self: Box<Self>) -> Result<(), NetError> {
        match *self {}
    }
}
