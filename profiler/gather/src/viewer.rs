//! The viewer's side: asks a distant collector for what it shows, and nothing else.

use crate::wire::far_client::FarClient;
use crate::wire::{DescribeRequest, Description, LanePicture, PictureReply, PictureRequest};
use std::io;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

/// An answer's size, at most: a million spans.
const MAX_ANSWER: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The address is none.
    #[error("{0} is no address of a collector (HOST:PORT)")]
    Address(String),
    /// Nobody answers there.
    #[error("no collector at {0}: {1}")]
    Connect(String, #[source] tonic::transport::Error),
    /// The collector did not answer what was asked.
    #[error("the collector says: {0}")]
    Answer(#[source] Box<tonic::Status>),
    /// The system gives no threads.
    #[error("cannot start a connection: {0}")]
    Thread(#[source] io::Error),
}

/// A connection to a collector. Its calls wait for the answer: keep it in a loader's thread.
pub struct Viewer {
    runtime: Runtime,
    client: FarClient<Channel>,
}

impl Viewer {
    /// Connects.
    ///
    /// # Errors
    /// That the address is none, or that nobody answers there.
    pub fn connect(address: &str) -> Result<Viewer, ViewError> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|_| ViewError::Address(address.to_owned()))?;
        let endpoint = endpoint.connect_timeout(PATIENCE).timeout(PATIENCE).tcp_nodelay(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ViewError::Thread)?;
        let channel = runtime.block_on(endpoint.connect()).map_err(|e| ViewError::Connect(address.to_owned(), e))?;
        let client = FarClient::new(channel).max_decoding_message_size(MAX_ANSWER);
        Ok(Viewer { runtime, client })
    }

    /// What there is now.
    ///
    /// # Errors
    /// That the connection broke.
    pub fn describe(&mut self) -> Result<Description, ViewError> {
        let answer = self.runtime.block_on(self.client.describe(DescribeRequest {}));
        answer.map(tonic::Response::into_inner).map_err(|e| ViewError::Answer(Box::new(e)))
    }

    /// What tracks and counters show.
    ///
    /// # Errors
    /// That the connection broke, that there is no such track or counter, or that the picture would be too large.
    pub fn picture(&mut self, request: PictureRequest) -> Result<PictureReply, ViewError> {
        let answer = self.runtime.block_on(self.client.picture(request));
        answer.map(tonic::Response::into_inner).map_err(|e| ViewError::Answer(Box::new(e)))
    }
}

/// What a lane shows in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarSpan {
    /// Start of its first slice, ns from the origin.
    pub start: i64,
    /// End of its last slice (not included).
    pub end: i64,
    /// Its slices.
    pub count: u32,
    /// Sum of their durations, ns.
    pub busy_ns: u64,
    /// Index of [`PictureReply::names`]: the longest slice's.
    pub name: u32,
}

/// The spans of a lane in an answer to a request that began at `start_ns`.
pub fn spans(lane: &LanePicture, start_ns: i64) -> impl Iterator<Item = FarSpan> + '_ {
    let mut at = start_ns;
    let columns = lane.gap_ns.iter().zip(&lane.length_ns).zip(&lane.count).zip(&lane.busy_ns).zip(&lane.name);
    columns.map(move |((((gap, length), count), busy), name)| {
        let start = at.saturating_add(*gap);
        at = start.saturating_add_unsigned(*length);
        FarSpan { start, end: at, count: *count, busy_ns: *busy, name: *name }
    })
}
