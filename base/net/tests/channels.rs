//! Processes of a job find each other over TCP and Unix sockets; strangers do no harm.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use net::{Address, Body, Channel, Connection, Frame, Handler, Identity, Incoming, Limits, Listener, NetError, Outbox};
use proptest::prelude::*;

/// Of those who may lose the processor for a while: only some tests ask how soon that is noticed.
fn patient() -> Limits {
    Limits { hello: Duration::from_secs(20), silence: Duration::from_secs(30), ..Limits::default() }
}

fn identity(job: &str, name: &str) -> Identity {
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

    fn ended(&mut self, _: NetError) {}
}

enum Event {
    Frame(u8, Vec<u8>, Vec<u8>),
    Ended(NetError),
}

struct Tell(Sender<Event>);

impl Handler for Tell {
    fn frame(&mut self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let (kind, head) = (frame.kind, frame.head().to_vec());
        let _ = self.0.send(Event::Frame(kind, head, frame.body_to_vec()?));
        Ok(())
    }

    fn ended(&mut self, why: NetError) {
        let _ = self.0.send(Event::Ended(why));
    }
}

fn echo(address: &str, limits: Limits) -> Listener {
    let accepted = |connection: Connection| {
        let channel = connection.start(|outbox| Echo(outbox.clone())).unwrap();
        // As long as the other end wants.
        std::mem::forget(channel);
    };
    Listener::start(&address.parse().unwrap(), identity("job", "echo"), limits, None, accepted).unwrap()
}

fn talk(to: &Address, limits: Limits) -> (Channel, Receiver<Event>) {
    let (tell, told) = channel();
    let connection = Connection::open(to, &identity("job", "client"), "echo", &limits, None).unwrap();
    assert_eq!((connection.peer().name.as_str(), connection.peer().incarnation), ("echo", 7));
    (connection.start(|_| Tell(tell)).unwrap(), told)
}

fn frame(kind: u8, head: &[u8], body: &[u8]) -> Frame {
    Frame { kind, head: head.to_vec(), body: vec![Box::new(body.to_vec())] }
}

fn check_echo(to: &Address) {
    let (channel, told) = talk(to, patient());
    for (i, n) in [0usize, 1, 4000, 70_000, 3 << 20].into_iter().enumerate() {
        let body: Vec<u8> = (0..n).map(|b| (b * 31 + i) as u8).collect();
        channel.outbox().send(frame(i as u8, b"head", &body)).unwrap();
        match told.recv_timeout(Duration::from_secs(30)).unwrap() {
            Event::Frame(kind, head, got) => {
                assert!(kind == i as u8 && head == b"head" && got == body, "{n} bytes");
            }
            Event::Ended(why) => panic!("{why}"),
        }
    }
}

#[test]
fn frames_go_and_come_over_tcp() {
    let listener = echo("127.0.0.1:0", patient());
    check_echo(listener.address());
}

#[cfg(unix)]
#[test]
fn frames_go_and_come_over_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let text = format!("unix:{}", path.display());
    // What a process that was killed leaves behind is replaced; a file is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = echo(&text, patient());
    check_echo(listener.address());
    let in_use = Listener::start(&text.parse().unwrap(), identity("job", "x"), patient(), None, |_| ());
    assert!(in_use.is_err());
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let address = format!("unix:{}", file.display()).parse().unwrap();
    assert!(Listener::start(&address, identity("job", "x"), patient(), None, |_| ()).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

/// A body that tells when it is dropped.
struct Counted {
    bytes: Vec<u8>,
    _counter: std::sync::Arc<()>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Sends large bodies until `is_enough`, and checks each that comes back; whether all of them were given back in the end.
fn large_bodies(limits: Limits, mut is_enough: impl FnMut(&Outbox, usize) -> bool) -> bool {
    let listener = echo("127.0.0.1:0", patient());
    let (channel, told) = talk(listener.address(), limits);
    let counter = std::sync::Arc::new(());
    for i in 0.. {
        let piece =
            |n: usize| Counted { bytes: (0..n).map(|b| (b * 31 + i) as u8).collect(), _counter: counter.clone() };
        let pieces = [piece(200_000), piece(0), piece(3), piece(100_000)];
        let expected = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect::<Vec<u8>>();
        let body = pieces.into_iter().map(|piece| Box::new(piece) as Body).collect();
        channel.outbox().send(Frame { kind: 1, head: vec![], body }).unwrap();
        match told.recv_timeout(Duration::from_secs(20)).unwrap() {
            Event::Frame(.., got) => assert!(got == expected, "body {i}"),
            Event::Ended(why) => panic!("{why}"),
        }
        if is_enough(channel.outbox(), i) {
            break;
        }
    }
    is_dropped(&counter)
}

/// Whether nobody has a body any more, after a while at most.
fn is_dropped(counter: &std::sync::Arc<()>) -> bool {
    for _ in 0..2000 {
        if std::sync::Arc::strong_count(counter) == 1 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[cfg(target_os = "linux")]
#[test]
fn large_bodies_within_a_host_are_taken_from_the_senders_memory() {
    // The first may go before the ends know that they can.
    assert!(large_bodies(patient(), |outbox, i| {
        assert!(i < 1000, "nothing was lent");
        outbox.n_lent() > 20
    }));
}

#[test]
fn a_process_that_does_not_lend_sends() {
    assert!(large_bodies(Limits { lends: false, ..patient() }, |outbox, i| {
        assert_eq!(outbox.n_lent(), 0);
        i > 20
    }));
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_lent_is_dropped_when_the_connection_ends() {
    /// Takes nothing.
    struct Deaf(Receiver<()>);
    impl Handler for Deaf {
        fn frame(&mut self, _: Incoming<'_>) -> Result<(), NetError> {
            let _ = self.0.recv();
            Ok(())
        }
        fn ended(&mut self, _: NetError) {}
    }
    let (_wake, waits) = channel();
    let waits = std::sync::Mutex::new(Some(waits));
    let accepted = move |connection: Connection| {
        let waits = waits.lock().unwrap().take().unwrap();
        std::mem::forget(connection.start(|_| Deaf(waits)).unwrap());
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::start(&address, identity("job", "echo"), patient(), None, accepted).unwrap();
    let (channel, _told) = talk(listener.address(), patient());
    let counter = std::sync::Arc::new(());
    let mut sent = 0;
    while channel.outbox().n_lent() < 2 {
        let body: Vec<Body> = vec![Box::new(Counted { bytes: vec![1; 100_000], _counter: counter.clone() })];
        channel.outbox().send(Frame { kind: 1, head: vec![], body }).unwrap();
        sent += 1;
        assert!(sent < 1000, "nothing was lent");
        std::thread::sleep(Duration::from_millis(5));
    }
    channel.outbox().close(NetError::Closed);
    assert!(is_dropped(&counter));
}

#[test]
fn other_jobs_and_wrong_names_are_refused() {
    let listener = echo("127.0.0.1:0", patient());
    let open = |job: &str, meant: &str| {
        Connection::open(listener.address(), &identity(job, "client"), meant, &patient(), None)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(open("other", "echo").unwrap_err(), "refused: another job");
    assert_eq!(open("job", "worker 3").unwrap_err(), "refused: this is echo, not worker 3");
    assert_eq!(open("job", ""), Ok(()));
}

#[test]
fn heartbeats_fill_pauses_and_silence_ends_the_connection() {
    // Who loses the processor for a while is not silent yet.
    let limits = Limits { heartbeat: Duration::from_millis(50), silence: Duration::from_millis(2500), ..patient() };
    let listener = echo("127.0.0.1:0", limits);
    let (channel, told) = talk(listener.address(), limits);
    // Several times the silence, in which only heartbeats come.
    assert!(told.recv_timeout(Duration::from_millis(6000)).is_err());
    channel.outbox().send(frame(1, b"still here", &[])).unwrap();
    assert!(matches!(told.recv_timeout(Duration::from_secs(20)).unwrap(), Event::Frame(1, ..)));
    // The other end sends heartbeats too rarely.
    // The other end sends heartbeats too rarely, and does not itself end the connection first.
    let rare = Limits { heartbeat: Duration::from_secs(60), silence: Duration::from_secs(60), ..limits };
    let listener = echo("127.0.0.1:0", rare);
    let (_channel, told) = talk(listener.address(), limits);
    match told.recv_timeout(Duration::from_secs(20)).unwrap() {
        Event::Ended(why) => assert!(matches!(why, NetError::Silent(_)), "{why}"),
        Event::Frame(..) => panic!("nothing was sent"),
    }
}

#[test]
fn an_ended_connection_is_told_at_both_ends() {
    let listener = echo("127.0.0.1:0", patient());
    let (channel, told) = talk(listener.address(), patient());
    channel.outbox().close(NetError::Refused("over".into()));
    match told.recv_timeout(Duration::from_secs(20)).unwrap() {
        Event::Ended(why) => assert_eq!(why.to_string(), "refused: over"),
        Event::Frame(..) => panic!("nothing was sent"),
    }
    assert!(channel.outbox().send(frame(1, &[], &[])).is_err());
}

#[test]
fn frames_over_the_limit_are_refused_where_they_are_sent() {
    let listener = echo("127.0.0.1:0", patient());
    let limits = Limits { body: 1000, outbox: 3000, ..patient() };
    let (channel, told) = talk(listener.address(), limits);
    assert!(matches!(channel.outbox().send(frame(1, &[], &[0; 1001])), Err(NetError::TooLarge { .. })));
    channel.outbox().send(frame(2, &[], &[0; 1000])).unwrap();
    assert!(matches!(told.recv_timeout(Duration::from_secs(20)).unwrap(), Event::Frame(2, ..)));
}

fn strangers_do_no_harm(bytes: &[u8], to: &Address) {
    let Address::Tcp { port, .. } = to else { unreachable!("the test listens on TCP") };
    let mut stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.take(2000).read_to_end(&mut answer);
    assert!(answer.len() < 2000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn garbage_on_the_port_does_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        prefix in prop_oneof![Just(&b""[..]), Just(&b"STEPSNET"[..]), Just(&b"STEPSNET\x01\0\0\0\0\xff\0"[..]),
            Just(&b"GET / HTTP/1.1\r\n\r\n"[..]), Just(&b"\x16\x03\x01\x02\0\x01"[..]), Just(&b"PRI * HTTP/2.0\r\n"[..])],
    ) {
        static LISTENER: std::sync::LazyLock<Listener> = std::sync::LazyLock::new(|| echo("127.0.0.1:0", patient()));
        strangers_do_no_harm(&[prefix, &bytes].concat(), LISTENER.address());
        let (channel, told) = talk(LISTENER.address(), patient());
        channel.outbox().send(frame(3, b"x", &[])).unwrap();
        prop_assert!(matches!(told.recv_timeout(Duration::from_secs(20)).unwrap(), Event::Frame(3, ..)));
    }
}

#[test]
fn those_who_open_and_say_nothing_are_few_and_leave() {
    let limits = Limits { openings: 4, hello: Duration::from_millis(300), ..patient() };
    let listener = echo("127.0.0.1:0", limits);
    let Address::Tcp { port, .. } = listener.address() else { unreachable!("the test listens on TCP") };
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(("127.0.0.1", *port)).unwrap()).collect();
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // Closed by the other end, each of them.
        match stream.read(&mut [0; 10]) {
            Ok(n) => assert_eq!(n, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    assert!(listener.n_refused() >= 36);
    // They count for a moment after they are gone, and who loses the processor for 300 ms is taken for one of them.
    let is_open = || {
        let own = identity("job", "client");
        Connection::open(listener.address(), &own, "echo", &patient(), None).is_ok()
    };
    let is_let_in = (0..200).any(|_| {
        is_open() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }
    });
    assert!(is_let_in, "nobody is let in any more");
}
