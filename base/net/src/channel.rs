//! Connections: one thread receives frames and passes them to a handler, another sends the outbox's frames.

use std::sync::Arc;

use crate::hello::{self, Identity, Peer};
use crate::negotiation::Transports;
use crate::outbox::Outbox;
use crate::reader::{Incoming, Reader};
use crate::stream::Stream;
use crate::{Address, Limits, NetError, Security};

/// A connection after its handshake, whose threads are not started yet.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    limits: Limits,
}

impl Connection {
    /// Connects to the process that listens at `to`; the process's name has to be `expected_name` (empty: any). With
    /// `security` a TCP connection is encrypted, and the process has to show a certificate for the address's host.
    ///
    /// # Errors
    /// No process listens there, it has another name or job, or it refuses this one.
    pub fn open(
        to: &Address,
        identity: &Identity,
        expected_name: &str,
        limits: &Limits,
        security: Option<&Security>,
    ) -> Result<Connection, NetError> {
        let mut stream = Stream::connect(to, security, limits.hello)?;
        let peer = hello::initiate(&mut stream, identity, expected_name, limits)?;
        Connection::new(stream, peer, limits)
    }

    /// Performs the handshake on an accepted stream.
    pub(crate) fn accept(
        stream: Stream,
        identity: &Identity,
        limits: &Limits,
        security: Option<&Security>,
    ) -> Result<Connection, NetError> {
        let mut stream = stream.into_accepted(security, limits.hello)?;
        let peer = hello::respond(&mut stream, identity, limits)?;
        Connection::new(stream, peer, limits)
    }

    fn new(stream: Stream, peer: Peer, limits: &Limits) -> Result<Connection, NetError> {
        stream.set_timeouts(limits.silence, limits.silence)?;
        Ok(Connection { stream, peer, limits: *limits })
    }

    /// The process at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Starts the connection's threads. `make_handler` gets the outbox and makes the handler of received frames.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start<H: Handler>(self, make_handler: impl FnOnce(&Outbox) -> H) -> Result<Channel, NetError> {
        let Connection { stream, peer, limits } = self;
        let outbox = Outbox::new(stream.try_clone()?, limits)?;
        let handler = make_handler(&outbox);
        let transports = Transports::offer(outbox.clone(), &stream, &limits)?;
        let (send_outbox, receive_outbox) = (outbox.clone(), outbox.clone());
        threads::spawn("net-send", move || send_outbox.run())?;
        let receiver = threads::spawn("net-take", move || {
            receive(Reader::with_transports(stream, limits, transports), handler, &receive_outbox);
        });
        if let Err(error) = receiver {
            outbox.close(NetError::Closed);
            return Err(error.into());
        }
        Ok(Channel { peer, outbox: Arc::new(ClosingGuard(outbox)) })
    }
}

/// Handles the frames that a connection receives, in the connection's receiving thread.
pub trait Handler: Send + 'static {
    /// Handles a received frame. The part of the frame's body that is not read here is skipped.
    ///
    /// # Errors
    /// The frame violates the handler's protocol; the connection is closed.
    fn frame(&mut self, frame: Incoming<'_>) -> Result<(), NetError>;

    /// Called once, after all other calls, when the connection has ended for `reason`.
    fn on_end(&mut self, reason: NetError);
}

fn receive(mut reader: Reader, mut handler: impl Handler, outbox: &Outbox) {
    let reason = loop {
        if let Err(error) = reader.next().and_then(|frame| handler.frame(frame)) {
            break error;
        }
    };
    // If this end closed the connection or failed to send, its reason comes before the receiving thread's error.
    let reason = outbox.end_reason().unwrap_or(reason);
    outbox.close(reason.clone());
    handler.on_end(reason);
}

/// A running connection. It closes when its last clone is dropped.
#[derive(Clone)]
pub struct Channel {
    peer: Peer,
    outbox: Arc<ClosingGuard>,
}

/// Closes the connection when the last [`Channel`] is dropped.
struct ClosingGuard(Outbox);

impl Drop for ClosingGuard {
    fn drop(&mut self) {
        self.0.close(NetError::Closed);
    }
}

impl Channel {
    /// The process at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Sends frames to the other end.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox.0
    }
}
