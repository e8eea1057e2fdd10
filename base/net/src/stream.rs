//! A TCP connection, plain on one host and encrypted between hosts, or a Unix one.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::simulated;
use crate::tls::TlsStream;
use crate::{Address, NetError, Security};

/// A connection; clones share it.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Tls(TlsStream),
    #[cfg(unix)]
    Unix(UnixStream),
    Simulated(simulated::Socket),
}

impl From<simulated::Socket> for Stream {
    fn from(socket: simulated::Socket) -> Stream {
        Stream(Kind::Simulated(socket))
    }
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

/// Evaluates an expression with the socket of any kind of stream.
macro_rules! with_socket {
    ($self:expr, $s:ident => $call:expr) => {
        match &$self.0 {
            Kind::Tcp($s) => $call,
            Kind::Tls(tls) => {
                let $s = tls.raw();
                $call
            }
            #[cfg(unix)]
            Kind::Unix($s) => $call,
            Kind::Simulated($s) => $call,
        }
    };
}

impl Stream {
    /// Connects to `to`; each step (connecting, each read and write of the handshake) takes at most `timeout`.
    /// Connecting to a Unix socket has no timeout.
    pub(crate) fn connect(to: &Address, security: Option<&Security>, timeout: Duration) -> Result<Stream, NetError> {
        if let Some((seat, network)) = simulated::current_seat() {
            return Ok(network.connect(&seat, to, timeout)?.into());
        }
        match to {
            Address::Tcp { .. } => {
                let raw = connect_any(to, security.is_some(), timeout)?;
                raw.set_nodelay(true)?;
                let Some(security) = security else { return Ok(raw.into()) };
                let stream = Stream::from(raw);
                stream.set_timeouts(timeout, timeout)?;
                let Kind::Tcp(raw) = stream.0 else { return Ok(stream) };
                Ok(Stream(Kind::Tls(security.connect(raw, to)?)))
            }
            #[cfg(unix)]
            Address::Unix(path) => Ok(UnixStream::connect(path)?.into()),
            #[cfg(not(unix))]
            Address::Unix(_) => Err(crate::AddressError::NoUnix(to.to_string()).into()),
        }
    }

    /// Prepares an accepted connection; each step of a TLS handshake takes at most `timeout`. Unix sockets are not
    /// encrypted.
    pub(crate) fn into_accepted(self, security: Option<&Security>, timeout: Duration) -> Result<Stream, NetError> {
        self.set_timeouts(timeout, timeout)?;
        match (self.0, security) {
            (Kind::Tcp(raw), security) => {
                raw.set_nodelay(true)?;
                Ok(Stream(match security {
                    Some(security) => Kind::Tls(security.accept(raw)?),
                    None => Kind::Tcp(raw),
                }))
            }
            (kind, _) => Ok(Stream(kind)),
        }
    }

    /// Whether the other end is certainly a process of this host: unencrypted connections leave no host.
    pub(crate) fn is_within_host(&self) -> bool {
        !matches!(self.0, Kind::Tls(_) | Kind::Simulated(_))
    }

    /// Whether the stream is simulated: both ends are in this process.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.0, Kind::Simulated(_))
    }

    pub(crate) fn set_timeouts(&self, read: Duration, write: Duration) -> Result<(), NetError> {
        with_socket!(self, s => s.set_read_timeout(Some(read)))?;
        with_socket!(self, s => s.set_write_timeout(Some(write)))?;
        Ok(())
    }

    pub(crate) fn try_clone(&self) -> Result<Stream, NetError> {
        Ok(Stream(match &self.0 {
            Kind::Tcp(stream) => Kind::Tcp(stream.try_clone()?),
            Kind::Tls(stream) => Kind::Tls(stream.clone()),
            #[cfg(unix)]
            Kind::Unix(stream) => Kind::Unix(stream.try_clone()?),
            Kind::Simulated(socket) => Kind::Simulated(socket.clone()),
        }))
    }

    /// Ends both directions; blocked reads and writes return.
    pub(crate) fn shutdown(&self) {
        // Fails only where the connection is closed already.
        let _ = with_socket!(self, s => s.shutdown(Shutdown::Both));
    }
}

/// Connects to the first of a host's IP addresses that accepts.
fn connect_any(to: &Address, is_encrypted: bool, timeout: Duration) -> Result<TcpStream, NetError> {
    let mut last_error = None;
    for addr in to.resolve(is_encrypted)? {
        match TcpStream::connect_timeout(&addr, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.map_or(NetError::Closed, NetError::from))
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(stream) => (&mut &*stream).read(to),
            Kind::Tls(stream) => stream.read(to),
            #[cfg(unix)]
            Kind::Unix(stream) => (&mut &*stream).read(to),
            Kind::Simulated(socket) => socket.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(stream) => (&mut &*stream).write_vectored(from),
            Kind::Tls(stream) => stream.write_vectored(from),
            #[cfg(unix)]
            Kind::Unix(stream) => (&mut &*stream).write_vectored(from),
            Kind::Simulated(socket) => socket.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
