//! The values on the screen: of each series the row that was requested last. A thread reads and decodes them, so that a
//! slow disk or a large picture blocks no frame. No egui here.

use super::decode::{MediaValue, media_value};
use formats::proto::SummaryMetadata;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::{MediaSeries, RecordPosition};
use ui::background::Queue;

/// The key of a series, and a row of the series.
type Key = (Arc<str>, usize);

struct Request {
    key: Key,
    place: RecordPosition,
    kind: String,
    metadata: Arc<SummaryMetadata>,
}

/// The cached values. Dropping the cache ends the thread.
pub struct MediaCache {
    queue: Queue<Request, (Key, MediaValue)>,
    slots: FxHashMap<Arc<str>, Slot>,
}

#[derive(Default)]
struct Slot {
    requested: Option<usize>,
    value: Option<Arc<MediaValue>>,
}

impl MediaCache {
    /// Starts the thread, which calls `wake` after each value.
    pub fn new(wake: impl Fn() + Send + 'static) -> Self {
        let read = |Request { key, place, kind, metadata }| match place.read(&kind, &metadata) {
            Ok(sample) => (key, media_value(sample)),
            Err(error) => (key, MediaValue::Text(error.to_string())),
        };
        Self { queue: Queue::start("media", read, wake), slots: FxHashMap::default() }
    }

    /// Takes the values that are ready. Call once per frame.
    pub fn update(&mut self) {
        for ((key, row), value) in self.queue.results() {
            let slot = self.slots.entry(key).or_default();
            if slot.requested == Some(row) {
                slot.value = Some(Arc::new(value));
            }
        }
    }

    /// The value at `row` of the series `key`. Until it is read, returns the previously requested one.
    pub fn value(&mut self, key: &Arc<str>, series: &MediaSeries, row: usize) -> Option<Arc<MediaValue>> {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.requested != Some(row) {
            slot.requested = Some(row);
            let place = series.rows()[row].place.clone();
            let (kind, metadata) = (series.kind().to_owned(), series.metadata.clone());
            if !self.queue.request(Request { key: (key.clone(), row), place, kind, metadata }) {
                let why = "the system has no thread left to read it with";
                slot.value = Some(Arc::new(MediaValue::Text(why.into())));
            }
        }
        slot.value.clone()
    }
}
