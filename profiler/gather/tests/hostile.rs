//! Garbage, lies and crowds at the collector's port: it goes on, and good senders do not notice.
#![allow(clippy::unwrap_used)] // a test file

mod common;

use bytes::Bytes;
use common::{Folder, args, gathering, loopback, read, sender, wait_until};
use gather::wire::gather_client::GatherClient;
use gather::wire::{ClockAsk, Down, Exchange, Hello, Piece, State, Up, down, up};
use gather::{Server, ServerOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tokio_stream::StreamExt;

fn good_sender_works(dir: &Path, server: &Server, pid: u32) {
    let begin = events::clock::mono_now();
    let mut folder = Folder::create(&dir.join(format!("good-{pid}")), pid, begin);
    (0..1_000).for_each(|n| folder.slice(begin + n * 100, 50, n as u64));
    folder.end();
    let report = sender(&folder.dir, server).finish(Duration::from_secs(30));
    assert!(report.finished, "{report:?}");
}

#[test]
fn garbage_on_the_port_does_no_harm() {
    let (dir, gathered, server) = gathering();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut noise = 12345u32;
    let mut random = |n: usize| -> Vec<u8> {
        let next = |_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        (0..n).map(next).collect()
    };
    let mut attacks = vec![b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), preface.clone(), vec![0; 70_000]];
    for n in [1, 9, 500, 60_000] {
        attacks.push(random(n));
        attacks.push([preface.clone(), random(n)].concat());
        // A settings frame, then a frame that says it is 16 MiB long.
        attacks.push(
            [preface.clone(), vec![0, 0, 0, 4, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], random(n)].concat(),
        );
    }
    let mut open = Vec::new();
    for attack in &attacks {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // It may hang up in the middle.
        let _ = stream.write_all(attack);
        open.push(stream);
    }
    // All still open, some of them waiting for more.
    good_sender_works(dir.path(), &server, 1);
    for mut stream in open {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let _ = stream.read(&mut [0; 1024]);
    }
    good_sender_works(dir.path(), &server, 2);
    server.stop();
    let found = args(&read(&gathered));
    assert_eq!(found.len(), 2);
    assert!(found.values().all(|args| args.len() == 1_000));
    assert_eq!(std::fs::read_dir(&gathered).unwrap().count(), 3, "nothing was made for garbage");
}

#[test]
fn a_crowd_is_turned_away_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let options = ServerOptions { max_connections: 8, ..ServerOptions::default() };
    let server = Server::start(&dir.path().join("gathered"), loopback(), &options).unwrap();
    let crowd: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(server.address()).ok()).collect();
    wait_until("the crowd is turned away", || server.progress().turned_away >= 190);
    drop(crowd);
    good_sender_works(dir.path(), &server, 1);
}

fn hello(folder: u8) -> Up {
    let (folder, host) = (Bytes::from(vec![folder; 16]), "h".to_owned());
    said(up::What::Hello(Hello { version: 1, folder, host, clock: "c".into() }))
}

fn said(what: up::What) -> Up {
    Up { what: Some(what) }
}

fn piece(sequence: u64, file: &str, offset: u64, data: &[u8]) -> Up {
    let data = Bytes::copy_from_slice(data);
    let piece = Piece { sequence, file: file.to_owned(), offset, crc: crc32c::crc32c(&data), data };
    said(up::What::Piece(piece))
}

/// Runs what a client does at a server.
fn with_client<T>(server: &Server, run: impl AsyncFnOnce(GatherClient<tonic::transport::Channel>) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = format!("http://{}", server.address());
    runtime.block_on(async { run(GatherClient::connect(address).await.unwrap()).await })
}

/// Sends messages; gives back the acknowledged number, or what the collector says against them.
fn talk(server: &Server, messages: Vec<Up>) -> Result<u64, tonic::Status> {
    with_client(server, async |mut client| {
        let mut answers = client.send(tokio_stream::iter(messages)).await?.into_inner();
        let mut last = 0;
        while let Some(answer) = answers.next().await {
            if let Down { what: Some(down::What::Ack(ack)) } = answer? {
                last = ack.sequence;
            }
        }
        Ok(last)
    })
}

#[test]
fn who_does_not_keep_to_the_protocol_is_refused() {
    let (dir, gathered, server) = gathering();
    assert_eq!(talk(&server, vec![hello(1), piece(1, "meta-5.bin", 0, b"abcd")]).unwrap(), 1);
    let short_id = Hello { version: 1, folder: vec![1; 3].into(), host: "h".into(), clock: "c".into() };
    let wrong_version = Hello { version: 99, folder: vec![1; 16].into(), host: "h".into(), clock: "c".into() };
    let wrong_crc = Piece { sequence: 1, file: "meta-5.bin".into(), offset: 4, crc: 1, data: "x".into() };
    let mut bad_clock = hello(2);
    if let Some(up::What::Hello(hello)) = &mut bad_clock.what {
        hello.clock = "../../etc/x".into();
    }
    let cases: Vec<(&str, Vec<Up>)> = vec![
        ("no greeting", vec![piece(1, "meta-5.bin", 0, b"abcd")]),
        ("nothing in it", vec![Up { what: None }]),
        ("greeting twice", vec![hello(1), hello(1)]),
        ("another version", vec![said(up::What::Hello(wrong_version))]),
        ("an id of another length", vec![said(up::What::Hello(short_id))]),
        ("a clock that is a path", vec![bad_clock]),
        ("a damaged piece", vec![hello(1), said(up::What::Piece(wrong_crc))]),
        ("a gap", vec![hello(1), piece(1, "meta-5.bin", 5, b"efgh")]),
        ("a path", vec![hello(1), piece(1, "../meta-5.bin", 0, b"x")]),
        ("an absolute path", vec![hello(1), piece(1, "/tmp/meta-5.bin", 0, b"x")]),
        ("another file", vec![hello(1), piece(1, "source.json", 0, b"x")]),
        ("a ring", vec![hello(1), piece(1, "ring-1-1.ring", 0, b"x")]),
        ("no name", vec![hello(1), piece(1, "", 0, b"x")]),
        ("too long", vec![hello(1), piece(1, "meta-5.bin", 4, &vec![0; 2 << 20])]),
    ];
    for (what, messages) in cases {
        let answer = talk(&server, messages);
        assert!(answer.is_err(), "{what}: {answer:?}");
    }
    let copies: Vec<_> =
        std::fs::read_dir(&gathered).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(std::fs::read(copies[0].join("meta-5.bin")).unwrap(), b"abcd");
    assert!(!dir.path().join("meta-5.bin").exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn bytes_that_come_again_are_taken_once() {
    let (_dir, gathered, server) = gathering();
    let messages = [(0, "abcd"), (0, "abcd"), (2, "cdef"), (6, "gh"), (1, "bc")];
    let mut all = vec![hello(1)];
    all.extend(messages.iter().zip(1..).map(|((offset, data), n)| piece(n, "meta-5.bin", *offset, data.as_bytes())));
    all.push(said(up::What::State(State { sequence: 6, lost_events: 3, finished: true, ..State::default() })));
    assert_eq!(talk(&server, all).unwrap(), 6);
    assert_eq!(server.progress().repeated, 8);
    let copy = std::fs::read_dir(&gathered).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir()).unwrap();
    assert_eq!(std::fs::read(copy.join("meta-5.bin")).unwrap(), b"abcdefgh");
    let control = events::control::Control::open(&copy).unwrap();
    assert_eq!((control.lost().events, control.collector().finished), (3, true));
}

#[test]
fn the_newest_connection_of_a_folder_has_it() {
    let (_dir, _, server) = gathering();
    with_client(&server, async |mut client| {
        let mut open = Vec::new();
        for _ in 0..2 {
            let (messages, rest) = tokio::sync::mpsc::channel(8);
            messages.send(hello(1)).await.unwrap();
            let mut answers =
                client.send(tokio_stream::wrappers::ReceiverStream::new(rest)).await.unwrap().into_inner();
            assert!(matches!(answers.next().await, Some(Ok(Down { what: Some(down::What::Welcome(_)) }))));
            open.push((messages, answers));
        }
        let (second, first) = (open.pop().unwrap(), open.pop().unwrap());
        for ((messages, mut answers), wins) in [(first, false), (second, true)] {
            messages.send(piece(1, "meta-5.bin", 0, b"x")).await.unwrap();
            let answer = answers.next().await.unwrap();
            assert_eq!(answer.is_ok(), wins, "{answer:?}");
        }
    });
}

#[test]
fn stamps_that_make_no_sense_are_left_out() {
    let (_dir, gathered, server) = gathering();
    with_client(&server, async |mut client| {
        let stamps = |asked_ns, received_ns, sent_ns, answered_ns| {
            Some(Exchange { asked_ns, received_ns, sent_ns, answered_ns })
        };
        for (last, clock, is_taken) in [
            (stamps(10, 20, 21, 5), "c", true),
            (stamps(10, 20, 19, 50), "c", true),
            (stamps(10, 20, 21, 50), "../c", false),
            (stamps(10, 20, 21, 50), "c", true),
        ] {
            let answer = client.clock(ClockAsk { clock: clock.into(), asked_ns: 1, last }).await;
            assert_eq!(answer.is_ok(), is_taken, "{answer:?}");
        }
    });
    assert_eq!(server.progress().exchanges, 1, "the sound one");
    assert_eq!(std::fs::metadata(gathered.join("clock-c.bin")).unwrap().len(), 40);
}
