//! Listening at an address, and the handshakes of incoming connections.

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

/// How long a process of this host may take to accept a connection that only tests or wakes its listener.
const PROBE_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(100);

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
    Simulated(simulated::Listener),
}

/// Listens at an address until it is dropped.
pub struct Listener {
    address: Address,
    shared: Arc<Shared>,
    /// The thread that owns the socket.
    accept_thread: Option<threads::JoinHandle>,
}

struct Shared {
    /// Set when the listener is dropped.
    is_closed: AtomicBool,
    /// Connections in their handshake.
    n_opening: AtomicUsize,
    n_refused: AtomicUsize,
}

impl Listener {
    /// Listens at `address`. After a handshake `on_connection` is called with the connection, in a thread of its own,
    /// where the call may last. A socket file of a process that ended is replaced. With `security` TCP connections are
    /// encrypted, and refused without a certificate of the job's authority.
    ///
    /// # Errors
    /// The address is in use, or not of this host.
    pub fn start(
        address: &Address,
        identity: Identity,
        limits: Limits,
        security: Option<Security>,
        on_connection: impl Fn(Connection) + Send + Sync + 'static,
    ) -> Result<Listener, NetError> {
        let (socket, address) = listen(address, security.is_some())?;
        let shared = Arc::new(Shared {
            is_closed: false.into(),
            n_opening: AtomicUsize::new(0),
            n_refused: AtomicUsize::new(0),
        });
        let (on_connection, listener_shared) = (Arc::new(on_connection), Arc::clone(&shared));
        let accept_thread = threads::spawn("net-listen", move || {
            while let Some(stream) = accept(&socket, &shared) {
                let (identity, security) = (identity.clone(), security.clone());
                let (on_connection, shared) = (Arc::clone(&on_connection), Arc::clone(&shared));
                if shared.n_opening.fetch_add(1, Ordering::AcqRel) >= limits.openings {
                    shared.count_refusal();
                    continue;
                }
                let thread_shared = Arc::clone(&shared);
                let spawned = threads::spawn("net-open", move || {
                    let connection = Connection::accept(stream, &identity, &limits, security.as_ref());
                    match connection {
                        Ok(connection) => {
                            thread_shared.n_opening.fetch_sub(1, Ordering::AcqRel);
                            on_connection(connection);
                        }
                        Err(_) => thread_shared.count_refusal(),
                    }
                });
                if spawned.is_err() {
                    shared.count_refusal();
                }
            }
        })?;
        Ok(Listener { address, shared: listener_shared, accept_thread: Some(accept_thread) })
    }

    /// The address of the listener, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The number of refused connections: failed handshakes, other jobs, too many openings at once.
    pub fn n_refused(&self) -> usize {
        self.shared.n_refused.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Counts a handshake as ended without a connection.
    fn count_refusal(&self) {
        self.n_opening.fetch_sub(1, Ordering::AcqRel);
        self.n_refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        // Wakes the accepting thread. Once that has ended, the address is free for other processes.
        let was_woken = wake(&self.address);
        if let Some(accept_thread) = self.accept_thread.take().filter(|_| was_woken) {
            let _ = accept_thread.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Connects to a listener and disconnects, so that its `accept` returns. Returns whether a process listened.
fn wake(address: &Address) -> bool {
    match address {
        Address::Tcp { .. } if simulated::current_seat().is_none() => {
            address.resolve(true).unwrap_or_default().into_iter().any(|mut addr| {
                // A listener at the unspecified address accepts at the loopback address, too.
                if addr.ip().is_unspecified() {
                    addr.set_ip(if addr.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
                }
                TcpStream::connect_timeout(&addr, PROBE_TIMEOUT).is_ok()
            })
        }
        _ => Stream::connect(address, None, PROBE_TIMEOUT).is_ok(),
    }
}

fn listen(address: &Address, is_encrypted: bool) -> Result<(Socket, Address), NetError> {
    if let Some((seat, network)) = simulated::current_seat() {
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
            if Stream::connect(address, None, PROBE_TIMEOUT).is_ok() {
                return Err(std::io::Error::from(std::io::ErrorKind::AddrInUse).into());
            }
            // No process accepts there: the socket file was left by a process that ended.
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

/// Waits for the next connection; `None` once the listener is dropped.
fn accept(socket: &Socket, shared: &Shared) -> Option<Stream> {
    loop {
        let stream: std::io::Result<Stream> = match socket {
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| stream.into()),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.accept().map(|(stream, _)| stream.into()),
            Socket::Simulated(socket) => socket.accept().map(Stream::from),
        };
        if shared.is_closed.load(Ordering::Acquire) {
            return None;
        }
        match stream {
            Ok(stream) => return Some(stream),
            // The process is out of file descriptors, or the connection ended before it was accepted.
            Err(_) => threads::sleep(std::time::Duration::from_millis(10)),
        }
    }
}
