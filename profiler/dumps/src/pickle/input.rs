//! Bytes of a reader, one at a time and in pieces.

use std::io::{self, Read};

use crate::error::Error;

const BUFFER: usize = 1 << 16;

/// Why reading ends before the pickle does.
pub(super) enum Interrupt {
    /// The file ends.
    End,
    Error(Error),
}

impl From<Error> for Interrupt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// A reader with a buffer. Pieces grow with what was really read, whatever length the file claims.
pub(super) struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// How many bytes came before the buffer.
    n_before: u64,
}

impl<R: Read> Input<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; BUFFER].into(), at: 0, end: 0, n_before: 0 }
    }

    /// How many bytes were taken.
    pub fn offset(&self) -> u64 {
        self.n_before + self.at as u64
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Interrupt> {
        if self.at == self.end {
            self.refill()?;
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Interrupt> {
        if let Some(Ok(array)) = self.buffer[self.at..self.end].get(..N).map(<[u8; N]>::try_from) {
            self.at += N;
            return Ok(array);
        }
        let mut array = [0; N];
        for byte in &mut array {
            *byte = self.byte()?;
        }
        Ok(array)
    }

    /// Reads `length` bytes into `piece`, which is cleared before.
    pub fn piece(&mut self, length: u64, piece: &mut Vec<u8>) -> Result<(), Interrupt> {
        piece.clear();
        let mut left = length;
        while left > 0 {
            if self.at == self.end {
                self.refill()?;
            }
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.at);
            piece.extend_from_slice(&self.buffer[self.at..self.at + n]);
            self.at += n;
            left -= n as u64;
        }
        Ok(())
    }

    /// Passes over `length` bytes.
    pub fn skip(&mut self, length: u64) -> Result<(), Interrupt> {
        let mut left = length;
        while left > 0 {
            if self.at == self.end {
                self.refill()?;
            }
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.at);
            self.at += n;
            left -= n as u64;
        }
        Ok(())
    }

    /// The rest of a line, without its end, at most 200 bytes of it.
    pub fn line(&mut self) -> Result<String, Interrupt> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
                byte if line.len() < 200 => line.push(byte),
                _ => {}
            }
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<(), Interrupt> {
        self.n_before += self.end as u64;
        (self.at, self.end) = (0, 0);
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return Err(Interrupt::End),
                Ok(n) => {
                    self.end = n;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Io(error).into()),
            }
        }
    }
}
