//! The thread that lays an embedding out. A new request stops the one in progress.

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
    Along([[Vec<usize>; 2]; 2]),
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

/// A computation; dropping it stops it.
pub struct Worker {
    progress: Arc<Progress>,
    layout: Arc<Mutex<Layout>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts; `wake` is called after each change. Where the system has no thread left, there are none.
    pub fn start(embedding: Arc<Embedding>, method: Method, wake: impl Fn() + Send + 'static) -> Self {
        let progress = Arc::new(Progress::default());
        let layout: Arc<Mutex<Layout>> = Arc::default();
        let (theirs, out) = (Arc::clone(&progress), Arc::clone(&layout));
        let work = move || {
            let put = |places: &[Position], is_done: bool, explained: Vec<f64>| {
                let mut layout = out.lock();
                layout.places = Arc::new(places.to_vec());
                layout.is_done = is_done;
                layout.explained = explained;
                layout.revision += 1;
                drop(layout);
                wake();
            };
            let show = |places: &[Position]| put(places, false, Vec::new());
            let result = match method {
                Method::Pca { n_dims } => pca(&embedding.vectors, n_dims, &theirs).map(|components| {
                    let k = components.n_components;
                    let place = |i: usize| {
                        let along = |d: usize| if d < k { components.coordinates[i * k + d] } else { 0.0 };
                        [along(0), along(1), along(2)]
                    };
                    ((0..embedding.vectors.len()).map(place).collect(), components.explained.clone())
                }),
                Method::Tsne(options) => tsne(&embedding.vectors, options, &theirs, show).map(|p| (p, Vec::new())),
                Method::Umap(options) => umap(&embedding.vectors, options, &theirs, show).map(|p| (p, Vec::new())),
                Method::Along(axes) => {
                    let groups = axes.each_ref().map(|axis| axis.each_ref().map(Vec::as_slice));
                    Some((project_on_axes(&embedding.vectors, groups), Vec::new()))
                }
            };
            if let Some((places, explained)) = result {
                put(&places, true, explained);
            }
        };
        let thread = std::thread::Builder::new().name("embedding".into()).spawn(work).ok();
        Self { progress, layout, thread }
    }

    /// Stops it; the current layout stays.
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
        // The thread sees it soon and ends by itself: no frame waits for it.
        self.progress.cancel();
    }
}
