//! The threads that keep queues filled: they run enqueue ops until the data ends or somebody asks them to stop.
//!
//! A [`Coordinator`] is what all threads of a run share: whether to stop, and the first error. A [`QueueRunner`] runs a
//! queue's enqueue ops, a thread each; when the last ends, it closes the queue, so that those who dequeue learn of the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::run::executor::CancelToken;
use crate::session::{RunError, RunOptions, Session};
use engine_core::graph::{Graph, GraphError, NodeId, Output};

/// What the threads of a run share. Clones are the same one.
#[derive(Clone, Default)]
pub struct Coordinator(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_stopping: AtomicBool,
    /// Ends the steps that threads wait in.
    cancel: CancelToken,
    error: Mutex<Option<RunError>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Coordinator {
    /// One that nobody has stopped.
    pub fn new() -> Coordinator {
        Coordinator::default()
    }

    /// Whether the threads are to end.
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::SeqCst)
    }

    /// Asks all threads to end; steps that they wait in are cancelled.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        self.0.cancel.cancel();
    }

    /// As [`Coordinator::stop`], because of an error. The first counts; the end of data and what follows from stopping
    /// are none.
    pub fn fail(&self, error: RunError) {
        if !error.is_end_of_data() && !self.is_stopping() {
            self.0.error.lock().get_or_insert(error);
        }
        self.stop();
    }

    /// Runs `body` on a thread that [`Coordinator::join`] waits for. An error that it returns stops the others.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        &self,
        name: &str,
        body: impl FnOnce(&Coordinator) -> Result<(), RunError> + Send + 'static,
    ) -> std::io::Result<()> {
        let this = self.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if let Err(error) = body(&this) {
                this.fail(error);
            }
        })?;
        self.0.threads.lock().push(thread);
        Ok(())
    }

    /// Asks all threads to end and waits for them.
    ///
    /// # Errors
    /// The first error of any thread.
    pub fn join(&self) -> Result<(), RunError> {
        self.stop();
        self.wait()
    }

    /// Waits until all threads have ended by themselves.
    ///
    /// # Errors
    /// The first error of any thread.
    pub fn wait(&self) -> Result<(), RunError> {
        loop {
            // One by one: a thread may start others.
            let Some(thread) = self.0.threads.lock().pop() else { break };
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.0.error.lock().take().map_or(Ok(()), Err)
    }
}

/// Keeps queues filled.
#[derive(Debug, Clone)]
pub struct QueueRunner {
    /// The queues.
    pub queues: Vec<Output>,
    /// Runs over and over, a thread each.
    pub enqueue: Vec<NodeId>,
    /// Close the queues.
    close: Vec<NodeId>,
    /// Close them and cancel pending enqueues.
    cancel: Vec<NodeId>,
}

impl QueueRunner {
    /// A runner of `enqueue` ops for queues, which are closed when the last of the ops has ended; adds the nodes that do.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn new(graph: &Graph, queues: &[Output], enqueue: Vec<NodeId>) -> Result<QueueRunner, GraphError> {
        let close = |name: &str, pending: bool| {
            let node = |q: &Output| {
                let node = graph.add_node("QueueCloseV2").name(name).input(*q);
                node.attr("cancel_pending_enqueues", pending).value().node()
            };
            queues.iter().map(node).collect::<Vec<_>>()
        };
        let (close, cancel) = (close("close", false), close("cancel", true));
        graph.check()?;
        Ok(QueueRunner { queues: queues.to_vec(), enqueue, close, cancel })
    }

    /// Starts the threads, which `coordinator` then has.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(&self, session: &Arc<Session>, coordinator: &Coordinator) -> std::io::Result<()> {
        let n_running = Arc::new(AtomicUsize::new(self.enqueue.len()));
        for node in &self.enqueue {
            let (session, n_running, runner) = (Arc::clone(session), Arc::clone(&n_running), self.clone());
            let node = *node;
            coordinator.spawn("queue runner", move |coordinator| {
                let result = fill(&session, coordinator, node);
                let is_last = n_running.fetch_sub(1, Ordering::SeqCst) == 1;
                let is_failed = coordinator.is_stopping() || !matches!(&result, Ok(()));
                if is_failed {
                    close(&session, &runner.cancel);
                } else if is_last {
                    close(&session, &runner.close);
                }
                result
            })?;
        }
        Ok(())
    }
}

/// Runs the node until the data ends (`Ok`), the coordinator stops, or something fails.
fn fill(session: &Session, coordinator: &Coordinator, node: NodeId) -> Result<(), RunError> {
    let name = session.graph().node(node)?.name.to_string();
    let step = session.prepare(&[], &[], &[&name])?;
    let options = RunOptions { label: "enqueue", cancel: Some(&coordinator.0.cancel), ..RunOptions::default() };
    while !coordinator.is_stopping() {
        match step.run_step(&options, &[]) {
            Ok(_) => {}
            Err(error) if error.is_end_of_data() => return Ok(()),
            Err(_) if coordinator.is_stopping() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn close(session: &Session, nodes: &[NodeId]) {
    for node in nodes {
        let name = session.graph().node(*node).map(|node| node.name.to_string());
        // That it was closed before is as good.
        let _ = name.map(|name| session.run(&[], &[], &[&name]));
    }
}
