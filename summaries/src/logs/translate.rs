//! What another tool logged, as events.

use std::collections::BTreeMap;

use formats::proto::Event;
use rustc_hash::FxHashSet;
use trackers::{Entry, Param, Value};

use crate::{
    histogram::Bucket,
    writer::{HParam, values},
};

/// Translates the entries of one log into events.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    /// The tags whose metadata have been written: the first event of a tag has them.
    tags: FxHashSet<String>,
}

impl Translator {
    /// The events of an entry: two for hyperparameters, else one.
    pub fn events(&mut self, entry: Entry) -> Vec<Event> {
        let parts = match entry.value {
            Value::Params(params) => return session_events(params, entry.wall),
            Value::Scalar(value) => values::scalar(value),
            Value::Histogram(buckets) => {
                let bucket = |b: &trackers::Bucket| Bucket { left: b.left, right: b.right, count: b.count };
                values::histogram(&buckets.iter().map(bucket).collect::<Vec<_>>())
            }
            Value::Image { file, size } => values::image(size, file),
            Value::Audio(wav) => values::audio(wav),
            Value::Text(text) => values::text(text.into_bytes()),
            Value::Table { n_columns, cells } => {
                values::table(n_columns, cells.into_iter().map(String::into_bytes).collect())
            }
        };
        let mut event = values::event(&entry.tag, parts, entry.step, entry.wall);
        if self.tags.contains(&entry.tag) {
            remove_metadata(&mut event);
        } else {
            self.tags.insert(entry.tag);
        }
        vec![event]
    }
}

fn session_events(params: BTreeMap<String, Param>, wall: f64) -> Vec<Event> {
    let hparam = |param| match param {
        Param::Number(value) => HParam::Number(value),
        Param::Text(value) => HParam::Text(value),
        Param::Bool(value) => HParam::Bool(value),
    };
    let hparams = params.into_iter().map(|(name, param)| (name, hparam(param))).collect();
    let parts = values::session_start(&hparams, &[], String::new(), wall);
    parts.into_iter().map(|(tag, data)| values::event(tag, values::session(data), 0, wall)).collect()
}

fn remove_metadata(event: &mut Event) {
    if let Some(formats::proto::event::What::Summary(summary)) = &mut event.what {
        summary.value.iter_mut().for_each(|value| value.metadata = None);
    }
}
