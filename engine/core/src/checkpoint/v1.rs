//! TensorFlow's older checkpoints: one table (or one per shard, `PREFIX-00000-of-00002`) that holds everything.
//!
//! The empty key holds a `SavedTensorSlices` whose field 1 lists the tensors (`SavedSliceMeta`: 1: name, 2: shape, 3: type,
//! 4: parts); every other key is that of a part ([`super::ordered`]), with a `SavedTensorSlices` whose field 2 is a `SavedSlice`
//! (3: its values as a `TensorProto` without type and shape) (tensorflow/core/util/saved_tensor_slice.proto).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use formats::proto::{TensorProto, TensorShapeProto};
use formats::wire::{Fields, Value};
use prost::Message;

use super::bundle::SliceProto;
use super::files::TensorInfo;
use super::slice::Slice;
use super::{CheckpointError, ordered, table};
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor_proto::{self, shape_from_proto, shape_to_proto};

/// A table whose list of tensors was read.
pub(super) struct V1File {
    path: PathBuf,
    infos: BTreeMap<String, TensorInfo>,
    parts: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The value of the message field `number`.
fn message(bytes: &[u8], number: u32) -> Option<&[u8]> {
    Fields::new(bytes).find_map(|field| match field.ok()? {
        (n, Value::Bytes(b)) if n == number => Some(b),
        _ => None,
    })
}

/// A tensor of the list; `None` in the inner option where this engine does not have its type.
fn meta(bytes: &[u8]) -> Option<(String, Option<TensorInfo>)> {
    let (mut name, mut shape, mut dtype, mut slices) = (String::new(), Shape::scalar(), None, Vec::new());
    for field in Fields::new(bytes) {
        match field.ok()? {
            (1, Value::Bytes(b)) => name = String::from_utf8(b.to_vec()).ok()?,
            (2, Value::Bytes(b)) => {
                let known = shape_from_proto(&TensorShapeProto::decode(b).ok()?).ok()?.known();
                shape = known.filter(|s| s.checked_n_elements().is_some())?;
            }
            (3, Value::Varint(v)) => dtype = DType::from_number(i32::try_from(v).ok()?),
            (4, Value::Bytes(b)) => slices.push(SliceProto::parse(b)?),
            _ => {}
        }
    }
    let parts = slices.iter().map(|s| s.of(&shape)).collect::<Option<Vec<_>>>()?;
    Some((name, dtype.map(|dtype| TensorInfo { dtype, shape, parts })))
}

impl V1File {
    pub fn open(path: &Path) -> Result<V1File, CheckpointError> {
        let bytes = std::fs::read(path).map_err(|e| CheckpointError::io(path, e))?;
        let bad = || CheckpointError::format(path, "its list of tensors is not sound");
        let mut parts = table::read(path, &bytes)?;
        let header = parts.remove(&[][..]).ok_or_else(bad)?;
        let mut infos = BTreeMap::new();
        for field in Fields::new(message(&header, 1).unwrap_or_default()) {
            if let (1, Value::Bytes(b)) = field.map_err(|_| bad())? {
                let (name, info) = meta(b).ok_or_else(bad)?;
                info.map(|info| infos.insert(name, info));
            }
        }
        Ok(V1File { path: path.to_owned(), infos, parts })
    }

    /// The tensors, all in parts (of which one may be the entire tensor).
    pub fn infos(&self) -> impl Iterator<Item = (&str, TensorInfo)> {
        self.infos.iter().map(|(name, info)| (name.as_str(), info.clone()))
    }

    /// A part of a tensor; `None` where the file does not have it.
    pub fn read(&self, name: &str, shape: &Shape, slice: &Slice) -> Result<Option<Tensor>, CheckpointError> {
        let Some(value) = self.parts.get(&ordered::part_key(name, slice, shape)) else { return Ok(None) };
        let bad = |problem: &str| CheckpointError::format(&self.path, format!("tensor {name}: {problem}"));
        let dtype = self.infos.get(name).map(|info| info.dtype).ok_or_else(|| bad("it is not listed"))?;
        let proto = message(value, 2).and_then(|saved| message(saved, 3)).ok_or_else(|| bad("it has no values"))?;
        let mut proto = TensorProto::decode(proto).map_err(|e| bad(&e.to_string()))?;
        proto.dtype = dtype as i32;
        proto.tensor_shape = Some(shape_to_proto(&slice.shape().into()));
        tensor_proto::from_proto(&proto).map(Some).map_err(|e| bad(&e.to_string()))
    }

    /// Reads all.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        for (name, info) in &self.infos {
            for part in &info.parts {
                self.read(name, &info.shape, part)?;
            }
        }
        Ok(())
    }
}
