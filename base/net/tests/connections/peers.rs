//! The ends of connections: one that echoes, and one that passes on what it receives.

use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use net::{
    Address, Body, Channel, Connection, Frame, Handler, Identity, Incoming, Limits, Listener, NetError, Outbox,
    Security,
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn identity(job: &str, name: &str) -> Identity {
    Identity { job_id: job.into(), name: name.into(), incarnation: 7 }
}

/// Sends back what comes.
struct Echo(Outbox);

impl Handler for Echo {
    fn frame(&mut self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let (kind, head) = (frame.kind, frame.head().to_vec());
        let body: Body = Box::new(frame.body_to_vec()?);
        self.0.post(Frame { kind, head, body: vec![body] })
    }

    fn on_end(&mut self, _: NetError) {}
}

/// A frame, with its kind, head and body, or the end of the connection.
type Received = Result<(u8, Vec<u8>, Vec<u8>), NetError>;

struct Forward(Sender<Received>);

impl Handler for Forward {
    fn frame(&mut self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let (kind, head) = (frame.kind, frame.head().to_vec());
        let _ = self.0.send(Ok((kind, head, frame.body_to_vec()?)));
        Ok(())
    }

    fn on_end(&mut self, why: NetError) {
        let _ = self.0.send(Err(why));
    }
}

/// The end of a connection that a test talks over.
pub struct Client {
    channel: Channel,
    received: Receiver<Received>,
}

impl Client {
    pub fn start(connection: Connection) -> Result<Client, NetError> {
        let (sender, received) = channel();
        Ok(Client { channel: connection.start(|_| Forward(sender))?, received })
    }

    pub fn outbox(&self) -> &Outbox {
        self.channel.outbox()
    }

    pub fn send(&self, kind: u8, head: &[u8], body: &[u8]) -> Result<(), NetError> {
        self.outbox().send(Frame { kind, head: head.to_vec(), body: vec![Box::new(body.to_vec())] })
    }

    /// The next frame, or why there is none.
    pub fn receive(&self) -> Received {
        self.receive_within(PATIENCE).expect("something comes")
    }

    pub fn receive_within(&self, time: Duration) -> Option<Received> {
        self.received.recv_timeout(time).ok()
    }
}

/// Accepts connections as `echo` of the job, and echoes.
pub fn echo(address: &str, limits: Limits, security: Option<Security>) -> Listener {
    let own = identity("job", "echo");
    Listener::start(&address.parse().unwrap(), own, limits, security, |c| serve(c, |outbox| Echo(outbox.clone())))
        .unwrap()
}

/// Serves a connection as long as the other end wants.
pub fn serve<H: Handler>(connection: Connection, handler: impl FnOnce(&Outbox) -> H) {
    std::mem::forget(connection.start(handler).unwrap());
}

/// A connection to a listener, of which nothing is known.
pub fn stranger(to: &Address) -> TcpStream {
    let Address::Tcp { host, port } = to else { unreachable!("the test listens on TCP") };
    let stream = TcpStream::connect((host.as_str(), *port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}
