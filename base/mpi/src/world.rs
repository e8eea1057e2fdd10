//! The MPI world: the processes that one launcher started, and this process's place among them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};
use mpi::{Threading, environment::Universe};
use net::NetError;

use crate::calls::{Communicator, Request};
use crate::sends::Sends;

/// Bytes of a text that [`World::all_gather`] exchanges, with its length.
const TEXT_SLOT_BYTES: usize = 512;
/// The longest wait for messages that are under way when the world ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The period in which the number of the world's users is polled.
const POLL_PERIOD: Duration = Duration::from_millis(1);

/// This process's part in the world, which the connections' threads share.
pub struct Membership {
    /// A number that differs between worlds.
    pub id: [u8; 16],
    /// This process's number in the world.
    pub rank: u32,
    /// The number of processes.
    pub size: u32,
    /// Reaches all processes of the world.
    pub communicator: Communicator,
    pub sends: Sends,
    /// The number of [`UseGuard`]s.
    n_users: AtomicUsize,
    is_over: AtomicBool,
}

/// Keeps the world alive until it is dropped.
pub struct UseGuard<'a>(&'a Membership);

impl UseGuard<'_> {
    /// Keeps the world alive.
    ///
    /// # Errors
    /// The world has ended.
    pub fn acquire(membership: &Membership) -> Result<UseGuard<'_>, NetError> {
        membership.n_users.fetch_add(1, Ordering::SeqCst);
        let guard = UseGuard(membership);
        if membership.is_over.load(Ordering::SeqCst) { Err(NetError::Closed) } else { Ok(guard) }
    }
}

impl Drop for UseGuard<'_> {
    fn drop(&mut self) {
        self.0.n_users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The processes that one launcher of MPI started. While this value exists, connections between them carry large bodies
/// by MPI. To be dropped when all connections are closed and all processes have left ([`World::leave`]): dropping it
/// before that ends all of them, since MPI can do nothing for those that wait for this one.
pub struct World {
    membership: Arc<Membership>,
    /// Whether all processes have left.
    has_left: Arc<AtomicBool>,
    progress_thread: Option<threads::JoinHandle>,
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
        let membership = Arc::new(Membership {
            id: id.try_into().map_err(|_| NetError::Closed)?,
            rank: world.rank().unsigned_abs(),
            size: world.size().unsigned_abs(),
            communicator: Communicator::of_world()?,
            sends: Sends::default(),
            n_users: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&membership);
        let progress_thread = Some(threads::spawn("net-mpi", move || shared.sends.run())?);
        net::set_fabric(Some(membership.clone()));
        Ok(World { membership, has_left: Arc::default(), progress_thread, universe })
    }

    /// This process's number in the world.
    pub fn rank(&self) -> u32 {
        self.membership.rank
    }

    /// The number of processes.
    pub fn size(&self) -> u32 {
        self.membership.size
    }

    /// 16 bytes that no other world has.
    pub fn id(&self) -> [u8; 16] {
        self.membership.id
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
    pub fn all_gather(&self, message: &str) -> Result<Vec<String>, NetError> {
        let max_len = TEXT_SLOT_BYTES - 2;
        let len = message.len().min(max_len);
        let mut slot = (len as u16).to_le_bytes().to_vec();
        slot.extend(&message.as_bytes()[..len]);
        slot.resize(TEXT_SLOT_BYTES, 0);
        let mut slots = vec![0u8; TEXT_SLOT_BYTES * self.size() as usize];
        // Called even where the text is too long: the other processes wait for this one.
        self.universe.world().all_gather_into(&slot[..], &mut slots[..]);
        if message.len() > max_len {
            return Err(NetError::TooLarge {
                what: "what is sent to all",
                bytes: message.len() as u64,
                limit: max_len as u64,
            });
        }
        let parse_text = |slot: &[u8]| {
            let len = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
            let text = slot[2..].get(..len).map(<[u8]>::to_vec).and_then(|text| String::from_utf8(text).ok());
            text.ok_or_else(|| NetError::Protocol("what another process sent is no text".into()))
        };
        slots.chunks(TEXT_SLOT_BYTES).map(parse_text).collect()
    }

    /// Begins to wait until all processes have called this. Each calls it once.
    ///
    /// # Errors
    /// An error of MPI.
    pub fn leave(&self) -> Result<LeaveRequest, NetError> {
        Ok(LeaveRequest { request: self.membership.communicator.barrier()?, has_left: Arc::clone(&self.has_left) })
    }
}

/// A wait for all processes of the world.
pub struct LeaveRequest {
    request: Request,
    has_left: Arc<AtomicBool>,
}

impl LeaveRequest {
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
        net::set_fabric(None);
        self.membership.is_over.store(true, Ordering::SeqCst);
        let are_all_sent = self.membership.sends.end(DRAIN_TIMEOUT);
        while self.membership.n_users.load(Ordering::SeqCst) > 0 {
            // Each user ends with its connection, or aborts the world.
            threads::sleep(POLL_PERIOD);
        }
        if let Some(progress_thread) = self.progress_thread.take() {
            let _ = progress_thread.join();
        }
        // Messages that are still under way read from this process's memory, which ends with it.
        if !are_all_sent || !self.has_left.load(Ordering::SeqCst) {
            self.membership.communicator.abort();
        }
    }
}
