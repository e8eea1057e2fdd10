//! The network of a simulation (`threads::simulation`): connections between simulated processes, with delays, cuts and
//! resets.
//!
//! A connection delivers all bytes in order, in pieces of any size, each after a random delay; different connections
//! overtake each other. A cut delays the pieces in one direction until some time after the cut ends, as TCP's
//! retransmissions would. A killed process closes its connections; one whose host is lost is silent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use threads::simulation::{self, Key, Process, Seat, Simulation};

use crate::{Address, NetError};

/// The most bytes that are under way in one direction of a connection.
const CAPACITY: usize = 256 << 10;
/// The period in which pieces that a cut delays are sent again.
const RETRANSMIT_PERIOD: Duration = Duration::from_millis(200);

/// The network of a simulation. A host has the name of its processes.
#[derive(Default)]
pub struct Network(Mutex<State>);

#[derive(Default)]
struct State {
    ports: BTreeMap<String, Arc<Port>>,
    /// The directions that are cut: from one host to another.
    cuts: BTreeSet<(Arc<str>, Arc<str>)>,
    connections: Vec<Weak<Connection>>,
    /// The shortest delay of a piece, and the range above it.
    delays: Option<(Duration, Duration)>,
    n_pieces: u64,
    n_opened: u64,
}

/// An address at which a process listens.
struct Port {
    process: Process,
    host: Arc<str>,
    waiting: Mutex<VecDeque<Socket>>,
}

struct Connection {
    /// The process and host of each end: the one that opened the connection, then the one that listened.
    ends: [(Process, Arc<str>); 2],
    /// The bytes that go to each end.
    flows: Mutex<[Flow; 2]>,
    /// Whether the host of an end is lost, so that no piece arrives any more.
    is_silent: AtomicBool,
}

#[derive(Default)]
struct Flow {
    /// Bytes that arrived and are not read.
    arrived: VecDeque<u8>,
    /// Pieces that a cut delays.
    delayed: VecDeque<Piece>,
    /// Whether a timer is set that sends the delayed pieces again.
    is_retransmit_scheduled: bool,
    /// The number of bytes that were sent and not read.
    n_bytes: usize,
    /// The arrival time of the last piece, nanoseconds.
    last_arrival: i64,
    /// Set once the other end closed (`Ok`) or reset the connection.
    end: Option<Result<(), ()>>,
    /// Whether the reading end closed the connection.
    is_closed: bool,
}

enum Piece {
    Bytes(Vec<u8>),
    /// The sending end closed the connection.
    Close,
    Reset,
}

/// One end of a connection; clones share it.
#[derive(Clone)]
pub struct Socket(Arc<End>);

struct End {
    connection: Arc<Connection>,
    /// 0 for the end that opened the connection, 1 for the one that listened.
    side: usize,
    /// The longest time that a read and a write may wait.
    timeouts: Mutex<[Option<Duration>; 2]>,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Socket").field(&self.0.side).finish()
    }
}

/// The calling thread's seat and the network of its simulation; `None` outside of simulations.
pub(crate) fn current_seat() -> Option<(Seat, Arc<Network>)> {
    let seat = simulation::seat()?;
    let network = Network::of(&seat.simulation());
    Some((seat, network))
}

impl Network {
    /// The network of a simulation.
    #[must_use]
    pub fn of(simulation: &Simulation) -> Arc<Network> {
        simulation.extension::<Network>()
    }

    /// Cuts the direction `from` one host `to` another, or ends the cut.
    pub fn set_cut(&self, from: &str, to: &str, is_cut: bool) {
        let link = (from.into(), to.into());
        let mut state = self.0.lock();
        if is_cut {
            state.cuts.insert(link);
        } else {
            state.cuts.remove(&link);
        }
    }

    /// Sets the delay of pieces without packet loss: `min`, and a random part of `range` more.
    pub fn set_delays(&self, min: Duration, range: Duration) {
        self.0.lock().delays = Some((min, range));
    }

    /// Resets all connections between two hosts.
    pub fn reset(&self, a: &str, b: &str) {
        for connection in self.connections() {
            let names = [&*connection.ends[0].1, &*connection.ends[1].1];
            if names == [a, b] || names == [b, a] {
                (0..2).for_each(|side| connection.receive(self, side, Piece::Reset));
            }
        }
    }

    /// Kills a process and resets its connections, as the system does.
    pub fn kill(&self, simulation: &Simulation, process: Process) {
        self.close_ports(process);
        for connection in self.connections() {
            for side in (0..2).filter(|side| connection.ends[*side].0 == process) {
                connection.close(simulation, side, Piece::Reset);
            }
        }
        simulation.kill(process);
    }

    /// Kills a process with its host: its connections become silent.
    pub fn lose(&self, simulation: &Simulation, process: Process) {
        self.close_ports(process);
        for connection in self.connections() {
            if connection.ends.iter().any(|end| end.0 == process) {
                connection.is_silent.store(true, Ordering::Relaxed);
            }
        }
        simulation.kill(process);
    }

    /// The number of pieces that arrived.
    #[must_use]
    pub fn n_pieces(&self) -> u64 {
        self.0.lock().n_pieces
    }

    /// The number of connections that were opened.
    #[must_use]
    pub fn n_opened(&self) -> u64 {
        self.0.lock().n_opened
    }

    fn close_ports(&self, process: Process) {
        self.0.lock().ports.retain(|_, port| port.process != process);
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.0.lock().connections.iter().filter_map(Weak::upgrade).collect()
    }

    fn is_cut(&self, from: &Arc<str>, to: &Arc<str>) -> bool {
        let cuts = &self.0.lock().cuts;
        !cuts.is_empty() && cuts.contains(&(Arc::clone(from), Arc::clone(to)))
    }

    fn delay(&self, simulation: &Simulation) -> Duration {
        let (min, range) = self.0.lock().delays.unwrap_or((Duration::from_micros(20), Duration::from_micros(200)));
        let usual = min + Duration::from_nanos(simulation.random(range.as_nanos() as u64));
        // One packet in 64 is lost and sent again.
        if !range.is_zero() && simulation.random(64) == 0 {
            usual + Duration::from_millis(simulation.random(50))
        } else {
            usual
        }
    }

    /// Connects to a process that listens at `to`, within `timeout`.
    pub(crate) fn connect(
        self: &Arc<Network>,
        seat: &Seat,
        to: &Address,
        timeout: Duration,
    ) -> Result<Socket, NetError> {
        let simulation = seat.simulation();
        let host = simulation.name(seat.process());
        let timed_out = || Err(io::Error::from(io::ErrorKind::TimedOut).into());
        let Some(port) = self.0.lock().ports.get(&to.to_string()).cloned() else {
            seat.sleep(self.delay(&simulation).min(timeout));
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        let round_trip = self.delay(&simulation) + self.delay(&simulation);
        seat.sleep(round_trip.min(timeout));
        if round_trip > timeout {
            return timed_out();
        }
        if self.is_cut(&host, &port.host) || self.is_cut(&port.host, &host) {
            seat.sleep(timeout - round_trip);
            return timed_out();
        }
        // The listener may have ended meanwhile.
        if !self.0.lock().ports.get(&to.to_string()).is_some_and(|current| Arc::ptr_eq(current, &port)) {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        }
        let ends = [(seat.process(), host), (port.process, Arc::clone(&port.host))];
        let connection = Arc::new(Connection { ends, flows: Mutex::default(), is_silent: false.into() });
        let [opened, accepted] = [0, 1].map(|side| {
            Socket(Arc::new(End { connection: Arc::clone(&connection), side, timeouts: Mutex::default() }))
        });
        {
            let mut state = self.0.lock();
            state.connections.retain(|connection| connection.strong_count() > 0);
            state.connections.push(Arc::downgrade(&connection));
            state.n_opened += 1;
        }
        port.waiting.lock().push_back(accepted);
        simulation::wake(Key::of(&*port));
        Ok(opened)
    }

    /// Listens at an address.
    pub(crate) fn listen(&self, seat: &Seat, at: &Address) -> Result<Listener, NetError> {
        let host = seat.simulation().name(seat.process());
        let port = Arc::new(Port { process: seat.process(), host, waiting: Mutex::default() });
        match self.0.lock().ports.entry(at.to_string()) {
            std::collections::btree_map::Entry::Occupied(_) => Err(io::Error::from(io::ErrorKind::AddrInUse).into()),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(Arc::clone(&port));
                Ok(Listener { port, address: at.to_string() })
            }
        }
    }
}

/// A listening socket.
pub(crate) struct Listener {
    port: Arc<Port>,
    address: String,
}

impl Listener {
    pub fn accept(&self) -> io::Result<Socket> {
        let Some((seat, _)) = current_seat() else { return Err(io::ErrorKind::NotConnected.into()) };
        loop {
            if let Some(socket) = self.port.waiting.lock().pop_front() {
                return Ok(socket);
            }
            if seat.is_dead() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            seat.wait_on(Key::of(&*self.port), None);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((_, network)) = current_seat() {
            let mut state = network.0.lock();
            if state.ports.get(&self.address).is_some_and(|port| Arc::ptr_eq(port, &self.port)) {
                state.ports.remove(&self.address);
            }
        }
        let waiting = std::mem::take(&mut *self.port.waiting.lock());
        drop(waiting);
    }
}

impl Connection {
    /// Sends a piece to an end.
    fn send(self: &Arc<Connection>, simulation: &Simulation, network: &Network, to: usize, piece: Piece) {
        let arrival = {
            let mut flows = self.flows.lock();
            let delay = network.delay(simulation).as_nanos() as i64;
            let flow = &mut flows[to];
            // After the last piece: the connection keeps the order.
            flow.last_arrival = (threads::now() + delay).max(flow.last_arrival + 1);
            flow.last_arrival
        };
        let (connection, owned_simulation) = (Arc::clone(self), simulation.clone());
        let after = Duration::from_nanos((arrival - threads::now()).max(0).unsigned_abs());
        simulation.after(after, move || connection.deliver(&owned_simulation, to, Some(piece)));
    }

    /// Delivers a piece, or the delayed pieces where `piece` is `None`. In a direction that is cut, pieces are delayed
    /// and sent again later.
    fn deliver(self: &Arc<Connection>, simulation: &Simulation, to: usize, piece: Option<Piece>) {
        let network = Network::of(simulation);
        let is_cut = network.is_cut(&self.ends[1 - to].1, &self.ends[to].1);
        let mut pieces = VecDeque::new();
        {
            let flow = &mut self.flows.lock()[to];
            if piece.is_none() {
                flow.is_retransmit_scheduled = false;
            }
            flow.delayed.extend(piece);
            if is_cut || flow.is_retransmit_scheduled {
                if !flow.is_retransmit_scheduled {
                    flow.is_retransmit_scheduled = true;
                    let (connection, owned_simulation) = (Arc::clone(self), simulation.clone());
                    simulation.after(RETRANSMIT_PERIOD, move || connection.deliver(&owned_simulation, to, None));
                }
                return;
            }
            std::mem::swap(&mut pieces, &mut flow.delayed);
        }
        pieces.into_iter().for_each(|piece| self.receive(&network, to, piece));
    }

    /// Handles a piece that arrived at the end `to`.
    fn receive(self: &Arc<Connection>, network: &Network, to: usize, piece: Piece) {
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        network.0.lock().n_pieces += 1;
        let is_refused = {
            let flow = &mut self.flows.lock()[to];
            match piece {
                Piece::Bytes(bytes) if !flow.is_closed => {
                    flow.arrived.extend(bytes);
                    false
                }
                Piece::Bytes(_) => true,
                Piece::Close => {
                    flow.end.get_or_insert(Ok(()));
                    false
                }
                Piece::Reset => {
                    flow.end = Some(Err(()));
                    flow.arrived.clear();
                    false
                }
            }
        };
        // An end that sends to a closed one gets a reset.
        if is_refused && let Some(seat) = simulation::seat() {
            self.send(&seat.simulation(), network, 1 - to, Piece::Reset);
        }
        self.wake();
    }

    /// Closes an end; the other end receives `last_piece`.
    fn close(self: &Arc<Connection>, simulation: &Simulation, side: usize, last_piece: Piece) {
        {
            let flow = &mut self.flows.lock()[side];
            if std::mem::replace(&mut flow.is_closed, true) {
                return;
            }
            flow.arrived.clear();
        }
        self.send(simulation, &Network::of(simulation), 1 - side, last_piece);
        self.wake();
    }

    /// Wakes all threads that wait to read or write.
    fn wake(&self) {
        simulation::wake(Key::of(&self.flows));
    }
}

impl End {
    /// Why neither reads nor writes are possible: this end is closed, or the other end reset the connection.
    fn error_kind(&self, flow: &Flow) -> Option<io::ErrorKind> {
        match flow.end {
            _ if flow.is_closed => Some(io::ErrorKind::BrokenPipe),
            Some(Err(())) => Some(io::ErrorKind::ConnectionReset),
            _ => None,
        }
    }

    fn wait(&self, seat: &Seat, begin: i64, timeout: Option<Duration>) -> io::Result<()> {
        if seat.is_dead() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(threads::since(begin)));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        seat.wait_on(Key::of(&self.connection.flows), left);
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some((seat, _)) = current_seat() {
            self.connection.close(&seat.simulation(), self.side, Piece::Close);
        }
    }
}

impl Socket {
    // The functions below have the signatures of the system's sockets.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.timeouts.lock()[0] = timeout;
        Ok(())
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.timeouts.lock()[1] = timeout;
        Ok(())
    }

    pub(crate) fn shutdown(&self, _both: Shutdown) -> io::Result<()> {
        if let Some((seat, _)) = current_seat() {
            self.0.connection.close(&seat.simulation(), self.0.side, Piece::Close);
        }
        Ok(())
    }

    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        let Some((seat, _)) = current_seat() else { return Err(io::ErrorKind::NotConnected.into()) };
        let (begin, simulation) = (threads::now(), seat.simulation());
        loop {
            {
                let mut flows = self.0.connection.flows.lock();
                let flow = &mut flows[self.0.side];
                match self.0.error_kind(flow) {
                    // As with the system's sockets, an end that closed the connection itself reads its end.
                    Some(io::ErrorKind::BrokenPipe) => return Ok(0),
                    Some(kind) => return Err(kind.into()),
                    None => {}
                }
                if !flow.arrived.is_empty() {
                    let n_available = to.len().min(flow.arrived.len());
                    let is_short = simulation.random(8) == 0;
                    let n = if is_short { 1 + simulation.random(n_available as u64) as usize } else { n_available };
                    let n = n.min(n_available);
                    to.iter_mut().zip(flow.arrived.drain(..n)).for_each(|(to, byte)| *to = byte);
                    flow.n_bytes -= n;
                    drop(flows);
                    self.0.connection.wake();
                    return Ok(n);
                }
                if flow.end.is_some() || to.is_empty() {
                    return Ok(0);
                }
            }
            let timeout = self.0.timeouts.lock()[0];
            self.0.wait(&seat, begin, timeout)?;
        }
    }

    pub(crate) fn write(&self, from: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let Some((seat, network)) = current_seat() else { return Err(io::ErrorKind::NotConnected.into()) };
        let (begin, simulation) = (threads::now(), seat.simulation());
        let len: usize = from.iter().map(|piece| piece.len()).sum();
        if seat.is_dead() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        seat.may_switch();
        loop {
            let room = {
                let mut flows = self.0.connection.flows.lock();
                if let Some(kind) = self.0.error_kind(&flows[self.0.side]) {
                    return Err(kind.into());
                }
                let flow = &mut flows[1 - self.0.side];
                let room = CAPACITY.saturating_sub(flow.n_bytes).min(len);
                flow.n_bytes += room;
                room
            };
            if room > 0 || len == 0 {
                let bytes = from.iter().flat_map(|piece| piece.iter().copied()).take(room).collect();
                self.0.connection.send(&simulation, &network, 1 - self.0.side, Piece::Bytes(bytes));
                return Ok(room);
            }
            let timeout = self.0.timeouts.lock()[1];
            self.0.wait(&seat, begin, timeout)?;
        }
    }
}
