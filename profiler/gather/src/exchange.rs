//! The sender's side of clock exchanges: four stamps each, on a connection of its own, so that no event waits before a
//! stamp.

use crate::identity::Clock;
use crate::wire::{ClockAsk, Exchange, gather_client::GatherClient};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::Status;
use tonic::transport::Channel;

/// The number of exchanges in a burst, which begins a connection.
const BURST: u32 = 8;
const BURST_PAUSE: Duration = Duration::from_millis(2);
/// The pauses between two exchanges: the first [`FIRST_EXCHANGES`], and later ones.
const PAUSE: Duration = Duration::from_millis(100);
const LATER_PAUSE: Duration = Duration::from_millis(250);
const FIRST_EXCHANGES: u32 = 100;
/// The longest time for a reply: the error of a slower exchange is too large.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Exchanger {
    client: GatherClient<Channel>,
    clock: Clock,
    last: Option<Exchange>,
    n: Arc<AtomicU64>,
}

impl Exchanger {
    pub(crate) fn new(channel: Channel, clock: Clock, n: Arc<AtomicU64>) -> Exchanger {
        Exchanger { client: GatherClient::new(channel), clock, last: None, n }
    }

    /// Makes a few exchanges in a row, so that the clock is known before the first event comes.
    pub(crate) async fn burst(&mut self) -> Result<(), Status> {
        for _ in 0..BURST {
            self.exchange().await?;
            tokio::time::sleep(BURST_PAUSE).await;
        }
        Ok(())
    }

    /// Makes exchanges until the connection breaks; returns the error.
    pub(crate) async fn keep_exchanging(mut self) -> Status {
        for n in 0u32.. {
            tokio::time::sleep(if n < FIRST_EXCHANGES { PAUSE } else { LATER_PAUSE }).await;
            if let Err(status) = self.exchange().await {
                return status;
            }
        }
        Status::ok("")
    }

    async fn exchange(&mut self) -> Result<(), Status> {
        let asked_ns = (self.clock.now)();
        let ask = ClockAsk { clock: self.clock.id.clone(), asked_ns, last: self.last.take() };
        let reply = tokio::time::timeout(PATIENCE, self.client.clock(ask)).await;
        let answered_ns = (self.clock.now)();
        let reply = reply.map_err(|_| Status::deadline_exceeded("the collector does not answer"))??.into_inner();
        let (received_ns, sent_ns) = (reply.received_ns, reply.sent_ns);
        self.last = Some(Exchange { asked_ns, received_ns, sent_ns, answered_ns });
        self.n.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
