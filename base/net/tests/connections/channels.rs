//! Processes of a job find each other over TCP and Unix sockets; strangers do no harm.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use net::{Address, Body, Connection, Frame, Handler, Incoming, Limits, Listener, NetError, Outbox};
use proptest::prelude::*;

use crate::peers::{Client, echo, identity, serve, stranger};

/// Of those who may lose the processor for a while: only some tests ask how soon that is noticed.
fn patient() -> Limits {
    Limits { hello: Duration::from_secs(20), silence: Duration::from_secs(30), ..Limits::default() }
}

fn talk(to: &Address, limits: Limits) -> Client {
    let connection = Connection::open(to, &identity("job", "client"), "echo", &limits, None).unwrap();
    assert_eq!((connection.peer().name.as_str(), connection.peer().incarnation), ("echo", 7));
    Client::start(connection).unwrap()
}

/// Checks that the next thing that comes is a frame of this kind.
fn expect_kind(client: &Client, kind: u8) {
    assert_eq!(client.receive().unwrap().0, kind);
}

fn check_echo(to: &Address) {
    let client = talk(to, patient());
    for (i, n) in [0usize, 1, 4000, 70_000, 3 << 20].into_iter().enumerate() {
        let body: Vec<u8> = (0..n).map(|b| (b * 31 + i) as u8).collect();
        client.send(i as u8, b"head", &body).unwrap();
        let (kind, head, got) = client.receive().unwrap();
        assert!(kind == i as u8 && head == b"head" && got == body, "{n} bytes");
    }
}

#[test]
fn frames_go_and_come_over_tcp() {
    let listener = echo("127.0.0.1:0", patient(), None);
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
    let listener = echo(&text, patient(), None);
    check_echo(listener.address());
    let in_use = Listener::start(&text.parse().unwrap(), identity("job", "x"), patient(), None, |_| ());
    assert!(in_use.is_err());
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let address = format!("unix:{}", file.display()).parse().unwrap();
    assert!(Listener::start(&address, identity("job", "x"), patient(), None, |_| ()).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

/// A body that is counted until it is dropped.
struct Counted {
    bytes: Vec<u8>,
    _counter: std::sync::Arc<()>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Sends large bodies until `is_enough`, and checks each that comes back; whether all of them were released in the end.
fn large_bodies(limits: Limits, mut is_enough: impl FnMut(&Outbox, usize) -> bool) -> bool {
    let listener = echo("127.0.0.1:0", patient(), None);
    let client = talk(listener.address(), limits);
    let counter = std::sync::Arc::new(());
    for i in 0.. {
        let piece =
            |n: usize| Counted { bytes: (0..n).map(|b| (b * 31 + i) as u8).collect(), _counter: counter.clone() };
        let pieces = [piece(200_000), piece(0), piece(3), piece(100_000)];
        let expected = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect::<Vec<u8>>();
        let body = pieces.into_iter().map(|piece| Box::new(piece) as Body).collect();
        client.outbox().send(Frame { kind: 1, head: vec![], body }).unwrap();
        assert!(client.receive().unwrap().2 == expected, "body {i}");
        if is_enough(client.outbox(), i) {
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
        fn on_end(&mut self, _: NetError) {}
    }
    let (_wake, waits) = channel();
    let waits = std::sync::Mutex::new(Some(waits));
    let accepted = move |connection: Connection| {
        let waits = waits.lock().unwrap().take().unwrap();
        serve(connection, |_| Deaf(waits));
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::start(&address, identity("job", "echo"), patient(), None, accepted).unwrap();
    let client = talk(listener.address(), patient());
    let counter = std::sync::Arc::new(());
    let mut sent = 0;
    while client.outbox().n_lent() < 2 {
        let body: Vec<Body> = vec![Box::new(Counted { bytes: vec![1; 100_000], _counter: counter.clone() })];
        client.outbox().send(Frame { kind: 1, head: vec![], body }).unwrap();
        sent += 1;
        assert!(sent < 1000, "nothing was lent");
        std::thread::sleep(Duration::from_millis(5));
    }
    client.outbox().close(NetError::Closed);
    assert!(is_dropped(&counter));
}

#[test]
fn other_jobs_and_wrong_names_are_refused() {
    let listener = echo("127.0.0.1:0", patient(), None);
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
    let listener = echo("127.0.0.1:0", limits, None);
    let client = talk(listener.address(), limits);
    // Several times the silence, in which only heartbeats come.
    assert!(client.receive_within(Duration::from_millis(6000)).is_none());
    client.send(1, b"still here", &[]).unwrap();
    expect_kind(&client, 1);
    // The other end sends heartbeats too rarely, and does not itself end the connection first.
    let rare = Limits { heartbeat: Duration::from_secs(60), silence: Duration::from_secs(60), ..limits };
    let listener = echo("127.0.0.1:0", rare, None);
    let why = talk(listener.address(), limits).receive().unwrap_err();
    assert!(matches!(why, NetError::Silent(_)), "{why}");
}

#[test]
fn an_ended_connection_is_reported_at_both_ends() {
    let listener = echo("127.0.0.1:0", patient(), None);
    let client = talk(listener.address(), patient());
    client.outbox().close(NetError::Refused("over".into()));
    assert_eq!(client.receive().unwrap_err().to_string(), "refused: over");
    assert!(client.send(1, &[], &[]).is_err());
}

#[test]
fn frames_over_the_limit_are_refused_where_they_are_sent() {
    let listener = echo("127.0.0.1:0", patient(), None);
    let client = talk(listener.address(), Limits { body: 1000, outbox: 3000, ..patient() });
    assert!(matches!(client.send(1, &[], &[0; 1001]), Err(NetError::TooLarge { .. })));
    client.send(2, &[], &[0; 1000]).unwrap();
    expect_kind(&client, 2);
}

fn strangers_do_no_harm(bytes: &[u8], to: &Address) {
    let mut stream = stranger(to);
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
        static LISTENER: std::sync::LazyLock<Listener> = std::sync::LazyLock::new(|| echo("127.0.0.1:0", patient(), None));
        strangers_do_no_harm(&[prefix, &bytes].concat(), LISTENER.address());
        let client = talk(LISTENER.address(), patient());
        client.send(3, b"x", &[]).unwrap();
        prop_assert_eq!(client.receive().unwrap().0, 3);
    }
}

#[test]
fn those_who_open_and_say_nothing_are_few_and_leave() {
    let limits = Limits { openings: 4, hello: Duration::from_millis(300), ..patient() };
    let listener = echo("127.0.0.1:0", limits, None);
    let silent: Vec<TcpStream> = (0..40).map(|_| stranger(listener.address())).collect();
    for mut stream in silent {
        // Closed by the other end, each of them.
        match stream.read(&mut [0; 10]) {
            Ok(n) => assert_eq!(n, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    assert!(listener.n_refused() >= 36);
    // They count for a moment after they are gone, and who loses the processor for 300 ms is taken for one of them.
    let own = identity("job", "client");
    let is_let_in = (0..200).any(|i| {
        std::thread::sleep(Duration::from_millis(if i == 0 { 0 } else { 50 }));
        Connection::open(listener.address(), &own, "echo", &patient(), None).is_ok()
    });
    assert!(is_let_in, "nobody is let in any more");
}
