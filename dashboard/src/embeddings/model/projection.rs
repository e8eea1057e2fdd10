//! The thread that lays out an embedding.

use parking_lot::Mutex;
use std::{sync::Arc, thread::JoinHandle};
use summaries::{
    Embedding,
    projection::{Position, Progress, TsneOptions, UmapOptions, pca, project_on_axes, tsne, umap},
};

/// A method of layout with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Principal components.
    Pca {
        /// 2 or 3.
        n_dims: usize,
    },
    /// t-SNE.
    Tsne(TsneOptions),
    Umap(UmapOptions),
    /// Along two directions, each from a group of vectors to another.
    Axes([[Vec<usize>; 2]; 2]),
}

/// A layout, finished or not.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// A place for each vector; empty until there is a first one.
    pub places: Arc<Vec<Position>>,
    /// The share of the variance that each principal component explains; empty for other methods.
    pub explained: Vec<f64>,
    /// Whether the layout is finished.
    pub is_done: bool,
    /// Grows with each change.
    pub revision: u64,
}

/// A thread that computes a layout. The computation stops when the worker is dropped.
pub struct Worker {
    progress: Arc<Progress>,
    layout: Arc<Mutex<Layout>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread, which calls `wake` after each change. If the system cannot start it, the layout stays empty.
    pub fn start(embedding: Arc<Embedding>, method: Method, wake: impl Fn() + Send + 'static) -> Self {
        let progress = Arc::new(Progress::default());
        let layout: Arc<Mutex<Layout>> = Arc::default();
        let (thread_progress, thread_layout) = (Arc::clone(&progress), Arc::clone(&layout));
        let work = move || {
            let publish = |places: &[Position], is_done: bool, explained: Vec<f64>| {
                let mut layout = thread_layout.lock();
                layout.places = Arc::new(places.to_vec());
                layout.is_done = is_done;
                layout.explained = explained;
                layout.revision += 1;
                drop(layout);
                wake();
            };
            let publish_interim = |places: &[Position]| publish(places, false, Vec::new());
            let result = match method {
                Method::Pca { n_dims } => pca(&embedding.vectors, n_dims, &thread_progress).map(|components| {
                    let k = components.n_components;
                    let place = |i: usize| {
                        let coordinate = |d: usize| if d < k { components.coordinates[i * k + d] } else { 0.0 };
                        [coordinate(0), coordinate(1), coordinate(2)]
                    };
                    ((0..embedding.vectors.len()).map(place).collect(), components.explained.clone())
                }),
                Method::Tsne(options) => {
                    tsne(&embedding.vectors, options, &thread_progress, publish_interim).map(|p| (p, Vec::new()))
                }
                Method::Umap(options) => {
                    umap(&embedding.vectors, options, &thread_progress, publish_interim).map(|p| (p, Vec::new()))
                }
                Method::Axes(axes) => {
                    let groups = axes.each_ref().map(|axis| axis.each_ref().map(Vec::as_slice));
                    Some((project_on_axes(&embedding.vectors, groups), Vec::new()))
                }
            };
            if let Some((places, explained)) = result {
                publish(&places, true, explained);
            }
        };
        let thread = std::thread::Builder::new().name("embedding".into()).spawn(work).ok();
        Self { progress, layout, thread }
    }

    /// Stops the computation; the current layout stays.
    pub fn stop(&self) {
        self.progress.cancel();
    }

    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// The progress, 0 to 1.
    pub fn share(&self) -> f32 {
        self.progress.share()
    }

    /// The layout as it is now.
    pub fn layout(&self) -> Layout {
        self.layout.lock().clone()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The thread ends soon by itself; waiting for it would hold up a frame.
        self.progress.cancel();
    }
}
