//! A thread that reads and decodes values, so that a slow disk or a large picture holds up no frame. No egui here.

use std::sync::{Arc, mpsc};

use formats::proto::SummaryMetadata;
use summaries::{MediaSeries, Place};

use super::decode::{Shown, shown};

/// Which value a card wants.
pub type Key = (Arc<str>, usize);

struct Request {
    key: Key,
    place: Place,
    kind: String,
    metadata: Arc<SummaryMetadata>,
}

/// The thread, which ends when this is dropped.
pub struct Reader {
    requests: mpsc::Sender<Request>,
    answers: mpsc::Receiver<(Key, Shown)>,
}

impl Reader {
    /// Starts the thread, which calls `wake` when a value is ready.
    pub fn new(wake: impl Fn() + Send + 'static) -> Self {
        let (requests, asked) = mpsc::channel::<Request>();
        let (done, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for request in asked {
                let Request { key, place, kind, metadata } = request;
                let value = match place.read(&kind, &metadata) {
                    Ok(sample) => shown(sample),
                    Err(error) => Shown::Text(error.to_string()),
                };
                if done.send((key, value)).is_err() {
                    break;
                }
                wake();
            }
        });
        Self { requests, answers }
    }

    /// Asks for the value at `row` of a series.
    pub fn ask(&self, key: Key, series: &MediaSeries) {
        let place = series.rows()[key.1].place.clone();
        let request = Request { key, place, kind: series.kind().to_owned(), metadata: series.metadata.clone() };
        // Without the thread nothing comes, and the card stays empty.
        let _ = self.requests.send(request);
    }

    /// The values that are ready.
    pub fn answers(&self) -> impl Iterator<Item = (Key, Shown)> + '_ {
        self.answers.try_iter()
    }
}
