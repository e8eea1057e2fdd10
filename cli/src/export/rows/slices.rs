//! The slices of a trace, track by track; a followed trace adds those that have ended since the last read.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trace_model::SliceRef;
use trace_store::{Store, StoreOptions, TraceReader, Track};

use super::source::RowSource;
use crate::outcome::Failure;
use crate::trace_file;

/// The options of a followed trace: a lane has room for more slices than one read adds, so that none is evicted before
/// it is written.
const FOLLOWED: StoreOptions = StoreOptions { slices_per_lane: 1 << 18, events_per_kind: 1 << 12, steps: 1 << 12 };

/// The slices of a trace.
pub struct Slices {
    /// The reader of a followed trace.
    reader: Option<TraceReader>,
    store: Store,
    /// The number of slices that were written, by track and lane.
    n_written: HashMap<(u32, u32), u64>,
    /// Whether a read has reached the end of the data; before that the trace's end is not known.
    has_caught_up: bool,
    path: PathBuf,
}

impl Slices {
    /// Opens a trace of any tool; only traces of stepscope can be followed.
    ///
    /// # Errors
    /// `Failure::Usage` when there is no trace, or it cannot be followed.
    pub fn open(path: &Path, is_followed: bool) -> Result<Slices, Failure> {
        let (path, n_written) = (path.to_owned(), HashMap::new());
        if !is_followed {
            let store = trace_file::open(&path)?;
            return Ok(Slices { reader: None, store, n_written, has_caught_up: false, path });
        }
        let reader = trace_file::follow(&path)?;
        Ok(Slices { reader: Some(reader), store: Store::with_options(FOLLOWED), n_written, has_caught_up: false, path })
    }

    fn cells(store: &Store, track: &Track, slice: &SliceRef) -> [Value; 10] {
        let process = store.processes().get(track.process as usize);
        let site = store.sites().get(slice.site as usize);
        [
            slice.start.into(),
            slice.dur().into(),
            process.map(|process| process.pid).into(),
            process.map(|process| process.name.as_str()).into(),
            track.id.0.into(),
            track.name.as_str().into(),
            site.map(|site| site.category_name.as_str()).into(),
            store.slice_name(slice).into(),
            store.node_of(slice).map(|node| node.name.as_str()).into(),
            store.step_id_of(slice).into(),
        ]
    }
}

impl RowSource for Slices {
    fn columns(&self) -> &'static [&'static str] {
        &["ts_ns", "dur_ns", "pid", "process", "track_id", "track", "category", "name", "node", "step"]
    }

    fn read(&mut self) -> Result<bool, Failure> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let read_failure =
            |error| Failure::Work(anyhow::Error::new(error).context(format!("reading {}", self.path.display())));
        let batch = reader.poll_staged().map_err(read_failure)?;
        let has_more = batch.has_more();
        self.store.apply(batch);
        self.has_caught_up |= !has_more;
        Ok(has_more)
    }

    fn take_rows(&mut self, row: &mut dyn FnMut(&[Value]) -> io::Result<()>) -> io::Result<()> {
        for track in self.store.tracks() {
            for (idx, lane) in track.lanes.iter().enumerate() {
                let n_written = self.n_written.entry((track.id.0, idx as u32)).or_default();
                let n_total = lane.evicted() + lane.len() as u64;
                let first = n_written.saturating_sub(lane.evicted()) as u32;
                for slice in (first..lane.len() as u32).filter_map(|index| lane.slice(index)) {
                    row(&Self::cells(&self.store, track, &slice))?;
                }
                *n_written = n_total;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.has_caught_up && !self.store.is_live()
    }

    fn warn(&self) {
        trace_file::warn(&self.path, &self.store);
    }
}
