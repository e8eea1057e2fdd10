//! The stand-in for `mpi` without the feature of that name: no process is in an MPI world.

use crate::frame::{Body, Frame};
use crate::outbox::Outbox;
use crate::transport::{BodySource, Transport};
use crate::{Limits, NetError};

/// The frame that names this process's world: none.
pub fn offer() -> Option<Frame> {
    None
}

/// Another process of the world; no value exists.
pub enum Peer {}

impl Peer {
    pub fn from_offer(_: &[u8]) -> Option<Peer> {
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

/// A body that is received by MPI; no value exists.
pub enum MpiBody {}

impl MpiBody {
    pub fn parse(_: &[u8], _: &Outbox) -> Option<(MpiBody, u64)> {
        None
    }
}

impl BodySource for MpiBody {
    fn read(&mut self, _: &mut [u8]) -> Result<(), NetError> {
        match *self {}
    }

    fn release(self: Box<Self>) -> Result<(), NetError> {
        match *self {}
    }
}
