//! Kernels that parse `tf.train.SequenceExample` records: an example's features (the context), and lists of features,
//! one for each step of time.
//!
//! A `SequenceExample` is `Features` (1: context, as an `Example`'s) and `FeatureLists` (2), which are a map (1: entries; 1:
//! name, 2: `FeatureList`) of repeated `Feature`s (1) (tensorflow/core/example/example.proto).

use formats::wire::{Fields, Malformed, Value};
use rustc_hash::FxHashMap;

use super::checkpoint::{text, texts};
use super::example::{FeatureRequest, Values, dense_of, emit, feature, key_list, labels, types, with_keys, zero};
use super::support::{Built, Computed, cpu_any, indices, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static SEQUENCE: &[KernelDef] = &[
    cpu_any("ParseSequenceExample", parse_sequence),
    cpu_any("ParseSequenceExampleV2", parse_sequence_v2),
    cpu_any("ParseSingleSequenceExample", parse_single),
];

/// The lists of an example, by name; of equal names the last counts.
type Lists<'a> = FxHashMap<&'a [u8], Vec<Values>>;

fn feature_lists(example: &[u8]) -> Result<Lists<'_>, Malformed> {
    let mut all = FxHashMap::default();
    for lists in Fields::new(example) {
        let (2, Value::Bytes(lists)) = lists? else { continue };
        for entry in Fields::new(lists) {
            let (1, Value::Bytes(entry)) = entry? else { continue };
            let (mut name, mut steps) = (&[][..], Vec::new());
            for field in Fields::new(entry) {
                match field? {
                    (1, Value::Bytes(b)) => name = b,
                    (2, Value::Bytes(b)) => steps = feature_list(b)?,
                    _ => {}
                }
            }
            all.insert(name, steps);
        }
    }
    Ok(all)
}

fn feature_list(bytes: &[u8]) -> Result<Vec<Values>, Malformed> {
    let mut steps = Vec::new();
    for field in Fields::new(bytes) {
        if let (1, Value::Bytes(step)) = field? {
            steps.push(feature(step)?);
        }
    }
    Ok(steps)
}

/// A dense list that is asked for.
struct DenseList {
    key: String,
    dtype: DType,
    /// Of each step.
    shape: PartialShape,
    /// Whether an example without it has no steps; else it is an error.
    may_miss: bool,
}

/// What is asked of the lists.
struct FeatureListRequest {
    sparse: Vec<(String, DType)>,
    dense: Vec<DenseList>,
    ragged: Vec<(String, DType, DType)>,
}

/// Lists that were parsed.
struct Parsed<'a> {
    names: Vec<String>,
    examples: Vec<Lists<'a>>,
    is_batch: bool,
}

impl<'a> Parsed<'a> {
    fn new(serialized: &'a [Vec<u8>], names: &[String], is_batch: bool) -> Result<Parsed<'a>, KernelError> {
        let names = labels(serialized.len(), names);
        let parse = |(bytes, name): (&'a Vec<u8>, &String)| {
            feature_lists(bytes)
                .map_err(|_| KernelError::invalid(format!("example {name}: not a serialised SequenceExample")))
        };
        let examples = serialized.iter().zip(&names).map(parse).collect::<Result<_, _>>()?;
        Ok(Parsed { names, examples, is_batch })
    }

    /// The steps of a list of example `i`; `None` where it has no such list. Features without values are of any type.
    fn steps(&self, i: usize, key: &str, dtype: DType) -> Result<Option<&[Values]>, KernelError> {
        let Some(steps) = self.examples[i].get(key.as_bytes()) else { return Ok(None) };
        match steps.iter().enumerate().find_map(|(t, v)| v.dtype().filter(|d| *d != dtype).map(|d| (t, d))) {
            None => Ok(Some(steps)),
            Some((t, got)) => {
                let name = &self.names[i];
                Err(KernelError::invalid(format!(
                    "example {name}: feature list {key} is {got} at step {t}, expected {dtype}"
                )))
            }
        }
    }

    /// Indices (example, step, position), values and shape; one example alone has no first dimension.
    fn sparse(&self, key: &str, dtype: DType) -> Result<[Tensor; 3], KernelError> {
        let (mut at, mut values, mut longest, mut widest) = (Vec::new(), Values::empty(dtype), 0, 0);
        for i in 0..self.examples.len() {
            let steps = self.steps(i, key, dtype)?.unwrap_or_default();
            longest = longest.max(steps.len());
            for (t, step) in steps.iter().enumerate() {
                widest = widest.max(step.len());
                for k in 0..step.len() {
                    at.extend(self.is_batch.then_some(i as i64));
                    at.extend([t as i64, k as i64]);
                }
                values.append(step);
            }
        }
        let n = values.len();
        let mut shape: Vec<i64> = self.is_batch.then_some(self.examples.len() as i64).into_iter().collect();
        shape.extend([longest as i64, widest as i64]);
        Ok([Tensor::from_vec([n, shape.len()], at)?, values.tensor(Shape::new(&[n]))?, Tensor::vector(&shape)])
    }

    /// All examples' steps, shorter lists filled up with zeros or empty strings, and how many steps each has.
    fn dense(&self, list: &DenseList) -> Result<[Tensor; 2], KernelError> {
        let DenseList { key, dtype, shape, may_miss } = list;
        let inner = shape.known().ok_or_else(|| {
            KernelError::invalid(format!("feature list {key}: the shape of a step must be known, got {shape}"))
        })?;
        let row = inner.n_elements();
        let mut all = Vec::new();
        for i in 0..self.examples.len() {
            let steps = self.steps(i, key, *dtype)?;
            let name = &self.names[i];
            if steps.is_none() && !may_miss {
                return Err(KernelError::invalid(format!(
                    "example {name}: feature list {key} is required but could not be found; \
                     feature_list_dense_missing_assumed_empty would let it be empty"
                )));
            }
            let steps = steps.unwrap_or_default();
            if let Some((t, step)) = steps.iter().enumerate().find(|(_, step)| step.len() != row) {
                let text = format!("feature list {key} has {} values at step {t}, not of shape {inner}", step.len());
                return Err(KernelError::invalid(format!("example {name}: {text}")));
            }
            all.push(steps);
        }
        let longest = all.iter().map(|steps| steps.len()).max().unwrap_or(0);
        let mut values = Values::empty(*dtype);
        values.reserve(longest.saturating_mul(row).saturating_mul(all.len()))?;
        for steps in &all {
            steps.iter().for_each(|step| values.append(step));
            values.append(&zero(*dtype).repeated((longest - steps.len()) * row)?);
        }
        let lengths: Vec<i64> = all.iter().map(|steps| steps.len() as i64).collect();
        let batch: &[usize] = if self.is_batch { &[all.len()] } else { &[] };
        let lengths = Tensor::from_vec(Shape::new(batch), lengths)?;
        Ok([values.tensor(Shape::new(&[batch, &[longest], inner.dims()].concat()))?, lengths])
    }

    /// Values, where the steps of each example end, and where the values of each step do.
    fn ragged(&self, (key, dtype, splits): &(String, DType, DType)) -> Result<[Tensor; 3], KernelError> {
        let (mut values, mut outer, mut inner) = (Values::empty(*dtype), vec![0i64], vec![0i64]);
        for i in 0..self.examples.len() {
            for step in self.steps(i, key, *dtype)?.unwrap_or_default() {
                values.append(step);
                inner.push(values.len() as i64);
            }
            outer.push(inner.len() as i64 - 1);
        }
        let ends = |all: Vec<i64>| indices(*splits, Shape::new(&[all.len()]), &all);
        let n = values.len();
        Ok([values.tensor(Shape::new(&[n]))?, ends(outer)?, ends(inner)?])
    }
}

/// Computes the lists' outputs, from output `first` on, in the ops' order: indices, values, shapes, dense values, their
/// lengths (where the op has them), ragged values, their outer and inner splits.
fn emit_lists(
    c: &mut KernelContext<'_>,
    request: &FeatureListRequest,
    first: usize,
    names: &[String],
    is_batch: bool,
) -> Computed {
    let serialized = c.input(0)?.clone();
    let parsed = Parsed::new(serialized.strings()?, names, is_batch)?;
    for (i, (key, dtype)) in request.sparse.iter().enumerate() {
        let parts = parsed.sparse(key, *dtype)?;
        parts.into_iter().enumerate().for_each(|(k, t)| c.set(first + k * request.sparse.len() + i, t));
    }
    let (n_dense, first) = (request.dense.len(), first + 3 * request.sparse.len());
    let has_lengths = c.outputs.len() > first + n_dense;
    for (i, list) in request.dense.iter().enumerate() {
        let [values, lengths] = parsed.dense(list)?;
        c.set(first + i, values);
        if has_lengths {
            c.set(first + n_dense + i, lengths);
        }
    }
    for (i, list) in request.ragged.iter().enumerate() {
        let parts = parsed.ragged(list)?;
        parts.into_iter().enumerate().for_each(|(k, t)| c.set(first + 2 * n_dense + k * request.ragged.len() + i, t));
    }
    Ok(())
}

/// What the attributes say of the features and lists, whose keys come from elsewhere.
struct Kinds {
    sparse: Vec<DType>,
    dense: Vec<(DType, PartialShape)>,
    ragged: Vec<(DType, DType)>,
}

impl Kinds {
    fn of_context(node: &Node) -> Result<Kinds, KernelError> {
        Ok(Kinds {
            sparse: types(node, "context_sparse_types")?,
            dense: dense_of(node, "Tcontext_dense", "context_dense_shapes")?,
            ragged: pairs(node, "context_ragged_value_types", "context_ragged_split_types")?,
        })
    }

    fn of_lists(node: &Node) -> Result<Kinds, KernelError> {
        Ok(Kinds {
            sparse: types(node, "feature_list_sparse_types")?,
            dense: dense_of(node, "feature_list_dense_types", "feature_list_dense_shapes")?,
            ragged: pairs(node, "feature_list_ragged_value_types", "feature_list_ragged_split_types")?,
        })
    }

    fn check(&self, keys: &[Vec<String>; 3]) -> Computed {
        let n = [self.sparse.len(), self.dense.len(), self.ragged.len()];
        match keys.each_ref().map(Vec::len) == n {
            true => Ok(()),
            false => Err(KernelError::invalid("there must be as many keys as types")),
        }
    }

    fn context(&self, keys: [Vec<String>; 3]) -> Result<FeatureRequest, KernelError> {
        self.check(&keys)?;
        let [sparse, dense, ragged] = keys;
        Ok(FeatureRequest {
            sparse: with_keys(sparse, self.sparse.iter().copied()).collect(),
            dense: with_keys(dense, self.dense.iter().cloned()).map(|(k, (t, s))| (k, t, s)).collect(),
            ragged: with_keys(ragged, self.ragged.iter().copied()).map(|(k, (t, s))| (k, t, s)).collect(),
        })
    }

    fn lists(
        &self,
        keys: [Vec<String>; 3],
        may_miss: impl Fn(usize, &str) -> bool,
    ) -> Result<FeatureListRequest, KernelError> {
        self.check(&keys)?;
        let [sparse, dense, ragged] = keys;
        let list = |(i, (key, (dtype, shape))): (usize, (String, (DType, PartialShape)))| {
            let may_miss = may_miss(i, &key);
            DenseList { key, dtype, shape, may_miss }
        };
        Ok(FeatureListRequest {
            sparse: with_keys(sparse, self.sparse.iter().copied()).collect(),
            dense: with_keys(dense, self.dense.iter().cloned()).enumerate().map(list).collect(),
            ragged: with_keys(ragged, self.ragged.iter().copied()).map(|(k, (t, s))| (k, t, s)).collect(),
        })
    }
}

fn pairs(node: &Node, values: &str, splits: &str) -> Result<Vec<(DType, DType)>, KernelError> {
    Ok(types(node, values)?.into_iter().zip(types(node, splits)?).collect())
}

/// The keys are attributes.
fn parse_sequence(node: &Node) -> Built {
    let keys = |part: &str| {
        [key_list(node, &format!("{part}_sparse_keys")), key_list(node, &format!("{part}_dense_keys")), Vec::new()]
    };
    let may_miss = key_list(node, "feature_list_dense_missing_assumed_empty");
    let context = Kinds::of_context(node)?.context(keys("context"))?;
    let lists = Kinds::of_lists(node)?.lists(keys("feature_list"), |_, key| may_miss.iter().any(|k| k == key))?;
    kernel(move |c| {
        let names = texts(c, 1)?;
        let first = emit(c, &context, 2, &names, true)?;
        emit_lists(c, &lists, first, &names, true)
    })
}

/// The keys are inputs, each kind's in one.
fn parse_sequence_v2(node: &Node) -> Built {
    let (context, lists) = (Kinds::of_context(node)?, Kinds::of_lists(node)?);
    kernel(move |c| {
        let (names, is_batch) = (texts(c, 1)?, c.input(0)?.shape().rank() == 1);
        let may_miss = c.input(8)?.slice::<bool>()?.to_vec();
        if may_miss.len() != lists.dense.len() {
            let (got, n) = (may_miss.len(), lists.dense.len());
            let text = format!("feature_list_dense_missing_assumed_empty has {got} values for {n} dense lists");
            return Err(KernelError::invalid(text));
        }
        let context = context.context([texts(c, 2)?, texts(c, 3)?, texts(c, 4)?])?;
        let lists = lists.lists([texts(c, 5)?, texts(c, 6)?, texts(c, 7)?], |i, _| may_miss[i])?;
        let first = emit(c, &context, 9, &names, is_batch)?;
        emit_lists(c, &lists, first, &names, is_batch)
    })
}

/// One example; each key is an input of its own.
fn parse_single(node: &Node) -> Built {
    let (context, lists) = (Kinds::of_context(node)?, Kinds::of_lists(node)?);
    kernel(move |c| {
        let mut next = 2;
        let mut keys = |n: usize| {
            next += n;
            (next - n..next).map(|i| text(c, i)).collect::<Result<Vec<String>, _>>()
        };
        let of_context = [keys(context.sparse.len())?, keys(context.dense.len())?, Vec::new()];
        let of_lists = [keys(lists.sparse.len())?, keys(lists.dense.len())?, Vec::new()];
        let may_miss = texts(c, 1)?;
        let names = texts(c, next + context.dense.len())?;
        let context = context.context(of_context)?;
        let lists = lists.lists(of_lists, |_, key| may_miss.iter().any(|k| k == key))?;
        let first = emit(c, &context, next, &names, false)?;
        emit_lists(c, &lists, first, &names, false)
    })
}
