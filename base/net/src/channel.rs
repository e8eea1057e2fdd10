//! A connection at work: a thread takes what comes and gives it to a handler, another sends.

use std::sync::Arc;

use crate::hello::{self, Identity, Peer};
use crate::mpi;
use crate::outbox::Outbox;
use crate::reader::{Incoming, Reader};
use crate::stream::Stream;
use crate::{Address, Limits, NetError, Security};

/// A connection whose ends know each other.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    limits: Limits,
}

impl Connection {
    /// Connects to who listens at an address and is called `meant` (empty: whoever it is). With `security` a TCP connection is
    /// encrypted, and the host's name or number has to be in the certificate of who answers.
    ///
    /// # Errors
    /// Nobody listens there, or it is not who was meant, or it does not let this one in.
    pub fn open(
        to: &Address,
        own: &Identity,
        meant: &str,
        limits: &Limits,
        security: Option<&Security>,
    ) -> Result<Connection, NetError> {
        let mut stream = Stream::connect(to, security, limits.hello)?;
        let peer = hello::open(&mut stream, own, meant, limits)?;
        Connection::new(stream, peer, limits)
    }

    pub(crate) fn answer(
        stream: Stream,
        own: &Identity,
        limits: &Limits,
        security: Option<&Security>,
    ) -> Result<Connection, NetError> {
        let mut stream = stream.accepted(security, limits.hello)?;
        let peer = hello::answer(&mut stream, own, limits)?;
        Connection::new(stream, peer, limits)
    }

    fn new(stream: Stream, peer: Peer, limits: &Limits) -> Result<Connection, NetError> {
        stream.set_timeouts(limits.silence, limits.silence)?;
        Ok(Connection { stream, peer, limits: *limits })
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Starts the connection's threads. `handler` makes what takes the frames, given how to answer.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start<H: Handler>(self, handler: impl FnOnce(&Outbox) -> H) -> Result<Channel, NetError> {
        let Connection { stream, peer, limits } = self;
        let outbox = Outbox::new(stream.try_clone()?, limits)?;
        let handler = handler(&outbox);
        if limits.lends && stream.is_within_host() {
            outbox.offer_memory()?;
        }
        if let Some(offer) = mpi::offer().filter(|_| !stream.is_simulated()) {
            outbox.post(offer)?;
        }
        let (sending, taking) = (outbox.clone(), outbox.clone());
        threads::spawn("net-send", move || sending.run())?;
        let taken = threads::spawn("net-take", move || {
            take(Reader::answering(stream, limits, taking.clone()), handler, &taking);
        });
        if let Err(error) = taken {
            outbox.close(NetError::Closed);
            return Err(error.into());
        }
        Ok(Channel { peer, outbox: Arc::new(Closing(outbox)) })
    }
}

/// Takes what comes over a connection, in a thread of its own.
pub trait Handler: Send + 'static {
    /// A frame came. What is left of its body is skipped.
    ///
    /// # Errors
    /// What came cannot be: the connection is ended.
    fn frame(&mut self, frame: Incoming<'_>) -> Result<(), NetError>;

    /// The connection ended. Called once, last.
    fn ended(&mut self, why: NetError);
}

fn take(mut reader: Reader, mut handler: impl Handler, outbox: &Outbox) {
    let why = loop {
        if let Err(error) = reader.next().and_then(|frame| handler.frame(frame)) {
            break error;
        }
    };
    // Where this end closed it, or failed to send, that is the reason.
    let why = outbox.ended().unwrap_or(why);
    outbox.close(why.clone());
    handler.ended(why);
}

/// A connection at work. It ends with its last clone.
#[derive(Clone)]
pub struct Channel {
    peer: Peer,
    outbox: Arc<Closing>,
}

/// Closes the connection when nobody has it any more.
struct Closing(Outbox);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close(NetError::Closed);
    }
}

impl Channel {
    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// How to send.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox.0
    }
}
