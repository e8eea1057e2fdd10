//! Bodies that the receiver reads from the sender's memory: one copy, not through a socket. This works between two
//! processes of a host where one may read the other's memory (Linux's `process_vm_readv`: the same user, unless Yama's
//! `ptrace_scope` forbids it). All other bodies go over the connection.
//!
//! ```text
//! sender                                                     receiver
//! MEMORY_OFFER  u32 process, u64 address of the canary,
//!               the canary's 16 bytes                   ->
//!                                                       <-   MEMORY_READS    the canary could be read
//! a frame with the flag IN_MEMORY, and in its body's
//! place the list of the body's pieces: u64 ticket, then
//! for each piece u64 address, u64 bytes                 ->
//!                                                       <-   MEMORY_RELEASE  u64 ticket: the body was read
//! ```
//!
//! The sender keeps a body until it is released. When the sender ends the connection, it clears the canary before it
//! drops the bodies. The receiver reads the canary after each part of a body: unchanged, it proves the part valid.

mod borrowed;
pub mod lender;

pub use borrowed::{BorrowedBody, RemoteMemory};

/// Bytes of the canary by which a receiver recognises the sender's memory.
const CANARY_BYTES: usize = 16;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::borrowed::{Pieces, RemoteMemory};
    use super::lender::{Canary, LentBodies};
    use crate::frame::Body;
    use crate::{Limits, NetError};
    use proptest::prelude::*;

    fn body(pieces: &[Vec<u8>]) -> Vec<Body> {
        pieces.iter().map(|piece| Box::new(piece.clone()) as Body).collect()
    }

    proptest! {
        #[test]
        fn pieces_are_read_in_parts_of_any_length(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..600),
            parts in proptest::collection::vec(0usize..700, 0..20),
        ) {
            let (all, canary, mut lent) = (pieces.concat(), Canary::new(), LentBodies::default());
            let list = lent.lend(body(&pieces), all.len() as u64, &Limits::default()).unwrap();
            let (mut places, bytes) = Pieces::parse(&list).unwrap();
            prop_assert_eq!(bytes, all.len() as u64);
            let memory = RemoteMemory::from_offer(&canary.offer()).unwrap();
            let mut got = Vec::new();
            for part in parts {
                let mut to = vec![0; part.min(all.len() - got.len())];
                memory.read(&mut places, &mut to).unwrap();
                got.extend(to);
            }
            prop_assert_eq!(&got[..], &all[..got.len()]);
            let mut more = vec![0; all.len() - got.len() + 1];
            prop_assert!(memory.read(&mut places, &mut more).is_err());
            prop_assert_eq!(lent.release(0).unwrap().len(), pieces.len());
            prop_assert!(lent.release(0).is_none());
        }

        #[test]
        fn any_offer_and_list_is_one_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(RemoteMemory::from_offer(&bytes).is_none());
            if let Some((mut places, n)) = Pieces::parse(&bytes) {
                let canary = Canary::new();
                let memory = RemoteMemory::from_offer(&canary.offer()).unwrap();
                // The addresses are arbitrary: reading them fails or succeeds, but does not crash.
                let _ = memory.read(&mut places, &mut vec![0; n.min(100) as usize]);
            }
        }
    }

    #[test]
    fn what_was_lent_is_not_taken_once_the_window_is_closed() {
        let (canary, mut lent) = (Canary::new(), LentBodies::default());
        let memory = RemoteMemory::from_offer(&canary.offer()).unwrap();
        let read = |list: &[u8]| memory.read(&mut Pieces::parse(list).unwrap().0, &mut [0; 3]);
        let list = lent.lend(body(&[vec![1, 2, 3]]), 3, &Limits::default()).unwrap();
        assert!(read(&list).is_ok());
        canary.clear();
        assert!(matches!(read(&list), Err(NetError::Closed)));
    }

    #[test]
    fn no_more_is_lent_than_may_wait() {
        let limits = Limits { outbox: 100, ..Limits::default() };
        let mut lent = LentBodies::default();
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert!(matches!(lent.lend(body(&[vec![0; 60]]), 60, &limits), Err(NetError::TooLarge { .. })));
        drop(lent.release(0));
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert_eq!(lent.next_ticket, 2);
    }
}
