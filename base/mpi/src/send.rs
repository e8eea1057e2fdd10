//! Sending bodies to another process of the world.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net::{Body, Limits, NetError, Transport, check_under_way};

use crate::world::Membership;

/// Another process of the world.
pub struct Peer {
    membership: Arc<Membership>,
    rank: u32,
    /// Bytes under way to this process.
    under_way: Arc<AtomicU64>,
    n_sent: AtomicU64,
}

impl Peer {
    /// Parses an address. `None` where it is malformed, or of another world than this process's.
    pub fn from_address(membership: Arc<Membership>, address: &[u8]) -> Option<Peer> {
        let rank = u32::from_le_bytes(address.strip_prefix(&membership.id)?.try_into().ok()?);
        (rank < membership.size).then(|| Peer {
            membership,
            rank,
            under_way: Arc::default(),
            n_sent: AtomicU64::new(0),
        })
    }
}

impl Transport for Peer {
    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        check_under_way(self.under_way.load(Ordering::Relaxed).saturating_add(bytes), limits)?;
        let lens: Vec<u64> = body.iter().map(|piece| (**piece).as_ref().len() as u64).collect();
        let tag = self.membership.sends.begin(self.membership.communicator, self.rank, body, bytes, &self.under_way)?;
        self.n_sent.fetch_add(1, Ordering::Relaxed);
        let mut list = self.membership.rank.to_le_bytes().to_vec();
        list.extend(tag.to_le_bytes());
        lens.iter().for_each(|len| list.extend(len.to_le_bytes()));
        Ok(list)
    }

    fn n_sent(&self) -> u64 {
        self.n_sent.load(Ordering::Relaxed)
    }
}
