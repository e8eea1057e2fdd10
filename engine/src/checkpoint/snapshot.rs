//! What of a session goes into a checkpoint, and how it comes back.
//!
//! Variables keep their names, so that `RestoreV2` and other programs find them. All other state, and variables outside
//! of the default container, are tensors named `_state|KIND|CONTAINER|NAME|FIELD` (no node has a `|` in its name).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Checkpoint, CheckpointError, Fields, Saved};
use crate::graph::{Attr, Graph};
use crate::resources::{ResourceManager, StateKey};
use crate::session::Session;

const PREFIX: &str = "_state";
/// The kind of the state that kernels keep themselves.
const KERNEL: &str = "kernel";
/// The kind and field of variables.
const VARIABLE: (&str, &str) = ("variable", "value");

/// The state of a session at one moment: for each device the tensors that it saves. Values are shared, not copied.
pub(super) struct Snapshot {
    pub shards: Vec<Vec<Saved>>,
}

impl Snapshot {
    /// Takes it. Call it between steps: each object is consistent in itself.
    pub fn take(session: &Session) -> Snapshot {
        let mut shards: Vec<Vec<Saved>> = Vec::new();
        for device in session.devices() {
            let mut shard = Vec::new();
            for (key, fields) in device.resources().save() {
                shard.extend(fields.into_iter().map(|(field, value)| (name_of(&key, &field), None, value)));
            }
            shards.push(shard);
        }
        let kernels = session.save_kernels().into_iter().flat_map(|(name, fields)| saved_kernel(&name, fields));
        if let Some(first) = shards.first_mut() {
            first.extend(kernels);
        }
        shards.retain(|shard| !shard.is_empty());
        if shards.is_empty() {
            shards.push(Vec::new());
        }
        Snapshot { shards }
    }

    /// The same with all elements where the host can read them: devices with their own memory copy theirs.
    ///
    /// # Errors
    /// A device fails.
    pub fn on_host(&self, prefix: &Path) -> Result<Snapshot, CheckpointError> {
        let here = |(name, slice, value): &Saved| match value.to_host() {
            Ok(value) => Ok((name.clone(), slice.clone(), value)),
            Err(source) => Err(CheckpointError::Tensor { path: prefix.to_owned(), name: name.as_str().into(), source }),
        };
        let shards = self.shards.iter().map(|shard| shard.iter().map(here).collect::<Result<_, _>>());
        Ok(Snapshot { shards: shards.collect::<Result<_, _>>()? })
    }
}

/// What a checkpoint has of a kernel, by its node's name.
pub(crate) fn saved_kernel(node: &Arc<str>, fields: Fields) -> impl Iterator<Item = Saved> + use<> {
    let key = StateKey { kind: KERNEL.into(), container: "".into(), name: Arc::clone(node) };
    fields.into_iter().map(move |(field, value)| (name_of(&key, &field), None, value))
}

/// The states of kernels in a checkpoint, by their nodes' names.
///
/// # Errors
/// They are damaged.
pub(crate) fn saved_kernels(checkpoint: &Checkpoint) -> Result<FxHashMap<Arc<str>, Fields>, CheckpointError> {
    let mut states: FxHashMap<Arc<str>, Fields> = FxHashMap::default();
    for name in checkpoint.tensors().keys() {
        let (key, field) = key_of(name);
        if &*key.kind == KERNEL {
            states.entry(key.name).or_default().insert(field, checkpoint.read(name)?);
        }
    }
    Ok(states)
}

fn name_of(key: &StateKey, field: &str) -> String {
    let is_plain = (&*key.kind, field) == VARIABLE && &*key.container == ResourceManager::DEFAULT_CONTAINER;
    if is_plain && !key.name.starts_with(PREFIX) {
        return key.name.to_string();
    }
    format!("{PREFIX}|{}|{}|{}|{field}", key.kind, key.container, key.name)
}

fn key_of(name: &str) -> (StateKey, String) {
    let parts: Vec<&str> = name.split('|').collect();
    if let [PREFIX, kind, container, object, field] = parts[..] {
        let key = StateKey { kind: kind.into(), container: container.into(), name: object.into() };
        return (key, field.to_owned());
    }
    let container = Arc::from(ResourceManager::DEFAULT_CONTAINER);
    (StateKey { kind: VARIABLE.0.into(), container, name: name.into() }, VARIABLE.1.to_owned())
}

/// Reads everything, then gives it to the session's objects, those that are yet to be made included. Gives the number of
/// tensors, and the session's variables that the checkpoint does not have.
pub(super) fn restore(checkpoint: &Checkpoint, session: &Session) -> Result<(usize, Vec<String>), CheckpointError> {
    let mut state: BTreeMap<StateKey, Fields> = BTreeMap::new();
    for name in checkpoint.tensors().keys() {
        let (key, field) = key_of(name);
        state.entry(key).or_default().insert(field, checkpoint.read(name)?);
    }
    let missing = check_variables(checkpoint, session.graph())?;
    let kernels: BTreeMap<StateKey, Fields> = state.iter().filter(|(k, _)| &*k.kind == KERNEL).map(own).collect();
    state.retain(|k, _| &*k.kind != KERNEL);
    let pending = Arc::default();
    for device in session.devices() {
        device.resources().restore(&mut state, &pending)?;
    }
    // What no device has yet goes to whichever makes the object.
    *pending.lock() = state.into_iter().collect();
    session.restore_kernels(kernels.into_iter().map(|(key, fields)| (key.name, fields)).collect())?;
    Ok((checkpoint.tensors().len(), missing))
}

fn own((key, fields): (&StateKey, &Fields)) -> (StateKey, Fields) {
    (key.clone(), fields.clone())
}

/// Types and shapes of the saved variables against those of a graph; gives the graph's variables that are not there.
pub(super) fn check_variables(checkpoint: &Checkpoint, graph: &Graph) -> Result<Vec<String>, CheckpointError> {
    let mut missing = Vec::new();
    for node in graph.nodes().iter().filter(|node| node.op.name == "VarHandleOp") {
        let text = |attr: &str, default: &str| match node.text(attr) {
            Ok(t) if !t.is_empty() => Arc::from(t),
            _ => Arc::from(default),
        };
        let container = text("container", ResourceManager::DEFAULT_CONTAINER);
        let key = StateKey { kind: VARIABLE.0.into(), container, name: text("shared_name", &node.name) };
        let Some(saved) = checkpoint.tensors().get(&name_of(&key, VARIABLE.1)) else {
            missing.push(key.name.to_string());
            continue;
        };
        if let (Some(Attr::Type(dtype)), Some(Attr::Shape(shape))) = (node.attrs.get("dtype"), node.attrs.get("shape"))
            && (*dtype != saved.dtype || !shape.admits(&saved.shape))
        {
            return Err(CheckpointError::Mismatch {
                path: checkpoint.prefix().to_owned(),
                name: key.name.to_string().into(),
                expected: format!("{dtype}{shape}").into(),
                got: format!("{}{}", saved.dtype, saved.shape).into(),
            });
        }
    }
    Ok(missing)
}
