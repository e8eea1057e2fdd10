//! State that is no variable: objects and kernels that put themselves into a checkpoint and come back from one.

use std::any::Any;
use std::collections::BTreeMap;

use super::CheckpointError;
use crate::tensor::Tensor;

/// What an object saves: named tensors.
pub type Fields = BTreeMap<String, Tensor>;

/// An object of a container, or a kernel, whose state belongs into checkpoints.
pub trait Checkpointed: Send + Sync {
    /// What kind of object it is, part of its tensors' names: `queue`.
    fn kind(&self) -> &'static str;

    /// Its state now. Tensors are shared, not copied, so that saving does not hold the step up.
    fn save(&self) -> Fields;

    /// Goes on from a saved state.
    ///
    /// # Errors
    /// The state does not fit the object; it is left as it was.
    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError>;
}

/// Sees an object as one that is checkpointed, where it is of the type that this function knows.
pub type AsCheckpointed = fn(&(dyn Any + Send + Sync)) -> Option<&dyn Checkpointed>;

/// The types of objects whose state belongs into checkpoints, registered at link time.
#[linkme::distributed_slice]
pub static CHECKPOINTED: [AsCheckpointed];

/// The object as one that is checkpointed, where it is.
pub fn as_checkpointed(object: &(dyn Any + Send + Sync)) -> Option<&dyn Checkpointed> {
    CHECKPOINTED.iter().find_map(|see| see(object))
}
