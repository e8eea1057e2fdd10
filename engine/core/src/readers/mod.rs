//! Readers: objects that read the files whose names a queue gives, record by record (white paper, section 4.5).
//!
//! A [`Reader`] asks the queue for a file's name when it has none, reads the file's records, and asks again at its end. A read
//! that must wait for a name holds no thread. Which file is open and how many of its records were read goes into checkpoints.

mod source;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::encoding::{int64, string, uint64};

use source::Source;
pub use source::{Compression, Format};

use crate::checkpoint::{AsCheckpointed, CHECKPOINTED, CheckpointError, Checkpointed, Fields};
use crate::kernel::{Cancellation, KernelError};
use crate::queues::{Amount, Queue};
use crate::tensor::Tensor;

/// Keys and values of records.
pub type Records = Vec<(Vec<u8>, Vec<u8>)>;
/// Called with what was read.
pub(crate) type DoneReading = Box<dyn FnOnce(Result<Records, KernelError>) + Send>;

/// Reads records from files.
pub struct Reader {
    name: Arc<str>,
    format: Format,
    state: Mutex<State>,
}

/// Where a reader stands.
#[derive(Default)]
struct State {
    source: Option<Source>,
    n_records: i64,
    n_files: i64,
    waiting: VecDeque<Request>,
    /// A name was asked for, and its answer goes on with the requests.
    is_asking: bool,
}

/// A read that is not over.
struct Request {
    amount: Amount,
    got: Records,
    queue: Arc<Queue>,
    cancellation: Cancellation,
    done: DoneReading,
}

/// A read that is over, with what it ends with.
type Due = (DoneReading, Result<Records, KernelError>);

impl Reader {
    /// A reader, named so in errors, that has read nothing yet.
    pub fn new(name: Arc<str>, format: Format) -> Reader {
        Reader { name, format, state: Mutex::default() }
    }

    /// How many records were read in all.
    pub fn n_records(&self) -> i64 {
        self.state.lock().n_records
    }

    /// How many files were read to their ends.
    pub fn n_files(&self) -> i64 {
        self.state.lock().n_files
    }

    /// Forgets the file it reads and all counts.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        (state.source, state.n_records, state.n_files) = (None, 0, 0);
    }

    /// Reads one record, or up to so many (of the present file; at least one), asking `queue` for files' names.
    pub fn read(self: &Arc<Self>, amount: Amount, queue: Arc<Queue>, cancellation: Cancellation, done: DoneReading) {
        let request = Request { amount, got: Vec::new(), queue, cancellation, done };
        self.state.lock().waiting.push_back(request);
        self.go_on();
    }

    /// Serves the requests in their order, until none is left or a name is asked for.
    fn go_on(self: &Arc<Self>) {
        let mut due: Vec<Due> = Vec::new();
        let ask = {
            let mut state = self.state.lock();
            if state.is_asking {
                return;
            }
            loop {
                let Some(mut request) = state.waiting.pop_front() else { break None };
                match state.serve(&self.format, &mut request) {
                    Some(result) => due.push((request.done, result)),
                    None => {
                        let ask = (Arc::clone(&request.queue), request.cancellation.clone());
                        state.waiting.push_front(request);
                        state.is_asking = true;
                        break Some(ask);
                    }
                }
            }
        };
        for (done, result) in due {
            done(result);
        }
        if let Some((queue, cancellation)) = ask {
            let this = Arc::clone(self);
            let answered = move |rows: Result<Vec<crate::queues::Row>, KernelError>| this.answered(rows);
            queue.dequeue(Amount::Exactly(1), &cancellation, Box::new(answered));
        }
    }

    /// The queue gave a file's name, or will give none.
    fn answered(self: &Arc<Self>, rows: Result<Vec<crate::queues::Row>, KernelError>) {
        let opened = rows.and_then(|rows| {
            let name = rows.first().and_then(|row| row.first()).ok_or(KernelError::MissingInput(1))?;
            let [name] = name.strings()? else {
                return Err(KernelError::invalid("the queue must hold single file names"));
            };
            let name = String::from_utf8_lossy(name).into_owned();
            Source::open(&name, &self.format, 0).map_err(|e| KernelError::File(name.into(), e))
        });
        let failed = {
            let mut state = self.state.lock();
            state.is_asking = false;
            match opened {
                Ok(source) => {
                    state.source = Some(source);
                    None
                }
                Err(error) => state.waiting.pop_front().map(|request| (request.done, Err(error))),
            }
        };
        if let Some((done, result)) = failed {
            done(result);
        }
        self.go_on();
    }

    /// The state as bytes: TensorFlow's `ReaderBaseState`, and in field 15 how many records of the file were read.
    pub fn serialize(&self) -> Vec<u8> {
        let state = self.state.lock();
        let mut out = Vec::new();
        let is_reading = i64::from(state.source.is_some());
        let numbers = [(1, state.n_files + is_reading), (2, state.n_files), (3, state.n_records)];
        for (field, n) in numbers {
            int64::encode(field, &n, &mut out);
        }
        if let Some(source) = &state.source {
            string::encode(4, &source.name().to_owned(), &mut out);
            uint64::encode(15, &source.n_read(), &mut out);
        }
        out
    }

    /// Goes on from a state that was serialised.
    pub fn deserialize(&self, bytes: &[u8]) -> Result<(), KernelError> {
        use formats::wire::{Fields, Value};
        let bad = || KernelError::invalid(format!("this is no state of reader {}", self.name));
        let (mut work, mut numbers) = (None, [0u64; 16]);
        for field in Fields::new(bytes) {
            match field.map_err(|_| bad())? {
                (4, Value::Bytes(b)) => work = Some(String::from_utf8(b.to_vec()).map_err(|_| bad())?),
                (n @ 1..=15, Value::Varint(v)) => numbers[n as usize] = v,
                _ => return Err(bad()),
            }
        }
        let source = match work {
            Some(name) => {
                let opened = Source::open(&name, &self.format, numbers[15]);
                Some(opened.map_err(|e| KernelError::File(name.into(), e))?)
            }
            None => None,
        };
        let mut state = self.state.lock();
        state.source = source;
        state.n_files = i64::try_from(numbers[2]).map_err(|_| bad())?;
        state.n_records = i64::try_from(numbers[3]).map_err(|_| bad())?;
        Ok(())
    }
}

impl State {
    /// Reads for a request; `None` where it needs another file.
    fn serve(&mut self, format: &Format, request: &mut Request) -> Option<Result<Records, KernelError>> {
        let (Amount::Exactly(n) | Amount::UpTo(n)) = request.amount;
        while request.got.len() < n {
            let source = self.source.as_mut()?;
            match source.next(format) {
                Ok(Some(record)) => {
                    self.n_records += 1;
                    request.got.push(record);
                }
                Ok(None) => {
                    self.source = None;
                    self.n_files += 1;
                    if !request.got.is_empty() {
                        break;
                    }
                }
                Err(error) => {
                    let name = source.name().into();
                    self.source = None;
                    return Some(Err(KernelError::File(name, error)));
                }
            }
        }
        Some(Ok(std::mem::take(&mut request.got)))
    }
}

#[linkme::distributed_slice(CHECKPOINTED)]
static READER: AsCheckpointed = |object| object.downcast_ref::<Reader>().map(|r| r as &dyn Checkpointed);

impl Checkpointed for Reader {
    fn kind(&self) -> &'static str {
        "reader"
    }

    fn save(&self) -> Fields {
        Fields::from([("state".to_owned(), Tensor::string(self.serialize()))])
    }

    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError> {
        let state = fields.get("state").and_then(|t| t.strings().ok()).and_then(<[_]>::first);
        let state = state.ok_or_else(|| CheckpointError::state(&self.name, "the saved reader has no state"))?;
        self.deserialize(state).map_err(|e| CheckpointError::state(&self.name, e.to_string()))
    }
}
