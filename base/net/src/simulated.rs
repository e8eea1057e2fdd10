//! The network of a simulation (`threads::simulation`): connections between its processes, with delays, cuts and
//! resets.
//!
//! What a connection sends comes whole and in order, in pieces of any size, each after a delay of its own; connections
//! overtake each other. A cut holds back what goes in one direction; it comes some time after the cut ends, as what TCP
//! sends again. A process that is killed closes its connections, one whose host is gone is silent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use threads::simulation::{self, Key, Process, Seat, Simulation};

use crate::{Address, NetError};

/// Bytes that one direction of a connection holds.
const CAPACITY: usize = 256 << 10;
/// How often what was held back is sent again.
const AGAIN: Duration = Duration::from_millis(200);

/// The network. Hosts are called as their processes.
#[derive(Default)]
pub struct Network(Mutex<State>);

#[derive(Default)]
struct State {
    ports: BTreeMap<String, Arc<Port>>,
    /// From where nothing comes to where.
    cuts: BTreeSet<(Arc<str>, Arc<str>)>,
    connections: Vec<Weak<Connection>>,
    delays: Option<(Duration, Duration)>,
    n_pieces: u64,
    n_opened: u64,
}

/// Where a process listens.
struct Port {
    process: Process,
    host: Arc<str>,
    waiting: Mutex<VecDeque<Socket>>,
}

struct Connection {
    /// The ends: who opened it, and who listened.
    ends: [(Process, Arc<str>); 2],
    /// What goes to each.
    to: Mutex<[Flow; 2]>,
    /// The host of an end is gone: nothing arrives any more.
    is_silent: AtomicBool,
}

#[derive(Default)]
struct Flow {
    came: VecDeque<u8>,
    /// Sent, and not there yet because of a cut.
    held: VecDeque<Piece>,
    is_sent_again: bool,
    /// Bytes of all that was sent and not read.
    n_bytes: usize,
    /// When the last piece comes.
    last: i64,
    /// No more comes: the other end closed it (`Ok`), or reset it.
    end: Option<Result<(), ()>>,
    /// The end that reads is closed.
    is_closed: bool,
}

enum Piece {
    Bytes(Vec<u8>),
    /// The end of what one end sends.
    Close,
    Reset,
}

/// One end of a connection; clones are the same one.
#[derive(Clone)]
pub struct Socket(Arc<End>);

struct End {
    connection: Arc<Connection>,
    /// 0: who opened it.
    side: usize,
    /// How long a read and a write may wait.
    patience: Mutex<[Option<Duration>; 2]>,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Socket").field(&self.0.side).finish()
    }
}

/// The network of the calling thread's simulation; `None` outside of one.
pub(crate) fn here() -> Option<(Seat, Arc<Network>)> {
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

    /// Holds back what goes `from` one host `to` another, or no longer.
    pub fn cut(&self, from: &str, to: &str, is_cut: bool) {
        let link = (from.into(), to.into());
        let mut state = self.0.lock();
        if is_cut {
            state.cuts.insert(link);
        } else {
            state.cuts.remove(&link);
        }
    }

    /// How long pieces take: the first and up to the second more, where nothing goes wrong.
    pub fn set_delays(&self, least: Duration, more: Duration) {
        self.0.lock().delays = Some((least, more));
    }

    /// Resets all connections between two hosts.
    pub fn reset(&self, a: &str, b: &str) {
        for connection in self.connections() {
            let names = [&*connection.ends[0].1, &*connection.ends[1].1];
            if names == [a, b] || names == [b, a] {
                (0..2).for_each(|side| connection.arrive(self, side, Piece::Reset));
            }
        }
    }

    /// Kills a process; the system closes what it had open.
    pub fn kill(&self, simulation: &Simulation, process: Process) {
        self.leave(process);
        for connection in self.connections() {
            for side in (0..2).filter(|side| connection.ends[*side].0 == process) {
                connection.close(simulation, side, Piece::Reset);
            }
        }
        simulation.kill(process);
    }

    /// Ends a process with its host: nobody hears of it.
    pub fn lose(&self, simulation: &Simulation, process: Process) {
        self.leave(process);
        for connection in self.connections() {
            if connection.ends.iter().any(|end| end.0 == process) {
                connection.is_silent.store(true, Ordering::Relaxed);
            }
        }
        simulation.kill(process);
    }

    /// Pieces that came so far.
    #[must_use]
    pub fn n_pieces(&self) -> u64 {
        self.0.lock().n_pieces
    }

    /// Connections that were opened so far.
    #[must_use]
    pub fn n_opened(&self) -> u64 {
        self.0.lock().n_opened
    }

    fn leave(&self, process: Process) {
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
        let (least, more) = self.0.lock().delays.unwrap_or((Duration::from_micros(20), Duration::from_micros(200)));
        let usual = least + Duration::from_nanos(simulation.random(more.as_nanos() as u64));
        // Now and then a packet is lost, and sent again.
        if !more.is_zero() && simulation.random(64) == 0 {
            usual + Duration::from_millis(simulation.random(50))
        } else {
            usual
        }
    }

    /// Connects.
    pub(crate) fn connect(
        self: &Arc<Network>,
        seat: &Seat,
        to: &Address,
        within: Duration,
    ) -> Result<Socket, NetError> {
        let simulation = seat.simulation();
        let own = simulation.name(seat.process());
        let late = || Err(io::Error::from(io::ErrorKind::TimedOut).into());
        let Some(port) = self.0.lock().ports.get(&to.to_string()).cloned() else {
            seat.sleep(self.delay(&simulation).min(within));
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        let there_and_back = self.delay(&simulation) + self.delay(&simulation);
        seat.sleep(there_and_back.min(within));
        if there_and_back > within {
            return late();
        }
        if self.is_cut(&own, &port.host) || self.is_cut(&port.host, &own) {
            seat.sleep(within - there_and_back);
            return late();
        }
        // It may have gone meanwhile.
        if !self.0.lock().ports.get(&to.to_string()).is_some_and(|now| Arc::ptr_eq(now, &port)) {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        }
        let ends = [(seat.process(), own), (port.process, Arc::clone(&port.host))];
        let connection = Arc::new(Connection { ends, to: Mutex::default(), is_silent: false.into() });
        let [opened, accepted] = [0, 1].map(|side| {
            Socket(Arc::new(End { connection: Arc::clone(&connection), side, patience: Mutex::default() }))
        });
        {
            let mut state = self.0.lock();
            state.connections.retain(|known| known.strong_count() > 0);
            state.connections.push(Arc::downgrade(&connection));
            state.n_opened += 1;
        }
        port.waiting.lock().push_back(accepted);
        simulation::wake(Key::of(&*port));
        Ok(opened)
    }

    /// Listens at an address.
    pub(crate) fn listen(&self, seat: &Seat, at: &Address) -> Result<Listening, NetError> {
        let host = seat.simulation().name(seat.process());
        let port = Arc::new(Port { process: seat.process(), host, waiting: Mutex::default() });
        match self.0.lock().ports.entry(at.to_string()) {
            std::collections::btree_map::Entry::Occupied(_) => Err(io::Error::from(io::ErrorKind::AddrInUse).into()),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(Arc::clone(&port));
                Ok(Listening { port, at: at.to_string() })
            }
        }
    }
}

/// A process that listens.
pub(crate) struct Listening {
    port: Arc<Port>,
    at: String,
}

impl Listening {
    pub fn accept(&self) -> io::Result<Socket> {
        let Some((seat, _)) = here() else { return Err(io::ErrorKind::NotConnected.into()) };
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

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some((_, network)) = here() {
            let mut state = network.0.lock();
            if state.ports.get(&self.at).is_some_and(|port| Arc::ptr_eq(port, &self.port)) {
                state.ports.remove(&self.at);
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
            let mut flows = self.to.lock();
            let delay = network.delay(simulation).as_nanos() as i64;
            let flow = &mut flows[to];
            // In order.
            flow.last = (threads::now() + delay).max(flow.last + 1);
            flow.last
        };
        let (connection, again) = (Arc::clone(self), simulation.clone());
        let after = Duration::from_nanos((arrival - threads::now()).max(0).unsigned_abs());
        simulation.after(after, move || connection.come(&again, to, Some(piece)));
    }

    /// A piece is there, unless the way is cut; then it tries again.
    fn come(self: &Arc<Connection>, simulation: &Simulation, to: usize, piece: Option<Piece>) {
        let network = Network::of(simulation);
        let is_cut = network.is_cut(&self.ends[1 - to].1, &self.ends[to].1);
        let mut pieces = VecDeque::new();
        {
            let flow = &mut self.to.lock()[to];
            if piece.is_none() {
                flow.is_sent_again = false;
            }
            flow.held.extend(piece);
            if is_cut || flow.is_sent_again {
                if !flow.is_sent_again {
                    flow.is_sent_again = true;
                    let (connection, again) = (Arc::clone(self), simulation.clone());
                    simulation.after(AGAIN, move || connection.come(&again, to, None));
                }
                return;
            }
            std::mem::swap(&mut pieces, &mut flow.held);
        }
        pieces.into_iter().for_each(|piece| self.arrive(&network, to, piece));
    }

    fn arrive(self: &Arc<Connection>, network: &Network, to: usize, piece: Piece) {
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        network.0.lock().n_pieces += 1;
        let is_refused = {
            let flow = &mut self.to.lock()[to];
            match piece {
                Piece::Bytes(bytes) if !flow.is_closed => {
                    flow.came.extend(bytes);
                    false
                }
                Piece::Bytes(_) => true,
                Piece::Close => {
                    flow.end.get_or_insert(Ok(()));
                    false
                }
                Piece::Reset => {
                    flow.end = Some(Err(()));
                    flow.came.clear();
                    false
                }
            }
        };
        // Who still sends to an end that is closed gets a reset.
        if is_refused && let Some(seat) = simulation::seat() {
            self.send(&seat.simulation(), network, 1 - to, Piece::Reset);
        }
        self.wake();
    }

    /// An end is closed by its owner.
    fn close(self: &Arc<Connection>, simulation: &Simulation, side: usize, how: Piece) {
        {
            let flow = &mut self.to.lock()[side];
            if std::mem::replace(&mut flow.is_closed, true) {
                return;
            }
            flow.came.clear();
        }
        self.send(simulation, &Network::of(simulation), 1 - side, how);
        self.wake();
    }

    /// All who read or write look again.
    fn wake(&self) {
        simulation::wake(Key::of(&self.to));
    }
}

impl End {
    /// Whether nothing can be done any more: closed here, or reset from there.
    fn ended(&self, flow: &Flow) -> Option<io::ErrorKind> {
        match flow.end {
            _ if flow.is_closed => Some(io::ErrorKind::BrokenPipe),
            Some(Err(())) => Some(io::ErrorKind::ConnectionReset),
            _ => None,
        }
    }

    fn wait(&self, seat: &Seat, begin: i64, at_most: Option<Duration>) -> io::Result<()> {
        if seat.is_dead() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let left = at_most.map(|at_most| at_most.saturating_sub(threads::since(begin)));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        seat.wait_on(Key::of(&self.connection.to), left);
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some((seat, _)) = here() {
            self.connection.close(&seat.simulation(), self.side, Piece::Close);
        }
    }
}

impl Socket {
    // As the system's sockets.
    pub(crate) fn set_read_timeout(&self, at_most: Option<Duration>) -> io::Result<()> {
        self.0.patience.lock()[0] = at_most;
        Ok(())
    }

    pub(crate) fn set_write_timeout(&self, at_most: Option<Duration>) -> io::Result<()> {
        self.0.patience.lock()[1] = at_most;
        Ok(())
    }

    pub(crate) fn shutdown(&self, _both: Shutdown) -> io::Result<()> {
        if let Some((seat, _)) = here() {
            self.0.connection.close(&seat.simulation(), self.0.side, Piece::Close);
        }
        Ok(())
    }

    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        let Some((seat, _)) = here() else { return Err(io::ErrorKind::NotConnected.into()) };
        let (begin, simulation) = (threads::now(), seat.simulation());
        loop {
            {
                let mut flows = self.0.connection.to.lock();
                let flow = &mut flows[self.0.side];
                match self.0.ended(flow) {
                    // As the system: who closed it itself reads its end.
                    Some(io::ErrorKind::BrokenPipe) => return Ok(0),
                    Some(kind) => return Err(kind.into()),
                    None => {}
                }
                if !flow.came.is_empty() {
                    let all = to.len().min(flow.came.len());
                    let n = if simulation.random(8) == 0 { 1 + simulation.random(all as u64) as usize } else { all };
                    let n = n.min(all);
                    to.iter_mut().zip(flow.came.drain(..n)).for_each(|(to, byte)| *to = byte);
                    flow.n_bytes -= n;
                    drop(flows);
                    self.0.connection.wake();
                    return Ok(n);
                }
                if flow.end.is_some() || to.is_empty() {
                    return Ok(0);
                }
            }
            let patience = self.0.patience.lock()[0];
            self.0.wait(&seat, begin, patience)?;
        }
    }

    pub(crate) fn write(&self, from: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let Some((seat, network)) = here() else { return Err(io::ErrorKind::NotConnected.into()) };
        let (begin, simulation) = (threads::now(), seat.simulation());
        let all: usize = from.iter().map(|piece| piece.len()).sum();
        if seat.is_dead() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        seat.may_switch();
        loop {
            let room = {
                let mut flows = self.0.connection.to.lock();
                if let Some(kind) = self.0.ended(&flows[self.0.side]) {
                    return Err(kind.into());
                }
                let flow = &mut flows[1 - self.0.side];
                let room = CAPACITY.saturating_sub(flow.n_bytes).min(all);
                flow.n_bytes += room;
                room
            };
            if room > 0 || all == 0 {
                let bytes = from.iter().flat_map(|piece| piece.iter().copied()).take(room).collect();
                self.0.connection.send(&simulation, &network, 1 - self.0.side, Piece::Bytes(bytes));
                return Ok(room);
            }
            let patience = self.0.patience.lock()[1];
            self.0.wait(&seat, begin, patience)?;
        }
    }
}
