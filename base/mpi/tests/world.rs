//! Processes that Open MPI's `mpirun` started send each other bodies by MPI. `STEPSCOPE_MPI` names the python in whose folder it lies.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[allow(dead_code, reason = "shared with the tests of `net`")]
#[path = "../../net/tests/connections/peers.rs"]
mod peers;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use net::{Body, Connection, Frame, Handler, Identity, Incoming, Limits, Listener, NetError, Outbox};
use net_mpi::World;

use peers::{Client, serve};

/// No body is taken from another's memory: all large ones go by MPI.
fn limits() -> Limits {
    Limits { lends: false, ..Limits::default() }
}

/// Runs this test's `name` again, as `n` processes of one world.
fn in_world(name: &str, n: usize) -> Option<Output> {
    if std::env::var_os("OMPI_COMM_WORLD_RANK").is_some() {
        return None;
    }
    let python = std::env::var_os("STEPSCOPE_MPI").expect("STEPSCOPE_MPI names a python in the folder of mpirun");
    let mut command = Command::new(Path::new(&python).with_file_name("mpirun"));
    command.args(["-n", &n.to_string(), "--oversubscribe", "--timeout", "120"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    Some(command.output().unwrap())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn identity(rank: u32) -> Identity {
    peers::identity("world", &format!("rank {rank}"))
}

/// Takes bodies in pieces of uneven sizes and sends them back; leaves those of kind 1 where they are.
struct Echo(Outbox);

impl Handler for Echo {
    fn frame(&mut self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let mut body = vec![0; frame.body_len() as usize];
        if frame.kind != 1 {
            let (mut at, mut n) = (0, 1);
            while at < body.len() {
                n = (n * 7 + at) % (9 << 20) + 1;
                let end = (at + n).min(body.len());
                frame.read_body(&mut body[at..end])?;
                at = end;
            }
        }
        let body = if frame.kind == 1 { Vec::new() } else { vec![Box::new(body) as Body] };
        self.0.post(Frame { kind: frame.kind, head: frame.head().to_vec(), body })
    }

    fn on_end(&mut self, _: NetError) {}
}

/// A world in which each process is connected to each other one.
fn connected(world: &World) -> (Listener, Vec<Client>) {
    let accepted = |connection: Connection| serve(connection, |outbox| Echo(outbox.clone()));
    let own = identity(world.rank());
    let listener = Listener::start(&"127.0.0.1:0".parse().unwrap(), own, limits(), None, accepted).unwrap();
    let all = world.all_gather(&listener.address().to_string()).unwrap();
    let others = (0..world.size()).filter(|rank| *rank != world.rank());
    let clients = others.map(|rank| {
        let to = all[rank as usize].parse().unwrap();
        let name = identity(rank).name;
        let connection = Connection::open(&to, &identity(world.rank()), &name, &limits(), None).unwrap();
        let client = Client::start(connection).unwrap();
        // The other end's offer comes before its first answer.
        client.send(0, &[9], &[]).unwrap();
        assert_eq!(client.receive().unwrap().1, [9]);
        client
    });
    let clients = clients.collect();
    (listener, clients)
}

fn leave(world: &World) {
    let mut leaving = world.leave().unwrap();
    while !leaving.is_over().unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes of which each follows from its position.
fn bytes(n: usize, salt: u32) -> Vec<u8> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(salt) >> 13) as u8).collect()
}

const SIZES: [usize; 8] = [0, 1, 65_535, 65_536, 1 << 20, (4 << 20) + 1, 9 << 20, 33 << 20];

#[test]
fn large_bodies_go_by_mpi_and_come_as_they_went() {
    if let Some(output) = in_world("large_bodies_go_by_mpi_and_come_as_they_went", 3) {
        assert!(output.status.success(), "{}", text(&output));
        return;
    }
    let world = World::join().unwrap();
    assert!(world.size() == 3 && world.is_on_one_host() && !world.host().unwrap().is_empty());
    let (listener, clients) = connected(&world);
    std::thread::scope(|scope| {
        for (to, client) in clients.into_iter().enumerate() {
            scope.spawn(move || {
                for (i, n) in SIZES.into_iter().enumerate() {
                    let salt = to as u32 * 100 + i as u32;
                    let all = bytes(n, salt);
                    // In pieces, some of them empty, of which no message is one.
                    let pieces = [&all[..n / 3], &[], &all[n / 3..]];
                    let body = pieces.map(|piece| Box::new(piece.to_vec()) as Body).into();
                    let kind = (i % 3 == 2) as u8;
                    client.outbox().send(Frame { kind, head: vec![i as u8], body }).unwrap();
                    let (_, head, got) = client.receive().unwrap();
                    let wanted = if kind == 1 { Vec::new() } else { all };
                    assert!(head == [i as u8] && got == wanted, "{n} bytes: {} came", got.len());
                }
                let n_large = SIZES.iter().filter(|n| **n >= 64 << 10).count() as u64;
                assert_eq!((client.outbox().n_by_fabric(), client.outbox().n_lent()), (n_large, 0));
            });
        }
    });
    leave(&world);
    drop((listener, world));
}

#[test]
fn a_world_ends_with_any_of_its_processes() {
    if let Some(output) = in_world("a_world_ends_with_any_of_its_processes", 2) {
        assert!(!output.status.success(), "{}", text(&output));
        assert!(!text(&output).contains("went on"), "{}", text(&output));
        return;
    }
    let world = World::join().unwrap();
    let (_listener, clients) = connected(&world);
    let client = &clients[0];
    for i in 0..u8::MAX {
        if world.rank() == 1 && i == 20 {
            // As if it was killed in the middle.
            std::process::abort();
        }
        if client.send(0, &[i], &bytes(16 << 20, 0)).is_err() || client.receive().is_err() {
            // Its messages are nobody's: it cannot leave the world alone.
            drop((clients, world));
            println!("went on");
            return;
        }
    }
    println!("went on");
}
