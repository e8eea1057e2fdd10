//! The MPI world: the processes that one launcher started, and this process's place among them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};
use mpi::{Threading, environment::Universe};
use parking_lot::Mutex;

use super::calls::{Communicator, Request};
use super::sends::Sends;
use crate::NetError;
use crate::frame::{Frame, MPI_OFFER};

/// Bytes of a text that [`World::all_gather`] exchanges, with its length.
const SLOT: usize = 512;
/// The longest wait for messages that are under way when the world ends.
const TO_END: Duration = Duration::from_secs(2);
/// The period in which the end of the world's users is polled.
const PERIOD: Duration = Duration::from_millis(1);

/// This process's place in the world, while it is in one.
static HERE: Mutex<Option<Arc<Here>>> = Mutex::new(None);

/// The part of the world that connections' threads share.
pub struct Here {
    /// A number that differs between worlds.
    pub id: [u8; 16],
    /// This process's number in the world.
    pub rank: u32,
    /// The number of processes.
    pub size: u32,
    pub all: Communicator,
    pub sends: Sends,
    n_using: AtomicUsize,
    is_over: AtomicBool,
}

/// This process's place in the world, if there is one.
pub fn here() -> Option<Arc<Here>> {
    HERE.lock().clone()
}

/// The frame that names this process's world, if it is in one.
pub fn offer() -> Option<Frame> {
    let here = here()?;
    let mut head = here.id.to_vec();
    head.extend(here.rank.to_le_bytes());
    Some(Frame::message(MPI_OFFER, head))
}

/// Keeps the world alive until it is dropped.
pub struct Using<'a>(&'a Here);

impl Using<'_> {
    /// Keeps the world alive.
    ///
    /// # Errors
    /// The world has ended.
    pub fn of(here: &Here) -> Result<Using<'_>, NetError> {
        here.n_using.fetch_add(1, Ordering::SeqCst);
        let using = Using(here);
        if here.is_over.load(Ordering::SeqCst) { Err(NetError::Closed) } else { Ok(using) }
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.n_using.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The processes that one launcher of MPI started. While it is there, connections between them carry large bodies by
/// MPI. To be dropped when all connections are closed and all processes have left ([`World::leave`]): dropping it
/// before that ends all of them, since MPI can do nothing for those that wait for this one.
pub struct World {
    here: Arc<Here>,
    /// Whether all processes have left.
    has_left: Arc<AtomicBool>,
    calling: Option<threads::JoinHandle>,
    /// Ends MPI when it is dropped.
    universe: Universe,
}

impl World {
    /// Joins the world of this process's launcher, and waits until all its processes have joined.
    ///
    /// # Errors
    /// MPI was started before in this process, or does not take calls from many threads.
    pub fn join() -> Result<World, NetError> {
        let started = mpi::initialize_with_threading(Threading::Multiple);
        let (universe, threading) =
            started.ok_or_else(|| NetError::Protocol("MPI was started before in this process".into()))?;
        if threading < Threading::Multiple {
            return Err(NetError::Protocol("this MPI takes no calls from many threads (MPI_THREAD_MULTIPLE)".into()));
        }
        let world = universe.world();
        let random = |salt: u8| RandomState::new().hash_one(salt).to_le_bytes();
        let mut id = [random(0), random(1)].concat();
        world.process_at_rank(0).broadcast_into(&mut id[..]);
        let here = Arc::new(Here {
            id: id.try_into().map_err(|_| NetError::Closed)?,
            rank: world.rank().unsigned_abs(),
            size: world.size().unsigned_abs(),
            all: Communicator::of_world()?,
            sends: Sends::default(),
            n_using: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let calling = Arc::clone(&here);
        let calling = Some(threads::spawn("net-mpi", move || calling.sends.run())?);
        *HERE.lock() = Some(Arc::clone(&here));
        Ok(World { here, has_left: Arc::default(), calling, universe })
    }

    /// This process's number in the world.
    pub fn rank(&self) -> u32 {
        self.here.rank
    }

    /// The number of processes.
    pub fn size(&self) -> u32 {
        self.here.size
    }

    /// 16 bytes that no other world has.
    pub fn id(&self) -> [u8; 16] {
        self.here.id
    }

    /// Whether all processes share one host's memory. A collective call: every process makes it.
    pub fn is_on_one_host(&self) -> bool {
        self.universe.world().split_shared(0).size() == self.universe.world().size()
    }

    /// This host's name.
    ///
    /// # Errors
    /// The name is not UTF-8.
    pub fn host(&self) -> Result<String, NetError> {
        mpi::environment::processor_name().map_err(|error| NetError::Protocol(format!("the host's name: {error}")))
    }

    /// Exchanges a text with all processes; returns all texts, by rank. A collective call: every process makes it.
    ///
    /// # Errors
    /// This process's text has more than 510 bytes; another one's is not UTF-8.
    pub fn all_gather(&self, own: &str) -> Result<Vec<String>, NetError> {
        let room = SLOT - 2;
        let len = own.len().min(room);
        let mut slot = (len as u16).to_le_bytes().to_vec();
        slot.extend(&own.as_bytes()[..len]);
        slot.resize(SLOT, 0);
        let mut slots = vec![0u8; SLOT * self.size() as usize];
        // Called even where the text is too long: the other processes wait for this one.
        self.universe.world().all_gather_into(&slot[..], &mut slots[..]);
        if own.len() > room {
            return Err(NetError::TooLarge {
                what: "what is sent to all",
                bytes: own.len() as u64,
                limit: room as u64,
            });
        }
        let text = |slot: &[u8]| {
            let len = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
            let text = slot[2..].get(..len).map(<[u8]>::to_vec).and_then(|text| String::from_utf8(text).ok());
            text.ok_or_else(|| NetError::Protocol("what another process sent is no text".into()))
        };
        slots.chunks(SLOT).map(text).collect()
    }

    /// Begins to wait until all processes have called this. Each calls it once.
    ///
    /// # Errors
    /// An error of MPI.
    pub fn leave(&self) -> Result<Leaving, NetError> {
        Ok(Leaving { request: self.here.all.barrier()?, has_left: Arc::clone(&self.has_left) })
    }
}

/// A wait for all processes of the world.
pub struct Leaving {
    request: Request,
    has_left: Arc<AtomicBool>,
}

impl Leaving {
    /// Whether all processes have left.
    ///
    /// # Errors
    /// An error of MPI.
    pub fn is_over(&mut self) -> Result<bool, NetError> {
        let is_over = self.request.is_over()?;
        self.has_left.store(is_over, Ordering::SeqCst);
        Ok(is_over)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        HERE.lock().take();
        self.here.is_over.store(true, Ordering::SeqCst);
        let is_sent = self.here.sends.end(TO_END);
        while self.here.n_using.load(Ordering::SeqCst) > 0 {
            // Each user ends with its connection, or aborts the world.
            threads::sleep(PERIOD);
        }
        if let Some(calling) = self.calling.take() {
            let _ = calling.join();
        }
        // Messages that are still under way read from this process's memory, which ends with it.
        if !is_sent || !self.has_left.load(Ordering::SeqCst) {
            self.here.all.abort();
        }
    }
}
