//! Under which names the state of a computation is in a checkpoint.
//!
//! Variables keep their names, so that `RestoreV2` and other programs find them. All other state, and variables outside
//! of the default container, are tensors named `_state|KIND|CONTAINER|NAME|FIELD` (no node has a `|` in its name).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Checkpoint, CheckpointError, Fields, Saved};
use crate::resources::{ResourceManager, StateKey};

const PREFIX: &str = "_state";
/// The kind of the state that kernels keep themselves.
pub const KERNEL: &str = "kernel";
/// The kind and field of variables.
pub const VARIABLE: (&str, &str) = ("variable", "value");

/// What a checkpoint has of a kernel, by its node's name.
pub fn saved_kernel(node: &Arc<str>, fields: Fields) -> impl Iterator<Item = Saved> + use<> {
    let key = StateKey { kind: KERNEL.into(), container: "".into(), name: Arc::clone(node) };
    fields.into_iter().map(move |(field, value)| (name_of(&key, &field), None, value))
}

/// The states of kernels in a checkpoint, by their nodes' names.
///
/// # Errors
/// They are damaged.
pub fn saved_kernels(checkpoint: &Checkpoint) -> Result<FxHashMap<Arc<str>, Fields>, CheckpointError> {
    let mut states: FxHashMap<Arc<str>, Fields> = FxHashMap::default();
    for name in checkpoint.tensors().keys() {
        let (key, field) = key_of(name);
        if &*key.kind == KERNEL {
            states.entry(key.name).or_default().insert(field, checkpoint.read(name)?);
        }
    }
    Ok(states)
}

/// The name of a tensor in a checkpoint: a field of the state under `key`.
pub fn name_of(key: &StateKey, field: &str) -> String {
    let is_plain = (&*key.kind, field) == VARIABLE && &*key.container == ResourceManager::DEFAULT_CONTAINER;
    if is_plain && !key.name.starts_with(PREFIX) {
        return key.name.to_string();
    }
    format!("{PREFIX}|{}|{}|{}|{field}", key.kind, key.container, key.name)
}

/// The state that a tensor of a checkpoint belongs to, and its field there: the inverse of [`name_of`].
pub fn key_of(name: &str) -> (StateKey, String) {
    let parts: Vec<&str> = name.split('|').collect();
    if let [PREFIX, kind, container, object, field] = parts[..] {
        let key = StateKey { kind: kind.into(), container: container.into(), name: object.into() };
        return (key, field.to_owned());
    }
    let container = Arc::from(ResourceManager::DEFAULT_CONTAINER);
    (StateKey { kind: VARIABLE.0.into(), container, name: name.into() }, VARIABLE.1.to_owned())
}
