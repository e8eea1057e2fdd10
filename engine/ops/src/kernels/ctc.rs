//! Connectionist temporal classification (Graves et al. 2006): the loss with its gradient, and greedy decoding.
//!
//! The labels of a sequence with a blank before, between and behind them are the states of an automaton that takes one step
//! per time. `alpha(t, s)` is the probability of being at state `s` after time `t` with all emissions until then, `beta(t,
//! s)` that of the emissions after `t` from there on; both as logarithms.

use super::nn::Float;
use super::support::{Built, Computed, cpu, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CTC: &[KernelDef] = &[
    cpu("CTCLoss", ("T", &[DType::F32]), |n| loss::<f32>(n, Blank::Last)),
    cpu("CTCLoss", ("T", &[DType::F64]), |n| loss::<f64>(n, Blank::Last)),
    cpu("CTCLossV2", ("", &[]), |n| loss::<f32>(n, Blank::First)),
    cpu("CTCGreedyDecoder", ("T", &[DType::F32]), greedy::<f32>),
    cpu("CTCGreedyDecoder", ("T", &[DType::F64]), greedy::<f64>),
];

/// Which class is the blank.
#[derive(Clone, Copy)]
enum Blank {
    First,
    Last,
}

/// `ln(e^a + e^b)`.
fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// How labels become states.
#[derive(Clone, Copy)]
struct Options {
    collapse_repeated: bool,
    merge_repeated: bool,
    ignore_longer: bool,
}

/// The automaton of one sequence's labels.
struct States {
    /// The class of each state; every other one is the blank.
    classes: Vec<usize>,
    blank: usize,
    merge_repeated: bool,
}

impl States {
    /// Whether the automaton may stay at a state.
    fn may_stay(&self, s: usize) -> bool {
        self.merge_repeated || self.classes[s] == self.blank
    }

    /// Whether it may come to a state from the one before the blank before it.
    fn may_skip_to(&self, s: usize) -> bool {
        let is_repeated = self.merge_repeated && self.classes[s] == self.classes[s - 2];
        self.classes[s] != self.blank && !is_repeated
    }

    fn alpha(&self, log_y: &[f64], n_classes: usize, time: usize) -> Vec<f64> {
        let n = self.classes.len();
        let mut alpha = vec![f64::NEG_INFINITY; time * n];
        for s in 0..n.min(2) {
            alpha[s] = log_y[self.classes[s]];
        }
        for t in 1..time {
            for s in 0..n {
                let before = |s: usize| alpha[(t - 1) * n + s];
                let mut sum = if self.may_stay(s) { before(s) } else { f64::NEG_INFINITY };
                if s > 0 {
                    sum = log_sum(sum, before(s - 1));
                }
                if s > 1 && self.may_skip_to(s) {
                    sum = log_sum(sum, before(s - 2));
                }
                alpha[t * n + s] = sum + log_y[t * n_classes + self.classes[s]];
            }
        }
        alpha
    }

    fn beta(&self, log_y: &[f64], n_classes: usize, time: usize) -> Vec<f64> {
        let n = self.classes.len();
        let mut beta = vec![f64::NEG_INFINITY; time * n];
        for s in n.saturating_sub(2)..n {
            beta[(time - 1) * n + s] = 0.0;
        }
        for t in (0..time - 1).rev() {
            for s in 0..n {
                let after = |s: usize| beta[(t + 1) * n + s] + log_y[(t + 1) * n_classes + self.classes[s]];
                let mut sum = if self.may_stay(s) { after(s) } else { f64::NEG_INFINITY };
                if s + 1 < n {
                    sum = log_sum(sum, after(s + 1));
                }
                if s + 2 < n && self.may_skip_to(s + 2) {
                    sum = log_sum(sum, after(s + 2));
                }
                beta[t * n + s] = sum;
            }
        }
        beta
    }
}

/// The loss of one sequence; what `y`, its probabilities by time and class, turns into is its gradient.
fn sequence_loss(states: &States, y: &mut [f64], n_classes: usize) -> f64 {
    let (time, n) = (y.len() / n_classes, states.classes.len());
    let log_y: Vec<f64> = y.iter().map(|y| y.ln()).collect();
    let (alpha, beta) = (states.alpha(&log_y, n_classes, time), states.beta(&log_y, n_classes, time));
    let of_first = alpha[..n].iter().zip(&beta[..n]);
    let log_p = of_first.fold(f64::NEG_INFINITY, |sum, (a, b)| log_sum(sum, a + b));
    // Without a path the gradient has nothing to pull towards.
    if log_p == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    let mut of_class = vec![f64::NEG_INFINITY; n_classes];
    for (t, y) in y.chunks_exact_mut(n_classes).enumerate() {
        of_class.fill(f64::NEG_INFINITY);
        for (s, class) in states.classes.iter().enumerate() {
            of_class[*class] = log_sum(of_class[*class], alpha[t * n + s] + beta[t * n + s]);
        }
        y.iter_mut().zip(&of_class).for_each(|(y, of)| *y -= (of - log_p).exp());
    }
    -log_p
}

/// The labels of each sequence, from a sparse matrix.
fn labels(c: &KernelContext<'_>, batch: usize, n_classes: usize, blank: usize) -> Result<Vec<Vec<usize>>, KernelError> {
    let (indices, values) = (c.slice::<i64>(1)?, c.slice::<i32>(2)?);
    if c.input(1)?.dims() != [values.len(), 2] {
        return Err(KernelError::invalid(format!("labels_indices must have shape [{}, 2]", values.len())));
    }
    let mut all = vec![Vec::new(); batch];
    for ([row, _], label) in indices.as_chunks::<2>().0.iter().zip(values) {
        let bad = |what: String| KernelError::invalid(format!("label {label} of sequence {row}: {what}"));
        let of = usize::try_from(*row).ok().and_then(|row| all.get_mut(row));
        let of: &mut Vec<usize> = of.ok_or_else(|| bad(format!("there are {batch} sequences")))?;
        let label = usize::try_from(*label).ok().filter(|l| *l < n_classes && *l != blank);
        of.push(
            label.ok_or_else(|| bad(format!("it must be one of {n_classes} classes, but not {blank}, the blank")))?,
        );
    }
    Ok(all)
}

/// Inputs `[time, batch, classes]`, and how long each sequence is.
fn sequences(c: &KernelContext<'_>, lengths: usize) -> Result<([usize; 3], Vec<usize>), KernelError> {
    let shape = c.input(0)?.shape();
    let dims = <[usize; 3]>::try_from(shape.dims());
    let [time, batch, n_classes] =
        dims.map_err(|_| KernelError::invalid(format!("inputs must have rank 3, got shape {shape}")))?;
    let lengths = c.slice::<i32>(lengths)?;
    let fits: Option<Vec<usize>> = lengths.iter().map(|n| usize::try_from(*n).ok().filter(|n| *n <= time)).collect();
    match fits.filter(|fits| fits.len() == batch) {
        Some(fits) if n_classes > 0 => Ok(([time, batch, n_classes], fits)),
        Some(_) => Err(KernelError::invalid("there must be a class, the blank")),
        None => Err(KernelError::invalid(format!(
            "sequence_length must list {batch} numbers of at most {time} steps, got {lengths:?}"
        ))),
    }
}

fn softmax<T: Float>(x: &[T]) -> Vec<f64> {
    let highest = x.iter().map(|v| v.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    let mut y: Vec<f64> = x.iter().map(|v| (v.to_f64() - highest).exp()).collect();
    let sum: f64 = y.iter().sum();
    y.iter_mut().for_each(|y| *y /= sum);
    y
}

fn loss<T: Float>(node: &Node, blank: Blank) -> Built {
    let options = Options {
        collapse_repeated: *node.flag("preprocess_collapse_repeated")?,
        merge_repeated: *node.flag("ctc_merge_repeated")?,
        ignore_longer: *node.flag("ignore_longer_outputs_than_inputs")?,
    };
    kernel(move |c| losses::<T>(c, options, blank))
}

fn losses<T: Float>(c: &mut KernelContext<'_>, options: Options, blank: Blank) -> Computed {
    let ([time, batch, n_classes], lengths) = sequences(c, 3)?;
    let blank = if matches!(blank, Blank::First) { 0 } else { n_classes - 1 };
    let labels = labels(c, batch, n_classes, blank)?;
    let x = c.slice::<T>(0)?;
    let (mut losses, mut grads) = (vec![T::default(); batch], vec![T::default(); x.len()]);
    for (b, (mut labels, length)) in labels.into_iter().zip(lengths).enumerate() {
        if options.collapse_repeated {
            labels.dedup();
        }
        if labels.len() > length {
            if options.ignore_longer {
                continue;
            }
            return Err(KernelError::invalid(format!(
                "sequence {b} has {length} steps, too few for its {} labels",
                labels.len()
            )));
        }
        if length == 0 {
            continue;
        }
        let classes = labels.iter().flat_map(|label| [blank, *label]).chain([blank]).collect();
        let states = States { classes, blank, merge_repeated: options.merge_repeated };
        let place = |t: usize| (t * batch + b) * n_classes;
        let mut y: Vec<f64> = (0..length).flat_map(|t| softmax(&x[place(t)..][..n_classes])).collect();
        losses[b] = T::from_f64(sequence_loss(&states, &mut y, n_classes));
        for (t, y) in y.chunks_exact(n_classes).enumerate() {
            grads[place(t)..][..n_classes].iter_mut().zip(y).for_each(|(g, y)| *g = T::from_f64(*y));
        }
    }
    c.set(0, Tensor::from_vec([batch], losses)?);
    c.set(1, Tensor::from_vec([time, batch, n_classes], grads)?);
    Ok(())
}

fn greedy<T: Float>(node: &Node) -> Built {
    let (merges, blank) = (*node.flag("merge_repeated")?, *node.int("blank_index")?);
    kernel(move |c| {
        let ([_, batch, n_classes], lengths) = sequences(c, 1)?;
        // Negative ones count from behind.
        let blank = if blank < 0 { blank + n_classes as i64 } else { blank };
        let blank = usize::try_from(blank).ok().filter(|b| *b < n_classes);
        let blank =
            blank.ok_or_else(|| KernelError::invalid(format!("blank_index must be one of {n_classes} classes")))?;
        let x = c.slice::<T>(0)?;
        let (mut indices, mut values, mut longest) = (Vec::new(), Vec::new(), 0i64);
        let mut scores = Vec::with_capacity(batch);
        for (b, length) in lengths.into_iter().enumerate() {
            let (mut before, mut n, mut score) = (None, 0i64, 0.0);
            for t in 0..length {
                let y = &x[(t * batch + b) * n_classes..][..n_classes];
                // Of equal ones the first.
                let best = (1..n_classes).fold(0, |best, class| if y[class] > y[best] { class } else { best });
                score -= y[best].to_f64();
                if best != blank && !(merges && before == Some(best)) {
                    indices.extend([b as i64, n]);
                    values.push(best as i64);
                    n += 1;
                }
                before = Some(best);
            }
            longest = longest.max(n);
            scores.push(T::from_f64(score));
        }
        c.set(0, Tensor::from_vec(Shape::new(&[values.len(), 2]), indices)?);
        c.set(1, Tensor::vector(&values));
        c.set(2, Tensor::vector(&[batch as i64, longest]));
        c.set(3, Tensor::from_vec([batch, 1], scores)?);
        Ok(())
    })
}
