//! The collector's side of sending: greetings, pieces, acknowledgements, stamps.

use crate::VERSION;
use crate::hub::{Hub, WriteTurn};
use crate::mirror::MirrorError;
use crate::wire::{Ack, ClockAsk, ClockTell, Down, Up, Welcome, down, gather_server::Gather, up};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

/// The approximate size of a batch of items, which are written and synced together: bytes, and items.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ITEMS: usize = 1024;
/// The longest time for which a batch waits for the next item.
const BATCH_WAIT: Duration = Duration::from_millis(10);
/// The silence after which a connection is ended: senders report their state twice a second.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The gRPC service for senders.
pub(crate) struct Receiver(pub(crate) Arc<Hub>);

impl From<MirrorError> for Status {
    fn from(error: MirrorError) -> Status {
        match error {
            MirrorError::Protocol(why) => Status::invalid_argument(why),
            MirrorError::Io(..) => Status::unavailable(error.to_string()),
        }
    }
}

type Answers = Pin<Box<dyn tokio_stream::Stream<Item = Result<Down, Status>> + Send>>;

#[tonic::async_trait]
impl Gather for Receiver {
    type SendStream = Answers;

    async fn send(&self, request: Request<Streaming<Up>>) -> Result<Response<Answers>, Status> {
        let mut messages = request.into_inner();
        let first = next_message(&mut messages).await?;
        let Some(Up { what: Some(up::What::Hello(hello)) }) = first else {
            return Err(Status::invalid_argument("a greeting comes first"));
        };
        if hello.version != VERSION {
            let text = format!("this collector speaks version {VERSION}, not {}", hello.version);
            return Err(Status::failed_precondition(text));
        }
        let hub = Arc::clone(&self.0);
        let greeted = tokio::task::spawn_blocking(move || hub.greet(&hello)).await;
        let (turn, files) = greeted.map_err(|_| Status::internal("greeting failed"))??;
        let (answers, answer_stream) = mpsc::channel(64);
        let welcome = Welcome { version: VERSION, files };
        // Cannot fail: the receiver still exists.
        let _ = answers.send(Ok(Down { what: Some(down::What::Welcome(welcome)) })).await;
        let hub = Arc::clone(&self.0);
        tokio::spawn(async move {
            hub.report.lock().open += 1;
            if let Err(status) = receive(&hub, turn, messages, &answers).await {
                // A broken connection is no violation, and failed writes are counted separately.
                let is_violation = !matches!(status.code(), Code::Cancelled | Code::Unknown | Code::Unavailable);
                hub.report.lock().refused += u64::from(is_violation);
                let _ = answers.send(Err(status)).await;
            }
            hub.report.lock().open -= 1;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answer_stream))))
    }

    async fn clock(&self, request: Request<ClockAsk>) -> Result<Response<ClockTell>, Status> {
        let received_ns = (self.0.clock.now)();
        let ask = request.into_inner();
        if let Some(last) = &ask.last {
            self.0.store_exchange(&ask.clock, last).map_err(|e| Status::unavailable(e.to_string()))?;
        }
        Ok(Response::new(ClockTell { received_ns, sent_ns: (self.0.clock.now)() }))
    }
}

async fn next_message(messages: &mut Streaming<Up>) -> Result<Option<Up>, Status> {
    let message = tokio::time::timeout(SILENCE_TIMEOUT, messages.message()).await;
    message.map_err(|_| Status::deadline_exceeded("nothing came for 10 s"))?
}

/// Writes a connection's items in batches until the connection ends. Nothing is read while a batch is written, so that
/// the sender's window fills up and the sender waits.
async fn receive(
    hub: &Arc<Hub>,
    turn: WriteTurn,
    mut messages: Streaming<Up>,
    answers: &mpsc::Sender<Result<Down, Status>>,
) -> Result<(), Status> {
    let turn = Arc::new(turn);
    let mut items = Vec::new();
    loop {
        let mut bytes = 0;
        let Some(message) = next_message(&mut messages).await? else { return Ok(()) };
        bytes += add_item(message, &mut items)?;
        let mut has_ended = false;
        while bytes < BATCH_BYTES && items.len() < BATCH_ITEMS {
            match tokio::time::timeout(BATCH_WAIT, messages.message()).await {
                Ok(Ok(Some(message))) => bytes += add_item(message, &mut items)?,
                Ok(_) => {
                    has_ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let (batch, hub, turn) = (std::mem::take(&mut items), Arc::clone(hub), Arc::clone(&turn));
        let written = tokio::task::spawn_blocking(move || hub.write_items(&turn, batch)).await;
        let sequence = written.map_err(|_| Status::internal("writing failed"))??;
        let ack = Down { what: Some(down::What::Ack(Ack { sequence })) };
        if answers.send(Ok(ack)).await.is_err() || has_ended {
            return Ok(());
        }
    }
}

/// Adds a message to the batch; returns its size.
fn add_item(message: Up, items: &mut Vec<up::What>) -> Result<usize, Status> {
    let what = message.what.ok_or_else(|| Status::invalid_argument("neither piece nor state"))?;
    let bytes = if let up::What::Piece(piece) = &what { piece.data.len() } else { 0 };
    items.push(what);
    Ok(bytes)
}
