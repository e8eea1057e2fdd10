//! A TCP or Unix connection.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::{Address, NetError};

/// A connection; clones are the same one.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Stream {
        Stream(Kind::Tcp(stream))
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Stream {
        Stream(Kind::Unix(stream))
    }
}

/// Does the same with either kind.
macro_rules! either {
    ($self:expr, $s:ident => $do:expr) => {
        match &$self.0 {
            Kind::Tcp($s) => $do,
            #[cfg(unix)]
            Kind::Unix($s) => $do,
        }
    };
}

impl Stream {
    /// Connects, within `within`.
    pub(crate) fn connect(to: &Address, within: Duration) -> Result<Stream, NetError> {
        let stream: Stream = match to {
            Address::Tcp { .. } => {
                let mut last = None;
                let mut connected = None;
                for addr in to.resolve()? {
                    match TcpStream::connect_timeout(&addr, within) {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(error) => last = Some(error),
                    }
                }
                match (connected, last) {
                    (Some(stream), _) => stream.into(),
                    (None, Some(error)) => return Err(error.into()),
                    (None, None) => return Err(NetError::Closed),
                }
            }
            #[cfg(unix)]
            Address::Unix(path) => UnixStream::connect(path)?.into(),
            #[cfg(not(unix))]
            Address::Unix(_) => return Err(crate::AddressError::NoUnix(to.to_string()).into()),
        };
        stream.prepare()?;
        Ok(stream)
    }

    /// Small frames go at once.
    pub(crate) fn prepare(&self) -> Result<(), NetError> {
        if let Kind::Tcp(stream) = &self.0 {
            stream.set_nodelay(true)?;
        }
        Ok(())
    }

    pub(crate) fn set_timeouts(&self, read: Duration, write: Duration) -> Result<(), NetError> {
        either!(self, s => s.set_read_timeout(Some(read)))?;
        either!(self, s => s.set_write_timeout(Some(write)))?;
        Ok(())
    }

    pub(crate) fn try_clone(&self) -> Result<Stream, NetError> {
        Ok(either!(self, s => s.try_clone()?.into()))
    }

    /// Ends both directions: whoever waits on it gets an end.
    pub(crate) fn shutdown(&self) {
        // Only fails where it is closed already.
        let _ = either!(self, s => s.shutdown(Shutdown::Both));
    }
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        either!(self, s => (&*s).read(to))
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        either!(self, s => (&*s).write(from))
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, s => (&*s).write_vectored(from))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
