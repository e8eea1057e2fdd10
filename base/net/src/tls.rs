//! Connections between hosts: TLS 1.3, in which both ends show a certificate of the job's authority.
//!
//! One thread receives from a connection while another sends over it. Therefore the TLS session is locked only while
//! bytes are encrypted or decrypted, never while a thread waits for the socket: otherwise two ends that both send much
//! would block each other.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::{Address, NetError};

/// The most bytes that are encrypted, or read from the socket, at once.
const CHUNK: usize = 64 << 10;
/// Rounds of reading and writing that a handshake may take. Each may last [`Limits::hello`](crate::Limits::hello), so
/// this bounds the time of a slow sender.
const MAX_ROUNDS: usize = 32;

/// The certificates by which the processes of a job authenticate each other.
#[derive(Clone)]
pub struct Security {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// Why certificates cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SecurityError {
    /// A file cannot be read, or lacks the certificate or key.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        reason: String,
    },
    /// Certificate, key and authority do not match, or are not valid.
    #[error("{0}")]
    Invalid(String),
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Security")
    }
}

impl Security {
    /// Reads PEM files: the certificate of the authority that signed those of all processes of the job, the certificate
    /// of this process (with intermediate ones), and its key. A certificate names its host by host name or IP address,
    /// and is for servers and clients.
    ///
    /// # Errors
    /// A file cannot be read or is not such a file, or the key does not match the certificate.
    pub fn from_files(authority: &Path, certificate: &Path, key: &Path) -> Result<Security, SecurityError> {
        let file_error = |path: &Path, reason: String| SecurityError::File { path: path.to_owned(), reason };
        let read = |path: &Path| std::fs::read(path).map_err(|error| file_error(path, error.to_string()));
        let (roots, chain, private) = (read(authority)?, read(certificate)?, read(key)?);
        let authorities = certificates(&roots).map_err(|reason| file_error(authority, reason))?;
        let chain = certificates(&chain).map_err(|reason| file_error(certificate, reason))?;
        let private = PrivateKeyDer::from_pem_slice(&private)
            .map_err(|error| file_error(key, format!("it has no private key ({error})")))?;
        Security::new(authorities, chain, private)
    }

    fn new(
        authorities: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Security, SecurityError> {
        let config_error = |error: &dyn fmt::Display| SecurityError::Invalid(error.to_string());
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(|e| config_error(&e))?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));
        let versions = [&rustls::version::TLS13];
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|e| config_error(&e))?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_protocol_versions(&versions).map_err(|e| config_error(&e))?;
        let mut server = server
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|e| config_error(&e))?;
        // Connections last for the job, so no client resumes a session with a ticket.
        server.send_tls13_tickets = 0;
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_protocol_versions(&versions).map_err(|e| config_error(&e))?;
        let client = client.with_root_certificates(roots);
        let client = client.with_client_auth_cert(chain, key).map_err(|e| config_error(&e))?;
        Ok(Security { server: Arc::new(server), client: Arc::new(client) })
    }

    /// The connecting end's handshake.
    pub(crate) fn connect(&self, raw: TcpStream, to: &Address) -> Result<TlsStream, NetError> {
        let Address::Tcp { host, .. } = to else {
            return Err(NetError::Protocol("no TLS over a file's socket".into()));
        };
        let name = ServerName::try_from(host.clone()).map_err(|error| NetError::Protocol(error.to_string()))?;
        let session = ClientConnection::new(Arc::clone(&self.client), name).map_err(|e| tls_error(&e))?;
        TlsStream::new(raw, session.into())
    }

    /// The listening end's handshake.
    pub(crate) fn accept(&self, raw: TcpStream) -> Result<TlsStream, NetError> {
        let session = ServerConnection::new(Arc::clone(&self.server)).map_err(|e| tls_error(&e))?;
        TlsStream::new(raw, session.into())
    }
}

/// All certificates of a PEM text, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() { Err("it has no certificate".to_owned()) } else { Ok(certificates) }
}

fn tls_error(error: &rustls::Error) -> NetError {
    NetError::Refused(format!("TLS: {error}"))
}

/// An encrypted connection; clones share it.
#[derive(Clone)]
pub(crate) struct TlsStream(Arc<Shared>);

struct Shared {
    raw: TcpStream,
    session: Mutex<rustls::Connection>,
    /// Encrypted bytes that were received and are not in the session yet.
    received: Mutex<ReceiveBuffer>,
    /// Encrypted bytes to be sent. Locked while they are written, so that they are sent in the order of their
    /// encryption.
    outgoing: Mutex<Vec<u8>>,
}

#[derive(Default)]
struct ReceiveBuffer {
    bytes: Vec<u8>,
    /// Bytes that are in the session already.
    n_consumed: usize,
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsStream").field(&self.0.raw).finish()
    }
}

impl TlsStream {
    /// Performs the handshake; the socket's time limits hold for each read and write.
    fn new(raw: TcpStream, mut session: rustls::Connection) -> Result<TlsStream, NetError> {
        let mut rounds_left = MAX_ROUNDS;
        while session.is_handshaking() || session.wants_write() {
            rounds_left = rounds_left
                .checked_sub(1)
                .ok_or_else(|| NetError::Protocol("the handshake comes too slowly".into()))?;
            while session.wants_write() {
                session.write_tls(&mut &raw)?;
            }
            if session.is_handshaking() {
                if session.read_tls(&mut &raw)? == 0 {
                    return Err(NetError::Closed);
                }
                if let Err(error) = session.process_new_packets() {
                    // Sends the alert with the reason.
                    let _ = session.write_tls(&mut &raw);
                    return Err(tls_error(&error));
                }
            }
        }
        // `write_vectored` bounds the buffer itself: it encrypts one chunk at a time.
        session.set_buffer_limit(None);
        let (session, received, outgoing) = (Mutex::new(session), Mutex::default(), Mutex::default());
        Ok(TlsStream(Arc::new(Shared { raw, session, received, outgoing })))
    }

    /// The TCP connection.
    pub(crate) fn raw(&self) -> &TcpStream {
        &self.0.raw
    }

    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let mut received = self.0.received.lock();
        loop {
            if let Some(n) = self.decrypt(&mut received, to)? {
                return Ok(n);
            }
            received.bytes.resize(CHUNK, 0);
            let n = (&self.0.raw).read(&mut received.bytes);
            received.n_consumed = 0;
            received.bytes.truncate(n.as_ref().copied().unwrap_or(0));
            if n? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Decrypts received bytes to `to`, without waiting; returns their number. `None` where none are complete.
    fn decrypt(&self, received: &mut ReceiveBuffer, to: &mut [u8]) -> io::Result<Option<usize>> {
        let mut session = self.0.session.lock();
        loop {
            match session.reader().read(to) {
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            let mut left = received.bytes.get(received.n_consumed..).unwrap_or_default();
            if left.is_empty() {
                return Ok(None);
            }
            let n_before = left.len();
            session.read_tls(&mut left)?;
            received.n_consumed += n_before - left.len();
            session.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    pub(crate) fn write_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut outgoing = self.0.outgoing.lock();
        let mut room = CHUNK;
        {
            let mut session = self.0.session.lock();
            for piece in from {
                let part = &piece[..piece.len().min(room)];
                session.writer().write_all(part)?;
                room -= part.len();
            }
            outgoing.clear();
            while session.wants_write() {
                session.write_tls(&mut *outgoing)?;
            }
        }
        (&self.0.raw).write_all(&outgoing)?;
        Ok(CHUNK - room)
    }
}
