//! TensorFlow's checkpoints: tensor bundles, and the older single tables.
//!
//! A bundle `PREFIX` is a table `PREFIX.index` and the files `PREFIX.data-i-of-n`. The table's empty key holds a
//! `BundleHeaderProto` (1: number of data files, 2: endianness, 1 for big), every other a `BundleEntryProto` (1: type,
//! 2: shape, 3: data file, 4: offset, 5: size, 6: masked CRC-32C, 7: parts). The entry of a tensor that was stored in
//! parts lists them; each has an entry under its own key ([`super::ordered`]). Strings lie as varint lengths, the masked
//! CRC-32C of the lengths, and the bytes (tensorflow/core/util/tensor_bundle/tensor_bundle.h, protobuf/tensor_bundle.proto).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use formats::proto::TensorShapeProto;
use formats::wire::{Fields, Value};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint, fixed32, message, uint64};

use super::files::{TensorInfo, with_suffix};
use super::slice::Slice;
use super::{CheckpointError, encode, ordered, table};
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor_proto::{shape_from_proto, shape_to_proto};

/// More data files than this are not opened.
const MAX_FILES: u64 = 100_000;
/// The masking of checksums (tensorflow/core/lib/hash/crc32c.h).
const MASK: u32 = 0xa282_ead8;

fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK)
}

/// A bundle whose index was read.
pub(super) struct Bundle {
    index_path: PathBuf,
    data: Vec<(PathBuf, File)>,
    entries: BTreeMap<Vec<u8>, Entry>,
}

/// What the index says of a tensor or a part of one.
#[derive(Default)]
struct Entry {
    dtype: i32,
    shape: Option<Shape>,
    file: u64,
    offset: u64,
    size: u64,
    crc: u32,
    slices: Vec<SliceProto>,
}

impl Entry {
    fn parse(bytes: &[u8]) -> Option<Entry> {
        let mut entry = Entry { shape: Some(Shape::scalar()), ..Entry::default() };
        for field in Fields::new(bytes) {
            match field.ok()? {
                (1, Value::Varint(v)) => entry.dtype = i32::try_from(v).ok()?,
                (2, Value::Bytes(b)) => {
                    let shape = shape_from_proto(&TensorShapeProto::decode(b).ok()?).ok()?.known();
                    entry.shape = shape.filter(|s| s.checked_n_elements().is_some());
                }
                (3, Value::Varint(v)) => entry.file = v,
                (4, Value::Varint(v)) => entry.offset = v,
                (5, Value::Varint(v)) => entry.size = v,
                (6, Value::Fixed32(v)) => entry.crc = v,
                (7, Value::Bytes(b)) => entry.slices.push(SliceProto::parse(b)?),
                _ => {}
            }
        }
        Some(entry)
    }

    /// The entry of a whole tensor.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (field, v) in [(1, self.dtype as u64), (3, self.file), (4, self.offset), (5, self.size)] {
            if v != 0 {
                uint64::encode(field, &v, &mut out);
            }
        }
        message::encode(2, &shape_to_proto(&self.shape.clone().unwrap_or_default().into()), &mut out);
        if self.crc != 0 {
            fixed32::encode(6, &self.crc, &mut out);
        }
        out
    }
}

/// A `TensorSliceProto`: start and length of each dimension (no length: the entire dimension).
#[derive(Default)]
pub(super) struct SliceProto(Vec<(u64, Option<u64>)>);

impl SliceProto {
    pub fn parse(bytes: &[u8]) -> Option<SliceProto> {
        let mut slice = SliceProto::default();
        for field in Fields::new(bytes) {
            let (1, Value::Bytes(extent)) = field.ok()? else { continue };
            let (mut start, mut len) = (0, None);
            for field in Fields::new(extent) {
                match field.ok()? {
                    (1, Value::Varint(v)) => start = v,
                    (2, Value::Varint(v)) => len = Some(v),
                    _ => {}
                }
            }
            slice.0.push((start, len));
        }
        Some(slice)
    }

    /// The part that it means of a tensor of this shape; `None` where it means none.
    pub fn of(&self, shape: &Shape) -> Option<Slice> {
        let mut slice = Slice::full(shape);
        if self.0.len() != shape.rank() {
            return None;
        }
        for (i, (start, len)) in self.0.iter().enumerate() {
            if let Some(len) = len {
                slice.start[i] = usize::try_from(*start).ok()?;
                slice.len[i] = usize::try_from(*len).ok()?;
            }
        }
        slice.fits(shape).then_some(slice)
    }
}

impl Bundle {
    pub fn open(prefix: &Path) -> Result<Bundle, CheckpointError> {
        let index_path = with_suffix(prefix, ".index");
        let bytes = std::fs::read(&index_path).map_err(|e| CheckpointError::io(&index_path, e))?;
        let bad = |problem: &str| CheckpointError::format(&index_path, problem);
        let mut table = table::read(&index_path, &bytes)?;
        let header = table.remove(&[][..]).ok_or_else(|| bad("it has no header"))?;
        let (mut n_files, mut endianness) = (1, 0);
        for field in Fields::new(&header) {
            match field.map_err(|_| bad("its header is not sound"))? {
                (1, Value::Varint(v)) => n_files = v,
                (2, Value::Varint(v)) => endianness = v,
                _ => {}
            }
        }
        if endianness != 0 {
            return Err(bad("it is big endian"));
        }
        if n_files > MAX_FILES {
            return Err(bad("it claims too many data files"));
        }
        let mut data = Vec::new();
        for i in 0..n_files {
            let path = with_suffix(prefix, &format!(".data-{i:05}-of-{n_files:05}"));
            let file = File::open(&path).map_err(|e| CheckpointError::io(&path, e))?;
            data.push((path, file));
        }
        let entry = |(key, value): (Vec<u8>, Vec<u8>)| {
            let entry = Entry::parse(&value);
            let name = String::from_utf8_lossy(&key).into_owned();
            entry.map(|e| (key, e)).ok_or_else(|| bad(&format!("its entry of {name:?} is not sound")))
        };
        let entries = table.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Bundle { index_path, data, entries })
    }

    /// The tensors, as far as this engine has their types. Parts are no tensors of their own.
    pub fn infos(&self) -> impl Iterator<Item = (&str, TensorInfo)> {
        let whole = self.entries.iter().filter(|(key, _)| key.first() != Some(&0));
        whole.filter_map(|(key, entry)| {
            let shape = entry.shape.clone()?;
            let parts = entry.slices.iter().map(|s| s.of(&shape)).collect::<Option<Vec<_>>>()?;
            let info = TensorInfo { dtype: DType::from_number(entry.dtype)?, shape, parts };
            Some((std::str::from_utf8(key).ok()?, info))
        })
    }

    /// A tensor, or the part of it that was stored on its own; `None` where the bundle does not have it.
    pub fn read(&self, name: &str, part: Option<(&Shape, &Slice)>) -> Result<Option<Tensor>, CheckpointError> {
        let key = match part {
            Some((shape, slice)) => ordered::part_key(name, slice, shape),
            None => name.as_bytes().to_vec(),
        };
        let Some(entry) = self.entries.get(&key) else { return Ok(None) };
        let bad = |problem: String| CheckpointError::format(&self.index_path, format!("tensor {name}: {problem}"));
        let dtype = DType::from_number(entry.dtype).filter(|d| d.size() > 0 || *d == DType::String);
        let dtype = dtype.ok_or_else(|| bad(format!("element type number {} is not supported", entry.dtype)))?;
        let shape = entry.shape.clone().ok_or_else(|| bad("its shape is not one".into()))?;
        let file = usize::try_from(entry.file).ok().and_then(|i| self.data.get(i));
        let (path, file) = file.ok_or_else(|| bad(format!("there is no data file {}", entry.file)))?;
        let len = file.metadata().map_err(|e| CheckpointError::io(path, e))?.len();
        if entry.offset.checked_add(entry.size).is_none_or(|end| end > len) {
            return Err(bad("it reaches past the end of its data file".into()));
        }
        let mut bytes = vec![0; entry.size as usize];
        file.read_exact_at(&mut bytes, entry.offset).map_err(|e| CheckpointError::io(path, e))?;
        let checksum_error = || CheckpointError::checksum(path, format!("tensor {name}"));
        if dtype == DType::String {
            let (strings, crc) =
                strings(&bytes, shape.n_elements()).ok_or_else(|| bad("its strings are not sound".into()))?;
            if mask(crc) != entry.crc {
                return Err(checksum_error());
            }
            return Tensor::from_strings(shape, strings).map(Some).map_err(|e| bad(e.to_string()));
        }
        if mask(crc32c::crc32c(&bytes)) != entry.crc {
            return Err(checksum_error());
        }
        encode::from_bytes(dtype, shape, &bytes).map(Some).map_err(|e| bad(e.to_string()))
    }

    /// Reads all and compares the checksums.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        for (name, info) in self.infos() {
            match info.parts.as_slice() {
                [] => drop(self.read(name, None)?),
                parts => {
                    for part in parts {
                        self.read(name, Some((&info.shape, part)))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The strings that `bytes` hold, and the checksum over lengths (as numbers), their checksum, and contents.
fn strings(bytes: &[u8], n: usize) -> Option<(Vec<Vec<u8>>, u32)> {
    // A length takes a byte at least.
    if n > bytes.len() {
        return None;
    }
    let mut rest = bytes;
    let mut lengths = Vec::with_capacity(n);
    let mut crc = 0;
    for _ in 0..n {
        let len = decode_varint(&mut rest).ok()?;
        crc = match u32::try_from(len) {
            Ok(len) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
            Err(_) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
        };
        lengths.push(usize::try_from(len).ok()?);
    }
    let (lengths_crc, mut rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*lengths_crc) != mask(crc) {
        return None;
    }
    crc = crc32c::crc32c_append(crc, lengths_crc);
    crc = crc32c::crc32c_append(crc, rest);
    let mut out = Vec::with_capacity(n);
    for len in lengths {
        let (s, more) = rest.split_at_checked(len)?;
        out.push(s.to_vec());
        rest = more;
    }
    rest.is_empty().then_some((out, crc))
}

/// The files of a bundle of whole tensors: the index, and one data file.
pub(super) fn write(tensors: &BTreeMap<String, Tensor>) -> Result<(Vec<u8>, Vec<u8>), CheckpointError> {
    // Number of files 1; version: producer 1.
    let mut index = BTreeMap::from([(Vec::new(), vec![0x08, 1, 0x1a, 2, 0x08, 1])]);
    let mut data = Vec::new();
    for (name, t) in tensors {
        let offset = data.len();
        let crc = match t.strings() {
            Ok(all) => append_strings(&mut data, all),
            Err(_) if t.dtype().size() > 0 => {
                data.extend_from_slice(t.bytes());
                crc32c::crc32c(t.bytes())
            }
            Err(_) => return Err(CheckpointError::Unstorable { name: name.as_str().into(), dtype: t.dtype() }),
        };
        let entry = Entry {
            dtype: t.dtype() as i32,
            shape: Some(t.shape().clone()),
            file: 0,
            offset: offset as u64,
            size: (data.len() - offset) as u64,
            crc: mask(crc),
            slices: Vec::new(),
        };
        index.insert(name.clone().into_bytes(), entry.encode());
    }
    Ok((table::write(&index), data))
}

fn append_strings(data: &mut Vec<u8>, all: &[Vec<u8>]) -> u32 {
    let mut crc = 0;
    for s in all {
        encode_varint(s.len() as u64, data);
        crc = match u32::try_from(s.len()) {
            Ok(len) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
            Err(_) => crc32c::crc32c_append(crc, &(s.len() as u64).to_le_bytes()),
        };
    }
    let lengths_crc = mask(crc).to_le_bytes();
    data.extend_from_slice(&lengths_crc);
    crc = crc32c::crc32c_append(crc, &lengths_crc);
    for s in all {
        data.extend_from_slice(s);
        crc = crc32c::crc32c_append(crc, s);
    }
    crc
}
