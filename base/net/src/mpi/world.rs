//! The processes that one launcher of MPI started, and this one among them.

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

/// Bytes of what a process sends all others, with their number.
const SLOT: usize = 512;
/// How long messages that are under way may take when the world ends.
const TO_END: Duration = Duration::from_secs(2);
/// Between two looks.
const PERIOD: Duration = Duration::from_millis(1);

/// This process's place, while it has one.
static HERE: Mutex<Option<Arc<Here>>> = Mutex::new(None);

/// What threads need of the world.
pub struct Here {
    /// Another one in each world.
    pub id: [u8; 16],
    /// Which of the world's processes this is.
    pub rank: u32,
    /// How many there are.
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

/// As long as this is there, the world is.
pub struct Using<'a>(&'a Here);

impl Using<'_> {
    /// Keeps the world.
    ///
    /// # Errors
    /// It is over.
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
    /// Whether all have left.
    has_left: Arc<AtomicBool>,
    calling: Option<threads::JoinHandle>,
    /// Ends MPI when it is dropped.
    universe: Universe,
}

impl World {
    /// Takes part in the world of this process's launcher. All its processes do; waits for them.
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

    /// Which of its processes this is.
    pub fn rank(&self) -> u32 {
        self.here.rank
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.here.size
    }

    /// 16 bytes that no other world has.
    pub fn id(&self) -> [u8; 16] {
        self.here.id
    }

    /// Whether all its processes share a host's memory. All of them ask.
    pub fn is_on_one_host(&self) -> bool {
        self.universe.world().split_shared(0).size() == self.universe.world().size()
    }

    /// What this host is called.
    ///
    /// # Errors
    /// That is no text.
    pub fn host(&self) -> Result<String, NetError> {
        mpi::environment::processor_name().map_err(|error| NetError::Protocol(format!("the host's name: {error}")))
    }

    /// Sends all processes a text, and returns theirs, by rank. All of them do.
    ///
    /// # Errors
    /// The own has more than 510 bytes; another's is none.
    pub fn all_gather(&self, own: &str) -> Result<Vec<String>, NetError> {
        let room = SLOT - 2;
        let len = own.len().min(room);
        let mut slot = (len as u16).to_le_bytes().to_vec();
        slot.extend(&own.as_bytes()[..len]);
        slot.resize(SLOT, 0);
        let mut slots = vec![0u8; SLOT * self.size() as usize];
        // Whatever it is, the others wait for it.
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

    /// Begins to wait until all processes have come here. Each does once.
    ///
    /// # Errors
    /// MPI's.
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
    /// Whether all have come.
    ///
    /// # Errors
    /// MPI's.
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
            // Each ends with its connection, or ends everything.
            threads::sleep(PERIOD);
        }
        if let Some(calling) = self.calling.take() {
            let _ = calling.join();
        }
        // What is under way and not taken reads from memory that goes with this process.
        if !is_sent || !self.has_left.load(Ordering::SeqCst) {
            self.here.all.abort();
        }
    }
}
