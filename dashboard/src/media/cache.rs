//! The values that are looked at: for each series the newest one that was asked for. A thread reads and decodes them, so
//! that a slow disk or a large picture holds up no frame. No egui here.

use std::sync::{Arc, mpsc};

use formats::proto::SummaryMetadata;
use rustc_hash::FxHashMap;
use summaries::{MediaSeries, Place};

use super::decode::{Shown, shown};

/// A series and a row of it.
type Key = (Arc<str>, usize);

struct Request {
    key: Key,
    place: Place,
    kind: String,
    metadata: Arc<SummaryMetadata>,
}

/// The values; the thread ends when this is dropped.
pub struct MediaCache {
    requests: mpsc::Sender<Request>,
    answers: mpsc::Receiver<(Key, Shown)>,
    slots: FxHashMap<Arc<str>, Slot>,
}

#[derive(Default)]
struct Slot {
    asked: Option<usize>,
    shown: Option<Arc<Shown>>,
}

impl MediaCache {
    /// Starts the thread, which calls `wake` when a value is ready.
    pub fn new(wake: impl Fn() + Send + 'static) -> Self {
        let (requests, asked) = mpsc::channel::<Request>();
        let (done, answers) = mpsc::channel();
        let work = move || {
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
        };
        drop(std::thread::Builder::new().name("media".into()).spawn(work));
        Self { requests, answers, slots: FxHashMap::default() }
    }

    /// Takes in what is ready. Call once a frame.
    pub fn update(&mut self) {
        for ((key, row), value) in self.answers.try_iter() {
            let slot = self.slots.entry(key).or_default();
            if slot.asked == Some(row) {
                slot.shown = Some(Arc::new(value));
            }
        }
    }

    /// The value at `row` of a series that is called `key`; until it is read, the one asked for before.
    pub fn value(&mut self, key: &Arc<str>, series: &MediaSeries, row: usize) -> Option<Arc<Shown>> {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.asked != Some(row) {
            slot.asked = Some(row);
            let place = series.rows()[row].place.clone();
            let (kind, metadata) = (series.kind().to_owned(), series.metadata.clone());
            if self.requests.send(Request { key: (key.clone(), row), place, kind, metadata }).is_err() {
                let why = "the system has no thread left to read it with";
                slot.shown = Some(Arc::new(Shown::Text(why.into())));
            }
        }
        slot.shown.clone()
    }
}
