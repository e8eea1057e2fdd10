//! The sender's side of clock exchanges, of four time stamps each, on a separate connection, so that no stamp waits
//! behind events.

use crate::identity::Clock;
use crate::wire::{ClockAsk, Exchange, gather_client::GatherClient};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::Status;
use tonic::transport::Channel;

/// The number of exchanges in the burst with which a connection begins.
const N_BURST: u32 = 8;
const BURST_PAUSE: Duration = Duration::from_millis(2);
/// The pauses between two exchanges: the first [`N_FIRST_EXCHANGES`], and later ones.
const PAUSE: Duration = Duration::from_millis(100);
const LATER_PAUSE: Duration = Duration::from_millis(250);
const N_FIRST_EXCHANGES: u32 = 100;
/// The longest time for a reply: a slower exchange determines the clock too inaccurately.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Exchanges time stamps with the collector over one connection.
pub(crate) struct Exchanger {
    client: GatherClient<Channel>,
    clock: Clock,
    /// The previous exchange, which the next request reports to the collector.
    last: Option<Exchange>,
    n_exchanges: Arc<AtomicU64>,
}

impl Exchanger {
    pub(crate) fn new(channel: Channel, clock: Clock, n_exchanges: Arc<AtomicU64>) -> Exchanger {
        Exchanger { client: GatherClient::new(channel), clock, last: None, n_exchanges }
    }

    /// Makes a few exchanges in a row, so that the clock is known before the first event comes.
    pub(crate) async fn burst(&mut self) -> Result<(), Status> {
        for _ in 0..N_BURST {
            self.exchange().await?;
            tokio::time::sleep(BURST_PAUSE).await;
        }
        Ok(())
    }

    /// Makes exchanges until the connection breaks; returns the error.
    pub(crate) async fn keep_exchanging(mut self) -> Status {
        for n in 0u32.. {
            tokio::time::sleep(if n < N_FIRST_EXCHANGES { PAUSE } else { LATER_PAUSE }).await;
            if let Err(status) = self.exchange().await {
                return status;
            }
        }
        Status::ok("")
    }

    async fn exchange(&mut self) -> Result<(), Status> {
        let asked_ns = (self.clock.now)();
        let ask = ClockAsk { clock: self.clock.id.clone(), asked_ns, last: self.last.take() };
        let reply = tokio::time::timeout(REPLY_TIMEOUT, self.client.clock(ask)).await;
        let answered_ns = (self.clock.now)();
        let reply = reply.map_err(|_| Status::deadline_exceeded("the collector does not answer"))??.into_inner();
        let (received_ns, sent_ns) = (reply.received_ns, reply.sent_ns);
        self.last = Some(Exchange { asked_ns, received_ns, sent_ns, answered_ns });
        self.n_exchanges.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
