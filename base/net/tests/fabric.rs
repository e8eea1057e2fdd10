//! Large bodies go by the fabric that both ends are in. A process has one fabric, so this is a program of its own.

#![allow(clippy::unwrap_used, reason = "a test")]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "connections/peers.rs"]
mod peers;

use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::{Body, BodySource, Connection, Fabric, Limits, NetError, Outbox, Transport, set_fabric};

use peers::{Client, echo, identity};

/// A fabric within this process: all bodies that were sent, by their numbers.
#[derive(Default)]
struct Table(Mutex<Vec<Vec<u8>>>);

struct TableTransport {
    table: Arc<Table>,
    n_sent: AtomicU64,
}

struct TableBody(Cursor<Vec<u8>>);

impl Fabric for Table {
    fn address(&self) -> Vec<u8> {
        b"table".to_vec()
    }

    fn transport_to(self: Arc<Self>, address: &[u8]) -> Option<Box<dyn Transport>> {
        assert_eq!(address, b"table");
        Some(Box::new(TableTransport { table: self, n_sent: AtomicU64::new(0) }))
    }

    fn open(self: Arc<Self>, list: &[u8], _: &Outbox) -> Option<(Box<dyn BodySource>, u64)> {
        let number = u64::from_le_bytes(list.try_into().ok()?);
        let body = self.0.lock().unwrap().get(number as usize)?.clone();
        let bytes = body.len() as u64;
        Some((Box::new(TableBody(Cursor::new(body))), bytes))
    }
}

impl Transport for TableTransport {
    fn send(&self, body: Vec<Body>, _: u64, _: &Limits) -> Result<Vec<u8>, NetError> {
        let mut bodies = self.table.0.lock().unwrap();
        let number = bodies.len() as u64;
        bodies.push(body.iter().flat_map(|piece| (**piece).as_ref().to_vec()).collect());
        self.n_sent.fetch_add(1, Ordering::Relaxed);
        Ok(number.to_le_bytes().to_vec())
    }

    fn n_sent(&self) -> u64 {
        self.n_sent.load(Ordering::Relaxed)
    }
}

impl BodySource for TableBody {
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        Ok(self.0.read_exact(to)?)
    }

    fn release(self: Box<Self>) -> Result<(), NetError> {
        Ok(())
    }
}

#[test]
fn large_bodies_go_by_the_fabric_of_both_ends() {
    set_fabric(Some(Arc::new(Table::default())));
    let patience = Duration::from_secs(30);
    let limits = Limits { hello: patience, silence: patience, lends: false, ..Limits::default() };
    let listener = echo("127.0.0.1:0", limits, None);
    let connection = Connection::open(listener.address(), &identity("job", "client"), "echo", &limits, None).unwrap();
    let client = Client::start(connection).unwrap();
    // The other end's offer comes before its first answer.
    client.send(0, &[], &[]).unwrap();
    assert_eq!(client.receive().unwrap().0, 0);
    for (i, n) in [10usize, 64 << 10, 3 << 20].into_iter().enumerate() {
        let body: Vec<u8> = (0..n).map(|b| (b * 31 + i) as u8).collect();
        client.send(1, b"head", &body).unwrap();
        assert!(client.receive().unwrap() == (1, b"head".to_vec(), body), "{n} bytes");
    }
    assert_eq!((client.outbox().n_by_fabric(), client.outbox().n_lent()), (2, 0));
}
