//! Safetensors files: one shard of a checkpoint.
//!
//! ```text
//! offset  size
//!      0     8  n, the length of the header, u64 little endian
//!      8     n  header, JSON: {"NAME": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ...,
//!               "__metadata__": {"KEY": "text", ...}}, padded with spaces to a multiple of 8
//!    8+n     .  the tensors' bytes, which the offsets cover without holes
//! ```
//! (huggingface/safetensors, README). The metadata of files written here has `checksums` (JSON: CRC-32C of each tensor's
//! name, type, shape and bytes), `types` (JSON: true type and shape of what the format has no type for) and `slices`
//! (JSON: whole shape and part of tensors of which the file has a part only). Other programs' files need none of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::files::{FORMAT, TensorInfo};
use super::slice::{Slice, SliceSpec};
use super::{CheckpointError, encode};
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The longest header that is read.
const MAX_HEADER: u64 = 256 << 20;

/// A tensor to be written: its name, the part of it that this is, its value.
pub(super) struct Entry<'a> {
    pub name: &'a str,
    pub slice: Option<SliceSpec>,
    pub value: &'a Tensor,
}

/// Writes a file of `entries` in their order.
pub(super) fn write(
    path: &Path,
    out: &mut impl Write,
    entries: &[Entry<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<(), CheckpointError> {
    let mut header = Map::new();
    let (mut checksums, mut types, mut slices) = (Map::new(), Map::new(), Map::new());
    let mut payloads = Vec::with_capacity(entries.len());
    let mut offset = 0usize;
    for entry in entries {
        let key = key_of(entry.name, entry.slice.as_ref());
        let (dtype, shape) = (entry.value.dtype(), entry.value.shape());
        let bytes = encode::to_bytes(entry.name, entry.value)?;
        checksums.insert(key.clone(), json!(encode::checksum(&key, dtype, shape, &bytes)));
        let (format, dims) = match encode::format_name(dtype) {
            Some(format) => (format, shape.dims().to_vec()),
            None => {
                types.insert(key.clone(), json!([dtype.name(), shape.dims()]));
                ("U8", vec![bytes.len()])
            }
        };
        if let Some(spec) = &entry.slice {
            let part = json!([entry.name, spec.shape.dims(), spec.slice.text(&spec.shape)]);
            slices.insert(key.clone(), part);
        }
        let end = offset + bytes.len();
        let line = json!({"dtype": format, "shape": dims, "data_offsets": [offset, end]});
        if header.insert(key, line).is_some() {
            return Err(CheckpointError::conflict(entry.name, "it is saved twice"));
        }
        offset = end;
        payloads.push(bytes);
    }
    let mut meta: Map<String, Value> = metadata.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    for (key, map) in [("checksums", checksums), ("types", types), ("slices", slices)] {
        if key == "checksums" || !map.is_empty() {
            meta.insert(key.into(), json!(Value::Object(map).to_string()));
        }
    }
    header.insert("__metadata__".into(), Value::Object(meta));
    let mut text = Value::Object(header).to_string();
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let io = |source| CheckpointError::io(path, source);
    out.write_all(&(text.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(text.as_bytes()).map_err(io)?;
    payloads.iter().try_for_each(|bytes| out.write_all(bytes)).map_err(io)
}

/// The name under which a part of a tensor is stored: the tensor's, with the part behind it.
fn key_of(name: &str, slice: Option<&SliceSpec>) -> String {
    match slice {
        Some(spec) => format!("{name}[{}]", spec.slice.text(&spec.shape)),
        None => name.to_owned(),
    }
}

/// A file whose header was read.
pub(super) struct SafetensorsFile {
    path: PathBuf,
    file: File,
    data_begin: u64,
    stored: BTreeMap<String, Stored>,
    /// The file's metadata, this engine's own keys included.
    pub metadata: BTreeMap<String, String>,
}

/// A tensor or a part of one, as the file has it.
struct Stored {
    dtype: DType,
    shape: Shape,
    begin: u64,
    end: u64,
    checksum: Option<u32>,
    /// The tensor that it is a part of.
    part_of: Option<(String, SliceSpec)>,
}

impl SafetensorsFile {
    pub fn open(path: &Path) -> Result<SafetensorsFile, CheckpointError> {
        let io = |source| CheckpointError::io(path, source);
        let bad = |problem: &str| CheckpointError::format(path, problem);
        let mut file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut n = [0; 8];
        file.read_exact(&mut n).map_err(|_| bad("it is too short for a safetensors file"))?;
        let n = u64::from_le_bytes(n);
        if n > MAX_HEADER || n > len.saturating_sub(8) {
            return Err(bad("its header reaches past its end"));
        }
        let mut text = vec![0; n as usize];
        file.read_exact(&mut text).map_err(io)?;
        let header: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|e| bad(&format!("its header is not JSON: {e}")))?;
        let data_begin = 8 + n;
        let mut this = SafetensorsFile {
            path: path.to_owned(),
            file,
            data_begin,
            stored: BTreeMap::new(),
            metadata: metadata_of(&header).ok_or_else(|| bad("its metadata is not text by text"))?,
        };
        this.read_header(&header)?;
        this.check_cover(len - data_begin)?;
        Ok(this)
    }

    fn read_header(&mut self, header: &Map<String, Value>) -> Result<(), CheckpointError> {
        let table = |key: &str| -> Result<Map<String, Value>, CheckpointError> {
            let Some(text) = self.metadata.get(key) else { return Ok(Map::new()) };
            let bad = |e| CheckpointError::format(&self.path, format!("its metadata {key} is not sound: {e}"));
            serde_json::from_str(text).map_err(bad)
        };
        let (checksums, types, slices) = (table("checksums")?, table("types")?, table("slices")?);
        // Without the marker and checksums the file is another program's; one without the other is damaged.
        let is_own = self.metadata.get("format").is_some_and(|f| f == FORMAT);
        if is_own != self.metadata.contains_key("checksums") {
            return Err(CheckpointError::format(&self.path, "its metadata is damaged"));
        }
        for (key, line) in header.iter().filter(|(key, _)| *key != "__metadata__") {
            let bad = || CheckpointError::format(&self.path, format!("the header's line of tensor {key} is not sound"));
            let mut stored = stored_of(line).ok_or_else(bad)?;
            if is_own {
                stored.checksum = Some(checksums.get(key).and_then(Value::as_u64).ok_or_else(bad)? as u32);
                if let Some(t) = types.get(key) {
                    stored.dtype = t[0].as_str().and_then(DType::from_name).ok_or_else(bad)?;
                    stored.shape = shape_of(&t[1]).ok_or_else(bad)?;
                }
                if let Some(s) = slices.get(key) {
                    let (name, shape) = (s[0].as_str().ok_or_else(bad)?, shape_of(&s[1]).ok_or_else(bad)?);
                    let slice = Slice::parse(s[2].as_str().ok_or_else(bad)?, &shape)?;
                    stored.part_of = Some((name.to_owned(), SliceSpec { shape, slice }));
                }
            }
            self.stored.insert(key.clone(), stored);
        }
        Ok(())
    }

    /// The offsets must cover the data without holes and overlaps, as the format demands.
    fn check_cover(&self, len: u64) -> Result<(), CheckpointError> {
        let mut ranges: Vec<(u64, u64)> = self.stored.values().map(|s| (s.begin, s.end)).collect();
        ranges.sort_unstable();
        let mut at = 0;
        for (begin, end) in ranges {
            if begin != at || end < begin {
                return Err(CheckpointError::format(&self.path, "its tensors overlap or leave holes"));
            }
            at = end;
        }
        if at != len {
            return Err(CheckpointError::format(
                &self.path,
                format!("it has {len} bytes of data, its header says {at}"),
            ));
        }
        Ok(())
    }

    /// The tensors that the file has, wholly or in part.
    pub fn infos(&self) -> impl Iterator<Item = (&str, TensorInfo)> {
        self.stored.iter().map(|(key, stored)| match &stored.part_of {
            None => (key.as_str(), TensorInfo { dtype: stored.dtype, shape: stored.shape.clone(), parts: Vec::new() }),
            Some((name, spec)) => {
                let parts = vec![spec.slice.clone()];
                (name.as_str(), TensorInfo { dtype: stored.dtype, shape: spec.shape.clone(), parts })
            }
        })
    }

    /// A tensor, or the part of it that was stored on its own; `None` where the file does not have it.
    pub fn read(&self, name: &str, part: Option<(&Shape, &Slice)>) -> Result<Option<Tensor>, CheckpointError> {
        let key = match part {
            Some((shape, slice)) => key_of(name, Some(&SliceSpec { shape: shape.clone(), slice: slice.clone() })),
            None => name.to_owned(),
        };
        let Some(stored) = self.stored.get(&key) else { return Ok(None) };
        let mut bytes = vec![0; (stored.end - stored.begin) as usize];
        let at = self.data_begin + stored.begin;
        self.file.read_exact_at(&mut bytes, at).map_err(|e| CheckpointError::io(&self.path, e))?;
        let sum = || encode::checksum(&key, stored.dtype, &stored.shape, &bytes);
        if stored.checksum.is_some_and(|c| c != sum()) {
            return Err(CheckpointError::checksum(&self.path, format!("tensor {key}")));
        }
        let decoded = encode::from_bytes(stored.dtype, stored.shape.clone(), &bytes);
        decoded.map(Some).map_err(|e| CheckpointError::format(&self.path, format!("tensor {name}: {e}")))
    }

    /// Reads all and compares the checksums.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        for (key, stored) in &self.stored {
            match &stored.part_of {
                None => self.read(key, None)?,
                Some((name, spec)) => self.read(name, Some((&spec.shape, &spec.slice)))?,
            };
        }
        Ok(())
    }
}

fn metadata_of(header: &Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let Some(metadata) = header.get("__metadata__") else { return Some(BTreeMap::new()) };
    metadata.as_object()?.iter().map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
}

fn shape_of(v: &Value) -> Option<Shape> {
    let dims = v.as_array()?.iter().map(|d| usize::try_from(d.as_u64()?).ok()).collect::<Option<Vec<usize>>>()?;
    let shape = Shape::new(&dims);
    shape.checked_n_elements().map(|_| shape)
}

fn stored_of(line: &Value) -> Option<Stored> {
    let dtype = encode::from_format_name(line["dtype"].as_str()?)?;
    let shape = shape_of(&line["shape"])?;
    let (begin, end) = (line["data_offsets"][0].as_u64()?, line["data_offsets"][1].as_u64()?);
    let n_bytes = (shape.n_elements()).checked_mul(dtype.size())? as u64;
    (end.checked_sub(begin) == Some(n_bytes)).then_some(Stored {
        dtype,
        shape,
        begin,
        end,
        checksum: None,
        part_of: None,
    })
}
