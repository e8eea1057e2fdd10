//! Names, arguments and order of a store's rows, as every format writes them.

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

/// Title and category of a counter; one of a thread becomes one of its process, which has the thread in its title.
pub(super) fn counter_names<'a>(store: &'a Store, counter: &Counter) -> (String, &'a str) {
    let (_, category) = site_names(store, counter.site);
    (store.counter_title(counter), if counter.track.is_some() { "counter" } else { category })
}

/// The arguments as they came if they are an object, else as a text in one.
fn own_args(store: &Store, row: u32) -> Option<String> {
    let text = if row == NO_ARGS { None } else { store.args().get(row) }?;
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(&text).is_ok();
    Some(if is_object { text.into_owned() } else { json!({"text": text}).to_string() })
}

/// The arguments of a slice: its own, else what its numbers mean.
pub(super) fn slice_args(store: &Store, slice: &SliceRef) -> Option<String> {
    use Category as C;
    if let Some(own) = own_args(store, slice.args) {
        return Some(own);
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

/// The arguments of an instant: its own, and of a sample its call stack, innermost first.
pub(super) fn instant_args(store: &Store, instant: &InstantEvent) -> Option<String> {
    let own = own_args(store, instant.args);
    let is_sample = store.sites().get(instant.site as usize).is_some_and(|s| s.category == Category::Sample);
    let (key, value) = match instant.arg {
        arg if is_sample && arg != u64::from(NO_STACK) => {
            let mut names = stack_names(store, arg as u32);
            names.reverse();
            ("stack", json!(names))
        }
        arg if !is_sample && arg != 0 && own.is_none() => ("arg", json!(arg)),
        _ => return own,
    };
    let mut args: Value = own.and_then(|own| serde_json::from_str(&own).ok()).unwrap_or_else(|| json!({}));
    args[key] = value;
    Some(args.to_string())
}

/// The arguments of an instant that stands for memory allocated or freed, as our imports read them.
pub(super) fn memory_args(store: &Store, event: &MemoryEvent) -> String {
    json!({"Bytes": event.bytes, "device": site_names(store, event.site).0}).to_string()
}

/// Slices of a track in order of time, the outer before the inner.
pub(super) fn slices<'a>(track: &'a Track) -> impl Iterator<Item = SliceRef> + 'a {
    let all = i64::MIN..i64::MAX;
    let of_lane = |lane: &'a Lane| lane.touching(&all).filter_map(move |i| lane.slice(i)).peekable();
    let mut lanes: Vec<_> = track.lanes.iter().map(of_lane).collect();
    std::iter::from_fn(move || {
        // Of several that begin together the one in the upper lane is the outer one.
        let next = |lane: &mut std::iter::Peekable<_>| lane.peek().map(|s: &SliceRef| s.start);
        let starts = lanes.iter_mut().enumerate().filter_map(|(idx, lane)| Some((next(lane)?, idx)));
        let (_, idx) = starts.min()?;
        lanes[idx].next()
    })
}

/// The thread's id to write for each track: its own where no other of the process has it.
pub(super) fn thread_ids(store: &Store) -> Vec<u32> {
    let mut taken = std::collections::HashSet::new();
    let mut ids = Vec::with_capacity(store.tracks().len());
    for track in store.tracks() {
        let own = track.tid;
        let mut id = if own == 0 { (1 << 30) + track.key.ring } else { own };
        while !taken.insert((track.process, id)) {
            id = id.wrapping_add(1 << 20);
        }
        ids.push(id);
    }
    ids
}
