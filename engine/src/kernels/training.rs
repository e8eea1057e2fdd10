//! The optimizers' updates: each is a rule for one element of the variable, its slots and the gradient, which is walked
//! over all elements, or over the rows that indices list (rows listed twice are updated twice, in order).
//!
//! The rules are those of TensorFlow's training ops. Variables are locked in the order of their addresses, so that
//! updates which share slots in different roles do not wait for each other.

use std::sync::Arc;

use parking_lot::RwLockWriteGuard;

use super::nn::Float;
use super::state::variable;
use super::support::{Built, Computed, cpu, kernel, unique_slice};
use super::variables::{copied, pass_on};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use crate::dtype::DType;
use crate::graph::Node;
use crate::tensor::Tensor;

/// Which inputs are what: the variable and its `N` slots come first, in this order.
#[derive(Clone, Copy)]
struct Roles {
    gradient: usize,
    /// Where the update is of rows: their indices.
    indices: Option<usize>,
    /// Numbers of the rule, in the order in which it takes them.
    numbers: &'static [usize],
}

/// Calls `f` with the elements of the variable and its `N - 1` slots, all of one shape, for writing.
fn with_all<T: Float, const N: usize>(
    c: &KernelContext<'_>,
    f: impl FnOnce([&mut [T]; N], &[usize]) -> Computed,
) -> Computed {
    let mut variables = Vec::with_capacity(N);
    for i in 0..N {
        variables.push(variable(c, i)?);
    }
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by_key(|i| Arc::as_ptr(&variables[*i].0));
    if order.windows(2).any(|w| Arc::ptr_eq(&variables[w[0]].0, &variables[w[1]].0)) {
        return Err(KernelError::invalid("the variable and its slots must be different variables"));
    }
    let mut guards: Vec<(usize, RwLockWriteGuard<'_, Option<Tensor>>)> =
        order.iter().map(|i| (*i, variables[*i].0.value.write())).collect();
    guards.sort_by_key(|(i, _)| *i);
    let mut values = Vec::with_capacity(N);
    for ((_, name), (_, guard)) in variables.iter().zip(&mut guards) {
        let value = guard.as_mut().ok_or_else(|| KernelError::Uninitialised(name.clone()))?;
        if !value.is_unique() {
            *value = copied(c, value)?;
        }
        values.push(value);
    }
    let dims = values[0].dims().to_vec();
    for (value, (_, name)) in values.iter().zip(&variables) {
        if value.dims() != dims {
            let (slot, var) = (value.shape(), &variables[0].1);
            return Err(KernelError::invalid(format!("{name} has shape {slot}, the variable {var} {dims:?}")));
        }
    }
    let slices = values.into_iter().map(|v| unique_slice::<T>(v)).collect::<Result<Vec<_>, _>>()?;
    let slices = <[&mut [T]; N]>::try_from(slices).map_err(|_| KernelError::invalid("variables are missing"))?;
    f(slices, &dims)
}

/// Applies the rule to all elements, or to the rows that are listed.
fn walk<T: Float, const N: usize>(
    c: &mut KernelContext<'_>,
    roles: Roles,
    rule: impl Fn([&mut T; N], T) + Sync,
) -> Computed {
    let gradient = c.input(roles.gradient)?;
    let g = gradient.slice::<T>()?;
    match roles.indices {
        None => with_all::<T, N>(c, |all, dims| {
            if gradient.dims() != dims {
                let got = gradient.shape();
                return Err(KernelError::invalid(format!("the variable has shape {dims:?}, the gradient {got}")));
            }
            dense(c.sharder, all, g, &rule);
            Ok(())
        })?,
        Some(i) => {
            let indices = c.ints(i)?;
            with_all::<T, N>(c, |all, dims| rows(all, dims, gradient, g, &indices, &rule))?;
        }
    }
    pass_on(c)
}

fn dense<T: Float, const N: usize>(
    sharder: &dyn Sharder,
    all: [&mut [T]; N],
    g: &[T],
    rule: &(impl Fn([&mut T; N], T) + Sync),
) {
    let n = all[0].len();
    let pointers = all.map(|slice| Part(slice.as_mut_ptr()));
    let body = |units: std::ops::Range<usize>| {
        let range = units.start * UNIT..(units.end * UNIT).min(n);
        for (i, g) in range.clone().zip(&g[range]) {
            // SAFETY: all slices have `n` elements and are borrowed for writing until this function returns; ranges
            // of different shards are disjoint, so that element `i` is touched by nobody else.
            rule(pointers.each_ref().map(|p| unsafe { &mut *p.at(i) }), *g);
        }
    };
    match n.div_ceil(UNIT) {
        units @ 0..=2 => body(0..units),
        units => sharder.parallel_for(units, UNIT as u64, &body),
    }
}

/// Elements of a unit of work.
const UNIT: usize = 4096;

/// A slice of which shards write disjoint parts.
struct Part<T>(*mut T);
// SAFETY: shards write disjoint parts.
unsafe impl<T: Send> Sync for Part<T> {}
impl<T> Part<T> {
    #[inline]
    fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

fn rows<T: Float, const N: usize>(
    mut all: [&mut [T]; N],
    dims: &[usize],
    gradient: &Tensor,
    g: &[T],
    indices: &[i64],
    rule: &impl Fn([&mut T; N], T),
) -> Computed {
    let Some((n_rows, inner)) = dims.split_first() else {
        return Err(KernelError::invalid("rows of a scalar cannot be updated"));
    };
    let len: usize = inner.iter().product();
    if gradient.dims().split_first() != Some((&indices.len(), inner)) {
        let got = gradient.shape();
        let text =
            format!("{} rows of a variable of shape {dims:?} do not fit a gradient of shape {got}", indices.len());
        return Err(KernelError::invalid(text));
    }
    // Nothing is changed where one of them is wrong.
    if let Some(i) = indices.iter().find(|i| usize::try_from(**i).map_or(true, |i| i >= *n_rows)) {
        return Err(KernelError::invalid(format!("index {i} is outside of [0, {n_rows})")));
    }
    for (index, g) in indices.iter().zip(g.chunks_exact(len.max(1))) {
        let at = *index as usize * len;
        let mut row = all.each_mut().map(|s| s[at..at + len].iter_mut());
        for g in g {
            let mut elements = row.each_mut().map(Iterator::next);
            if elements.iter().all(Option::is_some) {
                rule(elements.each_mut().map(|e| e.take().expect("just looked")), *g);
            }
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

/// The numbers of the rule.
fn numbers<T: Float, const K: usize>(c: &KernelContext<'_>, roles: Roles) -> Result<[T; K], KernelError> {
    let mut numbers = [T::default(); K];
    for (number, i) in numbers.iter_mut().zip(roles.numbers) {
        *number = match c.input(*i)?.dtype() {
            DType::I64 => T::from_f64(c.item::<i64>(*i)? as f64),
            _ => c.item::<T>(*i)?,
        };
    }
    Ok(numbers)
}

fn gradient_descent<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [alpha] = numbers::<T, 1>(c, r)?;
        walk::<T, 1>(c, r, |[v], g| *v = *v - alpha * g)
    })
}

fn proximal_gradient_descent<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [alpha, l1, l2] = numbers::<T, 3>(c, r)?;
        walk::<T, 1>(c, r, |[v], g| *v = proximal(*v - alpha * g, alpha, l1, l2))
    })
}

/// What is left of a value after a step of rate `rate` under an L1 and an L2 penalty.
fn proximal<T: Float>(v: T, rate: T, l1: T, l2: T) -> T {
    let v = if l1 > T::default() { shrink(v, rate * l1) } else { v };
    v / (one::<T>() + l2 * rate)
}

fn momentum<T: Float>(node: &Node, r: Roles) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    kernel(move |c| {
        let [lr, mu] = numbers::<T, 2>(c, r)?;
        walk::<T, 2>(c, r, |[v, a], g| {
            *a = *a * mu + g;
            *v = *v - if nesterov { lr * (g + mu * *a) } else { lr * *a };
        })
    })
}

fn keras_momentum<T: Float>(node: &Node, r: Roles) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    kernel(move |c| {
        let [lr, mu] = numbers::<T, 2>(c, r)?;
        walk::<T, 2>(c, r, |[v, a], g| {
            *a = *a * mu - lr * g;
            *v = *v + if nesterov { mu * *a - lr * g } else { *a };
        })
    })
}

fn adagrad<T: Float>(node: &Node, r: Roles) -> Built {
    let moving = *node.flag("update_slots")?;
    kernel(move |c| {
        let [lr] = numbers::<T, 1>(c, r)?;
        walk::<T, 2>(c, r, |[v, a], g| {
            *a = if moving { *a + g * g } else { *a };
            *v = *v - lr * g / a.sqrt();
        })
    })
}

fn adagrad_v2<T: Float>(node: &Node, r: Roles) -> Built {
    let moving = *node.flag("update_slots")?;
    kernel(move |c| {
        let [lr, epsilon] = numbers::<T, 2>(c, r)?;
        walk::<T, 2>(c, r, |[v, a], g| {
            *a = if moving { *a + g * g } else { *a };
            *v = *v - lr * g / (a.sqrt() + epsilon);
        })
    })
}

fn adagrad_da<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, l1, l2, step] = numbers::<T, 4>(c, r)?;
        walk::<T, 3>(c, r, |[v, sum, squares], g| {
            *sum = *sum + g;
            *squares = *squares + g * g;
            let pulled = if l1 > T::default() { shrink(*sum, l1 * step) } else { *sum };
            *v = T::default() - lr * pulled / (l2 * step * lr + squares.sqrt());
        })
    })
}

fn proximal_adagrad<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, l1, l2] = numbers::<T, 3>(c, r)?;
        walk::<T, 2>(c, r, |[v, a], g| {
            *a = *a + g * g;
            let rate = lr / a.sqrt();
            *v = proximal(*v - rate * g, rate, l1, l2);
        })
    })
}

fn adadelta<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, rho, epsilon] = numbers::<T, 3>(c, r)?;
        walk::<T, 3>(c, r, |[v, a, moved], g| {
            *a = *a * rho + g * g * (one::<T>() - rho);
            let by = (*moved + epsilon).sqrt() / (*a + epsilon).sqrt() * g;
            *v = *v - by * lr;
            *moved = *moved * rho + by * by * (one::<T>() - rho);
        })
    })
}

fn rms_prop<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, rho, mu, epsilon] = numbers::<T, 4>(c, r)?;
        walk::<T, 3>(c, r, |[v, ms, mom], g| {
            *ms = *ms + (g * g - *ms) * (one::<T>() - rho);
            *mom = *mom * mu + g * lr / (*ms + epsilon).sqrt();
            *v = *v - *mom;
        })
    })
}

fn centered_rms_prop<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, rho, mu, epsilon] = numbers::<T, 4>(c, r)?;
        walk::<T, 4>(c, r, |[v, mg, ms, mom], g| {
            *ms = *ms + (g * g - *ms) * (one::<T>() - rho);
            *mg = *mg + (g - *mg) * (one::<T>() - rho);
            *mom = *mom * mu + g * lr / (*ms - *mg * *mg + epsilon).sqrt();
            *v = *v - *mom;
        })
    })
}

fn adam<T: Float>(node: &Node, r: Roles) -> Built {
    let nesterov = *node.flag("use_nesterov")?;
    kernel(move |c| {
        let [p1, p2, lr, b1, b2, epsilon] = numbers::<T, 6>(c, r)?;
        let rate = lr * (one::<T>() - p2).sqrt() / (one::<T>() - p1);
        walk::<T, 3>(c, r, |[v, m, s], g| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            *s = *s + (g * g - *s) * (one::<T>() - b2);
            let direction = if nesterov { g * (one::<T>() - b1) + b1 * *m } else { *m };
            *v = *v - rate * direction / (s.sqrt() + epsilon);
        })
    })
}

fn adam_with_amsgrad<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [p1, p2, lr, b1, b2, epsilon] = numbers::<T, 6>(c, r)?;
        let rate = lr * (one::<T>() - p2).sqrt() / (one::<T>() - p1);
        walk::<T, 4>(c, r, |[v, m, s, most], g| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            *s = *s + (g * g - *s) * (one::<T>() - b2);
            *most = if *s > *most { *s } else { *most };
            *v = *v - rate * *m / (most.sqrt() + epsilon);
        })
    })
}

fn ada_max<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [p1, lr, b1, b2, epsilon] = numbers::<T, 5>(c, r)?;
        walk::<T, 3>(c, r, |[v, m, u], g| {
            *m = *m + (g - *m) * (one::<T>() - b1);
            let faded = b2 * *u;
            *u = if g.abs() > faded { g.abs() } else { faded };
            *v = *v - lr / (one::<T>() - p1) * (*m / (*u + epsilon));
        })
    })
}

/// Follow the regularised leader; `shrinkage` tells whether the rule has that number too.
fn ftrl<T: Float>(node: &Node, r: Roles) -> Built {
    let (by_rate, has_shrinkage) = (*node.flag("multiply_linear_by_lr")?, r.numbers.len() == 5);
    kernel(move |c| {
        let [lr, l1, l2, a, b] = numbers::<T, 5>(c, r)?;
        let (shrinkage, power) = if has_shrinkage { (a, b) } else { (T::default(), a) };
        let half = power.to_f64() == -0.5;
        let root = |v: T| if half { v.sqrt() } else { v.powf(T::default() - power) };
        // The linear term is kept times the rate, or not.
        let (g_by, l1_by, l2_by, root_by) = if by_rate { (lr, l1 * lr, l2 * lr, one()) } else { (one(), l1, l2, lr) };
        walk::<T, 3>(c, r, |[v, squares, linear], g| {
            let two = T::from_f64(2.0);
            let pulled = g + two * shrinkage * *v;
            let more = *squares + g * g;
            *linear = *linear + pulled * g_by - (root(more) - root(*squares)) / root_by * *v;
            let down = root(more) / root_by + two * l2_by;
            *v = T::default() - shrink(*linear, l1_by) / down;
            *squares = more;
        })
    })
}

fn add_sign<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, alpha, decay, beta] = numbers::<T, 4>(c, r)?;
        walk::<T, 2>(c, r, |[v, m], g| {
            *m = *m * beta + g * (one::<T>() - beta);
            *v = *v - lr * (alpha + decay * sign(g) * sign(*m)) * g;
        })
    })
}

fn power_sign<T: Float>(_: &Node, r: Roles) -> Built {
    kernel(move |c| {
        let [lr, base, decay, beta] = numbers::<T, 4>(c, r)?;
        walk::<T, 2>(c, r, |[v, m], g| {
            *m = *m * beta + g * (one::<T>() - beta);
            *v = *v - lr * (base * decay * sign(g) * sign(*m)).exp() * g;
        })
    })
}

macro_rules! rules {
    ($($op:literal $rule:ident $gradient:literal $indices:expr, $numbers:expr;)+) => { &[ $(
        cpu($op, ("T", &[DType::F32]), |n| {
            $rule::<f32>(n, Roles { gradient: $gradient, indices: $indices, numbers: &$numbers })
        }),
        cpu($op, ("T", &[DType::F64]), |n| {
            $rule::<f64>(n, Roles { gradient: $gradient, indices: $indices, numbers: &$numbers })
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static RULES: &[KernelDef] = rules! {
    "ResourceApplyProximalGradientDescent" proximal_gradient_descent 4 None, [1, 2, 3];
    "ApplyProximalGradientDescent" proximal_gradient_descent 4 None, [1, 2, 3];
    "ResourceSparseApplyProximalGradientDescent" proximal_gradient_descent 4 Some(5), [1, 2, 3];
    "SparseApplyProximalGradientDescent" proximal_gradient_descent 4 Some(5), [1, 2, 3];
    "ResourceApplyKerasMomentum" keras_momentum 3 None, [2, 4];
    "ResourceSparseApplyKerasMomentum" keras_momentum 3 Some(4), [2, 5];
    "ResourceApplyAdagrad" adagrad 3 None, [2];
    "ApplyAdagrad" adagrad 3 None, [2];
    "ResourceSparseApplyAdagrad" adagrad 3 Some(4), [2];
    "SparseApplyAdagrad" adagrad 3 Some(4), [2];
    "ResourceApplyAdagradV2" adagrad_v2 4 None, [2, 3];
    "ApplyAdagradV2" adagrad_v2 4 None, [2, 3];
    "ResourceSparseApplyAdagradV2" adagrad_v2 4 Some(5), [2, 3];
    "SparseApplyAdagradV2" adagrad_v2 4 Some(5), [2, 3];
    "ResourceApplyAdagradDA" adagrad_da 3 None, [4, 5, 6, 7];
    "ApplyAdagradDA" adagrad_da 3 None, [4, 5, 6, 7];
    "ResourceSparseApplyAdagradDA" adagrad_da 3 Some(4), [5, 6, 7, 8];
    "SparseApplyAdagradDA" adagrad_da 3 Some(4), [5, 6, 7, 8];
    "ResourceApplyProximalAdagrad" proximal_adagrad 5 None, [2, 3, 4];
    "ApplyProximalAdagrad" proximal_adagrad 5 None, [2, 3, 4];
    "ResourceSparseApplyProximalAdagrad" proximal_adagrad 5 Some(6), [2, 3, 4];
    "SparseApplyProximalAdagrad" proximal_adagrad 5 Some(6), [2, 3, 4];
    "ResourceApplyAdadelta" adadelta 6 None, [3, 4, 5];
    "ApplyAdadelta" adadelta 6 None, [3, 4, 5];
    "ResourceSparseApplyAdadelta" adadelta 6 Some(7), [3, 4, 5];
    "SparseApplyAdadelta" adadelta 6 Some(7), [3, 4, 5];
    "ResourceApplyRMSProp" rms_prop 7 None, [3, 4, 5, 6];
    "ApplyRMSProp" rms_prop 7 None, [3, 4, 5, 6];
    "ResourceSparseApplyRMSProp" rms_prop 7 Some(8), [3, 4, 5, 6];
    "SparseApplyRMSProp" rms_prop 7 Some(8), [3, 4, 5, 6];
    "ResourceApplyCenteredRMSProp" centered_rms_prop 8 None, [4, 5, 6, 7];
    "ApplyCenteredRMSProp" centered_rms_prop 8 None, [4, 5, 6, 7];
    "ResourceSparseApplyCenteredRMSProp" centered_rms_prop 8 Some(9), [4, 5, 6, 7];
    "SparseApplyCenteredRMSProp" centered_rms_prop 8 Some(9), [4, 5, 6, 7];
    "ResourceApplyAdamWithAmsgrad" adam_with_amsgrad 10 None, [4, 5, 6, 7, 8, 9];
    "ResourceApplyAdaMax" ada_max 8 None, [3, 4, 5, 6, 7];
    "ApplyAdaMax" ada_max 8 None, [3, 4, 5, 6, 7];
    "ResourceApplyFtrl" ftrl 3 None, [4, 5, 6, 7];
    "ApplyFtrl" ftrl 3 None, [4, 5, 6, 7];
    "ResourceSparseApplyFtrl" ftrl 3 Some(4), [5, 6, 7, 8];
    "SparseApplyFtrl" ftrl 3 Some(4), [5, 6, 7, 8];
    "ResourceApplyFtrlV2" ftrl 3 None, [4, 5, 6, 7, 8];
    "ApplyFtrlV2" ftrl 3 None, [4, 5, 6, 7, 8];
    "ResourceSparseApplyFtrlV2" ftrl 3 Some(4), [5, 6, 7, 8, 9];
    "SparseApplyFtrlV2" ftrl 3 Some(4), [5, 6, 7, 8, 9];
    "ResourceApplyAddSign" add_sign 6 None, [2, 3, 4, 5];
    "ApplyAddSign" add_sign 6 None, [2, 3, 4, 5];
    "ResourceApplyPowerSign" power_sign 6 None, [2, 3, 4, 5];
    "ApplyPowerSign" power_sign 6 None, [2, 3, 4, 5];
    "ApplyMomentum" momentum 3 None, [2, 4];
    "ResourceSparseApplyMomentum" momentum 3 Some(4), [2, 5];
    "SparseApplyMomentum" momentum 3 Some(4), [2, 5];
    "ApplyGradientDescent" gradient_descent 2 None, [1];
    "ApplyAdam" adam 9 None, [3, 4, 5, 6, 7, 8];
};
