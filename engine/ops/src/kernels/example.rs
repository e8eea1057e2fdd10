//! Kernels that parse `tf.train.Example` records to dense, sparse and ragged tensors.
//!
//! An `Example` (1: `Features`) is a map (1: entries; 1: name, 2: `Feature`); a `Feature` one of three lists (1: bytes,
//! 2: floats, 3: int64; each 1: values, packed or not) (tensorflow/core/example/feature.proto).

use formats::wire::{Fields, Malformed, Value};
use prost::encoding::decode_varint;
use rustc_hash::{FxHashMap, FxHashSet};

use super::checkpoint::texts;
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::memory;
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static EXAMPLE: &[KernelDef] = &[
    cpu_any("ParseExample", parse_example),
    cpu_any("ParseExampleV2", parse_example_v2),
    cpu_any("ParseSingleExample", parse_single),
];

/// The values of a feature.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// The feature is there without a list.
    None,
    Bytes(Vec<Vec<u8>>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

impl Values {
    pub fn empty(dtype: DType) -> Values {
        match dtype {
            DType::String => Values::Bytes(Vec::new()),
            DType::F32 => Values::Floats(Vec::new()),
            _ => Values::Ints(Vec::new()),
        }
    }

    pub fn dtype(&self) -> Option<DType> {
        match self {
            Values::None => None,
            Values::Bytes(_) => Some(DType::String),
            Values::Floats(_) => Some(DType::F32),
            Values::Ints(_) => Some(DType::I64),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Values::None => 0,
            Values::Bytes(v) => v.len(),
            Values::Floats(v) => v.len(),
            Values::Ints(v) => v.len(),
        }
    }

    /// Makes room for `n` values.
    pub fn reserve(&mut self, n: usize) -> Computed {
        match self {
            Values::Bytes(v) => memory::reserve(v, n)?,
            Values::Floats(v) => memory::reserve(v, n)?,
            Values::Ints(v) => memory::reserve(v, n)?,
            Values::None => {}
        }
        Ok(())
    }

    /// Adds the values of another list of the same type.
    pub fn append(&mut self, other: &Values) {
        match (self, other) {
            (Values::Bytes(a), Values::Bytes(b)) => a.extend_from_slice(b),
            (Values::Floats(a), Values::Floats(b)) => a.extend_from_slice(b),
            (Values::Ints(a), Values::Ints(b)) => a.extend_from_slice(b),
            _ => {}
        }
    }

    fn from_tensor(t: &Tensor) -> Result<Values, KernelError> {
        Ok(match t.dtype() {
            DType::String => Values::Bytes(t.strings()?.to_vec()),
            DType::F32 => Values::Floats(t.slice::<f32>()?.to_vec()),
            _ => Values::Ints(t.slice::<i64>()?.to_vec()),
        })
    }

    /// `n` times the only value.
    pub fn repeated(&self, n: usize) -> Result<Values, KernelError> {
        Ok(match self {
            Values::Bytes(v) => Values::Bytes(memory::filled(v.first().cloned().unwrap_or_default(), n)?),
            Values::Floats(v) => Values::Floats(memory::filled(v.first().copied().unwrap_or_default(), n)?),
            Values::Ints(v) => Values::Ints(memory::filled(v.first().copied().unwrap_or_default(), n)?),
            Values::None => Values::None,
        })
    }

    pub fn tensor(self, shape: Shape) -> Result<Tensor, KernelError> {
        Ok(match self {
            Values::Bytes(v) => Tensor::from_strings(shape, v)?,
            Values::Floats(v) => Tensor::from_vec(shape, v)?,
            Values::Ints(v) => Tensor::from_vec(shape, v)?,
            Values::None => return Err(KernelError::invalid("a feature has no type")),
        })
    }
}

pub(super) fn feature(bytes: &[u8]) -> Result<Values, Malformed> {
    let mut values = Values::None;
    for field in Fields::new(bytes) {
        let (kind, Value::Bytes(list)) = field? else { continue };
        values = match kind {
            1 => Values::empty(DType::String),
            2 => Values::empty(DType::F32),
            3 => Values::empty(DType::I64),
            _ => continue,
        };
        for item in Fields::new(list) {
            match (&mut values, item?) {
                (Values::Bytes(v), (1, Value::Bytes(b))) => v.push(b.to_vec()),
                (Values::Floats(v), (1, Value::Fixed32(bits))) => v.push(f32::from_bits(bits)),
                (Values::Floats(v), (1, Value::Bytes(packed))) => {
                    let (floats, rest) = packed.as_chunks::<4>();
                    if !rest.is_empty() {
                        return Err(Malformed);
                    }
                    v.extend(floats.iter().map(|f| f32::from_le_bytes(*f)));
                }
                (Values::Ints(v), (1, Value::Varint(n))) => v.push(n as i64),
                (Values::Ints(v), (1, Value::Bytes(mut packed))) => {
                    while !packed.is_empty() {
                        v.push(decode_varint(&mut packed).map_err(|_| Malformed)? as i64);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(values)
}

/// The features of an example, by name; of equal names the last counts.
fn features(example: &[u8]) -> Result<FxHashMap<&[u8], Values>, Malformed> {
    let mut all = FxHashMap::default();
    for features in Fields::new(example) {
        let (1, Value::Bytes(features)) = features? else { continue };
        for entry in Fields::new(features) {
            let (1, Value::Bytes(entry)) = entry? else { continue };
            let (mut name, mut values) = (&[][..], Values::None);
            for field in Fields::new(entry) {
                match field? {
                    (1, Value::Bytes(b)) => name = b,
                    (2, Value::Bytes(b)) => values = feature(b)?,
                    _ => {}
                }
            }
            all.insert(name, values);
        }
    }
    Ok(all)
}

/// What is asked of examples.
pub(super) struct FeatureRequest {
    pub sparse: Vec<(String, DType)>,
    pub dense: Vec<(String, DType, PartialShape)>,
    pub ragged: Vec<(String, DType, DType)>,
}

impl FeatureRequest {
    /// TensorFlow's parser, too, refuses a key that is asked for twice.
    fn has_each_key_once(&self) -> Computed {
        let keys = self.sparse.iter().map(|(key, _)| key).chain(self.dense.iter().map(|(key, ..)| key));
        let mut seen = FxHashSet::default();
        match keys.chain(self.ragged.iter().map(|(key, ..)| key)).find(|key| !seen.insert(*key)) {
            Some(key) => Err(KernelError::invalid(format!("feature {key} is asked for twice"))),
            None => Ok(()),
        }
    }
}

/// What messages call the examples: the names that are given, or their numbers.
pub(super) fn labels(n: usize, names: &[String]) -> Vec<String> {
    let label = |i: usize| names.get(i).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| i.to_string());
    (0..n).map(label).collect()
}

/// Examples that were parsed.
struct Parsed<'a> {
    names: Vec<String>,
    examples: Vec<FxHashMap<&'a [u8], Values>>,
}

impl<'a> Parsed<'a> {
    fn new(serialized: &'a [Vec<u8>], names: &[String]) -> Result<Parsed<'a>, KernelError> {
        let names = labels(serialized.len(), names);
        let parse = |(i, bytes): (usize, &'a Vec<u8>)| {
            features(bytes).map_err(|_| KernelError::invalid(format!("example {}: not a serialised Example", names[i])))
        };
        let examples = serialized.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(Parsed { names, examples })
    }

    /// A feature of example `i`; `None` where it is missing.
    fn get(&self, i: usize, key: &str, dtype: DType) -> Result<Option<&Values>, KernelError> {
        let Some(values) = self.examples[i].get(key.as_bytes()) else { return Ok(None) };
        match values.dtype() {
            None => Ok(None),
            Some(got) if got == dtype => Ok(Some(values)),
            Some(got) => {
                let name = &self.names[i];
                Err(KernelError::invalid(format!("example {name}: feature {key} is {got}, expected {dtype}")))
            }
        }
    }

    /// Indices, values and shape; one example alone has no batch dimension.
    fn sparse(&self, key: &str, dtype: DType, is_batch: bool) -> Result<[Tensor; 3], KernelError> {
        let (mut indices, mut values, mut longest) = (Vec::new(), Values::empty(dtype), 0);
        for i in 0..self.examples.len() {
            let Some(own) = self.get(i, key, dtype)? else { continue };
            for k in 0..own.len() {
                if is_batch {
                    indices.push(i as i64);
                }
                indices.push(k as i64);
            }
            longest = longest.max(own.len());
            values.append(own);
        }
        let (n, rank) = (values.len(), if is_batch { 2 } else { 1 });
        let shape = match is_batch {
            true => vec![self.examples.len() as i64, longest as i64],
            false => vec![longest as i64],
        };
        Ok([Tensor::from_vec([n, rank], indices)?, values.tensor(Shape::new(&[n]))?, Tensor::vector(&shape)])
    }

    /// All examples' values; of those that miss the feature the default.
    fn dense(
        &self,
        (key, dtype, shape): &(String, DType, PartialShape),
        default: &Tensor,
        is_batch: bool,
    ) -> Result<Tensor, KernelError> {
        let batch: &[usize] = if is_batch { &[self.examples.len()] } else { &[] };
        let dims = shape.dims().ok_or_else(|| KernelError::invalid(format!("feature {key}: dense shape {shape}")))?;
        let is_variable = dims.first().is_some_and(Option::is_none);
        let inner: Option<Vec<usize>> = dims[usize::from(is_variable)..].iter().copied().collect();
        let inner = inner.ok_or_else(|| {
            KernelError::invalid(format!("feature {key}: only the first dimension of {shape} may vary"))
        })?;
        let row: usize = inner.iter().product();
        let default_values = Values::from_tensor(default)?;
        let mut all: Vec<Option<&Values>> = Vec::new();
        for i in 0..self.examples.len() {
            let own = self.get(i, key, *dtype)?;
            let fits = |v: &Values| if is_variable { row > 0 && v.len().is_multiple_of(row) } else { v.len() == row };
            if let Some(own) = own.filter(|v| !fits(v)) {
                let text =
                    format!("example {}: feature {key} has {} values, not of shape {shape}", self.names[i], own.len());
                return Err(KernelError::invalid(text));
            }
            if own.is_none() && !is_variable && default.len() != row {
                let text = format!(
                    "example {}: feature {key} (data type: {dtype}) is required but could not be found",
                    self.names[i]
                );
                return Err(KernelError::invalid(text));
            }
            all.push(own);
        }
        let mut out = Values::empty(*dtype);
        if !is_variable {
            all.iter().for_each(|own| out.append(own.unwrap_or(&default_values)));
            return out.tensor(Shape::new(&[batch, &inner].concat()));
        }
        // Shorter ones are filled up with the default, a single value (zeros or empty strings where there is none).
        if default.len() > 1 {
            return Err(KernelError::invalid(format!(
                "feature {key}: the default of a varying shape must be one value"
            )));
        }
        let longest = all.iter().flatten().map(|v| v.len()).max().unwrap_or(0);
        out.reserve(longest.saturating_mul(all.len()))?;
        let filler = if default.is_empty() { zero(*dtype) } else { default_values };
        for own in all {
            let n = own.map_or(0, Values::len);
            if let Some(own) = own {
                out.append(own);
            }
            out.append(&filler.repeated(longest - n)?);
        }
        out.tensor(Shape::new(&[batch, &[longest / row.max(1)], &inner].concat()))
    }

    /// Values and row splits.
    fn ragged(&self, (key, dtype, splits): &(String, DType, DType)) -> Result<[Tensor; 2], KernelError> {
        let (mut values, mut ends) = (Values::empty(*dtype), vec![0i64]);
        for i in 0..self.examples.len() {
            if let Some(own) = self.get(i, key, *dtype)? {
                values.append(own);
            }
            ends.push(values.len() as i64);
        }
        let n = values.len();
        let ends = match splits {
            DType::I32 => Tensor::vector(&ends.iter().map(|e| *e as i32).collect::<Vec<_>>()),
            _ => Tensor::vector(&ends),
        };
        Ok([values.tensor(Shape::new(&[n]))?, ends])
    }
}

/// One value of what fills places up.
pub(super) fn zero(dtype: DType) -> Values {
    match dtype {
        DType::String => Values::Bytes(vec![Vec::new()]),
        DType::F32 => Values::Floats(vec![0.0]),
        _ => Values::Ints(vec![0]),
    }
}

/// Computes outputs in the ops' order: indices, values, shapes, dense values, ragged values, row splits. How many they are.
pub(super) fn emit(
    c: &mut KernelContext<'_>,
    request: &FeatureRequest,
    first_default: usize,
    names: &[String],
    is_batch: bool,
) -> Result<usize, KernelError> {
    let serialized = c.input(0)?.clone();
    let strings = serialized.strings()?;
    if !is_batch && strings.len() != 1 {
        return Err(KernelError::invalid("serialized must be one string"));
    }
    request.has_each_key_once()?;
    let parsed = Parsed::new(strings, names)?;
    let (n_sparse, n_dense) = (request.sparse.len(), request.dense.len());
    for (i, (key, dtype)) in request.sparse.iter().enumerate() {
        let parts = parsed.sparse(key, *dtype, is_batch)?;
        parts.into_iter().enumerate().for_each(|(k, t)| c.set(k * n_sparse + i, t));
    }
    for (i, wanted) in request.dense.iter().enumerate() {
        let value = parsed.dense(wanted, c.input(first_default + i)?, is_batch)?;
        c.set(3 * n_sparse + i, value);
    }
    let first = 3 * n_sparse + n_dense;
    for (i, wanted) in request.ragged.iter().enumerate() {
        let [values, splits] = parsed.ragged(wanted)?;
        c.set(first + i, values);
        c.set(first + request.ragged.len() + i, splits);
    }
    Ok(first + 2 * request.ragged.len())
}

pub(super) fn types(node: &Node, attr: &str) -> Result<Vec<DType>, KernelError> {
    let list = match node.attrs.get(attr) {
        Some(Attr::ListType(list)) => list.clone(),
        _ => Vec::new(),
    };
    match list.iter().find(|t| !matches!(t, DType::F32 | DType::I64 | DType::String | DType::I32)) {
        Some(t) => Err(KernelError::invalid(format!("a feature cannot be {t}"))),
        None => Ok(list),
    }
}

/// The types and shapes of dense features, from these attributes.
pub(super) fn dense_of(
    node: &Node,
    types_attr: &str,
    shapes_attr: &str,
) -> Result<Vec<(DType, PartialShape)>, KernelError> {
    let types = types(node, types_attr)?;
    let shapes = match node.attrs.get(shapes_attr) {
        Some(Attr::ListShape(shapes)) => shapes.clone(),
        _ => Vec::new(),
    };
    if types.len() != shapes.len() {
        return Err(KernelError::invalid(format!("{} dense types, but {} shapes", types.len(), shapes.len())));
    }
    Ok(types.into_iter().zip(shapes).collect())
}

pub(super) fn with_keys<T>(keys: Vec<String>, of: impl IntoIterator<Item = T>) -> impl Iterator<Item = (String, T)> {
    keys.into_iter().zip(of)
}

fn parse_example(node: &Node) -> Built {
    let (sparse, dense) = (types(node, "sparse_types")?, dense_of(node, "Tdense", "dense_shapes")?);
    kernel(move |c| {
        let key = |i: usize| super::checkpoint::text(c, i);
        let sparse_keys = (2..2 + sparse.len()).map(key).collect::<Result<Vec<_>, _>>()?;
        let first = 2 + sparse.len();
        let dense_keys = (first..first + dense.len()).map(key).collect::<Result<Vec<_>, _>>()?;
        let names = texts(c, 1)?;
        let dense = with_keys(dense_keys, dense.iter().cloned()).map(|(k, (t, s))| (k, t, s)).collect();
        let sparse = with_keys(sparse_keys, sparse.iter().copied()).collect();
        let request = FeatureRequest { sparse, dense, ragged: Vec::new() };
        let first_default = first + request.dense.len();
        emit(c, &request, first_default, &names, true).map(drop)
    })
}

fn parse_example_v2(node: &Node) -> Built {
    let (sparse, dense) = (types(node, "sparse_types")?, dense_of(node, "Tdense", "dense_shapes")?);
    let ragged: Vec<(DType, DType)> =
        types(node, "ragged_value_types")?.into_iter().zip(types(node, "ragged_split_types")?).collect();
    kernel(move |c| {
        let (names, is_batch) = (texts(c, 1)?, c.input(0)?.shape().rank() == 1);
        let keys = [texts(c, 2)?, texts(c, 3)?, texts(c, 4)?];
        if [sparse.len(), dense.len(), ragged.len()] != [keys[0].len(), keys[1].len(), keys[2].len()] {
            return Err(KernelError::invalid("there must be as many keys as types"));
        }
        let [sparse_keys, dense_keys, ragged_keys] = keys;
        let request = FeatureRequest {
            sparse: with_keys(sparse_keys, sparse.iter().copied()).collect(),
            dense: with_keys(dense_keys, dense.iter().cloned()).map(|(k, (t, s))| (k, t, s)).collect(),
            ragged: with_keys(ragged_keys, ragged.iter().copied()).map(|(k, (t, s))| (k, t, s)).collect(),
        };
        emit(c, &request, 5, &names, is_batch).map(drop)
    })
}

/// The keys that an attribute lists.
pub(super) fn key_list(node: &Node, attr: &str) -> Vec<String> {
    match node.attrs.get(attr) {
        Some(Attr::ListStr(list)) => list.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect(),
        _ => Vec::new(),
    }
}

fn parse_single(node: &Node) -> Built {
    let (sparse, dense) = (types(node, "sparse_types")?, dense_of(node, "Tdense", "dense_shapes")?);
    let (sparse_keys, dense_keys) = (key_list(node, "sparse_keys"), key_list(node, "dense_keys"));
    if [sparse.len(), dense.len()] != [sparse_keys.len(), dense_keys.len()] {
        return Err(KernelError::invalid("there must be as many keys as types"));
    }
    let dense = with_keys(dense_keys, dense).map(|(k, (t, s))| (k, t, s)).collect();
    let request = FeatureRequest { sparse: with_keys(sparse_keys, sparse).collect(), dense, ragged: Vec::new() };
    kernel(move |c| emit(c, &request, 1, &[], false).map(drop))
}
