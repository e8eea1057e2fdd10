//! Writes a store as other tools' traces.
//!
//! [`chrome`] is read by everything and loses nothing that comes back through [`mod@crate::import`]; each format's module
//! says what it has no place for.

mod chrome;

pub(crate) use chrome::{TRACK_EVENT, kind_from_name};

use crate::store::{Lane, SliceRef, Store, Track};
use std::io::{self, Write};

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Chrome's trace events in JSON.
    Chrome,
}

/// Writes a store; `progress` is told the share that is written, 0 to 1, now and then.
///
/// # Errors
/// Of `out`.
pub fn export(
    store: &Store,
    format: ExportFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(f64),
) -> io::Result<()> {
    match format {
        ExportFormat::Chrome => chrome::write(store, out, progress),
    }
}

/// Slices of a track in order of time, the outer before the inner.
fn slices<'a>(track: &'a Track) -> impl Iterator<Item = SliceRef> + 'a {
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
fn thread_ids(store: &Store) -> Vec<u32> {
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
