//! Bodies that the receiver takes out of the sender's memory: copied once, and not through a socket. For processes of one host of
//! which one may read the other's memory (Linux's `process_vm_readv`: the same user, unless Yama's `ptrace_scope` forbids it). Where that
//! is not so bodies go over the connection, as between hosts.
//!
//! ```text
//! one end                                                      the other
//! OFFER    u32 process, u64 address, the 16 bytes there   ->
//!                                                         <-   READS    it could read them
//! a frame with flag 1; its body lists where the real
//! one lies: u64 ticket, then of each piece u64 address,
//! u64 bytes                                               ->
//!                                                         <-   RELEASE  u64 ticket: the pieces are not needed any more
//! ```
//!
//! The sender keeps the pieces until they are released. Where it ends the connection it changes the bytes that it showed before it lets
//! go of them, and a reader looks at those bytes after each body: what it took was still the sender's.

mod borrowed;
pub mod lender;

pub use borrowed::{Borrowed, RemoteMemory};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::borrowed::{Pieces, RemoteMemory};
    use super::lender::{Lent, Window};
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
            let (all, window, mut lent) = (pieces.concat(), Window::new(), Lent::default());
            let list = lent.lend(body(&pieces), all.len() as u64, &Limits::default()).unwrap();
            let (mut places, bytes) = Pieces::parse(&list).unwrap();
            prop_assert_eq!(bytes, all.len() as u64);
            let memory = RemoteMemory::of(&window.offer()).unwrap();
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
            prop_assert!(RemoteMemory::of(&bytes).is_none());
            if let Some((mut places, n)) = Pieces::parse(&bytes) {
                let window = Window::new();
                let memory = RemoteMemory::of(&window.offer()).unwrap();
                // Wherever that is: it is not there, or it is read.
                let _ = memory.read(&mut places, &mut vec![0; n.min(100) as usize]);
            }
        }
    }

    #[test]
    fn what_was_lent_is_not_taken_once_the_window_is_closed() {
        let (window, mut lent) = (Window::new(), Lent::default());
        let memory = RemoteMemory::of(&window.offer()).unwrap();
        let read = |list: &[u8]| memory.read(&mut Pieces::parse(list).unwrap().0, &mut [0; 3]);
        let list = lent.lend(body(&[vec![1, 2, 3]]), 3, &Limits::default()).unwrap();
        assert!(read(&list).is_ok());
        window.close();
        assert!(matches!(read(&list), Err(NetError::Closed)));
    }

    #[test]
    fn no_more_is_lent_than_may_wait() {
        let limits = Limits { outbox: 100, ..Limits::default() };
        let mut lent = Lent::default();
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert!(matches!(lent.lend(body(&[vec![0; 60]]), 60, &limits), Err(NetError::TooLarge { .. })));
        drop(lent.release(0));
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert_eq!(lent.next, 2);
    }
}
