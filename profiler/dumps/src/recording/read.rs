//! Reads the dump of a flight recorder from its data.

use std::{
    collections::{BTreeMap, HashSet},
    io::Read,
    sync::Arc,
};

use super::model::{Entry, GroupConfig, GroupStatus, Recording, State, Tensors};
use crate::{
    document::Document,
    error::Error,
    fields::{Budget, Fields},
    open,
    stack_reader::StackReader,
    texts::Texts,
    tree::Tree,
    value::Value,
    warnings::{Warnings, warn},
};

/// Reads what the flight recorder of a rank dumped, as a pickle or as JSON. The file does not have the rank: see
/// [`rank_of_file`].
///
/// # Errors
///
/// Where the file cannot be read, is neither a pickle nor JSON, wants to execute something, or is no dump of a flight
/// recorder. What a truncated pickle contains is read, with a warning.
pub fn read_recording(reader: impl Read, rank: u32) -> Result<Recording, Error> {
    recording_of(open::read(reader)?, rank)
}

/// Whether a file's data are a dump of a flight recorder.
pub(crate) fn is_recording(document: &Document) -> bool {
    let tree = &document.tree;
    let parts = Fields::new(tree, ["version", "pg_config", "entries"]).of(tree, document.root);
    parts.is_some_and(|[version, config, entries]| {
        tree.text(version).is_some() && (tree.is_dict(config) || tree.list(entries).is_some())
    })
}

/// The recording in a file's data.
pub(crate) fn recording_of(document: Document, rank: u32) -> Result<Recording, Error> {
    let (tree, mut warnings) = (document.tree, document.warnings);
    let names = ["version", "comm_lib_version", "pg_config", "pg_status", "entries"];
    let parts = Fields::new(&tree, names).of(&tree, document.root);
    let no_recording =
        Error::OtherContent { expected: "dump of a flight recorder", what: "it has no version with process groups" };
    let Some([version, library, config, status, entries]) = parts else { return Err(no_recording) };
    let Some(version) = tree.text(version).filter(|_| tree.is_dict(config) || tree.list(entries).is_some()) else {
        return Err(no_recording);
    };
    let mut reader = EntryReader {
        tree: &tree,
        stacks: StackReader::new(&tree),
        budget: Budget::of_file(document.n_bytes),
        tensors: HashSet::new(),
    };
    let entries = reader.entries(entries, &mut warnings);
    if reader.budget.is_spent() {
        warn(&mut warnings, "file that refers to the same data more often than its size justifies: not all was read");
    }
    let (version, library_version) = (version.to_owned(), tree.text(library).unwrap_or_default().to_owned());
    let (groups, status) = (read_groups(&tree, config, &mut warnings), read_status(&tree, status));
    let stacks = reader.stacks;
    let stacks = stacks.finish(tree.texts);
    Ok(Recording { rank, version, library_version, groups, status, entries, stacks, warnings })
}

/// The rank of a dump by the name of its file: the digits at the end of its stem, as in "nccl_trace_rank_12" or "fr_3.json".
pub fn rank_of_file(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".json").or_else(|| name.strip_suffix(".pickle")).unwrap_or(name);
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem[stem.len() - digits..].parse().ok()
}

/// A process group with more ranks is cut.
const MAX_RANKS: usize = 1 << 16;

/// The fields of an entry.
const NAMES: [&str; 21] = [
    "record_id",
    "pg_id",
    "process_group",
    "collective_seq_id",
    "p2p_seq_id",
    "op_id",
    "is_p2p",
    "profiling_name",
    "input_sizes",
    "input_dtypes",
    "output_sizes",
    "output_dtypes",
    "state",
    "retired",
    "time_created_ns",
    "time_discovered_started_ns",
    "time_discovered_completed_ns",
    "duration_ms",
    "timeout_ms",
    "frames",
    // Of old versions, in which collectives and sends were numbered together.
    "seq_id",
];

struct EntryReader<'a> {
    tree: &'a Tree,
    stacks: StackReader,
    budget: Budget,
    /// Most operations have the same few tensors.
    tensors: HashSet<Arc<Tensors>>,
}

impl EntryReader<'_> {
    fn entries(&mut self, list: Value, warnings: &mut Warnings) -> Vec<Entry> {
        let mut fields = Fields::new(self.tree, NAMES);
        let mut entries = Vec::new();
        for item in self.budget.take(self.tree.list(list).unwrap_or_default()) {
            match fields.of(self.tree, *item).and_then(|values| self.entry(values)) {
                Some(entry) => entries.push(entry),
                None => warn(warnings, "entries without a process group, number or state"),
            }
            if self.budget.is_spent() {
                break;
            }
        }
        entries
    }

    fn entry(&mut self, values: [Value; 21]) -> Option<Entry> {
        let tree = self.tree;
        let [record_id, pg_id, group, seq, p2p_seq, op_id, is_p2p, name, input_sizes, input_dtypes, ..] = values;
        let [
            ..,
            output_sizes,
            output_dtypes,
            state,
            retired,
            created,
            started,
            completed,
            duration,
            timeout,
            frames,
            old_seq,
        ] = values;
        let count = |value| tree.int(value).and_then(|value| u64::try_from(value).ok());
        let text = |value: Option<&Value>| value.and_then(|value| tree.text_id(*value));
        // Old versions have the name alone.
        let parts = tree.list(group).unwrap_or(std::slice::from_ref(&group));
        let state = match tree.text(state)? {
            "completed" => State::Completed,
            "started" => State::Started,
            _ => State::Scheduled,
        };
        Some(Entry {
            record_id: count(record_id)?,
            pg_id: tree.int(pg_id).unwrap_or(0),
            group: text(parts.first())?,
            description: text(parts.get(1)).unwrap_or(Texts::EMPTY),
            collective_seq_id: count(seq).or_else(|| count(old_seq))?,
            p2p_seq_id: count(p2p_seq).unwrap_or(0),
            op_id: count(op_id).unwrap_or(0),
            is_p2p: is_p2p == Value::bool(true),
            profiling_name: tree.text_id(name)?,
            inputs: self.tensors(input_sizes, input_dtypes),
            outputs: self.tensors(output_sizes, output_dtypes),
            state,
            is_retired: retired == Value::bool(true),
            created_ns: tree.int(created).unwrap_or(0),
            // JSON has a zero where there is no time.
            started_ns: tree.int(started).filter(|time| *time != 0),
            completed_ns: tree.int(completed).filter(|time| *time != 0),
            duration_ms: tree.number(duration),
            timeout_ms: tree.int(timeout).unwrap_or(0),
            stack: self.stacks.read(tree, frames, &mut self.budget),
        })
    }

    fn tensors(&mut self, sizes: Value, dtypes: Value) -> Arc<Tensors> {
        let tree = self.tree;
        let mut items = |list| self.budget.take(tree.list(list).unwrap_or_default());
        let mut shapes: Vec<Vec<i64>> = Vec::new();
        for shape in items(sizes) {
            shapes.push(items(*shape).iter().map(|size| tree.int(*size).unwrap_or(0)).collect());
        }
        let dtypes = items(dtypes).iter().map(|dtype| tree.text(*dtype).unwrap_or_default().to_owned()).collect();
        let tensors = Tensors { sizes: shapes, dtypes };
        if let Some(tensors) = self.tensors.get(&tensors) {
            return tensors.clone();
        }
        let tensors = Arc::new(tensors);
        self.tensors.insert(tensors.clone());
        tensors
    }
}

fn read_groups(tree: &Tree, config: Value, warnings: &mut Warnings) -> BTreeMap<String, GroupConfig> {
    let mut fields = Fields::new(tree, ["desc", "ranks"]);
    let mut groups = BTreeMap::new();
    for (name, value) in tree.pairs(config) {
        let parts =
            fields.of(tree, value).and_then(|[description, ranks]| Some((tree.text(description)?, tree.text(ranks)?)));
        match (tree.text(name), parts) {
            (Some(name), Some((description, ranks))) => {
                let description = description.to_owned();
                groups.insert(name.to_owned(), GroupConfig { description, ranks: numbers(ranks) });
            }
            _ => warn(warnings, "process groups without a name or ranks"),
        }
    }
    groups
}

/// The numbers of a list that is a text: "[0, 1]", the lowest ones where there are too many.
fn numbers(text: &str) -> Vec<u32> {
    let parts = text.trim_matches(['[', ']']).split(',');
    let mut numbers: Vec<u32> = parts.filter_map(|part| part.trim().parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.truncate(MAX_RANKS);
    numbers
}

fn read_status(tree: &Tree, status: Value) -> BTreeMap<i64, GroupStatus> {
    let mut fields =
        Fields::new(tree, ["last_enqueued_collective", "last_started_collective", "last_completed_collective"]);
    // In JSON the numbers are texts.
    let number = |value| tree.int(value).or_else(|| tree.text(value)?.parse().ok()).unwrap_or(-1);
    let pairs = tree.pairs(status).into_iter();
    let read = |(id, value)| {
        let [enqueued, started, completed] = fields.of(tree, value)?.map(number);
        Some((tree.text(id)?.parse().ok()?, GroupStatus { enqueued, started, completed }))
    };
    pairs.filter_map(read).collect()
}
