//! Frames as they are received: heads in memory, bodies straight to where they belong.

use std::io::{BufReader, Read};
use std::sync::Arc;

use crate::frame::{
    BY_MPI, FIRST_OWN_KIND, Frame, HEARTBEAT, IN_MEMORY, MEMORY_OFFER, MEMORY_READS, MPI_OFFER, PREFIX, check, retried,
};
use crate::memory::{Borrowed, RemoteMemory};
use crate::mpi;
use crate::outbox::Outbox;
use crate::stream::Stream;
use crate::transport::{MAX_LIST, Source};
use crate::{Limits, NetError};

/// Takes frames from a connection.
pub(crate) struct Reader<R = Stream> {
    from: BufReader<R>,
    limits: Limits,
    head: Vec<u8>,
    /// Bytes of the body that nobody took yet.
    left: u64,
    /// Where they come from, if not over the connection.
    source: Option<Box<dyn Source>>,
    own: Option<Own>,
}

/// What the connection's own frames are for.
struct Own {
    outbox: Outbox,
    /// The other end's memory, where it can be read.
    memory: Option<Arc<RemoteMemory>>,
}

impl Own {
    /// A frame of the connection itself.
    fn take(&mut self, kind: u8, head: &[u8]) -> Result<(), NetError> {
        match kind {
            MEMORY_OFFER => {
                self.memory = RemoteMemory::of(head).map(Arc::new);
                if self.memory.is_some() {
                    self.outbox.post(Frame::message(MEMORY_READS, Vec::new()))?;
                }
            }
            MEMORY_READS => self.outbox.lender().set_read(),
            MPI_OFFER => mpi::Peer::of(head).into_iter().for_each(|peer| self.outbox.set_mpi(peer)),
            _ => {
                let ticket = head.try_into().map_err(|_| NetError::Protocol("what came is no frame".into()))?;
                self.outbox.lender().release(u64::from_le_bytes(ticket));
            }
        }
        Ok(())
    }

    /// A body that does not come over the connection, with its bytes.
    fn source(&self, flags: u8, list: &[u8]) -> Option<(Box<dyn Source>, u64)> {
        if flags == IN_MEMORY {
            let (borrowed, bytes) = Borrowed::parse(list, self.memory.as_ref()?, &self.outbox)?;
            return Some((Box::new(borrowed), bytes));
        }
        let (messages, bytes) = mpi::Messages::parse(list, &self.outbox)?;
        Some((Box::new(messages), bytes))
    }
}

/// A frame that came: its head, and its body to be taken.
pub struct Incoming<'a, R: Read = Stream> {
    /// What the head is.
    pub kind: u8,
    reader: &'a mut Reader<R>,
}

/// Buffers between the system and the frames.
const BUFFER: usize = 64 << 10;
/// Bytes that a head may take before any of it came.
const FIRST_ROOM: usize = 64 << 10;

impl<R: Read> Reader<R> {
    pub fn new(from: R, limits: Limits) -> Reader<R> {
        let from = BufReader::with_capacity(BUFFER, from);
        Reader { from, limits, head: Vec::new(), left: 0, source: None, own: None }
    }

    /// A reader that takes bodies from memory and by MPI where it may, and answers over `outbox`.
    pub fn answering(from: R, limits: Limits, outbox: Outbox) -> Reader<R> {
        Reader { own: Some(Own { outbox, memory: None }), ..Reader::new(from, limits) }
    }

    /// The next frame that is not the connection's own.
    pub fn next(&mut self) -> Result<Incoming<'_, R>, NetError> {
        let kind = loop {
            self.skip_body()?;
            let mut prefix = [0; PREFIX];
            self.fill(&mut prefix)?;
            let (head_len, body_len, kind) = parse(&prefix);
            let is_own = kind >= FIRST_OWN_KIND;
            if prefix[13] > BY_MPI || prefix[14..] != [0; 2] || (is_own && (head_len > 32 || body_len > 0)) {
                return Err(NetError::Protocol("what came is no frame".into()));
            }
            check(u64::from(head_len), body_len, &self.limits)?;
            self.read_head(head_len as usize)?;
            self.left = body_len;
            if prefix[13] != 0 {
                self.read_list(prefix[13])?;
            }
            match (kind, &mut self.own) {
                (HEARTBEAT, _) => {}
                (_, Some(own)) if is_own => own.take(kind, &self.head)?,
                _ if is_own => return Err(NetError::Protocol("what came is no frame".into())),
                _ => break kind,
            }
        };
        Ok(Incoming { kind, reader: self })
    }

    /// The list that came in a body's place.
    fn read_list(&mut self, flags: u8) -> Result<(), NetError> {
        let bad = || {
            NetError::Protocol("a body outside the connection, which nobody asked for or whose list is damaged".into())
        };
        if self.left > MAX_LIST {
            return Err(bad());
        }
        let mut list = vec![0; self.left as usize];
        self.fill(&mut list)?;
        self.left = 0;
        let (source, bytes) = self.own.as_ref().and_then(|own| own.source(flags, &list)).ok_or_else(bad)?;
        self.source = Some(source);
        check(0, bytes, &self.limits)?;
        self.left = bytes;
        self.end_if_read()
    }

    /// Lets go of what was read.
    fn end_if_read(&mut self) -> Result<(), NetError> {
        match self.source.take_if(|_| self.left == 0) {
            Some(source) => source.done(),
            None => Ok(()),
        }
    }

    /// The body's next bytes; there are so many.
    fn fill_body(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        self.left -= to.len() as u64;
        match &mut self.source {
            Some(source) => source.read(to)?,
            None => self.fill(to)?,
        }
        self.end_if_read()
    }

    /// Grows with what came, not with what was announced.
    fn read_head(&mut self, len: usize) -> Result<(), NetError> {
        self.head.clear();
        while self.head.len() < len {
            let have = self.head.len();
            let room = (have * 2).max(FIRST_ROOM).min(len);
            self.head.resize(room, 0);
            let mut head = std::mem::take(&mut self.head);
            let filled = self.fill(&mut head[have..]);
            self.head = head;
            filled?;
        }
        Ok(())
    }

    fn fill(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        let mut done = 0;
        while done < to.len() {
            match self.from.read(&mut to[done..]) {
                Ok(0) => return Err(NetError::Closed),
                Ok(n) => done += n,
                Err(error) => retried(error, self.limits.silence)?,
            }
        }
        Ok(())
    }

    fn skip_body(&mut self) -> Result<(), NetError> {
        if self.source.is_some() {
            self.left = 0;
            self.end_if_read()?;
        }
        let mut scrap = [0; 8 << 10];
        while self.left > 0 {
            let n = self.left.min(scrap.len() as u64);
            self.left -= n;
            self.fill(&mut scrap[..n as usize])?;
        }
        Ok(())
    }
}

/// The lengths of head and body, and the kind.
fn parse(prefix: &[u8; PREFIX]) -> (u32, u64, u8) {
    let (mut head, mut body) = ([0; 4], [0; 8]);
    head.copy_from_slice(&prefix[..4]);
    body.copy_from_slice(&prefix[4..12]);
    (u32::from_le_bytes(head), u64::from_le_bytes(body), prefix[12])
}

impl<R: Read> Incoming<'_, R> {
    /// The message.
    pub fn head(&self) -> &[u8] {
        &self.reader.head
    }

    /// Bytes of the body that are yet to be taken.
    pub fn body_len(&self) -> u64 {
        self.reader.left
    }

    /// Takes the body's next bytes.
    ///
    /// # Errors
    /// There are fewer, or they do not come.
    pub fn read_body(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        if to.len() as u64 > self.reader.left {
            return Err(NetError::Protocol("a frame's body is shorter than its head says".into()));
        }
        self.reader.fill_body(to)
    }

    /// Takes what is left of the body. Memory grows with what comes.
    ///
    /// # Errors
    /// It does not come.
    pub fn body_to_vec(&mut self) -> Result<Vec<u8>, NetError> {
        let mut body = Vec::new();
        while self.reader.left > 0 {
            let have = body.len();
            let next = self.reader.left.min((have as u64).max(1 << 20)) as usize;
            body.resize(have + next, 0);
            self.read_body(&mut body[have..])?;
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Body, Outgoing};
    use std::time::Duration;

    use proptest::prelude::*;

    fn frame(kind: u8, head: &[u8], body: &[Vec<u8>]) -> Frame {
        Frame { kind, head: head.to_vec(), body: body.iter().map(|piece| Box::new(piece.clone()) as Body).collect() }
    }

    fn written(frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
        let mut bytes = Vec::new();
        frames.into_iter().for_each(|frame| Outgoing::from(frame).write(&mut bytes, Duration::ZERO).unwrap());
        bytes
    }

    fn small() -> Limits {
        Limits { head: 1000, body: 100_000, ..Limits::default() }
    }

    /// Gives bytes in pieces of uneven sizes, as a network may.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1 * 7 % 1009 + 1;
            let n = self.1.min(to.len()).min(self.0.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #[test]
        fn frames_come_as_they_went(
            frames in proptest::collection::vec((0u8..FIRST_OWN_KIND, proptest::collection::vec(any::<u8>(), 0..900),
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 0..4)), 0..6),
            seed in 1usize..1000,
        ) {
            let bytes = written(frames.iter().map(|(k, h, b)| frame(*k, h, b)));
            let mut reader = Reader::new(Pieces(&bytes, seed), small());
            for (i, (kind, head, body)) in frames.iter().enumerate() {
                let mut incoming = reader.next().unwrap();
                prop_assert_eq!((incoming.kind, incoming.head()), (*kind, &head[..]));
                // Bodies that nobody takes are skipped.
                if i % 2 == 0 {
                    prop_assert_eq!(incoming.body_to_vec().unwrap(), body.concat());
                }
            }
            prop_assert!(matches!(reader.next(), Err(NetError::Closed)));
        }

        #[test]
        fn any_bytes_end_with_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..200) {
            let mut mixed = written([frame(3, b"head", &[vec![1; 50]])]);
            mixed.truncate(cut);
            mixed.extend(&bytes);
            let mut reader = Reader::new(&mixed[..], small());
            while reader.next().is_ok() {}
            prop_assert!(reader.head.capacity() <= 1000);
        }
    }

    #[test]
    fn a_frame_over_the_limits_is_refused_before_it_is_read() {
        let head = written([frame(1, &[0; 1001], &[])]);
        assert!(matches!(Reader::new(&head[..], small()).next(), Err(NetError::TooLarge { what: "a message", .. })));
        let body = written([frame(1, &[], &[vec![0; 100_001]])]);
        let error = Reader::new(&body[..], small()).next().err().unwrap().to_string();
        assert_eq!(error, "a tensor of 100001 bytes is over the limit of 100000");
        assert!(frame(1, &[], &[vec![0; 100_001]]).check(&small()).is_err());
    }

    #[test]
    fn an_announced_head_takes_no_memory_before_it_comes() {
        let mut bytes = written([frame(1, &[7; 100], &[])]);
        bytes[..4].copy_from_slice(&(200u32 << 20).to_le_bytes());
        let mut reader = Reader::new(&bytes[..], Limits::default());
        assert!(matches!(reader.next(), Err(NetError::Closed)));
        assert!(reader.head.capacity() <= FIRST_ROOM);
    }
}
