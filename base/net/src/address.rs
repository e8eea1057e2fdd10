//! Addresses at which processes listen: `host:port`, or `unix:/path` on the same host.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// An address at which a process listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP: a host's name or IP address, and a port (0: any free one).
    Tcp {
        /// The host's name or IP address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

/// Why an address cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AddressError {
    /// The text is not an address.
    #[error("{0:?} is no address (expected HOST:PORT or unix:/PATH)")]
    Malformed(String),
    /// The host's name has no IP address.
    #[error("host {host}: {reason}")]
    Unknown {
        /// The host.
        host: String,
        /// The system's message.
        reason: String,
    },
    /// The address is on another host or open to other hosts, and connections are not encrypted.
    #[error(
        "{0} is not of this host alone: without certificates only loopback addresses (127.0.0.1, ::1, localhost) and \
         unix:/PATH are allowed; name the job's certificates, or forward the ports through ssh"
    )]
    NotLoopback(String),
    /// This system has no Unix sockets.
    #[error("{0}: this system has no sockets in its file system")]
    NoUnix(String),
}

impl Address {
    /// The IP addresses and port of a TCP address; none for a Unix socket.
    ///
    /// # Errors
    /// The host is unknown, or connections are not encrypted and one of its IP addresses is not a loopback address.
    pub fn resolve(&self, is_encrypted: bool) -> Result<Vec<SocketAddr>, AddressError> {
        let Address::Tcp { host, port } = self else { return Ok(Vec::new()) };
        let unknown = |reason: String| AddressError::Unknown { host: host.clone(), reason };
        let addrs = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, *port)],
            Err(_) => (host.as_str(), *port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?.collect(),
        };
        if addrs.is_empty() {
            return Err(unknown("it has no address".into()));
        }
        match addrs.iter().find(|addr| !is_encrypted && !addr.ip().is_loopback()) {
            Some(addr) => Err(AddressError::NotLoopback(format!("{self} ({})", addr.ip()))),
            None => Ok(addrs),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(malformed()) } else { Ok(Address::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| malformed())?;
        let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/');
        if is_host { Ok(Address::Tcp { host: host.to_owned(), port }) } else { Err(malformed()) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["127.0.0.1:80", "localhost:0", "[::1]:65535", "unix:/tmp/a b"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", ":", "a", "a:", "a:x", "a:65536", "a b:1", "unix:", "http://a:1", "a:-1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_this_host_is_reached() {
        let resolve = |text: &str| text.parse::<Address>().unwrap().resolve(false);
        assert_eq!(resolve("127.0.0.1:7").unwrap()[0].port(), 7);
        assert!(resolve("[::1]:7").is_ok());
        for text in ["0.0.0.0:7", "10.0.0.1:7", "[::]:7", "8.8.8.8:7"] {
            let error = resolve(text).unwrap_err().to_string();
            assert!(error.contains("not of this host") && error.contains("ssh"), "{error}");
            assert!(text.parse::<Address>().unwrap().resolve(true).is_ok(), "{text}");
        }
    }
}
