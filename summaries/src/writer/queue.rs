//! The queue between a training program and the thread that writes its event file: framed records, bounded by bytes.
//!
//! With the locks of `std`: those of `parking_lot` share a table, which in a forked child may stay locked for ever.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use events::clock;
use formats::{event_file::EventFile, tfrecord::append_record};

/// The trade-off of a writer between delay and throughput.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// What the event file's name ends with.
    pub filename_suffix: String,
    /// The longest time that a record waits in the queue.
    pub flush_every: Duration,
    /// The capacity of the queue, bytes.
    pub queue_bytes: usize,
    /// The longest time for which a caller waits for a full queue before its record is dropped.
    pub max_wait: Duration,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            filename_suffix: String::new(),
            flush_every: Duration::from_millis(30),
            queue_bytes: 16 << 20,
            max_wait: Duration::from_secs(1),
        }
    }
}

/// The queue of one event file.
#[derive(Debug)]
pub(super) struct Queue {
    options: WriterOptions,
    state: Mutex<State>,
    /// Notified when there is work for the writing thread.
    work: Condvar,
    /// Notified when the writing thread has taken or written records.
    progress: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The framed records that wait.
    bytes: Vec<u8>,
    n_records: u64,
    /// The number of records that were queued, and of those that were written or lost.
    n_queued: u64,
    n_finished: u64,
    /// Whether a caller waits, so that the thread writes at once.
    is_urgent: bool,
    is_closed: bool,
    n_lost: u64,
    first_error: Option<Arc<io::Error>>,
}

impl State {
    fn lose(&mut self, n_records: u64, error: io::Error) {
        self.n_lost += n_records;
        self.first_error.get_or_insert_with(|| Arc::new(error));
    }
}

impl Queue {
    pub fn new(options: WriterOptions) -> Self {
        Self { options, state: Mutex::default(), work: Condvar::new(), progress: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty queue has room for a record of any size.
    fn fits(&self, state: &State, n_bytes: usize) -> bool {
        state.bytes.is_empty() || state.bytes.len() + n_bytes <= self.options.queue_bytes
    }

    /// Whether a record of so many bytes would be queued without a wait.
    pub fn has_room(&self, n_bytes: usize) -> bool {
        self.fits(&self.lock(), n_bytes)
    }

    /// Queues a record. Waits while the queue is full, at most `max_wait`; then drops and counts the record.
    pub fn push(&self, record: &[u8]) {
        let mut state = self.wait_for_room(record.len());
        if state.is_closed || !self.fits(&state, record.len()) {
            state.lose(1, io::Error::new(io::ErrorKind::WouldBlock, "the disk was too slow and the queue full"));
            return;
        }
        append_record(&mut state.bytes, record);
        state.n_records += 1;
        state.n_queued += 1;
        let is_first = state.n_records == 1;
        state.is_urgent |= state.bytes.len() > self.options.queue_bytes / 2;
        if is_first || state.is_urgent {
            self.work.notify_one();
        }
    }

    /// Waits for room for a record, at most `max_wait`.
    fn wait_for_room(&self, n_bytes: usize) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if self.fits(&state, n_bytes) {
            return state;
        }
        let begin_ns = clock::mono_now();
        while !self.fits(&state, n_bytes)
            && let Some(left) = left(self.options.max_wait, begin_ns)
        {
            state.is_urgent = true;
            self.work.notify_one();
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    /// Waits until all records that are queued now are written or lost.
    pub fn flush(&self) {
        let mut state = self.lock();
        let n_queued = state.n_queued;
        while state.n_finished < n_queued {
            state.is_urgent = true;
            self.work.notify_one();
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses further records; the thread writes the queued ones and ends.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_one();
    }

    /// The number of records that are missing in the file, and the first error.
    pub fn lost(&self) -> Option<(u64, Arc<io::Error>)> {
        let state = self.lock();
        state.first_error.as_ref().map(|error| (state.n_lost, error.clone()))
    }

    /// Writes records to `file` until the queue is closed and empty; runs in the writing thread.
    pub fn write_to(&self, mut file: EventFile) {
        let mut batch = Vec::new();
        while let Some(n_records) = self.take_batch(&mut batch) {
            let result = file.write(&batch);
            batch.clear();
            let mut state = self.lock();
            state.n_finished += n_records;
            if let Err(error) = result {
                state.lose(n_records, error);
            }
            drop(state);
            self.progress.notify_all();
        }
    }

    /// Waits `flush_every` for further records after the first, then swaps the queued records into `batch`; returns
    /// their number, `None` at the end.
    fn take_batch(&self, batch: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.lock();
        while state.n_records == 0 {
            if state.is_closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let begin_ns = clock::mono_now();
        while !state.is_urgent
            && !state.is_closed
            && let Some(left) = left(self.options.flush_every, begin_ns)
        {
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_urgent = false;
        std::mem::swap(&mut state.bytes, batch);
        let n_records = std::mem::take(&mut state.n_records);
        drop(state);
        self.progress.notify_all();
        Some(n_records)
    }
}

/// What is left of a duration that began at `begin_ns` of [`clock::mono_now`]; `None` at its end.
fn left(of: Duration, begin_ns: i64) -> Option<Duration> {
    let waited = Duration::from_nanos((clock::mono_now() - begin_ns).max(0) as u64);
    of.checked_sub(waited).filter(|left| !left.is_zero())
}
