//! The gRPC service for remote viewers, over anything that is [`Served`].

use crate::wire::far_server;
use crate::wire::{ListRequest, Listing, LookReply, LookRequest, ReadReply, ReadRequest};
use parking_lot::RwLock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::{Request, Response, Status};
use trace_store::{Store, TraceReader, Update, remote as far};

use crate::hub::Hub;

/// The pause between two polls of a growing trace.
pub(crate) const POLL: Duration = Duration::from_millis(50);
/// Bytes of a file that one request reads, at most.
pub(crate) const MAX_READ: u32 = 1 << 20;

/// A source of traces and files for remote viewers. Its functions may block on the disk.
pub(crate) trait Served: Send + Sync + 'static {
    fn list(&self) -> io::Result<Listing>;
    /// The answer to a question about a trace.
    fn look(&self, trace: &str, question: &[u8]) -> io::Result<Vec<u8>>;
    fn read(&self, path: &str, offset: u64, length: u32) -> io::Result<Vec<u8>>;
}

/// The trace that a collector gathers.
pub(crate) struct Gathered(pub(crate) far::Server);

impl Served for Gathered {
    fn list(&self) -> io::Result<Listing> {
        let traces = vec![crate::wire::TracePlace { path: String::new() }];
        Ok(Listing { version: crate::VERSION, traces, ..Listing::default() })
    }

    fn look(&self, trace: &str, question: &[u8]) -> io::Result<Vec<u8>> {
        if trace.is_empty() { Ok(self.0.respond(question)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn read(&self, _: &str, _: u64, _: u32) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Reads the gathered folder into the store until `stopping` is set, and stores the facts about clocks that its
/// messages give.
pub(crate) fn follow(hub: &Hub, store: &RwLock<Store>, stopping: &AtomicBool) {
    let mut reader: Option<TraceReader> = None;
    while !stopping.load(Ordering::Acquire) {
        if reader.is_none() {
            reader = TraceReader::open(hub.dir()).ok();
        }
        // A failed read is tried again with the next poll.
        let update = reader.as_mut().and_then(|reader| reader.poll_staged().ok());
        let more = update.as_ref().is_some_and(Update::has_more);
        if let Some(update) = update {
            store.write().apply(update);
        }
        if let Some(reader) = &mut reader {
            let facts = reader.take_clock_facts();
            // An error is ignored: later messages give the same facts.
            let _ = hub.store_facts(&facts);
        }
        if !more {
            std::thread::park_timeout(POLL);
        }
    }
}

pub(crate) struct RemoteService(pub(crate) Arc<dyn Served>);

impl RemoteService {
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Served) -> io::Result<T> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let served = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&*served)).await;
        let done = done.map_err(|_| Status::internal("looking failed"))?;
        done.map(Response::new).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Status::not_found("there is no such trace or file"),
            io::ErrorKind::InvalidInput => Status::invalid_argument(error.to_string()),
            _ => Status::unavailable(error.to_string()),
        })
    }
}

#[tonic::async_trait]
impl far_server::Far for RemoteService {
    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Listing>, Status> {
        let version = request.into_inner().version;
        if version != crate::VERSION {
            let text = format!("the viewer speaks version {version}, this program {}", crate::VERSION);
            return Err(Status::failed_precondition(text));
        }
        self.run_blocking(Served::list).await
    }

    async fn look(&self, request: Request<LookRequest>) -> Result<Response<LookReply>, Status> {
        let LookRequest { trace, question } = request.into_inner();
        self.run_blocking(move |served| Ok(LookReply { answer: served.look(&trace, &question)?.into() })).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<ReadReply>, Status> {
        let ReadRequest { path, offset, length } = request.into_inner();
        self.run_blocking(move |served| {
            Ok(ReadReply { data: served.read(&path, offset, length.min(MAX_READ))?.into() })
        })
        .await
    }
}
