//! Kernels of random ops: TensorFlow's numbers for TensorFlow's seeds, whatever the number of threads.
//!
//! Where an execution's numbers begin is its [`Origin`]: a generator that goes on from execution to execution, or a
//! seed that the op is given. From there each group of outputs (four floats, two doubles) has its own place in the
//! generator's sequence, so that any shard can begin anywhere.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use super::philox::{Philox, Words, normal_f32, normal_f64, uniform_bf16, uniform_f16, uniform_f32, uniform_f64};
use super::rows::pick;
use super::support::{Built, Computed, cpu_any, kernel, kernel_with_state, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::checkpoint::Checkpointed;
use engine_core::convert::convert;
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Calls of the generator set aside for each output.
pub const RESERVED: u64 = 256;
/// Normal numbers further out are drawn again.
const TRUNCATE: f64 = 2.0;

/// Where an execution's numbers begin.
pub enum Origin {
    /// A generator of the node's own, which goes on.
    Own(Arc<Mutex<Philox>>),
    /// The pair of seeds in an input, mixed.
    Seed(usize),
    /// Key, counter and algorithm in this input and the two after it.
    Key(usize),
}

impl Origin {
    /// Of the node's two seeds; both 0: of the system's.
    ///
    /// # Errors
    /// One is missing.
    pub fn of_seeds(node: &Node) -> Result<Origin, KernelError> {
        let (seed, seed2) = (*node.int("seed")? as u64, *node.int("seed2")? as u64);
        Ok(Origin::Own(Arc::new(Mutex::new(match (seed, seed2) {
            (0, 0) => Philox::new(RandomState::new().hash_one(1u8), RandomState::new().hash_one(2u8)),
            _ => Philox::new(seed, seed2),
        }))))
    }

    /// What of it belongs into checkpoints.
    pub fn state(&self) -> Option<Arc<dyn Checkpointed>> {
        match self {
            Origin::Own(generator) => Some(Arc::clone(generator) as Arc<dyn Checkpointed>),
            Origin::Seed(_) | Origin::Key(_) => None,
        }
    }

    /// The generator for this execution; one's own moves on by `n_calls`.
    ///
    /// # Errors
    /// The inputs are no seeds.
    pub fn begin(&self, c: &KernelContext<'_>, n_calls: u64) -> Result<Philox, KernelError> {
        match self {
            Origin::Own(generator) => {
                let mut generator = generator.lock();
                let base = *generator;
                generator.skip(n_calls);
                Ok(base)
            }
            Origin::Seed(i) => seeded(c, *i),
            Origin::Key(i) => keyed(c, *i),
        }
    }
}

/// The generator of a pair of seeds.
fn seeded(c: &KernelContext<'_>, i: usize) -> Result<Philox, KernelError> {
    match c.ints(i)?.as_slice() {
        [a, b] => Ok(Philox::scrambled(*a as u64, *b as u64)),
        other => Err(KernelError::invalid(format!("the seed must be two integers, got {}", other.len()))),
    }
}

fn keyed(c: &KernelContext<'_>, i: usize) -> Result<Philox, KernelError> {
    let (key, counter, algorithm) = (c.slice::<u64>(i)?, c.slice::<u64>(i + 1)?, c.item::<i32>(i + 2)?);
    // 1 is Philox, 3 whatever suits the device.
    match (key, counter, algorithm) {
        ([key, ..], [low, high, ..], 1 | 3) => Ok(Philox::at(*key, [*low, *high])),
        (_, _, 1 | 3) => Err(KernelError::invalid("key must have one number, counter two")),
        _ => Err(KernelError::invalid(format!("algorithm {algorithm} is not supported (1: Philox)"))),
    }
}

/// What is drawn.
#[derive(Clone, Copy)]
enum Draw {
    Uniform,
    Normal,
    Truncated,
    /// All bits of integers.
    Bits,
    /// Integers of `0..range`, added to the least.
    Below(u64, u64),
}

/// Fills `out` in groups of `len`; group `i` begins `i * stride` calls after `base`.
fn groups<T: Element>(
    c: &KernelContext<'_>,
    shape: Shape,
    base: Philox,
    (len, stride, ps): (usize, u64, u64),
    group: impl Fn(&mut Philox, &mut [T]) + Sync,
) -> Result<Tensor, KernelError> {
    let mut t = c.room::<T>(shape)?;
    shard_slice(c.sharder, unique_slice::<T>(&mut t)?, len, ps, |at, part| {
        for (i, out) in part.chunks_mut(len).enumerate() {
            let mut g = base;
            g.skip((at / len + i) as u64 * stride);
            group(&mut g, out);
        }
    });
    Ok(t)
}

fn copy<T: Copy>(out: &mut [T], values: impl IntoIterator<Item = T>) {
    out.iter_mut().zip(values).for_each(|(o, v)| *o = v);
}

/// Normal numbers within the cut: as many as `out` holds.
fn truncated<T: Copy, const N: usize>(out: &mut [T], mut next: impl FnMut() -> [T; N], fits: impl Fn(T) -> bool) {
    let mut n = 0;
    while n < out.len() {
        for v in next() {
            if fits(v) && n < out.len() {
                out[n] = v;
                n += 1;
            }
        }
    }
}

fn four_normals(g: &mut Philox) -> [f32; 4] {
    let x = g.next4();
    let ([a, b], [c, d]) = (normal_f32(x[0], x[1]), normal_f32(x[2], x[3]));
    [a, b, c, d]
}

fn wide_words(x: [u32; 4]) -> [u64; 2] {
    [u64::from(x[0]) | u64::from(x[1]) << 32, u64::from(x[2]) | u64::from(x[3]) << 32]
}

fn fill(c: &KernelContext<'_>, shape: Shape, dtype: DType, draw: Draw, base: Philox) -> Result<Tensor, KernelError> {
    let wide = |t: Result<Tensor, KernelError>| Ok(convert(&t?, dtype, c.allocator)?);
    match (draw, dtype) {
        (Draw::Uniform, DType::F32) => {
            groups(c, shape, base, (4, 1, 2000), |g, out| copy(out, g.next4().map(uniform_f32)))
        }
        (Draw::Uniform, DType::F64) => groups(c, shape, base, (2, 1, 4000), |g, out| {
            let x = g.next4();
            copy(out, [uniform_f64(x[0], x[1]), uniform_f64(x[2], x[3])]);
        }),
        (Draw::Uniform, DType::F16) => {
            groups(c, shape, base, (4, 1, 2000), |g, out| copy(out, g.next4().map(uniform_f16)))
        }
        (Draw::Uniform, DType::BF16) => {
            groups(c, shape, base, (4, 1, 2000), |g, out| copy(out, g.next4().map(uniform_bf16)))
        }
        (Draw::Normal, DType::F32) => groups(c, shape, base, (4, 1, 10_000), |g, out| copy(out, four_normals(g))),
        (Draw::Normal, DType::F64) => groups(c, shape, base, (2, 1, 20_000), |g, out| copy(out, normal_f64(g.next4()))),
        (Draw::Truncated, DType::F32) => groups(c, shape, base, (4, RESERVED, 10_000), |g, out: &mut [f32]| {
            truncated(out, || four_normals(g), |v| v.abs() < TRUNCATE as f32);
        }),
        (Draw::Truncated, DType::F64) => groups(c, shape, base, (2, RESERVED / 2, 20_000), |g, out: &mut [f64]| {
            truncated(out, || normal_f64(g.next4()), |v| v.abs() < TRUNCATE);
        }),
        // 16-bit floats are drawn in 32 bits and rounded.
        (Draw::Normal | Draw::Truncated, DType::F16 | DType::BF16) => wide(fill(c, shape, DType::F32, draw, base)),
        (Draw::Bits, DType::I32) => {
            groups(c, shape, base, (4, 1, 2000), |g, out| copy(out, g.next4().map(|x| x as i32)))
        }
        (Draw::Bits, DType::U32) => groups(c, shape, base, (4, 1, 2000), |g, out| copy(out, g.next4())),
        (Draw::Bits, DType::I64) => {
            groups(c, shape, base, (2, 1, 4000), |g, out| copy(out, wide_words(g.next4()).map(|x| x as i64)))
        }
        (Draw::Bits, DType::U64) => groups(c, shape, base, (2, 1, 4000), |g, out| copy(out, wide_words(g.next4()))),
        (Draw::Below(low, range), DType::I32 | DType::U32) => {
            let (low, range) = (low as u32, range as u32);
            let draw = move |g: &mut Philox| g.next4().map(|x| low.wrapping_add(x % range));
            match dtype {
                DType::I32 => groups(c, shape, base, (4, 1, 3000), |g, out| copy(out, draw(g).map(|x| x as i32))),
                _ => groups(c, shape, base, (4, 1, 3000), |g, out| copy(out, draw(g))),
            }
        }
        (Draw::Below(low, range), DType::I64 | DType::U64) => {
            let draw = move |g: &mut Philox| wide_words(g.next4()).map(|x| low.wrapping_add(x % range));
            match dtype {
                DType::I64 => groups(c, shape, base, (2, 1, 9000), |g, out| copy(out, draw(g).map(|x| x as i64))),
                _ => groups(c, shape, base, (2, 1, 9000), |g, out| copy(out, draw(g))),
            }
        }
        _ => Err(KernelError::invalid(format!("no random numbers of type {dtype}"))),
    }
}

/// Numbers in the shape that input 0 lists.
fn drawn(node: &Node, origin: Origin, attr: &str, draw: Draw) -> Built {
    let dtype = *node.dtype(attr)?;
    kernel_with_state(origin.state(), move |c| {
        let shape = c.shape_input(0)?;
        let n =
            shape.checked_n_elements().ok_or_else(|| KernelError::invalid(format!("shape {shape} is too large")))?;
        let base = origin.begin(c, (n as u64).wrapping_mul(RESERVED))?;
        let out = fill(c, shape, dtype, draw, base)?;
        c.set(0, out);
        Ok(())
    })
}

/// As [`drawn`], integers between the bounds in inputs `at` and `at + 1`, the upper one excluded.
fn bounded(node: &Node, origin: Origin, attr: &str, at: usize) -> Built {
    let dtype = *node.dtype(attr)?;
    kernel_with_state(origin.state(), move |c| {
        let shape = c.shape_input(0)?;
        let bound = |i: usize| -> Result<u64, KernelError> {
            let t = c.input(i)?;
            Ok(match dtype {
                DType::U64 => t.item::<u64>()?,
                _ => convert(t, DType::I64, c.allocator)?.item::<i64>()? as u64,
            })
        };
        let (low, high) = (bound(at)?, bound(at + 1)?);
        let is_signed = matches!(dtype, DType::I32 | DType::I64);
        if if is_signed { low as i64 >= high as i64 } else { low >= high } {
            return Err(KernelError::invalid(format!("minval {low} must be less than maxval {high}")));
        }
        let n =
            shape.checked_n_elements().ok_or_else(|| KernelError::invalid(format!("shape {shape} is too large")))?;
        let base = origin.begin(c, (n as u64).wrapping_mul(RESERVED))?;
        let out = fill(c, shape, dtype, Draw::Below(low, high.wrapping_sub(low)), base)?;
        c.set(0, out);
        Ok(())
    })
}

/// The rows of input 0 in random order.
fn shuffle(node: &Node) -> Built {
    let origin = Origin::of_seeds(node)?;
    kernel_with_state(origin.state(), move |c| {
        let value = c.input(0)?;
        let n = value.dims().first().copied().unwrap_or(1);
        if value.len() <= 1 || n <= 1 {
            let value = c.take(0)?;
            c.set(0, value);
            return Ok(());
        }
        let mut words = Words::new(origin.begin(c, (n as u64 - 1).div_ceil(4))?);
        let mut order: Vec<(usize, usize)> = (0..n).map(|i| (0, i)).collect();
        for i in 0..n - 1 {
            order.swap(i, i + (words.next_u32() as usize) % (n - i));
        }
        let row = value.len() / n;
        let out = pick(c, value.dtype(), &[value], &order, row, value.shape().clone())?;
        c.set(0, out);
        Ok(())
    })
}

/// Classes drawn with the probabilities that rows of logits give.
fn multinomial(node: &Node, origin: Origin) -> Built {
    let to = *node.dtype("output_dtype")?;
    kernel_with_state(origin.state(), move |c| {
        let logits = c.input(0)?;
        let (&[n_rows, n_classes], n) = (logits.dims(), c.item::<i32>(1)?) else {
            return Err(KernelError::invalid(format!("logits must be a matrix, got shape {}", logits.shape())));
        };
        let n = usize::try_from(n).map_err(|_| KernelError::invalid(format!("num_samples is {n}")))?;
        if n_classes == 0 && n_rows * n > 0 {
            return Err(KernelError::invalid("there are no classes"));
        }
        let values = logits.to_f64()?;
        let reserved = (n_rows as u64).wrapping_mul((n as u64).next_multiple_of(4) * 2).wrapping_mul(RESERVED);
        let mut words = Words::new(origin.begin(c, reserved)?);
        let n_out = n_rows.checked_mul(n).ok_or_else(|| KernelError::invalid("the result is too large"))?;
        let mut out = memory::vec(n_out)?;
        for row in values.chunks(n_classes.max(1)) {
            let cumulative = cumulative(row);
            let total = cumulative.last().copied().unwrap_or(0.0);
            for _ in 0..n {
                let (low, high) = (words.next_u32(), words.next_u32());
                let at = uniform_f64(low, high) * total;
                out.push(cumulative.partition_point(|v| *v <= at) as i64);
            }
        }
        let out = super::support::indices(to, Shape::new(&[n_rows, n]), &out)?;
        c.set(0, out);
        Ok(())
    })
}

/// Running sums of `e^(logit - largest)`; what is not finite counts nothing.
fn cumulative(logits: &[f64]) -> Vec<f64> {
    let finite = |v: &&f64| v.is_finite();
    let largest = logits.iter().filter(finite).copied().fold(f64::MIN, f64::max);
    let mut total = 0.0;
    let add = |v: &f64| {
        total += if v.is_finite() { (v - largest).exp() } else { 0.0 };
        total
    };
    logits.iter().map(add).collect()
}

/// Key, counter and (where there is a third output) algorithm of a pair of seeds.
fn key_counter(c: &mut KernelContext<'_>) -> Computed {
    let (key, counter) = seeded(c, 0)?.key_and_counter();
    c.set(0, Tensor::vector(&[key]));
    c.set(1, Tensor::vector(&counter));
    if c.outputs.len() > 2 {
        c.set(2, Tensor::scalar(1i32));
    }
    Ok(())
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static RANDOM: &[KernelDef] = &[
    cpu_any("RandomUniform", |n| drawn(n, Origin::of_seeds(n)?, "dtype", Draw::Uniform)),
    cpu_any("RandomStandardNormal", |n| drawn(n, Origin::of_seeds(n)?, "dtype", Draw::Normal)),
    cpu_any("TruncatedNormal", |n| drawn(n, Origin::of_seeds(n)?, "dtype", Draw::Truncated)),
    cpu_any("RandomUniformInt", |n| bounded(n, Origin::of_seeds(n)?, "Tout", 1)),
    cpu_any("RandomShuffle", shuffle),
    cpu_any("Multinomial", |n| multinomial(n, Origin::of_seeds(n)?)),
    cpu_any("StatelessMultinomial", |n| multinomial(n, Origin::Seed(2))),
    cpu_any("StatelessRandomUniform", |n| drawn(n, Origin::Seed(1), "dtype", Draw::Uniform)),
    cpu_any("StatelessRandomNormal", |n| drawn(n, Origin::Seed(1), "dtype", Draw::Normal)),
    cpu_any("StatelessTruncatedNormal", |n| drawn(n, Origin::Seed(1), "dtype", Draw::Truncated)),
    cpu_any("StatelessRandomUniformFullInt", |n| drawn(n, Origin::Seed(1), "dtype", Draw::Bits)),
    cpu_any("StatelessRandomUniformInt", |n| bounded(n, Origin::Seed(1), "dtype", 2)),
    cpu_any("StatelessRandomUniformV2", |n| drawn(n, Origin::Key(1), "dtype", Draw::Uniform)),
    cpu_any("StatelessRandomNormalV2", |n| drawn(n, Origin::Key(1), "dtype", Draw::Normal)),
    cpu_any("StatelessTruncatedNormalV2", |n| drawn(n, Origin::Key(1), "dtype", Draw::Truncated)),
    cpu_any("StatelessRandomUniformFullIntV2", |n| drawn(n, Origin::Key(1), "dtype", Draw::Bits)),
    cpu_any("StatelessRandomUniformIntV2", |n| bounded(n, Origin::Key(1), "dtype", 4)),
    cpu_any("StatelessRandomGetKeyCounter", |_| kernel(key_counter)),
    cpu_any("StatelessRandomGetKeyCounterAlg", |_| kernel(key_counter)),
    cpu_any("StatelessRandomGetAlg", |_| {
        kernel(|c| {
            c.set(0, Tensor::scalar(1i32));
            Ok(())
        })
    }),
];
