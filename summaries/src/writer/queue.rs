//! The queue between a training program and the thread that writes its event file: framed records, bounded by bytes.

use std::{io, sync::Arc, time::Duration};

use events::clock;
use formats::{event_file::EventFile, tfrecord::append_record};
use parking_lot::{Condvar, Mutex, MutexGuard};

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

    /// Queues a record. Waits while the queue is full, at most `max_wait`; then drops and counts the record.
    pub fn push(&self, record: &[u8]) {
        let mut state = self.state.lock();
        let has_room = self.wait_for_room(&mut state, record.len());
        if state.is_closed || !has_room {
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

    /// Waits for room for `n` bytes; returns whether there is any. An empty queue has room for a record of any size.
    fn wait_for_room(&self, state: &mut MutexGuard<'_, State>, n: usize) -> bool {
        let fits = |state: &State| state.bytes.is_empty() || state.bytes.len() + n <= self.options.queue_bytes;
        if fits(state) {
            return true;
        }
        let begin_ns = clock::mono_now();
        while !fits(state) {
            let waited = Duration::from_nanos((clock::mono_now() - begin_ns).max(0) as u64);
            let Some(left) = self.options.max_wait.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return false;
            };
            state.is_urgent = true;
            self.work.notify_one();
            self.progress.wait_for(state, left);
        }
        true
    }

    /// Waits until all records that are queued now are written or lost.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        let n_queued = state.n_queued;
        while state.n_finished < n_queued {
            state.is_urgent = true;
            self.work.notify_one();
            self.progress.wait(&mut state);
        }
    }

    /// Refuses further records; the thread writes the queued ones and ends.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.work.notify_one();
    }

    /// The number of records that are missing in the file, and the first error.
    pub fn lost(&self) -> Option<(u64, Arc<io::Error>)> {
        let state = self.state.lock();
        state.first_error.as_ref().map(|error| (state.n_lost, error.clone()))
    }

    /// Writes records to `file` until the queue is closed and empty; runs in the writing thread.
    pub fn write_to(&self, mut file: EventFile) {
        let mut batch = Vec::new();
        while let Some(n_records) = self.take_batch(&mut batch) {
            let result = file.write(&batch);
            batch.clear();
            let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        while state.n_records == 0 {
            if state.is_closed {
                return None;
            }
            self.work.wait(&mut state);
        }
        let begin_ns = clock::mono_now();
        while !state.is_urgent && !state.is_closed {
            let waited = Duration::from_nanos((clock::mono_now() - begin_ns).max(0) as u64);
            let Some(left) = self.options.flush_every.checked_sub(waited).filter(|left| !left.is_zero()) else { break };
            self.work.wait_for(&mut state, left);
        }
        state.is_urgent = false;
        std::mem::swap(&mut state.bytes, batch);
        let n_records = std::mem::take(&mut state.n_records);
        drop(state);
        self.progress.notify_all();
        Some(n_records)
    }
}
