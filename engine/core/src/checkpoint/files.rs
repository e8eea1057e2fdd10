//! How the files of a checkpoint are named, and what is known of a tensor in them.

use std::path::{Path, PathBuf};

use super::error::CheckpointError;
use super::slice::Slice;
use crate::dtype::DType;
use crate::shape::Shape;

/// What the metadata of files written here calls their format.
pub const FORMAT: &str = "stepscope";

/// The ending of a file of tensors.
pub const SHARD: &str = ".safetensors";
/// The ending of the index of several.
pub const INDEX: &str = ".safetensors.index.json";

/// A path with a suffix behind its last component.
pub fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// What a checkpoint says of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole tensor.
    pub shape: Shape,
    /// The parts that are stored, each on its own; empty: the tensor is stored as one.
    pub parts: Vec<Slice>,
}

impl TensorInfo {
    /// Adds the parts that another file has.
    pub fn add_parts(&mut self, name: &str, other: TensorInfo) -> Result<(), CheckpointError> {
        if (self.dtype, &self.shape) != (other.dtype, &other.shape) {
            let (a, b) = (format!("{}{}", self.dtype, self.shape), format!("{}{}", other.dtype, other.shape));
            return Err(CheckpointError::conflict(name, format!("one shard has {a}, another {b}")));
        }
        if self.parts.is_empty() || other.parts.is_empty() {
            return Err(CheckpointError::conflict(name, "it is in several shards"));
        }
        self.parts.extend(other.parts);
        Ok(())
    }
}
