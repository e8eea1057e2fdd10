//! The thread that builds models and lays out pictures, so that no graph freezes the window. A new request for a
//! picture cancels the one in progress.

use super::{
    layout::{Expansion, Layouts, Picture},
    model::Model,
};
use formats::proto::GraphDef;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

/// What came back.
pub(super) enum Done {
    /// A model.
    Model(Arc<Model>),
    /// A picture of a model.
    Picture(Arc<Model>, Arc<Picture>),
}

enum Job {
    Model(Arc<GraphDef>),
    Picture(Arc<Model>, Expansion, Arc<AtomicBool>),
}

/// The thread's near end. Dropping it ends the thread after the job in progress.
pub(super) struct Worker {
    jobs: mpsc::Sender<Job>,
    done: Arc<Mutex<Vec<Done>>>,
    cancel: Arc<AtomicBool>,
    n_waiting: usize,
}

impl Worker {
    /// Starts the thread; `None` if the system has no thread left.
    pub fn start(ctx: egui::Context) -> Option<Self> {
        let (jobs, inbox) = mpsc::channel();
        let done: Arc<Mutex<Vec<Done>>> = Arc::default();
        let outbox = Arc::clone(&done);
        let run = move || {
            let mut bench = Bench::default();
            for job in inbox {
                outbox.lock().extend(bench.work(job));
                ctx.request_repaint();
            }
        };
        std::thread::Builder::new().name("graph layout".into()).spawn(run).ok()?;
        Some(Self { jobs, done, cancel: Arc::default(), n_waiting: 0 })
    }

    /// Asks for the model of a graph.
    pub fn build(&mut self, def: Arc<GraphDef>) {
        self.cancel.store(true, Ordering::Relaxed);
        self.send(Job::Model(def));
    }

    /// Asks for a picture; an earlier one that is not done is given up.
    pub fn draw(&mut self, model: Arc<Model>, expansion: Expansion) {
        self.cancel.store(true, Ordering::Relaxed);
        self.cancel = Arc::default();
        let cancel = Arc::clone(&self.cancel);
        self.send(Job::Picture(model, expansion, cancel));
    }

    fn send(&mut self, job: Job) {
        if self.jobs.send(job).is_ok() {
            self.n_waiting += 1;
        }
    }

    /// What is done since the last call, in order.
    pub fn take(&mut self) -> Vec<Done> {
        let done = std::mem::take(&mut *self.done.lock());
        self.n_waiting = self.n_waiting.saturating_sub(done.len());
        done
    }

    /// Whether something is asked for that has not come back.
    pub fn is_busy(&self) -> bool {
        self.n_waiting > 0
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// The thread's state: layouts of the model it drew last.
#[derive(Default)]
struct Bench {
    model: Option<Arc<Model>>,
    layouts: Layouts,
    last: Arc<Picture>,
}

impl Bench {
    fn work(&mut self, job: Job) -> Option<Done> {
        match job {
            Job::Model(def) => Some(Done::Model(Arc::new(Model::build(def)))),
            Job::Picture(model, expansion, cancel) => {
                if !self.model.as_ref().is_some_and(|known| Arc::ptr_eq(known, &model)) {
                    *self = Self { model: Some(Arc::clone(&model)), ..Self::default() };
                }
                // A picture that was given up still comes back, as the one before: every job has its answer.
                if let Ok(picture) = self.layouts.picture(&model, &expansion, &cancel) {
                    self.last = Arc::new(picture);
                }
                Some(Done::Picture(model, Arc::clone(&self.last)))
            }
        }
    }
}
