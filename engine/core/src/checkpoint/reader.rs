//! A checkpoint that is read, whichever of the formats it is in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::bundle::Bundle;
use super::files::{INDEX, SHARD, TensorInfo, with_suffix};
use super::safetensors::SafetensorsFile;
use super::v1::V1File;
use super::{CheckpointError, Slice, encode, slice, write};
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A checkpoint, opened for reading. Tensors are read when they are asked for.
pub struct Checkpoint {
    prefix: PathBuf,
    files: Vec<Stored>,
    infos: BTreeMap<String, TensorInfo>,
}

/// One file (or one bundle) of a checkpoint.
enum Stored {
    Safetensors(SafetensorsFile),
    Bundle(Bundle),
    V1(V1File),
}

impl Stored {
    fn infos(&self) -> Vec<(String, TensorInfo)> {
        let own = |(name, info): (&str, TensorInfo)| (name.to_owned(), info);
        match self {
            Stored::Safetensors(file) => file.infos().map(own).collect(),
            Stored::Bundle(bundle) => bundle.infos().map(own).collect(),
            Stored::V1(file) => file.infos().map(own).collect(),
        }
    }

    fn read(&self, name: &str, shape: &Shape, part: Option<&Slice>) -> Result<Option<Tensor>, CheckpointError> {
        let part = part.map(|part| (shape, part));
        match (self, part) {
            (Stored::Safetensors(file), part) => file.read(name, part),
            (Stored::Bundle(bundle), part) => bundle.read(name, part),
            (Stored::V1(file), Some((shape, slice))) => file.read(name, shape, slice),
            (Stored::V1(_), None) => Ok(None),
        }
    }

    fn verify(&self) -> Result<(), CheckpointError> {
        match self {
            Stored::Safetensors(file) => file.verify(),
            Stored::Bundle(bundle) => bundle.verify(),
            Stored::V1(file) => file.verify(),
        }
    }
}

impl Checkpoint {
    /// Opens the checkpoint `prefix`, in whichever of the formats it is, or a single file of one of them.
    ///
    /// # Errors
    /// There is none, or its files are damaged.
    pub fn open(prefix: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        let prefix = prefix.as_ref();
        let files = if with_suffix(prefix, INDEX).exists() {
            let shards = write::read_index(prefix)?;
            let open = |path: &PathBuf| SafetensorsFile::open(path).map(Stored::Safetensors);
            shards.iter().map(open).collect::<Result<_, _>>()?
        } else if with_suffix(prefix, SHARD).exists() {
            vec![Stored::Safetensors(SafetensorsFile::open(&with_suffix(prefix, SHARD))?)]
        } else if with_suffix(prefix, ".index").exists() {
            vec![Stored::Bundle(Bundle::open(prefix)?)]
        } else {
            v1_files(prefix)?
        };
        let mut infos: BTreeMap<String, TensorInfo> = BTreeMap::new();
        for (name, info) in files.iter().flat_map(Stored::infos) {
            match infos.get_mut(&name) {
                None => drop(infos.insert(name, info)),
                Some(known) => known.add_parts(&name, info)?,
            }
        }
        Ok(Checkpoint { prefix: prefix.to_owned(), files, infos })
    }

    /// The newest checkpoint of a folder that can be opened and is whole, by the number at its name's end, and why newer
    /// ones are not it; `None` where there is none.
    ///
    /// # Errors
    /// The folder cannot be read, or all that are there are damaged.
    pub fn newest(folder: impl AsRef<Path>) -> Result<Option<(Checkpoint, Vec<String>)>, CheckpointError> {
        let folder = folder.as_ref();
        let mut prefixes: Vec<(u64, PathBuf)> = Vec::new();
        for file in std::fs::read_dir(folder).map_err(|e| CheckpointError::io(folder, e))?.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let prefix = name.strip_suffix(INDEX).or_else(|| name.strip_suffix(SHARD)).or(name.strip_suffix(".index"));
            // A shard of several is no checkpoint by itself: its index names it.
            let Some(prefix) = prefix.filter(|prefix| !prefix.contains("-of-")) else { continue };
            let step = prefix.rsplit_once('-').and_then(|(_, step)| step.parse().ok()).unwrap_or(0);
            prefixes.push((step, folder.join(prefix)));
        }
        prefixes.sort();
        let mut warnings = Vec::new();
        for (_, prefix) in prefixes.into_iter().rev() {
            match Checkpoint::open(&prefix).and_then(|found| found.verify().map(|()| found)) {
                Ok(found) => return Ok(Some((found, warnings))),
                Err(e) => warnings.push(format!("checkpoint {} is not used: {e}", prefix.display())),
            }
        }
        if warnings.is_empty() { Ok(None) } else { Err(CheckpointError::format(folder, warnings.join("; "))) }
    }

    /// The prefix it was opened by.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// All tensors, by name.
    pub fn tensors(&self) -> &BTreeMap<String, TensorInfo> {
        &self.infos
    }

    /// The text that was saved under `key` with the tensors.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.files.iter().find_map(|file| match file {
            Stored::Safetensors(file) => file.metadata.get(key).map(String::as_str),
            _ => None,
        })
    }

    /// A tensor, put together where it is stored in parts.
    ///
    /// # Errors
    /// It is not there, incomplete, or damaged.
    pub fn read(&self, name: &str) -> Result<Tensor, CheckpointError> {
        let info = self.info(name)?;
        self.read_slice(name, &Slice::full(&info.shape))
    }

    /// What is known of a tensor.
    ///
    /// # Errors
    /// It is not there.
    pub fn info(&self, name: &str) -> Result<&TensorInfo, CheckpointError> {
        let missing = || CheckpointError::NoTensor { path: self.prefix.clone(), name: name.into() };
        self.infos.get(name).ok_or_else(missing)
    }

    /// A part of a tensor, in whatever parts it is stored.
    ///
    /// # Errors
    /// The tensor is not there or damaged, or no stored parts cover this one.
    pub fn read_slice(&self, name: &str, wanted: &Slice) -> Result<Tensor, CheckpointError> {
        let info = self.info(name)?;
        let outside = || CheckpointError::Slice {
            text: format!("{wanted:?}").into(),
            problem: format!("tensor {name} has shape {}", info.shape).into(),
        };
        if !wanted.fits(&info.shape) {
            return Err(outside());
        }
        let full = Slice::full(&info.shape);
        let whole = [full.clone()];
        let parts = if info.parts.is_empty() { &whole[..] } else { &info.parts };
        let read_part = |part: &Slice| {
            let part = if info.parts.is_empty() { None } else { Some(part) };
            let mut found = self.files.iter().map(|file| file.read(name, &info.shape, part));
            let first = found.find_map(Result::transpose).transpose()?;
            first.ok_or_else(|| CheckpointError::NoTensor { path: self.prefix.clone(), name: name.into() })
        };
        if let Some(exact) = parts.iter().find(|part| *part == wanted) {
            return read_part(exact);
        }
        let mut out = Assembly::new(wanted, info.dtype);
        for part in parts {
            if let Some(common) = part.intersection(wanted) {
                out.put(&read_part(part)?, part, &common);
            }
        }
        let tensor = out.finish().map_err(|source| CheckpointError::Tensor {
            path: self.prefix.clone(),
            name: name.into(),
            source,
        })?;
        tensor.ok_or_else(|| CheckpointError::conflict(name, "its stored parts do not cover what is asked for"))
    }

    /// Reads everything and compares the checksums.
    ///
    /// # Errors
    /// The first damage.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        self.files.iter().try_for_each(Stored::verify)?;
        // Tensors in parts need all of them.
        for (name, info) in self.infos.iter().filter(|(_, info)| !info.parts.is_empty()) {
            let covered: usize = info.parts.iter().map(|p| p.shape().n_elements()).sum();
            if covered < info.shape.n_elements() {
                return Err(CheckpointError::conflict(name, "some of its parts are missing"));
            }
        }
        Ok(())
    }
}

/// The tables of an older checkpoint: `prefix` itself, or its shards.
fn v1_files(prefix: &Path) -> Result<Vec<Stored>, CheckpointError> {
    if prefix.is_file() {
        let is_safetensors = prefix.extension().is_some_and(|e| e == "safetensors");
        return Ok(vec![match is_safetensors {
            true => Stored::Safetensors(SafetensorsFile::open(prefix)?),
            false => Stored::V1(V1File::open(prefix)?),
        }]);
    }
    let not_found = || CheckpointError::NotFound { prefix: prefix.to_owned() };
    let folder = prefix.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = format!("{}-", prefix.file_name().ok_or_else(not_found)?.to_string_lossy());
    let shard = |name: &str| -> Option<(usize, usize)> {
        let (i, n) = name.strip_prefix(&stem)?.split_once("-of-")?;
        Some((i.parse().ok()?, n.parse().ok()?))
    };
    let mut shards = Vec::new();
    for file in std::fs::read_dir(folder).map_err(|_| not_found())?.flatten() {
        if let Some(of) = shard(&file.file_name().to_string_lossy()) {
            shards.push((of, file.path()));
        }
    }
    shards.sort();
    let n = shards.first().map(|((_, n), _)| *n).ok_or_else(not_found)?;
    if shards.iter().enumerate().any(|(i, (of, _))| *of != (i, n)) || shards.len() != n {
        return Err(CheckpointError::format(prefix, format!("{} of {n} shards are there", shards.len())));
    }
    shards.iter().map(|(_, path)| V1File::open(path).map(Stored::V1)).collect()
}

/// A tensor that is put together from parts.
struct Assembly<'a> {
    wanted: &'a Slice,
    dtype: DType,
    bytes: Vec<u8>,
    strings: Vec<Vec<u8>>,
    n_put: usize,
}

impl<'a> Assembly<'a> {
    fn new(wanted: &'a Slice, dtype: DType) -> Assembly<'a> {
        Assembly { wanted, dtype, bytes: Vec::new(), strings: Vec::new(), n_put: 0 }
    }

    /// Copies what `part`, whose value is `value`, has in `common` with what is wanted.
    fn put(&mut self, value: &Tensor, part: &Slice, common: &Slice) {
        let n = self.wanted.shape().n_elements();
        let start = |of: &Slice| common.start.iter().zip(&of.start).map(|(c, s)| c - s).collect::<Vec<usize>>();
        let (mut to, mut from) = ((self.wanted.len.to_vec(), start(self.wanted)), (part.len.to_vec(), start(part)));
        let mut len = common.len.to_vec();
        self.n_put += len.iter().product::<usize>();
        match value.strings() {
            Ok(strings) => {
                self.strings.resize(n, Vec::new());
                let (to, from) = (region(&to), region(&from));
                slice::copy_region(&mut self.strings, &to, strings, &from, &len);
            }
            Err(_) => {
                let size = self.dtype.size();
                self.bytes.resize(n * size, 0);
                for dims in [&mut to.0, &mut to.1, &mut from.0, &mut from.1, &mut len] {
                    if let Some(last) = dims.last_mut() {
                        *last *= size;
                    }
                }
                slice::copy_region(&mut self.bytes, &region(&to), value.bytes(), &region(&from), &len);
            }
        }
    }

    /// The tensor; `None` where the parts did not cover it.
    fn finish(self) -> Result<Option<Tensor>, crate::tensor::TensorError> {
        let shape = self.wanted.shape();
        if self.n_put < shape.n_elements() {
            return Ok(None);
        }
        match self.dtype {
            DType::String => Tensor::from_strings(shape, self.strings).map(Some),
            dtype => encode::numbers(dtype, shape, &self.bytes).map(Some),
        }
    }
}

fn region(of: &(Vec<usize>, Vec<usize>)) -> slice::Region<'_> {
    slice::Region { dims: &of.0, start: &of.1 }
}
