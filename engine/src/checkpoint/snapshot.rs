//! What of a session goes into a checkpoint, and how it comes back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Checkpoint, CheckpointError, Fields, Saved};
use crate::session::Session;
use engine_core::checkpoint::keys::{KERNEL, VARIABLE, key_of, name_of, saved_kernel};
use engine_core::graph::{Attr, Graph};
use engine_core::resources::{ResourceManager, StateKey};

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

impl Session {
    /// Takes the values of its variables and other state from a checkpoint; the names of its variables that are not there.
    ///
    /// # Errors
    /// They do not fit the session's graph, or are damaged.
    pub fn restore(&self, checkpoint: &Checkpoint) -> Result<Vec<String>, CheckpointError> {
        restore(checkpoint, self).map(|(_, missing)| missing)
    }
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
