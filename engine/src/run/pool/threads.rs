//! The worker threads and the board of jobs.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::sleep::Sleep;
use crate::denormals::DenormalsAreZero;
use engine_core::trace;

/// Work that several threads can take part in.
pub(crate) trait Job: Sync {
    /// Whether a thread that joined now would find something to do. It may be out of date by a moment.
    fn has_work(&self) -> bool;

    /// Works until nothing is left to take. `worker` is the helping thread's number in the pool, from 1. Does not
    /// panic: what goes wrong inside belongs to the poster.
    fn help(&self, worker: usize);

    /// What the work belongs to.
    fn scope(&self) -> Scope;
}

/// What a job belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Identity of the execution in this process; 0 outside of any.
    pub execution: u64,
    /// Its step id where the step is traced, else 0.
    pub traced_step: u32,
    /// Whether these are shards of one op rather than nodes of a step.
    pub is_shards: bool,
}

/// The worker threads. Dropping it ends them, after their present job.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    n_threads: u32,
    /// Callers in a step that are not parked, and workers in a job.
    n_running: AtomicU32,
    /// `Board::jobs.len()`, readable without the lock.
    n_jobs: AtomicU32,
    board: Mutex<Board>,
    sleep: Sleep,
}

#[derive(Debug)]
struct Board {
    jobs: Vec<Posted>,
    next_id: u64,
    stopping: bool,
    /// For each worker the traced step in which it waits. It may wake long after the step ended.
    waits: Vec<Option<Wait>>,
}

/// A worker that found nothing ready in a traced step.
#[derive(Debug, Clone, Copy)]
struct Wait {
    step: u32,
    /// Ticks.
    begin: u64,
    /// When the step ended, in ticks, if it did.
    ended: Option<u64>,
}

struct Posted {
    id: u64,
    job: *const dyn Job,
    n_helpers: u32,
    /// Set when the poster waits for the helpers to leave.
    closing: Option<Arc<Sleep>>,
}

impl std::fmt::Debug for Posted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posted").field("id", &self.id).field("n_helpers", &self.n_helpers).finish_non_exhaustive()
    }
}

// SAFETY: the pointer is to a `Sync` job that `Pool::share` keeps alive while it is on the board.
unsafe impl Send for Posted {}

thread_local! {
    /// Where this thread waits for the helpers of its own jobs; they may notify after it went on.
    static CLOSED: Arc<Sleep> = Arc::new(Sleep::new());
}

impl Pool {
    /// A pool whose callers and workers together are `n_threads` (at least 1): it starts one worker less, named
    /// `worker 1` and so on; the thread that runs a step is worker 0.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(n_threads: usize) -> std::io::Result<Pool> {
        let n_threads = n_threads.clamp(1, MAX_THREADS);
        let shared = Arc::new(Shared {
            n_threads: n_threads as u32,
            n_running: AtomicU32::new(0),
            n_jobs: AtomicU32::new(0),
            board: Mutex::new(Board { jobs: Vec::new(), next_id: 0, stopping: false, waits: vec![None; n_threads] }),
            sleep: Sleep::new(),
        });
        let mut pool = Pool { shared, threads: Vec::with_capacity(n_threads - 1) };
        for worker in 1..n_threads {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(format!("worker {worker}"));
            pool.threads.push(builder.spawn(move || shared.work(worker))?);
        }
        Ok(pool)
    }

    /// The process's pool, as wide as the cores it may use. Sessions share it unless they ask for their own.
    ///
    /// # Errors
    /// The system gives no more threads (at the first use).
    pub fn global() -> std::io::Result<Arc<Pool>> {
        static GLOBAL: OnceLock<Arc<Pool>> = OnceLock::new();
        if let Some(pool) = GLOBAL.get() {
            return Ok(Arc::clone(pool));
        }
        let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let pool = Arc::new(Pool::new(n_threads)?);
        Ok(Arc::clone(GLOBAL.get_or_init(|| pool)))
    }

    /// Callers and workers together.
    pub fn n_threads(&self) -> usize {
        self.shared.n_threads as usize
    }

    /// How many workers could join a job posted now.
    pub(crate) fn n_free(&self) -> usize {
        self.shared.n_threads.saturating_sub(self.shared.n_running.load(Ordering::Relaxed)) as usize
    }

    /// Counts the calling thread among those running, until the guard is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.shared.n_running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    /// Notifies an idle worker that a posted job has more work than its threads.
    pub(crate) fn notify(&self) {
        self.shared.sleep.notify();
    }

    /// Notifies like [`Pool::notify`], without keeping the pool's threads.
    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.shared))
    }

    /// Runs `body` with `job` on the board; returns when no helper is inside any more.
    pub(crate) fn share<R>(&self, job: &dyn Job, body: impl FnOnce() -> R) -> R {
        let _posted = self.post(job);
        body()
    }

    fn post<'a>(&'a self, job: &'a dyn Job) -> PostedGuard<'a> {
        // SAFETY: only the lifetime changes. The guard takes the job off the board, and waits until no helper is in
        // it, before the borrow ends; it is private to `share`, which drops it.
        let job: *const dyn Job = unsafe { std::mem::transmute::<&dyn Job, &'static dyn Job>(job) };
        let mut board = self.shared.board.lock();
        let id = board.next_id;
        board.next_id += 1;
        board.jobs.push(Posted { id, job, n_helpers: 0, closing: None });
        self.shared.n_jobs.store(board.jobs.len() as u32, Ordering::Relaxed);
        PostedGuard { pool: self, id }
    }

    /// Joins one job that `wanted` accepts, in a caller's thread that has nothing else to do. Whether there was one.
    pub(crate) fn help_one(&self, wanted: impl Fn(Scope) -> bool) -> bool {
        if self.shared.n_jobs.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let taken = self.shared.board.lock().take(wanted);
        match taken {
            Assignment::Job(id, job) => {
                self.shared.help(id, job, 0);
                true
            }
            Assignment::Nothing { .. } | Assignment::Stop => false,
        }
    }
}

/// More threads than this in one pool are a mistake, not a machine.
const MAX_THREADS: usize = 4096;

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.board.lock().stopping = true;
        self.shared.sleep.notify_all();
        for thread in self.threads.drain(..) {
            // A session may be dropped by a worker's own kernel; that thread ends by itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// Notifies idle workers of a pool, from outside of it, that there is work.
pub(crate) struct Waker(Arc<Shared>);

impl Waker {
    pub(crate) fn notify(&self) {
        self.0.sleep.notify();
    }
}

/// A caller's thread that is counted as running.
pub(crate) struct Running<'a>(&'a Pool);

impl Running<'_> {
    /// Runs `wait`, in which this thread sleeps, without counting it.
    pub(crate) fn paused<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.0.shared.leave();
        let result = wait();
        self.0.shared.n_running.fetch_add(1, Ordering::Relaxed);
        result
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.leave();
    }
}

struct PostedGuard<'a> {
    pool: &'a Pool,
    id: u64,
}

impl Drop for PostedGuard<'_> {
    fn drop(&mut self) {
        let shared = &self.pool.shared;
        let mut board = shared.board.lock();
        let Some(at) = board.jobs.iter().rposition(|posted| posted.id == self.id) else { return };
        if board.jobs[at].n_helpers == 0 {
            board.remove(at, shared);
            return;
        }
        let closed = CLOSED.with(Arc::clone);
        let mut ticket = closed.ticket();
        board.jobs[at].closing = Some(Arc::clone(&closed));
        drop(board);
        loop {
            closed.wait(ticket);
            ticket = closed.ticket();
            if !shared.board.lock().jobs.iter().any(|posted| posted.id == self.id) {
                return;
            }
        }
    }
}

impl Board {
    fn remove(&mut self, at: usize, shared: &Shared) {
        let posted = self.jobs.remove(at);
        shared.n_jobs.store(self.jobs.len() as u32, Ordering::Relaxed);
        // SAFETY: its poster waits until the job is off the board, and so for this lock.
        let scope = unsafe { &*posted.job }.scope();
        if scope.traced_step != 0 && !scope.is_shards {
            let now = events::clock::now();
            let waits = self.waits.iter_mut().flatten().filter(|wait| wait.step == scope.traced_step);
            waits.for_each(|wait| wait.ended = Some(now));
        }
    }

    /// Joins the newest job that is wanted and has work; the caller must then call `Shared::help`.
    fn take(&mut self, wanted: impl Fn(Scope) -> bool) -> Assignment {
        if self.stopping {
            return Assignment::Stop;
        }
        let mut traced_step = 0;
        for posted in self.jobs.iter_mut().rev() {
            // SAFETY: on the board, so alive (see `post`); the lock keeps it there.
            let job = unsafe { &*posted.job };
            let scope = job.scope();
            traced_step = if traced_step == 0 { scope.traced_step } else { traced_step };
            if posted.closing.is_none() && wanted(scope) && job.has_work() {
                posted.n_helpers += 1;
                return Assignment::Job(posted.id, posted.job);
            }
        }
        Assignment::Nothing { traced_step }
    }
}

/// What a thread that looks at the board finds to do.
enum Assignment {
    Job(u64, *const dyn Job),
    /// Nothing to join, while this traced step (or 0) is on the board.
    Nothing {
        traced_step: u32,
    },
    Stop,
}

impl Shared {
    /// What a worker's thread does.
    fn work(&self, worker: usize) {
        let _mode = DenormalsAreZero::begin();
        loop {
            let ticket = self.sleep.ticket();
            let may_run = self.n_running.load(Ordering::Relaxed) < self.n_threads;
            let mut board = self.board.lock();
            match board.take(|_| may_run) {
                Assignment::Stop => return,
                Assignment::Job(id, job) => {
                    drop(board);
                    self.n_running.fetch_add(1, Ordering::Relaxed);
                    self.help(id, job, worker);
                    self.leave();
                }
                Assignment::Nothing { traced_step: 0 } => {
                    drop(board);
                    self.sleep.wait(ticket);
                }
                Assignment::Nothing { traced_step: step } => {
                    // Under the lock: the step is on the board, so its end will find the wait.
                    board.waits[worker] = Some(Wait { step, begin: trace::idle_begin(step), ended: None });
                    drop(board);
                    self.sleep.wait(ticket);
                    let wait = self.board.lock().waits[worker].take();
                    if let Some(Wait { step, begin, ended }) = wait {
                        trace::idle_end(step, begin, ended);
                    }
                }
            }
        }
    }

    fn help(&self, id: u64, job: *const dyn Job, worker: usize) {
        // SAFETY: `take` counted this thread as a helper, so the poster waits until `help` uncounts it below.
        unsafe { &*job }.help(worker);
        let mut board = self.board.lock();
        let Some(at) = board.jobs.iter().position(|posted| posted.id == id) else { return };
        board.jobs[at].n_helpers -= 1;
        if board.jobs[at].n_helpers > 0 {
            return;
        }
        if let Some(closed) = board.jobs[at].closing.take() {
            board.remove(at, self);
            drop(board);
            closed.notify();
        }
    }

    /// One thread less is running: a worker that stood back may go on.
    fn leave(&self) {
        let before = self.n_running.fetch_sub(1, Ordering::Relaxed);
        if before >= self.n_threads && self.n_jobs.load(Ordering::Relaxed) > 0 {
            self.sleep.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing(Scope);

    impl Job for Nothing {
        fn has_work(&self) -> bool {
            false
        }
        fn help(&self, _worker: usize) {}
        fn scope(&self) -> Scope {
            self.0
        }
    }

    fn job(traced_step: u32, is_shards: bool) -> Nothing {
        Nothing(Scope { execution: 1, traced_step, is_shards })
    }

    #[test]
    fn a_wait_ends_with_its_step_however_late_the_worker_wakes() {
        let pool = Pool::new(1).unwrap();
        let wait = || pool.shared.board.lock().waits[0].unwrap();
        let begin = events::clock::now();
        pool.share(&job(7, false), || {
            pool.shared.board.lock().waits[0] = Some(Wait { step: 7, begin, ended: None });
            pool.share(&job(7, true), || {});
            pool.share(&job(8, false), || {});
            assert!(wait().ended.is_none(), "neither its ops' shards nor other steps end it");
        });
        let after = events::clock::now();
        for step in 9..100 {
            pool.share(&job(step, false), || {});
        }
        assert!((begin..=after).contains(&wait().ended.unwrap()));
    }
}
