//! Reads graphs and feeds from files, for `run`, `params` and `compare`. Every error is one line that names the file.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use engine::checkpoint::Checkpoint;
use engine::compile::CompileError;
use engine::compile::placement::RelaxedRequest;
use engine::session::RunError;
use engine::{Graph, Session, SessionOptions, Tensor};
use formats::npy::Array;
use formats::proto::{GraphDef, NodeDef, attr_value::Value};

use crate::args::{Numerics, Step};
use crate::outcome::Failure;
use train::devices;

/// Reads the graph in a file.
pub fn read(path: &Path) -> Result<GraphDef, Failure> {
    formats::graph_file::read(path).map_err(|error| fault(path, error))
}

/// The failure of a file, as wrong use.
pub fn fault(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::wrong_use(format_args!("{}: {error}", path.display()))
}

/// The checkpoint of a prefix or file, or the newest complete one of a folder.
pub fn checkpoint(path: &Path) -> Result<Checkpoint, Failure> {
    if !path.is_dir() {
        return Checkpoint::open(path).map_err(|error| fault(path, error));
    }
    let newest = Checkpoint::newest(path).map_err(|error| fault(path, error))?;
    let (checkpoint, warnings) = newest.ok_or_else(|| fault(path, "there is no checkpoint in it"))?;
    for warning in warnings {
        note!("warning: {warning}");
    }
    Ok(checkpoint)
}

/// The devices on which a graph runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On one device.
    Single,
    /// On the devices of the step's options.
    FromOptions,
}

/// A graph that can be run, and its session.
pub struct Runnable {
    session: Session,
    /// The nodes that request no device in the file, and for which the options chose one.
    defaulted_nodes: HashSet<String>,
}

impl Runnable {
    /// Opens the graph of a file, and initialises or restores its variables as the step's options say. The graph after
    /// each pass is written to `dump_graphs`.
    pub fn open(
        path: &Path,
        step: &Step,
        choice: DeviceChoice,
        dump_graphs: Option<&Path>,
    ) -> Result<Runnable, Failure> {
        devices::check(&step.device)?;
        if step.memory_limit.is_some() {
            engine::memory::set_limit(step.memory_limit);
        }
        let mut def = read(path)?;
        // Among several devices the placement pass chooses.
        let defaulted_nodes = match (&step.device[..], choice) {
            ([device], DeviceChoice::FromOptions) => set_default_device(&mut def, &device.name()),
            _ => HashSet::new(),
        };
        if let Some(seed) = step.seed {
            seed_random_ops(&mut def, seed);
        }
        let graph = Graph::new();
        graph.import(&def, "").map_err(|error| fault(path, error))?;
        let threads = step.threads.map(usize::from);
        dump_graphs.map(train::refuse_used_dump_folder).transpose()?;
        let dump_graphs = dump_graphs.map(Path::to_owned);
        let numerics = Numerics::for_session(step.numerics);
        let devices = match choice {
            DeviceChoice::Single => SessionOptions::devices(1),
            DeviceChoice::FromOptions if step.device.is_empty() => SessionOptions::devices(step.device_count.into()),
            DeviceChoice::FromOptions => devices::session_options(&step.device)?,
        };
        let mut options = SessionOptions { threads, dump_graphs, numerics, ..devices };
        // With a single device, nodes that request another device run on the single one.
        options.placement.is_soft |= step.soft_placement || choice == DeviceChoice::Single;
        let session = Session::new(&graph, options).map_err(|error| Failure::Work(error.into()))?;
        let runnable = Runnable { session, defaulted_nodes };
        if let Some(path) = &step.checkpoint {
            let missing = runnable.session.restore(&checkpoint(path)?).map_err(|error| fault(path, error))?;
            for name in missing {
                note!("warning: {}: it has no variable {name}", path.display());
            }
        }
        for init in &step.init {
            runnable.run(&[], &[], &[init])?;
        }
        Ok(runnable)
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Notes for the nodes that are not on the device that the file requests.
    pub fn notes(&self) -> Vec<String> {
        const MAX_NOTES: usize = 8;
        let relaxed = self.session.relaxed_requests();
        let unexpected: Vec<_> =
            relaxed.iter().filter(|request| !self.defaulted_nodes.contains(&request.node)).collect();
        let note = |request: &&RelaxedRequest| {
            format!("node {} (op {}) asks for {}, runs on {}", request.node, request.op, request.asked, request.device)
        };
        let mut notes: Vec<String> = unexpected.iter().take(MAX_NOTES).map(note).collect();
        if let Some(n) = unexpected.len().checked_sub(MAX_NOTES).filter(|n| *n > 0) {
            notes.push(format!("{n} more nodes run on another device than they ask for"));
        }
        notes
    }

    /// Runs one step.
    pub fn run(&self, feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Tensor>, Failure> {
        self.session.run(feeds, fetches, targets).map_err(|error| step_failure(&self.session, error))
    }
}

/// The failure of a step as wrong use: almost always graph, feeds and fetches do not fit each other.
pub fn step_failure(session: &Session, error: RunError) -> Failure {
    let hint = match &error {
        RunError::Graph(engine::graph::GraphError::NoSuchNode { name }) => {
            nearest(session, name).map(|near| format!("is {near} meant?"))
        }
        RunError::Plan(CompileError::Placement(why)) if why.gives_way() => {
            Some("--soft-placement lets it run on another device".to_owned())
        }
        _ => None,
    };
    let error = anyhow::Error::from(error);
    match hint {
        Some(hint) => Failure::wrong_use(format_args!("{error:#} ({hint})")),
        None => Failure::Usage(error),
    }
}

/// The node whose name is most similar to `name`, if any is similar.
fn nearest(session: &Session, name: &str) -> Option<String> {
    let nodes = session.graph().nodes();
    let with_distance = nodes.iter().map(|node| (strsim::levenshtein(&node.name, name), node.name.to_string()));
    let (best, near) = with_distance.min()?;
    (best <= name.len() / 3 + 1).then_some(near)
}

/// Reads the tensors of the feeds' files.
pub fn feeds(step: &Step) -> Result<Vec<(&str, Tensor)>, Failure> {
    step.feed.iter().map(|(name, path)| Ok((name.as_str(), tensor(path)?))).collect()
}

fn tensor(path: &PathBuf) -> Result<Tensor, Failure> {
    let bytes = fs::read(path).map_err(|error| fault(path, error))?;
    let array = Array::decode(&bytes).map_err(|error| fault(path, error))?;
    Tensor::from_npy(&array).map_err(|error| fault(path, error))
}

/// Sets the device of the nodes that request none; returns their names.
fn set_default_device(def: &mut GraphDef, device: &str) -> HashSet<String> {
    let without_device = def.node.iter_mut().filter(|node| node.device.is_empty());
    let set_device = |node: &mut NodeDef| {
        node.device = device.to_owned();
        node.name.clone()
    };
    without_device.map(set_device).collect()
}

/// Gives each random op without a seed one derived from `seed` and the node's name, so that a run can be repeated.
fn seed_random_ops(def: &mut GraphDef, seed: i64) {
    let functions = def.library.iter_mut().flat_map(|library| &mut library.function);
    let nodes = def.node.iter_mut().chain(functions.flat_map(|function| &mut function.node_def));
    for node in nodes {
        let has_seeds = ["seed", "seed2"].iter().any(|name| node.attr.contains_key(*name)) || is_random(&node.op);
        let are_unset = ["seed", "seed2"].iter().all(|name| {
            let value = node.attr.get(*name).and_then(|attr| attr.value.as_ref());
            matches!(value, None | Some(Value::I(0)))
        });
        if has_seeds && are_unset {
            let mut hasher = DefaultHasher::new();
            node.name.hash(&mut hasher);
            // Not 0: with `seed` 0 that would mean no seed.
            let second = (hasher.finish() >> 1) as i64 | 1;
            for (name, value) in [("seed", seed), ("seed2", second)] {
                node.attr.entry(name.to_owned()).or_default().value = Some(Value::I(value));
            }
        }
    }
}

/// Whether the op has the attributes `seed` and `seed2`.
fn is_random(op: &str) -> bool {
    let def = engine::ops::lookup(op);
    def.is_some_and(|def| ["seed", "seed2"].iter().all(|name| def.attrs.iter().any(|attr| attr.name == *name)))
}
