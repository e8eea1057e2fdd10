//! Log messages that programs wrote while they ran.

use trace_model::{Category, TrackId};
use trace_store::Store;

/// Messages that are listed, at most: the newest.
const MAX_LINES: usize = 100_000;
/// Letters of a message that are shown, at most.
const MAX_LEN: usize = 400;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// ns from the trace's origin.
    pub time: i64,
    pub track: TrackId,
    /// Row of the store's sites: level or target, and name.
    pub site: u32,
    /// Row of the store's arguments; `u32::MAX` for none.
    pub args: u32,
}

/// The newest messages by time: instants, except samples, stamps of transfers and reports of finite values.
pub fn lines(store: &Store) -> Vec<LogLine> {
    let is_message = |i: &trace_model::InstantEvent| {
        store.sites().get(i.site as usize).is_some_and(|s| match s.category {
            Category::Other => true,
            Category::Numerics => i.arg != 0,
            _ => false,
        })
    };
    let track_lines = |t: &'_ trace_store::Track| {
        let messages = t.instants.iter().filter(|i| is_message(i));
        messages.map(|i| LogLine { time: i.time, track: t.id, site: i.site, args: i.args }).collect::<Vec<_>>()
    };
    let mut lines: Vec<LogLine> = store.tracks().iter().flat_map(track_lines).collect();
    lines.sort_by_key(|line| line.time);
    let n_excess = lines.len().saturating_sub(MAX_LINES);
    lines.drain(..n_excess);
    lines
}

/// The text of a message, or else its name.
pub fn text(store: &Store, line: &LogLine) -> String {
    let name = store.sites().get(line.site as usize).map_or("?", |s| &s.name);
    let args = store.args().get(line.args).unwrap_or_default();
    let message = serde_json::from_str::<serde_json::Value>(&args)
        .ok()
        .and_then(|v| Some(v.get("message")?.as_str()?.to_owned()));
    let is_numerics = store.sites().get(line.site as usize).is_some_and(|s| s.category == Category::Numerics);
    let text = match message {
        Some(message) if is_numerics => format!("{name}: {message}"),
        Some(message) => message,
        None if args.is_empty() || args == "{}" => name.to_owned(),
        None => format!("{name} {args}"),
    };
    text.chars().take(MAX_LEN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::{batch_of, slice, store_of};
    use trace_model::{Event, EventKind, NO_NODE, TrackKey};

    #[test]
    fn messages_of_all_threads_by_time() {
        let mut batch = batch_of(&[("app WARN", "event"), ("op", "MatMul"), ("app", "checkpoint")]);
        let said = batch.args(r#"{"message":"queue\nlow","left":3}"#);
        let fields = batch.args(r#"{"step":7}"#);
        let message = |at, site, args| Event { kind: EventKind::Instant, args, ..slice(at, at, site, NO_NODE, 0) };
        let none = trace_model::NO_ARGS;
        batch.track(TrackKey { pid: 1, ring: 0 }).events.extend([message(50, 0, said), message(60, 1, none)]);
        batch.track(TrackKey { pid: 1, ring: 1 }).events.extend([message(10, 2, fields), message(55, 2, none)]);
        let store = store_of(batch);
        let all = lines(&store);
        let texts: Vec<String> = all.iter().map(|l| format!("{} {}", l.time, text(&store, l))).collect();
        assert_eq!(texts, ["10 checkpoint {\"step\":7}", "50 queue low", "55 checkpoint"]);
    }
}
