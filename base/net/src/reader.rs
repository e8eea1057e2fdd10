//! Receiving frames: a head is read into memory, a body directly into the handler's buffer.

use std::io::{BufReader, Read};

use crate::frame::{BY_FABRIC, FIRST_CONTROL_KIND, HEARTBEAT, PREFIX, check, check_retry, malformed_frame};
use crate::negotiation::Transports;
use crate::stream::Stream;
use crate::transport::{BodySource, MAX_LIST};
use crate::{Limits, NetError};

/// Reads frames from a connection.
pub(crate) struct Reader<R = Stream> {
    from: BufReader<R>,
    limits: Limits,
    head: Vec<u8>,
    /// Bytes of the current frame's body that are not read yet.
    body_left: u64,
    /// The transport that delivers the current body; `None` for a body that comes over the connection.
    source: Option<Box<dyn BodySource>>,
    /// `None` where the connection takes no bodies by other transports.
    transports: Option<Transports>,
}

/// A received frame: its head, and its body, which is yet to be read.
pub struct Incoming<'a, R: Read = Stream> {
    /// The kind of the message.
    pub kind: u8,
    reader: &'a mut Reader<R>,
}

/// Bytes that are read ahead from the connection.
const BUFFER: usize = 64 << 10;
/// Bytes that are allocated for a head before its first byte was received.
const FIRST_HEAD_BYTES: usize = 64 << 10;
/// Bytes that are allocated for a body before its first byte was received.
const FIRST_BODY_BYTES: u64 = 1 << 20;
/// The longest head of the connection's own frames.
const MAX_CONTROL_HEAD: u32 = 32;

impl<R: Read> Reader<R> {
    pub fn new(from: R, limits: Limits) -> Reader<R> {
        let from = BufReader::with_capacity(BUFFER, from);
        Reader { from, limits, head: Vec::new(), body_left: 0, source: None, transports: None }
    }

    /// A reader that also takes bodies by other transports, and handles the offers of them.
    pub fn with_transports(from: R, limits: Limits, transports: Transports) -> Reader<R> {
        Reader { transports: Some(transports), ..Reader::new(from, limits) }
    }

    /// Reads the next frame for the handler; frames of the connection's own protocol are handled here.
    pub fn next(&mut self) -> Result<Incoming<'_, R>, NetError> {
        let kind = loop {
            self.skip_body()?;
            let mut prefix = [0; PREFIX];
            self.fill(&mut prefix)?;
            let Prefix { head_len, body_len, kind, flag } = parse(&prefix)?;
            let is_control = kind >= FIRST_CONTROL_KIND;
            if flag > BY_FABRIC || (is_control && (head_len > MAX_CONTROL_HEAD || body_len > 0)) {
                return Err(malformed_frame());
            }
            check(u64::from(head_len), body_len, &self.limits)?;
            self.read_head(head_len as usize)?;
            self.body_left = body_len;
            if flag != 0 {
                self.read_list(flag)?;
            }
            match (kind, &mut self.transports) {
                (HEARTBEAT, _) => {}
                (_, Some(transports)) if is_control => transports.handle(kind, &self.head)?,
                _ if is_control => return Err(malformed_frame()),
                _ => break kind,
            }
        };
        Ok(Incoming { kind, reader: self })
    }

    /// Reads the list that stands in the body's place, and opens the body that it describes.
    fn read_list(&mut self, flag: u8) -> Result<(), NetError> {
        let malformed_list = || {
            NetError::Protocol("a body outside the connection, which nobody asked for or whose list is damaged".into())
        };
        if self.body_left > MAX_LIST {
            return Err(malformed_list());
        }
        let mut list = vec![0; self.body_left as usize];
        self.fill(&mut list)?;
        self.body_left = 0;
        let opened = self.transports.as_ref().and_then(|transports| transports.open(flag, &list));
        let (source, bytes) = opened.ok_or_else(malformed_list)?;
        self.source = Some(source);
        check(0, bytes, &self.limits)?;
        self.body_left = bytes;
        self.release_if_read()
    }

    /// Releases the body's transport once the body is read.
    fn release_if_read(&mut self) -> Result<(), NetError> {
        match self.source.take_if(|_| self.body_left == 0) {
            Some(source) => source.release(),
            None => Ok(()),
        }
    }

    /// Fills `to` with the body's next bytes; the caller checked that at least as many are left.
    fn fill_body(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        self.body_left -= to.len() as u64;
        match &mut self.source {
            Some(source) => source.read(to)?,
            None => self.fill(to)?,
        }
        self.release_if_read()
    }

    /// Reads the head. Memory grows with the bytes received, not with the length that the frame announces.
    fn read_head(&mut self, len: usize) -> Result<(), NetError> {
        self.head.clear();
        while self.head.len() < len {
            let n_read = self.head.len();
            self.head.resize((n_read * 2).max(FIRST_HEAD_BYTES).min(len), 0);
            let mut head = std::mem::take(&mut self.head);
            let filled = self.fill(&mut head[n_read..]);
            self.head = head;
            filled?;
        }
        Ok(())
    }

    fn fill(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        let mut filled = 0;
        while filled < to.len() {
            match self.from.read(&mut to[filled..]) {
                Ok(0) => return Err(NetError::Closed),
                Ok(n) => filled += n,
                Err(error) => check_retry(error, self.limits.silence)?,
            }
        }
        Ok(())
    }

    fn skip_body(&mut self) -> Result<(), NetError> {
        if self.source.is_some() {
            self.body_left = 0;
            self.release_if_read()?;
        }
        let mut scrap = [0; 8 << 10];
        while self.body_left > 0 {
            let n = self.body_left.min(scrap.len() as u64);
            self.body_left -= n;
            self.fill(&mut scrap[..n as usize])?;
        }
        Ok(())
    }
}

struct Prefix {
    head_len: u32,
    body_len: u64,
    kind: u8,
    flag: u8,
}

fn parse(prefix: &[u8; PREFIX]) -> Result<Prefix, NetError> {
    let (head_len, rest) = prefix.split_first_chunk().ok_or_else(malformed_frame)?;
    let (body_len, &[kind, flag, 0, 0]) = rest.split_first_chunk().ok_or_else(malformed_frame)? else {
        return Err(malformed_frame());
    };
    Ok(Prefix { head_len: u32::from_le_bytes(*head_len), body_len: u64::from_le_bytes(*body_len), kind, flag })
}

impl<R: Read> Incoming<'_, R> {
    /// The head, which is the message.
    pub fn head(&self) -> &[u8] {
        &self.reader.head
    }

    /// Bytes of the body that are yet to be read.
    pub fn body_len(&self) -> u64 {
        self.reader.body_left
    }

    /// Fills `to` with the body's next bytes.
    ///
    /// # Errors
    /// The body has fewer bytes left, or the connection ended.
    pub fn read_body(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        if to.len() as u64 > self.reader.body_left {
            return Err(NetError::Protocol("a frame's body is shorter than its head says".into()));
        }
        self.reader.fill_body(to)
    }

    /// Reads the rest of the body. Memory grows with the bytes received.
    ///
    /// # Errors
    /// The connection ended.
    pub fn body_to_vec(&mut self) -> Result<Vec<u8>, NetError> {
        let mut body = Vec::new();
        while self.reader.body_left > 0 {
            let n_read = body.len();
            let n = self.reader.body_left.min((n_read as u64).max(FIRST_BODY_BYTES)) as usize;
            body.resize(n_read + n, 0);
            self.read_body(&mut body[n_read..])?;
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Body, Frame, Outgoing};
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
            frames in proptest::collection::vec((0u8..FIRST_CONTROL_KIND,
                proptest::collection::vec(any::<u8>(), 0..900),
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 0..4)), 0..6),
            seed in 1usize..1000,
        ) {
            let bytes = written(frames.iter().map(|(k, h, b)| frame(*k, h, b)));
            let mut reader = Reader::new(Pieces(&bytes, seed), small());
            for (i, (kind, head, body)) in frames.iter().enumerate() {
                let mut incoming = reader.next().unwrap();
                prop_assert_eq!((incoming.kind, incoming.head()), (*kind, &head[..]));
                // Bodies that are not read are skipped.
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
        assert!(reader.head.capacity() <= FIRST_HEAD_BYTES);
    }
}
