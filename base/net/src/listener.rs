//! Lets others in.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::channel::Connection;
use crate::hello::Identity;
use crate::simulated;
use crate::stream::Stream;
use crate::{Address, Limits, NetError, Security};

/// How long a process of this host may take to accept a connection.
const WAKING: std::time::Duration = std::time::Duration::from_millis(100);

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
    Simulated(simulated::Listening),
}

/// Listens at an address until it is dropped.
pub struct Listener {
    address: Address,
    shared: Arc<Shared>,
    /// Has the socket.
    accepting: Option<threads::JoinHandle>,
}

struct Shared {
    is_over: AtomicBool,
    n_opening: AtomicUsize,
    n_refused: AtomicUsize,
}

impl Listener {
    /// Listens at `address`; `accepted` gets every connection that may come in, in a thread of its own, which may work on. A socket
    /// file of a process that ended is replaced. With `security` TCP connections are encrypted, and those without a certificate of the
    /// job's authority refused.
    ///
    /// # Errors
    /// The address is in use, or not of this host.
    pub fn start(
        address: &Address,
        own: Identity,
        limits: Limits,
        security: Option<Security>,
        accepted: impl Fn(Connection) + Send + Sync + 'static,
    ) -> Result<Listener, NetError> {
        let (socket, address) = listen(address, security.is_some())?;
        let shared =
            Arc::new(Shared { is_over: false.into(), n_opening: AtomicUsize::new(0), n_refused: AtomicUsize::new(0) });
        let (accepted, of_listener) = (Arc::new(accepted), Arc::clone(&shared));
        let accepting = threads::spawn("net-listen", move || {
            while let Some(stream) = accept(&socket, &shared) {
                let (own, security) = (own.clone(), security.clone());
                let (accepted, shared) = (Arc::clone(&accepted), Arc::clone(&shared));
                if shared.n_opening.fetch_add(1, Ordering::AcqRel) >= limits.openings {
                    shared.refuse();
                    continue;
                }
                let opening = Arc::clone(&shared);
                let spawned = threads::spawn("net-open", move || {
                    let connection = Connection::answer(stream, &own, &limits, security.as_ref());
                    match connection {
                        Ok(connection) => {
                            opening.n_opening.fetch_sub(1, Ordering::AcqRel);
                            accepted(connection);
                        }
                        Err(_) => opening.refuse(),
                    }
                });
                if spawned.is_err() {
                    shared.refuse();
                }
            }
        })?;
        Ok(Listener { address, shared: of_listener, accepting: Some(accepting) })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connections that were not let in: strangers, other jobs, too many at once.
    pub fn n_refused(&self) -> usize {
        self.shared.n_refused.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn refuse(&self) {
        self.n_opening.fetch_sub(1, Ordering::AcqRel);
        self.n_refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // Wakes the thread that accepts. Once it has ended the address is free for others.
        let is_awake = wake(&self.address);
        if let Some(accepting) = self.accepting.take().filter(|_| is_awake) {
            let _ = accepting.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Connects and goes; whether somebody listened.
fn wake(address: &Address) -> bool {
    match address {
        Address::Tcp { .. } if simulated::here().is_none() => {
            address.resolve(true).unwrap_or_default().into_iter().any(|mut addr| {
                // One that listens at all of a host's numbers is reached at its own, too.
                if addr.ip().is_unspecified() {
                    addr.set_ip(if addr.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
                }
                TcpStream::connect_timeout(&addr, WAKING).is_ok()
            })
        }
        _ => Stream::connect(address, None, WAKING).is_ok(),
    }
}

fn listen(address: &Address, is_encrypted: bool) -> Result<(Socket, Address), NetError> {
    if let Some((seat, network)) = simulated::here() {
        return Ok((Socket::Simulated(network.listen(&seat, address)?), address.clone()));
    }
    match address {
        Address::Tcp { .. } => {
            let addrs = address.resolve(is_encrypted)?;
            let socket = TcpListener::bind(&addrs[..])?;
            let bound = socket.local_addr()?;
            Ok((Socket::Tcp(socket), Address::Tcp { host: bound.ip().to_string(), port: bound.port() }))
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            if Stream::connect(address, None, WAKING).is_ok() {
                return Err(std::io::Error::from(std::io::ErrorKind::AddrInUse).into());
            }
            // Left by a process that ended.
            use std::os::unix::fs::FileTypeExt;
            if std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket()) {
                std::fs::remove_file(path)?;
            }
            Ok((Socket::Unix(UnixListener::bind(path)?), address.clone()))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(crate::AddressError::NoUnix(address.to_string()).into()),
    }
}

/// The next connection; `None` at the end.
fn accept(socket: &Socket, shared: &Shared) -> Option<Stream> {
    loop {
        let stream: std::io::Result<Stream> = match socket {
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| stream.into()),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.accept().map(|(stream, _)| stream.into()),
            Socket::Simulated(socket) => socket.accept().map(Stream::from),
        };
        if shared.is_over.load(Ordering::Acquire) {
            return None;
        }
        match stream {
            Ok(stream) => return Some(stream),
            // Out of files for the moment, or a connection that ended before it was taken.
            Err(_) => threads::sleep(std::time::Duration::from_millis(10)),
        }
    }
}
