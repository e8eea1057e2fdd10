//! The thread that fills the input queue: batches are made and enqueued while steps run (white paper, section 4.6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use engine::session::{CancelToken, RunError};
use engine::tasks::NextBatch;
use engine::{RunOptions, Session};

use super::trainer::EnqueueNames;

/// A running feeder.
pub(super) struct Feeder {
    session: Arc<Session>,
    close: String,
    ending: Arc<AtomicBool>,
    cancel: CancelToken,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Feeder {
    /// Starts to fill the queue.
    pub fn start(session: Arc<Session>, names: EnqueueNames, mut next_batch: NextBatch) -> anyhow::Result<Feeder> {
        let (ending, cancel) = (Arc::new(AtomicBool::new(false)), CancelToken::new());
        let close = names.close.clone();
        let thread = {
            let (session, ending, cancel) = (Arc::clone(&session), Arc::clone(&ending), cancel.clone());
            let mut fill = move || -> Result<(), RunError> {
                let feeds: Vec<&str> = names.feeds.iter().map(String::as_str).collect();
                let enqueue = session.prepare(&feeds, &[], &[&names.op])?;
                let options = RunOptions { label: "input", cancel: Some(&cancel), ..RunOptions::default() };
                while !ending.load(Ordering::Relaxed) {
                    let enqueued = enqueue.run_step(&options, &next_batch());
                    // What interrupts it at the end is no fault; any other fault must not leave steps waiting.
                    if let Err(error) = enqueued
                        && !ending.load(Ordering::Relaxed)
                    {
                        session.run(&[], &[], &[&names.close])?;
                        return Err(error);
                    }
                }
                Ok(())
            };
            let body = move || fill().map_err(anyhow::Error::from);
            std::thread::Builder::new().name("input".into()).spawn(body).context("starting the input thread")?
        };
        Ok(Feeder { session, close, ending, cancel, thread })
    }

    /// Ends it; gives its error, if it had one.
    pub fn end(self) -> anyhow::Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        self.cancel.cancel();
        let ended = self.thread.join().map_err(|_| anyhow!("the input thread panicked"))?;
        self.session.run(&[], &[], &[&self.close]).context("closing the input queue")?;
        ended.context("filling the input queue")
    }
}
