//! Samplers of candidate classes, with TensorFlow's numbers for TensorFlow's seeds.

use rustc_hash::{FxHashMap, FxHashSet};

use super::philox::{Words, uniform_f64};
use super::random::Origin;
use super::support::{Built, Computed, cpu_any, kernel, kernel_with_state};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CANDIDATES: &[KernelDef] = &[
    cpu_any("UniformCandidateSampler", |n| sampler(n, Distribution::Uniform)),
    cpu_any("LogUniformCandidateSampler", |n| sampler(n, Distribution::LogUniform)),
    cpu_any("ComputeAccidentalHits", |n| {
        let n_true = positive(n, "num_true")?;
        kernel(move |c| accidental_hits(c, n_true))
    }),
];

/// Words of the generator set aside for each sample.
const RESERVED: u64 = 2048;

/// How likely classes are.
#[derive(Clone, Copy)]
enum Distribution {
    /// All alike.
    Uniform,
    /// `log((class + 2) / (class + 1)) / log(range + 1)`: classes sorted by falling frequency, as Zipf has words.
    LogUniform,
}

fn next64(words: &mut Words) -> u64 {
    let low = words.next_u32();
    u64::from(low) | u64::from(words.next_u32()) << 32
}

/// In `0..n`, exactly uniform: words that would favour some are drawn again.
fn below(words: &mut Words, n: u64) -> u64 {
    if n.is_power_of_two() {
        return next64(words) & (n - 1);
    }
    let rest = u64::MAX % n + 1;
    loop {
        let word = next64(words);
        if word >= rest {
            return word % n;
        }
    }
}

impl Distribution {
    fn sample(self, words: &mut Words, range: u64) -> i64 {
        match self {
            Distribution::Uniform => below(words, range) as i64,
            Distribution::LogUniform => {
                let (x0, x1) = (words.next_u32(), words.next_u32());
                let value = (uniform_f64(x0, x1) * (range as f64).ln_1p()).exp() as i64 - 1;
                value % range as i64
            }
        }
    }

    fn probability(self, class: i64, range: u64) -> f32 {
        match self {
            Distribution::Uniform => 1.0 / range as f32,
            Distribution::LogUniform => {
                let class = class as f64;
                (((class + 2.0) / (class + 1.0)).ln() / (range as f64).ln_1p()) as f32
            }
        }
    }
}

fn positive(node: &Node, name: &str) -> Result<usize, KernelError> {
    let value = *node.int(name)?;
    let positive = usize::try_from(value).ok().filter(|v| *v > 0);
    positive.ok_or_else(|| KernelError::invalid(format!("{name} must be positive, got {value}")))
}

struct Sampler {
    distribution: Distribution,
    n_true: usize,
    n_sampled: usize,
    unique: bool,
    range: u64,
    origin: Origin,
}

fn sampler(node: &Node, distribution: Distribution) -> Built {
    let s = Sampler {
        distribution,
        n_true: positive(node, "num_true")?,
        n_sampled: positive(node, "num_sampled")?,
        unique: *node.flag("unique")?,
        range: positive(node, "range_max")? as u64,
        origin: Origin::of_seeds(node)?,
    };
    if s.unique && s.n_sampled as u64 > s.range {
        let text = format!("{} distinct classes cannot be drawn from {}", s.n_sampled, s.range);
        return Err(KernelError::invalid(text));
    }
    kernel_with_state(s.origin.state(), move |c| s.sample(c))
}

impl Sampler {
    /// How often a class is expected among samples, of which `n_tries` were drawn.
    fn expected(&self, class: i64, n_tries: u64) -> f32 {
        let p = self.distribution.probability(class, self.range);
        // Without a class drawn twice, the number of tries says nothing about how likely that was.
        if !self.unique || n_tries == self.n_sampled as u64 {
            return p * self.n_sampled as f32;
        }
        (-(n_tries as f64 * (-f64::from(p)).ln_1p()).exp_m1()) as f32
    }

    fn sample(&self, c: &mut KernelContext<'_>) -> Computed {
        let classes = c.input(0)?;
        if classes.shape().rank() != 2 || classes.dims()[1] != self.n_true {
            let (n, got) = (self.n_true, classes.shape());
            return Err(KernelError::invalid(format!("true_classes must have {n} columns, got shape {got}")));
        }
        let (mut sampled, mut seen, mut n_tries) = (memory::vec(self.n_sampled)?, FxHashSet::default(), 0);
        let mut words = Words::new(self.origin.begin(c, (RESERVED * self.n_sampled as u64).div_ceil(4))?);
        while sampled.len() < self.n_sampled {
            n_tries += 1;
            let class = self.distribution.sample(&mut words, self.range);
            if !self.unique || seen.insert(class) {
                sampled.push(class);
            }
        }
        let expected = |class: &i64| match (0..self.range as i64).contains(class) {
            true => Ok(self.expected(*class, n_tries)),
            false => Err(KernelError::invalid(format!("class {class} is outside of [0, {})", self.range))),
        };
        let of_true = classes.slice::<i64>()?.iter().map(expected).collect::<Result<Vec<f32>, _>>()?;
        let of_sampled = sampled.iter().map(expected).collect::<Result<Vec<f32>, _>>()?;
        let of_true = Tensor::from_vec(classes.shape().clone(), of_true)?;
        c.set(0, Tensor::from_vec([self.n_sampled], sampled)?);
        c.set(1, of_true);
        c.set(2, Tensor::from_vec([self.n_sampled], of_sampled)?);
        Ok(())
    }
}

/// Where a sampled class is a true one of an example: that example, the sample's place (the last, of a class sampled
/// more than once), and a weight that takes it out.
fn accidental_hits(c: &mut KernelContext<'_>, n_true: usize) -> Computed {
    let (classes, sampled) = (c.input(0)?, c.slice::<i64>(1)?);
    if classes.shape().rank() != 2 || classes.dims()[1] != n_true {
        let got = classes.shape();
        return Err(KernelError::invalid(format!("true_classes must have {n_true} columns, got shape {got}")));
    }
    let places: FxHashMap<i64, i64> = sampled.iter().zip(0..).map(|(class, place)| (*class, place)).collect();
    let (mut indices, mut ids) = (Vec::new(), Vec::new());
    for (row, classes) in classes.slice::<i64>()?.chunks_exact(n_true).enumerate() {
        for place in classes.iter().filter_map(|class| places.get(class)) {
            indices.push(row as i32);
            ids.push(*place);
        }
    }
    let n = ids.len();
    c.set(0, Tensor::from_vec([n], indices)?);
    c.set(1, Tensor::from_vec([n], ids)?);
    c.set(2, Tensor::from_vec([n], vec![f32::MIN; n])?);
    Ok(())
}
