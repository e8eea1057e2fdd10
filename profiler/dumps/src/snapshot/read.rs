//! Reads a memory snapshot from its data.

use std::io::Read;

use super::model::{Action, Annotation, Block, BlockState, Device, Event, Segment, Snapshot};
use crate::{
    document::Document,
    error::Error,
    fields::{Budget, Fields},
    open,
    stack_reader::StackReader,
    texts::{TextId, Texts},
    tree::Tree,
    value::{Kind, Value},
    warnings::{Warnings, warn},
};

/// A device with a higher number is passed over.
const MAX_DEVICES: usize = 1024;

/// Reads a memory snapshot. The file is read as a stream; meanwhile it takes about twice its size in memory, afterwards half.
///
/// # Errors
///
/// Where the file cannot be read, is no pickle, wants to execute something, or is no memory snapshot. What a truncated file
/// contains is read, with a warning.
pub fn read_snapshot(reader: impl Read) -> Result<Snapshot, Error> {
    snapshot_of(open::read(reader)?)
}

/// The snapshot in a file's data.
pub(crate) fn snapshot_of(document: Document) -> Result<Snapshot, Error> {
    let tree = document.tree;
    let [segments, traces, settings, annotations] = parts(&tree, document.root)?;
    let mut reader = SnapshotReader {
        stacks: StackReader::new(&tree),
        budget: Budget::of_file(document.n_bytes),
        devices: Vec::new(),
        warnings: document.warnings,
        tree: &tree,
    };
    reader.segments(segments);
    reader.traces(traces);
    let annotations = reader.annotations(annotations);
    if reader.budget.is_spent() {
        warn(
            &mut reader.warnings,
            "file that refers to the same data more often than its size justifies: not all was read",
        );
    }
    let SnapshotReader { stacks, devices, warnings, .. } = reader;
    let settings = read_settings(&tree, settings);
    Ok(Snapshot { devices, settings, annotations, stacks: stacks.finish(tree.texts), warnings })
}

/// The segments, traces, settings and annotations. An old snapshot is the list of its segments.
fn parts(tree: &Tree, root: Value) -> Result<[Value; 4], Error> {
    if tree.list(root).is_some() {
        return Ok([root, Value::NONE, Value::NONE, Value::NONE]);
    }
    let names = ["segments", "device_traces", "allocator_settings", "external_annotations"];
    let parts = Fields::new(tree, names).of(tree, root);
    let parts = parts.filter(|parts| tree.list(parts[0]).is_some() || tree.list(parts[1]).is_some());
    parts.ok_or(Error::OtherContent { expected: "memory snapshot", what: "it has neither segments nor device traces" })
}

struct SnapshotReader<'a> {
    tree: &'a Tree,
    stacks: StackReader,
    budget: Budget,
    devices: Vec<Device>,
    warnings: Warnings,
}

impl SnapshotReader<'_> {
    fn device(&mut self, number: usize) -> Option<&mut Device> {
        if number >= MAX_DEVICES {
            warn(&mut self.warnings, "parts of devices with a number above 1023");
            return None;
        }
        if self.devices.len() <= number {
            self.devices.resize_with(number + 1, Device::default);
        }
        self.devices.get_mut(number)
    }

    fn size(&self, value: Value) -> u64 {
        self.tree.int(value).unwrap_or(0) as u64
    }

    fn segments(&mut self, list: Value) {
        let tree = self.tree;
        let names = [
            "device",
            "address",
            "total_size",
            "stream",
            "segment_type",
            "segment_pool_id",
            "is_expandable",
            "frames",
            "blocks",
        ];
        let mut fields = Fields::new(tree, names);
        let mut block_fields = Fields::new(tree, ["address", "size", "requested_size", "state", "frames", "history"]);
        for item in self.budget.take(tree.list(list).unwrap_or_default()) {
            let Some([device, address, size, stream, kind, pool, is_expandable, frames, blocks]) =
                fields.of(tree, *item)
            else {
                warn(&mut self.warnings, "segments that are no dictionaries");
                continue;
            };
            let address = self.size(address);
            let blocks = self.blocks(blocks, address, &mut block_fields);
            let segment = Segment {
                address,
                size: self.size(size),
                stream: self.size(stream),
                is_large: tree.text(kind) == Some("large"),
                is_expandable: is_expandable == Value::bool(true),
                pool: pair(tree, pool),
                stack: self.stacks.read(tree, frames, &mut self.budget),
                blocks: 0..0,
            };
            let Some(device) = self.device(self.size(device) as usize) else { continue };
            let start = device.blocks.len();
            device.blocks.extend(blocks);
            device.segments.push(Segment { blocks: start..device.blocks.len(), ..segment });
        }
    }

    /// The blocks of the segment that begins at `address`.
    fn blocks(&mut self, list: Value, address: u64, fields: &mut Fields<6>) -> Vec<Block> {
        let tree = self.tree;
        let (mut blocks, mut next) = (Vec::new(), address);
        for item in self.budget.take(tree.list(list).unwrap_or_default()) {
            let Some([address, size, requested, state, frames, history]) = fields.of(tree, *item) else {
                warn(&mut self.warnings, "blocks that are no dictionaries");
                continue;
            };
            let (old_frames, old_size) = latest(tree, history);
            let size = self.size(size);
            let address = tree.int(address).map_or(next, |address| address as u64);
            let requested = [requested, old_size].into_iter().find_map(|value| tree.int(value));
            let frames = if tree.list(frames).is_some() { frames } else { old_frames };
            let state = match tree.text(state) {
                Some("active_allocated") => BlockState::Allocated,
                Some("active_pending_free" | "active_awaiting_free") => BlockState::PendingFree,
                Some("inactive") => BlockState::Free,
                _ => {
                    warn(&mut self.warnings, "blocks of unknown state, taken as free");
                    BlockState::Free
                }
            };
            let stack = self.stacks.read(tree, frames, &mut self.budget);
            blocks.push(Block { address, size, requested: requested.map_or(size, |n| n as u64), state, stack });
            next = address.wrapping_add(size);
        }
        blocks
    }

    fn traces(&mut self, list: Value) {
        let tree = self.tree;
        let names = ["action", "addr", "device_free", "size", "stream", "time_us", "frames", "user_metadata"];
        let mut fields = Fields::new(tree, names);
        let actions = actions(tree);
        for (number, trace) in self.budget.take(tree.list(list).unwrap_or_default()).iter().enumerate() {
            let items = self.budget.take(tree.list(*trace).unwrap_or_default());
            let mut events = Vec::with_capacity(items.len());
            for item in items {
                let Some(event) = self.event(*item, &mut fields, &actions) else {
                    warn(&mut self.warnings, "events that are no dictionaries");
                    continue;
                };
                events.push(event);
                if self.budget.is_spent() {
                    break;
                }
            }
            if let Some(device) = self.device(number) {
                device.events = events;
            }
        }
    }

    fn event(&mut self, item: Value, fields: &mut Fields<8>, actions: &[(TextId, Action)]) -> Option<Event> {
        let tree = self.tree;
        let [action, address, device_free, size, stream, time, frames, metadata] = fields.of(tree, item)?;
        let action = match action.kind() {
            Kind::Text(id) => actions.iter().find(|(name, _)| *name == id).map(|(_, action)| *action),
            _ => None,
        };
        if action.is_none() {
            warn(&mut self.warnings, "events of an unknown action");
        }
        let action = action.unwrap_or(Action::Other);
        let address = if action == Action::OutOfMemory { device_free } else { address };
        Some(Event {
            time_us: tree.int(time).unwrap_or(0),
            address: self.size(address),
            size: self.size(size),
            stream: self.size(stream),
            stack: self.stacks.read(tree, frames, &mut self.budget),
            metadata: tree.text_id(metadata).unwrap_or(Texts::EMPTY),
            action,
        })
    }

    fn annotations(&mut self, list: Value) -> Vec<Annotation> {
        let tree = self.tree;
        let mut fields = Fields::new(tree, ["device", "time_us", "name", "stage"]);
        let items = self.budget.take(tree.list(list).unwrap_or_default());
        let annotation = |[device, time, name, stage]: [Value; 4]| Annotation {
            device: tree.int(device).and_then(|device| u32::try_from(device).ok()).unwrap_or(0),
            time_us: tree.int(time).unwrap_or(0),
            name: tree.text_id(name).unwrap_or(Texts::EMPTY),
            stage: tree.text_id(stage).unwrap_or(Texts::EMPTY),
        };
        items.iter().filter_map(|item| fields.of(tree, *item).map(annotation)).collect()
    }
}

/// The actions that a tree mentions.
fn actions(tree: &Tree) -> Vec<(TextId, Action)> {
    let all = [
        ("alloc", Action::Alloc),
        ("free_requested", Action::FreeRequested),
        ("free_completed", Action::FreeCompleted),
        ("segment_alloc", Action::SegmentAlloc),
        ("segment_free", Action::SegmentFree),
        ("segment_map", Action::SegmentMap),
        ("segment_unmap", Action::SegmentUnmap),
        ("snapshot", Action::Snapshot),
        ("oom", Action::OutOfMemory),
        ("annotate", Action::Annotate),
    ];
    all.into_iter().filter_map(|(name, action)| Some((tree.texts.find(name)?, action))).collect()
}

fn pair(tree: &Tree, value: Value) -> (i64, i64) {
    match tree.list(value) {
        Some([a, b]) => (tree.int(*a).unwrap_or(0), tree.int(*b).unwrap_or(0)),
        _ => (0, 0),
    }
}

/// The frames and the size in the latest entry of a block's history, which old snapshots have.
fn latest(tree: &Tree, history: Value) -> (Value, Value) {
    let entry = tree.list(history).and_then(|entries| entries.first());
    let pairs = entry.map(|entry| tree.pairs(*entry)).unwrap_or_default();
    let get = |name| {
        let found = pairs.iter().find(|(key, _)| tree.text(*key) == Some(name));
        found.map_or(Value::NONE, |(_, value)| *value)
    };
    (get("frames"), get("real_size"))
}

/// The settings as names and values; a dictionary in them has its names behind a dot.
fn read_settings(tree: &Tree, settings: Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, value) in tree.pairs(settings) {
        let name = tree.text(name).unwrap_or_default();
        if tree.is_dict(value) {
            for (key, value) in tree.pairs(value) {
                all.push((format!("{name}.{}", display(tree, key)), display(tree, value)));
            }
        } else {
            all.push((name.to_owned(), display(tree, value)));
        }
    }
    all
}

fn display(tree: &Tree, value: Value) -> String {
    match value.kind() {
        Kind::None => "None".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Text(_) => tree.text(value).unwrap_or_default().to_owned(),
        _ => tree.number(value).map(|number| number.to_string()).unwrap_or_default(),
    }
}
