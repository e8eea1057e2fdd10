//! The thread that fills the input queue: makes and enqueues batches while steps run (white paper, section 4.6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use engine::session::{CancelToken, RunError};
use engine::tasks::NextBatch;
use engine::training::Enqueue;
use engine::{RunOptions, Session};

use crate::named_graph::NodeNames;

/// A running thread that fills the input queue.
pub(crate) struct Feeder {
    session: Arc<Session>,
    /// The name of the node that closes the queue.
    close_node: String,
    is_ending: Arc<AtomicBool>,
    cancel: CancelToken,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Feeder {
    /// Starts to fill the queue with the batches that `begin` returns, in the feeder's thread.
    pub fn start(
        session: Arc<Session>,
        names: &NodeNames,
        queue: &Enqueue,
        begin: impl FnOnce(&Session, &CancelToken) -> Result<Option<NextBatch>, RunError> + Send + 'static,
    ) -> anyhow::Result<Feeder> {
        let (is_ending, cancel) = (Arc::new(AtomicBool::new(false)), CancelToken::new());
        let close_node = names.name(queue.close).to_owned();
        let enqueue_node = names.name(queue.op).to_owned();
        let feeds: Vec<String> = queue.feeds.iter().map(|feed| names.name(*feed).to_owned()).collect();
        let thread = {
            let (session, is_ending, cancel, close_node) =
                (Arc::clone(&session), Arc::clone(&is_ending), cancel.clone(), close_node.clone());
            let fill = move || -> Result<(), RunError> {
                // An error at the end is the cancellation. Any other error closes the queue, because steps wait for it.
                let end_with = |error: RunError| match is_ending.load(Ordering::Relaxed) {
                    true => Ok(()),
                    false => session.run(&[], &[], &[&close_node]).and(Err(error)),
                };
                let mut next_batch = match begin(&session, &cancel) {
                    Ok(Some(next_batch)) => next_batch,
                    Ok(None) => return Ok(()),
                    Err(error) => return end_with(error),
                };
                let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
                let enqueue = session.prepare(&feeds, &[], &[&enqueue_node])?;
                let options = RunOptions { label: "input", cancel: Some(&cancel), ..RunOptions::default() };
                while !is_ending.load(Ordering::Relaxed) {
                    if let Err(error) = enqueue.run_step(&options, &next_batch()) {
                        return end_with(error);
                    }
                }
                Ok(())
            };
            let body = move || fill().map_err(anyhow::Error::from);
            std::thread::Builder::new().name("input".into()).spawn(body).context("starting the input thread")?
        };
        Ok(Feeder { session, close_node, is_ending, cancel, thread })
    }

    /// Ends the thread; returns its error, if it had one. The queue stays open, with its rows.
    pub fn stop(self) -> anyhow::Result<StoppedFeeder> {
        self.is_ending.store(true, Ordering::Relaxed);
        self.cancel.cancel();
        let ended = self.thread.join().map_err(|_| anyhow!("the input thread panicked"))?;
        // A thread that failed has closed the queue.
        ended.context("filling the input queue")?;
        Ok(StoppedFeeder { session: self.session, close_node: self.close_node })
    }

    /// Ends the thread and closes the queue.
    pub fn end(self) -> anyhow::Result<()> {
        self.stop()?.close()
    }
}

/// A feeder whose thread has ended, and whose queue is still open.
pub(crate) struct StoppedFeeder {
    session: Arc<Session>,
    close_node: String,
}

impl StoppedFeeder {
    /// Closes the queue.
    pub fn close(self) -> anyhow::Result<()> {
        self.session.run(&[], &[], &[&self.close_node]).context("closing the input queue")?;
        Ok(())
    }
}
