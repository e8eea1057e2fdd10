//! Reads the slices of a folder that another program wrote, or of a sealed folder whose tables of names are damaged.
//! Slices are read as events, so they may be in any order and overlap. All slices stay in memory.

use super::columns::{self, Ints, TableError, Texts, open_columns};
use super::pager::SlicesFile;
use super::row_group::join_arg;
use super::schema::TrackRow;
use super::table::StoredRow;
use crate::store::{Store, StoreOptions};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use trace_model::{Batch, Category, Event, NO_ARGS, NO_NODE, Name, TrackKey, TrackKind};

/// The deepest lane that is distinguished: an event's depth is 8 bits.
const MAX_DEPTH: i64 = 255;

/// Reads the slices into a store, with the names of the tracks if their table can be read.
pub(super) fn read(folder: &Path, file: SlicesFile, problems: &mut Vec<String>) -> Store {
    let mut reader = ForeignReader { store: Store::with_options(StoreOptions::UNBOUNDED), ..ForeignReader::default() };
    // Without the table the tracks are named by their numbers.
    let tracks =
        std::fs::read(folder.join(TrackRow::TABLE.file_name())).ok().and_then(|b| columns::read(b.into()).ok());
    for batch in tracks.into_iter().flatten() {
        if let Err(problem) = reader.read_tracks(&batch) {
            problems.push(format!("{}: {problem}", TrackRow::TABLE.file_name()));
        }
    }
    if let Err(problem) = reader.read_slices(file) {
        problems.push(format!("slices.parquet: {problem}"));
    }
    reader.store
}

/// Assigns ids to the processes, sites and nodes that the rows name.
#[derive(Default)]
struct ForeignReader {
    store: Store,
    track_keys: FxHashMap<u32, TrackKey>,
    pids: FxHashMap<(String, String), u32>,
    sites: FxHashMap<(String, String), u32>,
    nodes: FxHashMap<(String, String, String), u32>,
    /// Sites and nodes that were registered: (pid, id).
    registered_sites: FxHashSet<(u32, u32)>,
    registered_nodes: FxHashSet<(u32, u32)>,
}

impl ForeignReader {
    fn read_tracks(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let id = Ints::open(batch, "track_id")?;
        let [tid, order, stream] = open_columns(batch, ["tid", "position", "stream"], Ints::open_or_null)?;
        let names = ["host", "process", "kind", "name", "thread", "device"];
        let [host, process, kind, name, thread, device] = open_columns(batch, names, Texts::open_or_null)?;
        let mut names = Batch::new();
        for i in 0..batch.num_rows() {
            let n_processes = self.pids.len() as u32;
            let owner = (host.value(i).to_owned(), process.value(i).to_owned());
            let pid = *self.pids.entry(owner.clone()).or_insert(n_processes + 1);
            let key = TrackKey { pid, ring: id.id(i) };
            self.track_keys.insert(id.id(i), key);
            names.name(Name::Process { pid, host: owner.0, name: owner.1, ns_per_tick: 1.0 });
            names.name(Name::Track {
                key,
                kind: TrackKind::from_name(kind.value(i)).unwrap_or(TrackKind::Thread),
                name: name.get(i).or(thread.get(i)).map_or_else(|| format!("track {}", id.id(i)), ToOwned::to_owned),
                tid: tid.value(i) as u32,
                device: device.value(i).to_owned(),
                stream: stream.get(i).map(|s| s as u64),
                order: order.value(i) as i32,
            });
        }
        self.store.apply(names);
        Ok(())
    }

    fn read_slices(&mut self, file: SlicesFile) -> Result<(), TableError> {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.file, file.metadata);
        for batch in reader.with_batch_size(1 << 17).build()? {
            self.add_slices(&batch?)?;
        }
        Ok(())
    }

    fn add_slices(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let [start, dur, track] = open_columns(batch, ["ts_ns", "dur_ns", "track_id"], Ints::open)?;
        let [lane, step, correlation, arg] =
            open_columns(batch, ["lane", "step", "correlation", "arg"], Ints::open_or_null)?;
        let name = Texts::open(batch, "name")?;
        let names = ["category", "op", "node", "device", "args"];
        let [category, op, node, device, args] = open_columns(batch, names, Texts::open_or_null)?;
        let mut order: Vec<usize> = (0..batch.num_rows()).collect();
        order.sort_by_key(|i| start.value(*i));
        let mut out = Batch::new();
        out.set_origin(0);
        for i in order {
            let key = *self.track_keys.entry(track.id(i)).or_insert(TrackKey { pid: 0, ring: track.id(i) });
            let kind = Category::from_name(category.value(i));
            let site = self.site(key.pid, category.value(i), name.value(i), &mut out);
            let node = match node.get(i) {
                Some(node) => self.node(key.pid, [op.value(i), node, device.value(i)], &mut out),
                None => NO_NODE,
            };
            // The correlation of an op is a row of the table `nodes`, which is not read here.
            let correlation = if kind == Category::Op { NO_NODE } else { correlation.value(i) as u32 };
            let args = args.get(i).map_or(NO_ARGS, |text| out.args(text));
            let arg = join_arg(kind, step.get(i).map(|step| step as u32), arg.value(i) as u64);
            let depth = lane.value(i).clamp(0, MAX_DEPTH) as u8;
            let slice = Event::slice(site, start.value(i), start.value(i).saturating_add(dur.value(i).max(0)));
            out.track(key).events.push(Event { depth, node, correlation, arg, args, ..slice });
        }
        self.store.apply(out);
        Ok(())
    }

    fn site(&mut self, pid: u32, category: &str, name: &str, out: &mut Batch) -> u32 {
        let next_id = self.sites.len() as u32;
        let id = *self.sites.entry((category.to_owned(), name.to_owned())).or_insert(next_id);
        if self.registered_sites.insert((pid, id)) {
            out.name(Name::Site { pid, id, category: category.to_owned(), name: name.to_owned() });
        }
        id
    }

    fn node(&mut self, pid: u32, [op, name, device]: [&str; 3], out: &mut Batch) -> u32 {
        let next_id = self.nodes.len() as u32;
        let id = *self.nodes.entry((op.to_owned(), name.to_owned(), device.to_owned())).or_insert(next_id);
        if self.registered_nodes.insert((pid, id)) {
            out.name(Name::Node { pid, id, name: name.to_owned(), op: op.to_owned(), device: device.to_owned() });
        }
        id
    }
}
