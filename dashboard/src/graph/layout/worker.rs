//! The thread that builds models and lays out pictures, so that no graph freezes the window. A new request cancels the
//! layout in progress.

use super::{cache::LayoutCache, picture::Picture, scope_layout::Expansion};
use crate::graph::model::Model;
use formats::proto::GraphDef;
use std::sync::{Arc, atomic::AtomicBool};
use ui::background::Background;

/// The result of a job.
#[derive(Clone)]
pub(crate) enum Update {
    Model(Arc<Model>),
    Picture(Arc<Model>, Arc<Picture>),
}

enum Job {
    Model(Arc<GraphDef>),
    Picture(Arc<Model>, Expansion),
}

/// A job or its result with its number; a cancelled job has no result.
struct Numbered<T>(u64, T);

/// The window's handle to the thread.
pub(crate) struct Worker {
    thread: Background<Numbered<Job>, Numbered<Option<Update>>>,
    is_building: bool,
    n_requested: u64,
    n_received: u64,
}

impl Worker {
    pub fn start(wake: impl Fn() + Send + 'static) -> Self {
        let mut layouter = Layouter::default();
        let thread = Background::start_cancellable(
            "graph layout",
            move |Numbered(number, job), cancel| Numbered(number, layouter.run(job, cancel.flag())),
            wake,
        );
        Self { thread, is_building: false, n_requested: 0, n_received: 0 }
    }

    /// Requests the model of a graph.
    pub fn build(&mut self, def: Arc<GraphDef>) {
        self.is_building = true;
        self.request(Job::Model(def));
    }

    /// Requests a picture, unless a new model is being built, which makes the picture obsolete.
    pub fn draw(&mut self, model: Arc<Model>, expansion: Expansion) {
        if !self.is_building {
            self.request(Job::Picture(model, expansion));
        }
    }

    fn request(&mut self, job: Job) {
        self.thread.cancel();
        self.n_requested += 1;
        self.thread.request(Numbered(self.n_requested, job));
    }

    /// Returns the result of the newest request, once.
    pub fn take(&mut self) -> Option<Update> {
        let result =
            self.thread.result().filter(|result| self.n_received < result.0 && result.0 == self.n_requested)?;
        self.n_received = result.0;
        self.is_building = false;
        result.1.clone()
    }

    /// Whether a result is still to come.
    pub fn is_busy(&self) -> bool {
        self.n_received < self.n_requested
    }
}

/// The thread's state: cached layouts of the last model.
#[derive(Default)]
struct Layouter {
    model: Option<Arc<Model>>,
    layouts: LayoutCache,
}

impl Layouter {
    fn run(&mut self, job: Job, cancel: &AtomicBool) -> Option<Update> {
        match job {
            Job::Model(def) => Some(Update::Model(Arc::new(Model::build(def)))),
            Job::Picture(model, expansion) => {
                if !self.model.as_ref().is_some_and(|cached| Arc::ptr_eq(cached, &model)) {
                    *self = Self { model: Some(Arc::clone(&model)), ..Self::default() };
                }
                let picture = self.layouts.picture(&model, &expansion, cancel).ok()?;
                Some(Update::Picture(model, Arc::new(picture)))
            }
        }
    }
}
