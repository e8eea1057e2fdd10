//! The gRPC service for remote viewers of a [`TraceSource`].

use crate::wire::far_server;
use crate::wire::{ListRequest, Listing, LookReply, LookRequest, ReadReply, ReadRequest};
use parking_lot::RwLock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::{Request, Response, Status};
use trace_store::remote::Server as TraceServer;
use trace_store::{Store, TraceReader, Update};

use crate::hub::Hub;

/// The pause between two polls of a growing trace.
pub(crate) const POLL: Duration = Duration::from_millis(50);
/// The most bytes of a file that one request reads.
pub(crate) const MAX_READ: u32 = 1 << 20;

/// A source of traces and files for remote viewers. Its functions may block on the disk.
pub(crate) trait TraceSource: Send + Sync + 'static {
    fn list(&self) -> io::Result<Listing>;
    /// Answers a request to the store of a trace.
    fn look(&self, trace: &str, question: &[u8]) -> io::Result<Vec<u8>>;
    fn read(&self, path: &str, offset: u64, length: u32) -> io::Result<Vec<u8>>;
}

/// The trace that a collector gathers.
pub(crate) struct GatheredTrace(pub(crate) TraceServer);

impl TraceSource for GatheredTrace {
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
/// messages imply.
pub(crate) fn follow(hub: &Hub, store: &RwLock<Store>, stopping: &AtomicBool) {
    let mut reader: Option<TraceReader> = None;
    while !stopping.load(Ordering::Acquire) {
        if reader.is_none() {
            reader = TraceReader::open(hub.dir()).ok();
        }
        // The next poll repeats a failed read.
        let update = reader.as_mut().and_then(|reader| reader.poll_staged().ok());
        let has_more = update.as_ref().is_some_and(Update::has_more);
        if let Some(update) = update {
            store.write().apply(update);
        }
        if let Some(reader) = &mut reader {
            let facts = reader.take_clock_facts();
            // An error is ignored: later messages give the same facts.
            let _ = hub.store_facts(&facts);
        }
        if !has_more {
            std::thread::park_timeout(POLL);
        }
    }
}

/// The gRPC service for viewers.
pub(crate) struct RemoteService(pub(crate) Arc<dyn TraceSource>);

impl RemoteService {
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn TraceSource) -> io::Result<T> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let source = Arc::clone(&self.0);
        let result = tokio::task::spawn_blocking(move || work(&*source)).await;
        let result = result.map_err(|_| Status::internal("looking failed"))?;
        result.map(Response::new).map_err(|error| match error.kind() {
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
        self.run_blocking(TraceSource::list).await
    }

    async fn look(&self, request: Request<LookRequest>) -> Result<Response<LookReply>, Status> {
        let LookRequest { trace, question } = request.into_inner();
        self.run_blocking(move |source| Ok(LookReply { answer: source.look(&trace, &question)?.into() })).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<ReadReply>, Status> {
        let ReadRequest { path, offset, length } = request.into_inner();
        self.run_blocking(move |source| {
            Ok(ReadReply { data: source.read(&path, offset, length.min(MAX_READ))?.into() })
        })
        .await
    }
}
