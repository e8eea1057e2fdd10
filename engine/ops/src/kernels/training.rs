//! The optimizers' updates: each is a rule for one element of the variable, its slots and the gradient, which is walked
//! over all elements, or over the rows that indices list (rows listed twice are updated twice, in order).
//!
//! The rules are those of TensorFlow's training ops.

use super::nn::Float;
use super::support::{Built, Computed, DisjointMut, UNIT, cpu, kernel, unique_slice};
use super::update::UpdateSpec;
use super::variables::{copied, pass_on};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

/// An update by the rule that `rule` makes of the op's `K` numbers (those that the op does not have are 0); the rule
/// takes an element of the variable and of each slot, and the gradient's.
fn update<T: Float, R, const N: usize, const K: usize>(
    node: &Node,
    rule: impl Fn([T; K]) -> R + Send + Sync + 'static,
) -> Built
where
    R: Fn([&mut T; N], T) + Copy + Sync,
{
    let spec = UpdateSpec::new(node.op, N)?;
    kernel(move |c| {
        let mut numbers = [T::default(); K];
        for (number, i) in numbers.iter_mut().zip(&spec.numbers) {
            *number = match c.input(*i)?.dtype() {
                DType::I64 => T::from_f64(c.item::<i64>(*i)? as f64),
                _ => c.item::<T>(*i)?,
            };
        }
        walk(c, &spec, rule(numbers))?;
        pass_on(c)
    })
}

/// Applies the rule to all elements, or to the rows that are listed.
fn walk<T: Float, const N: usize>(
    c: &KernelContext<'_>,
    spec: &UpdateSpec,
    rule: impl Fn([&mut T; N], T) + Copy + Sync,
) -> Computed {
    let g = c.slice::<T>(spec.gradient)?;
    let indices = spec.indices.map(|i| c.ints(i)).transpose()?;
    spec.with_variables::<N>(c, |values| {
        let n_rows = values[0].dims().first().copied().unwrap_or(0);
        let mut failed = None;
        let all = values.map(|value| {
            writable::<T>(c, value).unwrap_or_else(|error| {
                failed = Some(error);
                &mut []
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match &indices {
            Some(indices) => rows(all, n_rows, indices, g, rule),
            None => {
                dense(c.sharder, all, g, rule);
                Ok(())
            }
        }
    })
}

/// The elements of a variable, which are copied first where a reader shares them.
fn writable<'a, T: Float>(c: &KernelContext<'_>, value: &'a mut Tensor) -> Result<&'a mut [T], KernelError> {
    if !value.is_unique() {
        *value = copied(c, value)?;
    }
    unique_slice::<T>(value)
}

fn dense<T: Float, const N: usize>(
    sharder: &dyn Sharder,
    all: [&mut [T]; N],
    g: &[T],
    rule: impl Fn([&mut T; N], T) + Copy + Sync,
) {
    let n = g.len();
    assert!(all.iter().all(|slice| slice.len() == n), "slices of other lengths than the gradient's");
    let all = all.map(DisjointMut::new);
    let body = |units: std::ops::Range<usize>| {
        #[expect(clippy::redundant_locals, reason = "a copy of its own: the rule's numbers stay in registers")]
        let rule = rule;
        let range = units.start * UNIT..(units.end * UNIT).min(n);
        // SAFETY: all slices have as many elements as the gradient; ranges of different shards are disjoint.
        let mut parts = all.each_ref().map(|slice| unsafe { slice.part(range.clone()) });
        for (i, g) in g[range].iter().enumerate() {
            // SAFETY: the parts are as long as this part of the gradient.
            rule(parts.each_mut().map(|part| unsafe { part.get_unchecked_mut(i) }), *g);
        }
    };
    let n_units = n.div_ceil(UNIT);
    if n_units <= 2 || sharder.n_workers() == 1 {
        return body(0..n_units);
    }
    // Picoseconds of an element: what counts is memory, where there are more slots also roots.
    let ps = match N {
        1 => 300,
        2 => 400,
        _ => 1500,
    };
    sharder.parallel_for(n_units, UNIT as u64 * ps / 1000, &body);
}

fn rows<T: Float, const N: usize>(
    mut all: [&mut [T]; N],
    n_rows: usize,
    indices: &[i64],
    g: &[T],
    rule: impl Fn([&mut T; N], T),
) -> Computed {
    // Nothing is changed where one of them is wrong.
    if let Some(i) = indices.iter().find(|i| usize::try_from(**i).map_or(true, |i| i >= n_rows)) {
        return Err(KernelError::invalid(format!("index {i} is outside of [0, {n_rows})")));
    }
    let len = g.len().checked_div(indices.len()).unwrap_or(0);
    for (index, g) in indices.iter().zip(g.chunks_exact(len.max(1))) {
        let at = *index as usize * len;
        let mut row = all.each_mut().map(|slice| &mut slice[at..at + len]);
        for (k, g) in g.iter().enumerate() {
            rule(row.each_mut().map(|row| &mut row[k]), *g);
        }
    }
    Ok(())
}

fn sign<T: Float>(v: T) -> T {
    let zero = T::default();
    if v > zero {
        T::from_f64(1.0)
    } else if v < zero {
        T::from_f64(-1.0)
    } else {
        zero
    }
}

/// Towards zero by `by`, no further than there.
fn shrink<T: Float>(v: T, by: T) -> T {
    let left = v.abs() - by;
    if left > T::default() { sign(v) * left } else { T::default() }
}

fn one<T: Float>() -> T {
    T::from_f64(1.0)
}

/// What is left of a value after a step of rate `rate` under an L1 and an L2 penalty.
fn proximal<T: Float>(v: T, rate: T, l1: T, l2: T) -> T {
    let v = if l1 > T::default() { shrink(v, rate * l1) } else { v };
    v / (one::<T>() + l2 * rate)
}

fn gradient_descent<T: Float>(node: &Node) -> Built {
    update(node, |[alpha]: [T; 1]| move |[v]: [&mut T; 1], g: T| *v = *v - alpha * g)
}

fn proximal_gradient_descent<T: Float>(node: &Node) -> Built {
    update(node, |[alpha, l1, l2]: [T; 3]| move |[v]: [&mut T; 1], g: T| *v = proximal(*v - alpha * g, alpha, l1, l2))
}

/// `accum = momentum * accum + grad; var -= lr * accum` (Nesterov: `var -= lr * (grad + momentum * accum)`).
fn momentum<T: Float>(node: &Node) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    update(node, move |[lr, mu]: [T; 2]| {
        move |[v, a]: [&mut T; 2], g: T| {
            *a = *a * mu + g;
            *v = *v - if nesterov { lr * (g + mu * *a) } else { lr * *a };
        }
    })
}

fn keras_momentum<T: Float>(node: &Node) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    update(node, move |[lr, mu]: [T; 2]| {
        move |[v, a]: [&mut T; 2], g: T| {
            *a = *a * mu - lr * g;
            *v = *v + if nesterov { mu * *a - lr * g } else { *a };
        }
    })
}

fn adagrad<T: Float>(node: &Node) -> Built {
    let moving = *node.flag("update_slots")?;
    update(node, move |[lr]: [T; 1]| {
        move |[v, a]: [&mut T; 2], g: T| {
            *a = if moving { *a + g * g } else { *a };
            *v = *v - lr * g / a.sqrt();
        }
    })
}

fn adagrad_v2<T: Float>(node: &Node) -> Built {
    let moving = *node.flag("update_slots")?;
    update(node, move |[lr, epsilon]: [T; 2]| {
        move |[v, a]: [&mut T; 2], g: T| {
            *a = if moving { *a + g * g } else { *a };
            *v = *v - lr * g / (a.sqrt() + epsilon);
        }
    })
}

fn adagrad_da<T: Float>(node: &Node) -> Built {
    update(node, |[lr, l1, l2, step]: [T; 4]| {
        move |[v, sum, squares]: [&mut T; 3], g: T| {
            *sum = *sum + g;
            *squares = *squares + g * g;
            let pulled = if l1 > T::default() { shrink(*sum, l1 * step) } else { *sum };
            *v = T::default() - lr * pulled / (l2 * step * lr + squares.sqrt());
        }
    })
}

fn proximal_adagrad<T: Float>(node: &Node) -> Built {
    update(node, |[lr, l1, l2]: [T; 3]| {
        move |[v, a]: [&mut T; 2], g: T| {
            *a = *a + g * g;
            let rate = lr / a.sqrt();
            *v = proximal(*v - rate * g, rate, l1, l2);
        }
    })
}

fn adadelta<T: Float>(node: &Node) -> Built {
    update(node, |[lr, rho, epsilon]: [T; 3]| {
        move |[v, a, moved]: [&mut T; 3], g: T| {
            *a = *a * rho + g * g * (one::<T>() - rho);
            let by = (*moved + epsilon).sqrt() / (*a + epsilon).sqrt() * g;
            *v = *v - by * lr;
            *moved = *moved * rho + by * by * (one::<T>() - rho);
        }
    })
}

fn rms_prop<T: Float>(node: &Node) -> Built {
    update(node, |[lr, rho, mu, epsilon]: [T; 4]| {
        move |[v, ms, mom]: [&mut T; 3], g: T| {
            *ms = *ms + (g * g - *ms) * (one::<T>() - rho);
            *mom = *mom * mu + g * lr / (*ms + epsilon).sqrt();
            *v = *v - *mom;
        }
    })
}

fn centered_rms_prop<T: Float>(node: &Node) -> Built {
    update(node, |[lr, rho, mu, epsilon]: [T; 4]| {
        move |[v, mg, ms, mom]: [&mut T; 4], g: T| {
            *ms = *ms + (g * g - *ms) * (one::<T>() - rho);
            *mg = *mg + (g - *mg) * (one::<T>() - rho);
            *mom = *mom * mu + g * lr / (*ms - *mg * *mg + epsilon).sqrt();
            *v = *v - *mom;
        }
    })
}

/// Adam's bias correction is in the rate: `lr * sqrt(1 - beta2^t) / (1 - beta1^t)`.
fn corrected<T: Float>(lr: T, p1: T, p2: T) -> T {
    lr * (one::<T>() - p2).sqrt() / (one::<T>() - p1)
}

fn adam<T: Float>(node: &Node) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    update(node, move |[p1, p2, lr, b1, b2, epsilon]: [T; 6]| {
        let rate = corrected(lr, p1, p2);
        move |[v, m, s]: [&mut T; 3], g: T| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            *s = *s + (g * g - *s) * (one::<T>() - b2);
            let direction = if nesterov { g * (one::<T>() - b1) + b1 * *m } else { *m };
            *v = *v - rate * direction / (s.sqrt() + epsilon);
        }
    })
}

fn adam_with_amsgrad<T: Float>(node: &Node) -> Built {
    update(node, |[p1, p2, lr, b1, b2, epsilon]: [T; 6]| {
        let rate = corrected(lr, p1, p2);
        move |[v, m, s, most]: [&mut T; 4], g: T| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            *s = *s + (g * g - *s) * (one::<T>() - b2);
            *most = if *s > *most { *s } else { *most };
            *v = *v - rate * *m / (most.sqrt() + epsilon);
        }
    })
}

fn ada_max<T: Float>(node: &Node) -> Built {
    update(node, |[p1, lr, b1, b2, epsilon]: [T; 5]| {
        move |[v, m, u]: [&mut T; 3], g: T| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            let faded = b2 * *u;
            *u = if g.abs() > faded { g.abs() } else { faded };
            *v = *v - lr / (one::<T>() - p1) * (*m / (*u + epsilon));
        }
    })
}

/// Follow the regularised leader; the second version has a shrinkage too.
fn ftrl<T: Float>(node: &Node) -> Built {
    let by_rate = *node.flag("multiply_linear_by_lr")?;
    let has_shrinkage = node.op.inputs.iter().any(|input| input.name == "l2_shrinkage");
    update(node, move |[lr, l1, l2, a, b]: [T; 5]| {
        let (shrinkage, power) = if has_shrinkage { (a, b) } else { (T::default(), a) };
        let half = power.to_f64() == -0.5;
        let root = move |v: T| if half { v.sqrt() } else { v.powf(T::default() - power) };
        // The linear term is kept times the rate, or not.
        let (g_by, l1_by, l2_by, root_by) = if by_rate { (lr, l1 * lr, l2 * lr, one()) } else { (one(), l1, l2, lr) };
        move |[v, squares, linear]: [&mut T; 3], g: T| {
            let two = T::from_f64(2.0);
            let pulled = g + two * shrinkage * *v;
            let more = *squares + g * g;
            *linear = *linear + pulled * g_by - (root(more) - root(*squares)) / root_by * *v;
            let down = root(more) / root_by + two * l2_by;
            *v = T::default() - shrink(*linear, l1_by) / down;
            *squares = more;
        }
    })
}

fn add_sign<T: Float>(node: &Node) -> Built {
    update(node, |[lr, alpha, decay, beta]: [T; 4]| {
        move |[v, m]: [&mut T; 2], g: T| {
            *m = *m * beta + g * (one::<T>() - beta);
            *v = *v - lr * (alpha + decay * sign(g) * sign(*m)) * g;
        }
    })
}

fn power_sign<T: Float>(node: &Node) -> Built {
    update(node, |[lr, base, decay, beta]: [T; 4]| {
        move |[v, m]: [&mut T; 2], g: T| {
            *m = *m * beta + g * (one::<T>() - beta);
            *v = *v - lr * (base * decay * sign(g) * sign(*m)).exp() * g;
        }
    })
}

/// A table of the rules, for each family of ops that has them all.
macro_rules! rules {
    ($($family:literal)+: $rules:tt) => { $( rules! { @table $family $rules } )+ };
    (@table $family:literal { $($name:literal $rule:ident;)+ }) => {
        const _: () = {
            #[linkme::distributed_slice(KERNEL_TABLES)]
            static RULES: &[KernelDef] = &[ $(
                cpu(concat!($family, $name), ("T", &[DType::F32]), $rule::<f32>),
                cpu(concat!($family, $name), ("T", &[DType::F64]), $rule::<f64>),
            )+ ];
        };
    };
}

rules! { "ResourceApply" "Apply" "ResourceSparseApply" "SparseApply": {
    "ProximalGradientDescent" proximal_gradient_descent;
    "Momentum" momentum;
    "Adagrad" adagrad;
    "AdagradV2" adagrad_v2;
    "AdagradDA" adagrad_da;
    "ProximalAdagrad" proximal_adagrad;
    "Adadelta" adadelta;
    "RMSProp" rms_prop;
    "CenteredRMSProp" centered_rms_prop;
    "Ftrl" ftrl;
    "FtrlV2" ftrl;
} }
rules! { "ResourceApply" "Apply": {
    "GradientDescent" gradient_descent;
    "Adam" adam;
    "AdaMax" ada_max;
    "AddSign" add_sign;
    "PowerSign" power_sign;
} }
rules! { "ResourceApply" "ResourceSparseApply": {
    "KerasMomentum" keras_momentum;
} }
rules! { "ResourceApply": {
    "AdamWithAmsgrad" adam_with_amsgrad;
} }
