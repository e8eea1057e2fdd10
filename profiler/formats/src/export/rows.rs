//! What all export formats write alike: names, arguments, the order of slices, thread ids.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use trace_analysis::flame::stack_names;
use trace_model::{Category, Counter, InstantEvent, MemoryEvent, NO_ARGS, NO_STACK, OpenSlice, SliceRef};
use trace_store::{Lane, Store, Track};

/// Name and category of a site.
pub(super) fn site_names(store: &Store, site: u32) -> (&str, &str) {
    store.sites().get(site as usize).map_or(("?", ""), |s| (&s.name, &s.category_name))
}

/// Name and category of a slice that has not ended.
pub(super) fn open_names<'a>(store: &'a Store, open: &OpenSlice) -> (&'a str, &'a str) {
    let (name, category) = site_names(store, open.site);
    (store.nodes().get(open.node as usize).map_or(name, |node| &node.name), category)
}

/// Title and category of a counter. The formats have counters of processes only: a thread's has the thread in its
/// title.
pub(super) fn counter_names<'a>(store: &'a Store, counter: &Counter) -> (String, &'a str) {
    let (_, category) = site_names(store, counter.site);
    (store.counter_title(counter), if counter.track.is_some() { "counter" } else { category })
}

/// The arguments in a row: a JSON object as it is, another text as the value of `text`; `None` for [`NO_ARGS`].
fn recorded_args(store: &Store, row: u32) -> Option<String> {
    let text = if row == NO_ARGS { None } else { store.args().get(row) }?;
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(&text).is_ok();
    Some(if is_object { text.into_owned() } else { json!({"text": text}).to_string() })
}

/// The arguments of a slice as recorded, else its numbers under the names that its category gives them.
pub(super) fn slice_args(store: &Store, slice: &SliceRef) -> Option<String> {
    use Category as C;
    if let Some(args) = recorded_args(store, slice.args) {
        return Some(args);
    }
    let numbers = match store.category(slice) {
        C::Launch | C::Kernel | C::Collective | C::Sync if slice.correlation != 0 => {
            json!({"correlation": slice.correlation})
        }
        C::Copy => json!({"correlation": slice.correlation, "bytes": slice.arg}),
        C::Step => json!({"step id": slice.correlation, "step": slice.arg}),
        C::Op | C::Shard => {
            let (op, _) = site_names(store, slice.site);
            let step = store.step_id_of(slice);
            json!({"op": op, "step id": step, "queue wait ns": store.queue_wait_ns(slice)})
        }
        C::Running | C::OffCpu => json!({"thread": slice.correlation}),
        _ => return None,
    };
    Some(numbers.to_string())
}

/// The arguments of an instant as recorded, and those of a sample with its call stack, innermost first.
pub(super) fn instant_args(store: &Store, instant: &InstantEvent) -> Option<String> {
    let recorded = recorded_args(store, instant.args);
    let is_sample = store.sites().get(instant.site as usize).is_some_and(|s| s.category == Category::Sample);
    let (key, value) = if is_sample && instant.arg != u64::from(NO_STACK) {
        let mut names = stack_names(store, instant.arg as u32);
        names.reverse();
        ("stack", json!(names))
    } else if !is_sample && instant.arg != 0 && recorded.is_none() {
        ("arg", json!(instant.arg))
    } else {
        return recorded;
    };
    let mut args: Value = recorded.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| json!({}));
    args[key] = value;
    Some(args.to_string())
}

/// The arguments of an instant for bytes allocated or (negative) freed, with the keys that our importers read.
pub(super) fn memory_args(store: &Store, event: &MemoryEvent) -> String {
    json!({"Bytes": event.bytes, "device": site_names(store, event.site).0}).to_string()
}

/// Slices of a track in order of time, the outer before the inner.
pub(super) fn slices<'a>(track: &'a Track) -> impl Iterator<Item = SliceRef> + 'a {
    let always = i64::MIN..i64::MAX;
    let lane_slices = |lane: &'a Lane| lane.touching(&always).filter_map(move |i| lane.slice(i)).peekable();
    let mut lanes: Vec<_> = track.lanes.iter().map(lane_slices).collect();
    std::iter::from_fn(move || {
        // Of slices that begin at the same time, the one on the first lane is the outermost.
        let next_start = |lane: &mut std::iter::Peekable<_>| lane.peek().map(|s: &SliceRef| s.start);
        let starts = lanes.iter_mut().enumerate().filter_map(|(idx, lane)| Some((next_start(lane)?, idx)));
        let (_, idx) = starts.min()?;
        lanes[idx].next()
    })
}

/// Ids of tracks without a thread begin here: Linux gives none above 2^22.
const FIRST_MADE_TID: u32 = 1 << 30;
/// A track whose id another track of its process has tries the ids in these steps.
const TID_STEP: u32 = 1 << 20;

/// The thread id to write for each track: the recorded one, unless another track of the process has it.
pub(super) fn thread_ids(store: &Store) -> Vec<u32> {
    let mut taken = std::collections::HashSet::new();
    let mut ids = Vec::with_capacity(store.tracks().len());
    for track in store.tracks() {
        let mut id = if track.tid == 0 { FIRST_MADE_TID + track.key.ring } else { track.tid };
        while !taken.insert((track.process, id)) {
            id = id.wrapping_add(TID_STEP);
        }
        ids.push(id);
    }
    ids
}
