//! Sends a trace folder to a collector, on a separate thread.
//!
//! Programs record into the folder as without a sender, so the folder is the sender's buffer: a failure of the network
//! or the collector loses no event that the folder has. Bytes are identified by their position in a file, so that after
//! a kill of either side the collector's reply to the greeting says where to continue. Memory: the window of
//! unacknowledged bytes, and one block.

use crate::error::SendError;
use crate::exchange::Exchanger;
use crate::identity::{Clock, FolderId};
use crate::tail::{Part, Tail};
use crate::transport::{BoxedError, Transport, endpoint};
use crate::wire::{Hello, Piece, State, Up, Welcome, down, gather_client::GatherClient, up};
use crate::{MAX_MESSAGE, VERSION};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

/// The most bytes that are sent and not acknowledged.
const WINDOW_BYTES: u64 = 8 << 20;
/// The most messages that wait to be sent: the pieces of the window, and states.
const QUEUE_MESSAGES: usize = 128;
/// The pause between two states, by which the collector sees that the folder still grows.
const STATE_PAUSE: Duration = Duration::from_millis(500);
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// The options of a sender.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// The pause between two reads of the folder.
    pub interval: Duration,
    /// The clock of the folder's times.
    pub clock: Clock,
    /// The host's name.
    pub host: String,
}

impl Default for SenderOptions {
    fn default() -> Self {
        SenderOptions {
            interval: Duration::from_millis(20),
            clock: Clock::of_this_host(),
            host: events::session::host_name(),
        }
    }
}

/// Counts of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderReport {
    /// Whether the sender is connected now.
    pub connected: bool,
    /// Connections that received the collector's greeting.
    pub connections: u64,
    /// Bytes that the collector has acknowledged, those of earlier connections included.
    pub acknowledged: u64,
    /// Bytes sent and not acknowledged.
    pub in_flight: u64,
    /// Whether everything was acknowledged, the end of the trace included.
    pub finished: bool,
    /// Files of which a collector had less than it had acknowledged, because its folder was lost or changed; they are
    /// sent again.
    pub n_rewound_files: u64,
    /// Exchanges of clock stamps.
    pub exchanges: u64,
    /// The error of the last connection that broke or could not be made; `None` while connected.
    pub problem: Option<String>,
}

/// The state that the caller's thread and the sending thread share.
struct Shared {
    dir: PathBuf,
    folder: FolderId,
    endpoint: Endpoint,
    /// The source of connections; `None` where connections go to the endpoint's address.
    transport: Option<Transport>,
    options: SenderOptions,
    report: Mutex<SenderReport>,
    /// The acknowledged length of each file.
    acked_lengths: Mutex<BTreeMap<String, u64>>,
    exchanges: Arc<AtomicU64>,
}

/// A running sender. Dropping it stops it at once; [`Sender::finish`] sends the rest first.
#[must_use = "sending stops when the sender is dropped"]
pub struct Sender {
    shared: Arc<Shared>,
    /// Makes the thread send the rest within a time, and end.
    stop: watch::Sender<Option<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Starts sending a trace folder, which must exist. The sender tries for ever to reach its collector.
    ///
    /// # Errors
    /// The address is invalid, another process sends the folder, or it cannot be written.
    pub fn start(trace_dir: &Path, address: &str, options: SenderOptions) -> Result<Sender, SendError> {
        let endpoint = endpoint(address).ok_or_else(|| SendError::Address(address.to_owned()))?;
        Sender::begin(trace_dir, endpoint, None, options)
    }

    /// Starts sending a trace folder over connections that the caller makes.
    ///
    /// # Errors
    /// Another process sends the folder, or it cannot be written.
    pub fn start_with_transport(
        trace_dir: &Path,
        transport: Transport,
        options: SenderOptions,
    ) -> Result<Sender, SendError> {
        // A placeholder, since the transport ignores the address.
        Sender::begin(trace_dir, Endpoint::from_static("http://given"), Some(transport), options)
    }

    fn begin(
        trace_dir: &Path,
        endpoint: Endpoint,
        transport: Option<Transport>,
        options: SenderOptions,
    ) -> Result<Sender, SendError> {
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(1))
            .keep_alive_timeout(Duration::from_secs(3))
            .keep_alive_while_idle(true);
        let dir = std::path::absolute(trace_dir).map_err(|e| SendError::Folder(trace_dir.to_owned(), e))?;
        let folder = FolderId::claim(&dir)?;
        let (report, acked_lengths, exchanges) = (Mutex::default(), Mutex::default(), Arc::default());
        let shared = Arc::new(Shared { dir, folder, endpoint, transport, options, report, acked_lengths, exchanges });
        let (stop, stopping) = watch::channel(None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SendError::Thread)?;
        let thread = std::thread::Builder::new().name("sender".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || runtime.block_on(run(&shared, stopping))
        });
        Ok(Sender { shared, stop, thread: Some(thread.map_err(SendError::Thread)?) })
    }

    /// The sender's counts so far.
    #[must_use]
    pub fn progress(&self) -> SenderReport {
        let exchanges = self.shared.exchanges.load(Ordering::Relaxed);
        SenderReport { exchanges, ..self.shared.report.lock().clone() }
    }

    /// Sends the rest and the end of the trace, for at most `timeout`. Bytes that are not acknowledged by then stay in
    /// the folder for a later sender. Stop recording and collecting first.
    pub fn finish(mut self, timeout: Duration) -> SenderReport {
        self.end(Some(timeout));
        self.progress()
    }

    fn end(&mut self, timeout: Option<Duration>) {
        // Fails where the thread has ended by itself.
        let _ = self.stop.send(Some(timeout.unwrap_or(Duration::ZERO)));
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its hook; the folder is as it was.
            let _ = thread.join();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.end(None);
    }
}

async fn run(shared: &Shared, stopping: watch::Receiver<Option<Duration>>) {
    let mut timeout = stopping.clone();
    let deadline = async {
        let wait = timeout.wait_for(Option::is_some).await.map_or(None, |timeout| *timeout);
        tokio::time::sleep(wait.unwrap_or(Duration::ZERO)).await;
    };
    tokio::select! {
        () = keep_sending(shared, stopping) => {}
        () = deadline => {}
    }
    shared.report.lock().connected = false;
}

async fn keep_sending(shared: &Shared, stopping: watch::Receiver<Option<Duration>>) {
    let mut retry = FIRST_RETRY;
    loop {
        let before = shared.report.lock().connections;
        match send_over_connection(shared, &stopping).await {
            Ok(()) => return,
            Err(problem) => {
                let mut report = shared.report.lock();
                (report.connected, report.in_flight, report.problem) = (false, 0, Some(problem.to_string()));
                retry = if report.connections > before { FIRST_RETRY } else { (retry * 2).min(LAST_RETRY) };
            }
        }
        tokio::time::sleep(retry).await;
    }
}

impl Shared {
    async fn connect(&self) -> Result<Channel, BoxedError> {
        match &self.transport {
            Some(transport) => transport.connect(&self.endpoint).await,
            None => Ok(self.endpoint.connect().await?),
        }
    }
}

/// Sends over one connection; returns `Ok` when everything up to the end of the trace was acknowledged.
async fn send_over_connection(shared: &Shared, stopping: &watch::Receiver<Option<Duration>>) -> Result<(), BoxedError> {
    let mut exchanger =
        Exchanger::new(shared.connect().await?, shared.options.clock.clone(), Arc::clone(&shared.exchanges));
    exchanger.burst().await?;
    let mut client = GatherClient::new(shared.connect().await?).max_decoding_message_size(MAX_MESSAGE);
    let (up, up_stream) = mpsc::channel(QUEUE_MESSAGES);
    let hello = Hello {
        version: VERSION,
        folder: bytes::Bytes::copy_from_slice(&shared.folder.id),
        host: shared.options.host.clone(),
        clock: shared.options.clock.id.clone(),
    };
    up.send(Up { what: Some(up::What::Hello(hello)) }).await?;
    let mut answers = client.send(ReceiverStream::new(up_stream)).await?.into_inner();
    let Some(down::What::Welcome(welcome)) = answers.message().await?.and_then(|down| down.what) else {
        return Err("the collector did not greet".into());
    };
    accept_welcome(shared, &welcome)?;
    let tail = Tail::new(&shared.dir, welcome.files);
    let control = events::control::Control::open(&shared.dir).ok();
    let mut connection = Connection { shared, up, tail, control, sequence: 0, in_flight: VecDeque::new(), n_bytes: 0 };
    let exchange_task = tokio::spawn(exchanger.keep_exchanging());
    let result = connection.send_all(&mut answers, stopping.clone()).await;
    exchange_task.abort();
    result
}

fn accept_welcome(shared: &Shared, welcome: &Welcome) -> Result<(), BoxedError> {
    if welcome.version != VERSION {
        return Err(format!("the collector speaks version {}, this is {VERSION}", welcome.version).into());
    }
    let mut acked_lengths = shared.acked_lengths.lock();
    let length_of = |file: &str| welcome.files.iter().find(|f| f.file == file).map_or(0, |f| f.length);
    let n_shorter = acked_lengths.iter().filter(|(file, length)| length_of(file) < **length).count() as u64;
    *acked_lengths = welcome.files.iter().map(|f| (f.file.clone(), f.length)).collect();
    let mut report = shared.report.lock();
    report.acknowledged = acked_lengths.values().sum();
    report.n_rewound_files += n_shorter;
    report.connections += 1;
    (report.connected, report.problem) = (true, None);
    Ok(())
}

/// A piece or state that is sent and not acknowledged yet.
struct SentMessage {
    sequence: u64,
    bytes: u64,
    /// The file, and the offset of the piece's end; `None` for a state.
    end: Option<(String, u64)>,
}

/// A greeted connection to the collector.
struct Connection<'a> {
    shared: &'a Shared,
    up: mpsc::Sender<Up>,
    tail: Tail,
    control: Option<events::control::Control>,
    sequence: u64,
    /// The messages that are not acknowledged yet, and the sum of their bytes.
    in_flight: VecDeque<SentMessage>,
    n_bytes: u64,
}

impl Connection<'_> {
    async fn send_all(
        &mut self,
        answers: &mut tonic::Streaming<crate::wire::Down>,
        mut stopping: watch::Receiver<Option<Duration>>,
    ) -> Result<(), BoxedError> {
        let mut read_timer = tokio::time::interval(self.shared.options.interval);
        let mut state_timer = tokio::time::interval(STATE_PAUSE);
        let mut final_sequence = None;
        loop {
            let is_ending = stopping.borrow_and_update().is_some();
            self.tail.measure_files()?;
            let sent_all = self.fill_window(is_ending).await?;
            if is_ending && sent_all && final_sequence.is_none() {
                final_sequence = Some(self.send_state(true).await?);
            }
            tokio::select! {
                answer = answers.message() => {
                    let Some(answer) = answer? else { return Err("the collector ended the connection".into()) };
                    self.apply_ack(answer.what.as_ref());
                }
                _ = read_timer.tick() => {}
                _ = state_timer.tick() => { self.send_state(false).await?; }
                _ = stopping.changed(), if !is_ending => {}
            }
            if final_sequence
                .is_some_and(|final_sequence| self.in_flight.front().is_none_or(|sent| sent.sequence > final_sequence))
            {
                self.shared.report.lock().finished = true;
                return Ok(());
            }
        }
    }

    /// Sends the pieces that fit into the window; returns whether no piece is left.
    async fn fill_window(&mut self, is_ending: bool) -> Result<bool, BoxedError> {
        while self.n_bytes < WINDOW_BYTES {
            let Some(part) = self.tail.next(is_ending)? else { return Ok(true) };
            self.send_piece(part).await?;
        }
        Ok(false)
    }

    async fn send_piece(&mut self, part: Part) -> Result<(), BoxedError> {
        self.sequence += 1;
        let bytes = part.data.len() as u64;
        let end = Some((part.file.clone(), part.offset + bytes));
        self.in_flight.push_back(SentMessage { sequence: self.sequence, bytes, end });
        self.n_bytes += bytes;
        let crc = crc32c::crc32c(&part.data);
        let piece = Piece { sequence: self.sequence, file: part.file, offset: part.offset, crc, data: part.data };
        Ok(self.up.send(Up { what: Some(up::What::Piece(piece)) }).await?)
    }

    /// Sends the counts of the control page; returns the message's sequence number.
    async fn send_state(&mut self, finished: bool) -> Result<u64, BoxedError> {
        self.sequence += 1;
        self.in_flight.push_back(SentMessage { sequence: self.sequence, bytes: 0, end: None });
        let lost = self.control.as_ref().map(events::control::Control::lost).unwrap_or_default();
        let state = State {
            sequence: self.sequence,
            lost_events: lost.events,
            lost_threads: lost.threads,
            lost_meta: lost.meta,
            finished,
        };
        self.up.send(Up { what: Some(up::What::State(state)) }).await?;
        Ok(self.sequence)
    }

    fn apply_ack(&mut self, what: Option<&down::What>) {
        let Some(down::What::Ack(ack)) = what else { return };
        let mut acked_lengths = self.shared.acked_lengths.lock();
        while let Some(sent) = self.in_flight.pop_front_if(|sent| sent.sequence <= ack.sequence) {
            self.n_bytes -= sent.bytes;
            if let Some((file, end)) = sent.end {
                acked_lengths.insert(file, end);
            }
        }
        let mut report = self.shared.report.lock();
        (report.acknowledged, report.in_flight) = (acked_lengths.values().sum(), self.n_bytes);
    }
}
