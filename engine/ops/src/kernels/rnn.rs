//! Kernels of recurrent cells and layers, fused: one matrix product for all gates of a step, one pass over the gates.
//!
//! The gates lie side by side in the weights' columns: input, new value, forget, output in `LSTMBlockCell` and
//! `BlockLSTM`; input, forget, new value, output in `BlockLSTMV2`; reset, update in `GRUBlockCell`.

use super::gemm::{Gemm, Matrix, multiply};
use super::nn::Float;
use super::support::{Built, Computed, cpu, kernel, shard_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Where each gate's columns begin, in units.
#[derive(Clone, Copy)]
struct Order {
    input: usize,
    new: usize,
    forget: usize,
    output: usize,
}

const ICFO: Order = Order { input: 0, new: 1, forget: 2, output: 3 };
const IFCO: Order = Order { input: 0, forget: 1, new: 2, output: 3 };

#[derive(Clone, Copy)]
struct Cell {
    order: Order,
    forget_bias: f64,
    /// States are kept within plus and minus this; 0 or less: not at all.
    clip: f64,
    peephole: bool,
}

impl Cell {
    fn of(node: &Node, order: Order) -> Result<Cell, KernelError> {
        let number = |name: &str| node.float(name).map(|v| f64::from(*v)).unwrap_or(0.0);
        let peephole = *node.flag("use_peephole")?;
        Ok(Cell { order, forget_bias: number("forget_bias"), clip: number("cell_clip"), peephole })
    }
}

/// The sizes of a step.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    inputs: usize,
    units: usize,
}

fn shape_error(what: &str, got: &Shape) -> KernelError {
    KernelError::invalid(format!("{what}, got shape {got}"))
}

/// Checks the inputs from `first` on: state, output, weights, three peepholes, bias.
fn sizes(c: &KernelContext<'_>, x: &[usize], first: usize) -> Result<Sizes, KernelError> {
    let (&[batch, inputs], &[_, units]) = (x, c.input(first)?.dims()) else {
        return Err(shape_error("the state must be a matrix", c.input(first)?.shape()));
    };
    let expected: [&[usize]; 7] =
        [&[batch, units], &[batch, units], &[inputs + units, 4 * units], &[units], &[units], &[units], &[4 * units]];
    for (i, dims) in expected.into_iter().enumerate() {
        let got = c.input(first + i)?.shape();
        if got.dims() != dims {
            return Err(shape_error(&format!("input {} must have shape {}", first + i, Shape::new(dims)), got));
        }
    }
    Ok(Sizes { batch, inputs, units })
}

fn matrix<T>(data: &[T], rows: usize, cols: usize) -> Matrix<'_, T> {
    Matrix { data, rows, cols, row_stride: cols, col_stride: 1, conjugate: false }
}

fn transposed<T>(data: &[T], rows: usize, cols: usize) -> Matrix<'_, T> {
    Matrix { data, rows: cols, cols: rows, row_stride: 1, col_stride: cols, conjugate: false }
}

/// Rows of `a` and `b` side by side.
fn side_by_side<T: Float>(a: &[T], b: &[T], (na, nb): (usize, usize), out: &mut [T]) {
    for (i, row) in out.chunks_exact_mut((na + nb).max(1)).enumerate() {
        row[..na].copy_from_slice(&a[i * na..][..na]);
        row[na..].copy_from_slice(&b[i * nb..][..nb]);
    }
}

/// What a step reads.
#[derive(Clone, Copy)]
struct StepIn<'a, T> {
    x: &'a [T],
    state: &'a [T],
    h: &'a [T],
    w: &'a [T],
    peepholes: [&'a [T]; 3],
    b: &'a [T],
}

/// What a step writes, in the order of the op's outputs: i, cs, f, o, ci, co, h.
type StepOut<'a, T> = [&'a mut [T]; 7];

/// Memory that steps use again.
struct Scratch<T> {
    xh: Vec<T>,
    gates: Vec<T>,
}

impl<T: Float> Scratch<T> {
    fn new(s: Sizes) -> Scratch<T> {
        let zeros = |n: usize| vec![T::default(); n];
        Scratch { xh: zeros(s.batch * (s.inputs + s.units)), gates: zeros(s.batch * 4 * s.units) }
    }
}

/// One step of the cell.
fn step<T: Float + Gemm>(
    sharder: &dyn Sharder,
    cell: &Cell,
    s: Sizes,
    from: StepIn<'_, T>,
    out: StepOut<'_, T>,
    scratch: &mut Scratch<T>,
) {
    let (n, wide) = (s.units, 4 * s.units);
    side_by_side(from.x, from.h, (s.inputs, n), &mut scratch.xh);
    let (xh, w) = (matrix(&scratch.xh, s.batch, s.inputs + n), matrix(from.w, s.inputs + n, wide));
    multiply(sharder, xh, w, &mut scratch.gates);
    let clip = T::from_f64(cell.clip);
    let (forget_bias, none) = (T::from_f64(cell.forget_bias), T::default());
    let [i_out, cs_out, f_out, o_out, ci_out, co_out, h_out] = out;
    let [wci, wcf, wco] = from.peepholes;
    for (r, gates) in scratch.gates.chunks_exact(wide.max(1)).enumerate() {
        let row = r * n..(r + 1) * n;
        let gate = |to: &mut [T], which: usize, more: T| {
            let (values, bias) = (&gates[which * n..][..n], &from.b[which * n..][..n]);
            to.iter_mut().zip(values).zip(bias).for_each(|((to, v), b)| *to = *v + *b + more);
        };
        let before = &from.state[row.clone()];
        let peep = |to: &mut [T], w: &[T], state: &[T]| {
            if cell.peephole {
                to.iter_mut().zip(w).zip(state).for_each(|((to, w), s)| *to = *to + *w * *s);
            }
        };
        let (i, ci, f) = (&mut i_out[row.clone()], &mut ci_out[row.clone()], &mut f_out[row.clone()]);
        gate(i, cell.order.input, none);
        peep(i, wci, before);
        T::sigmoid_all(i);
        gate(ci, cell.order.new, none);
        T::tanh_all(ci);
        gate(f, cell.order.forget, forget_bias);
        peep(f, wcf, before);
        T::sigmoid_all(f);
        let (cs, o) = (&mut cs_out[row.clone()], &mut o_out[row.clone()]);
        for ((((cs, i), ci), f), before) in cs.iter_mut().zip(&*i).zip(&*ci).zip(&*f).zip(before) {
            *cs = *ci * *i + *before * *f;
        }
        if clip > none {
            let least = none - clip;
            cs.iter_mut().for_each(|v| {
                *v = if *v > clip {
                    clip
                } else if *v < least {
                    least
                } else {
                    *v
                }
            });
        }
        gate(o, cell.order.output, none);
        peep(o, wco, cs);
        T::sigmoid_all(o);
        let (co, h) = (&mut co_out[row.clone()], &mut h_out[row]);
        co.copy_from_slice(cs);
        T::tanh_all(co);
        h.iter_mut().zip(&*co).zip(&*o).for_each(|((h, co), o)| *h = *co * *o);
    }
}

fn lstm_cell<T: Float + Gemm>(c: &mut KernelContext<'_>, cell: &Cell) -> Computed {
    let s = sizes(c, c.input(0)?.dims(), 1)?;
    let from = StepIn {
        x: c.slice::<T>(0)?,
        state: c.slice::<T>(1)?,
        h: c.slice::<T>(2)?,
        w: c.slice::<T>(3)?,
        peepholes: [c.slice::<T>(4)?, c.slice::<T>(5)?, c.slice::<T>(6)?],
        b: c.slice::<T>(7)?,
    };
    let shape = Shape::new(&[s.batch, s.units]);
    let mut outputs = (0..7).map(|_| c.room::<T>(shape.clone())).collect::<Result<Vec<_>, _>>()?;
    let slices = slices::<T, 7>(&mut outputs)?;
    step(c.sharder, cell, s, from, slices, &mut Scratch::new(s));
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

/// The elements of fresh tensors.
fn slices<T: Float, const N: usize>(tensors: &mut [Tensor]) -> Result<[&mut [T]; N], KernelError> {
    let all = tensors.iter_mut().map(super::support::unique_slice::<T>).collect::<Result<Vec<_>, _>>()?;
    all.try_into().map_err(|_| KernelError::invalid("an output is missing"))
}

/// A layer: the cell over the first `seq_len_max` steps of `x`, zeros after.
fn lstm_layer<T: Float + Gemm>(c: &mut KernelContext<'_>, cell: &Cell) -> Computed {
    let &[steps, _, _] = c.input(1)?.dims() else {
        return Err(shape_error("x must have rank 3", c.input(1)?.shape()));
    };
    let s = sizes(c, &c.input(1)?.dims()[1..], 2)?;
    let n_steps = usize::try_from(c.item::<i64>(0)?).map_or(0, |n| n.min(steps));
    let (x, w, b) = (c.slice::<T>(1)?, c.slice::<T>(4)?, c.slice::<T>(8)?);
    let (first_state, first_h) = (c.slice::<T>(2)?, c.slice::<T>(3)?);
    let peepholes = [c.slice::<T>(5)?, c.slice::<T>(6)?, c.slice::<T>(7)?];
    let shape = Shape::new(&[steps, s.batch, s.units]);
    let mut outputs = (0..7).map(|_| c.room::<T>(shape.clone())).collect::<Result<Vec<_>, _>>()?;
    let (n, n_x) = (s.batch * s.units, s.batch * s.inputs);
    let mut scratch = Scratch::new(s);
    let mut all = slices::<T, 7>(&mut outputs)?;
    for t in 0..n_steps {
        let mut done = [(); 7].map(|()| &[] as &[T]);
        let mut now = all.each_mut().map(|_| None);
        for ((slice, done), now) in all.iter_mut().zip(&mut done).zip(&mut now) {
            let (before, rest) = slice.split_at_mut(t * n);
            (*done, *now) = (before, Some(&mut rest[..n]));
        }
        let last = |i: usize, first| if t == 0 { first } else { &done[i][(t - 1) * n..] };
        let (state, h) = (last(1, first_state), last(6, first_h));
        let from = StepIn { x: &x[t * n_x..][..n_x], state, h, w, peepholes, b };
        step(c.sharder, cell, s, from, now.map(|s| s.expect("each was just set")), &mut scratch);
    }
    all.iter_mut().for_each(|s| s[n_steps * n..].fill(T::default()));
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

/// What the way back through a step reads besides its inputs: the outputs of the step and their gradients.
struct Back<'a, T> {
    i: &'a [T],
    cs: &'a [T],
    f: &'a [T],
    o: &'a [T],
    ci: &'a [T],
    co: &'a [T],
    state: &'a [T],
    cs_grad: &'a [T],
    h_grad: &'a [T],
}

/// The way back through a step's gates: the gradients of the gates before their functions, in the cell's order, and of
/// the state before. Those of the peepholes are added up.
fn step_back<T: Float>(
    cell: &Cell,
    n: usize,
    b: &Back<'_, T>,
    peepholes: [&[T]; 3],
    gates: &mut [T],
    state_grad: &mut [T],
    [of_wci, of_wcf, of_wco]: [&mut [T]; 3],
) {
    let one = T::from_f64(1.0);
    let [wci, wcf, wco] = peepholes;
    for (r, gates) in gates.chunks_exact_mut((4 * n).max(1)).enumerate() {
        for u in 0..n {
            let k = r * n + u;
            let (i, f, o, ci, co) = (b.i[k], b.f[k], b.o[k], b.ci[k], b.co[k]);
            let of_o = o * (one - o) * b.h_grad[k] * co;
            let mut of_cs = (one - co * co) * b.h_grad[k] * o + b.cs_grad[k];
            if cell.peephole {
                of_cs = of_cs + of_o * wco[u];
            }
            let of_ci = (one - ci * ci) * of_cs * i;
            let of_f = f * (one - f) * of_cs * b.state[k];
            let of_i = i * (one - i) * of_cs * ci;
            gates[cell.order.input * n + u] = of_i;
            gates[cell.order.new * n + u] = of_ci;
            gates[cell.order.forget * n + u] = of_f;
            gates[cell.order.output * n + u] = of_o;
            state_grad[k] = of_cs * f;
            if cell.peephole {
                state_grad[k] = state_grad[k] + of_i * wci[u] + of_f * wcf[u];
                of_wci[u] = of_wci[u] + of_i * b.state[k];
                of_wcf[u] = of_wcf[u] + of_f * b.state[k];
                of_wco[u] = of_wco[u] + of_o * b.cs[k];
            }
        }
    }
}

fn check_like(c: &KernelContext<'_>, inputs: std::ops::Range<usize>, dims: &[usize]) -> Computed {
    for i in inputs {
        if c.input(i)?.dims() != dims {
            let what = format!("input {i} must have shape {}", Shape::new(dims));
            return Err(shape_error(&what, c.input(i)?.shape()));
        }
    }
    Ok(())
}

fn lstm_cell_grad<T: Float + Gemm>(c: &mut KernelContext<'_>, cell: &Cell) -> Computed {
    let s = sizes(c, c.input(0)?.dims(), 1)?;
    check_like(c, 8..16, &[s.batch, s.units])?;
    let at = |i: usize| c.slice::<T>(i);
    let back = Back {
        i: at(8)?,
        cs: at(9)?,
        f: at(10)?,
        o: at(11)?,
        ci: at(12)?,
        co: at(13)?,
        state: at(1)?,
        cs_grad: at(14)?,
        h_grad: at(15)?,
    };
    let unit = Shape::new(&[s.units]);
    let shapes =
        [Shape::new(&[s.batch, s.units]), Shape::new(&[s.batch, 4 * s.units]), unit.clone(), unit.clone(), unit];
    let mut outputs = shapes.into_iter().map(|shape| c.room::<T>(shape)).collect::<Result<Vec<_>, _>>()?;
    let [state, gates, a, b, o] = slices::<T, 5>(&mut outputs)?;
    [&mut *a, &mut *b, &mut *o].into_iter().for_each(|s| s.fill(T::default()));
    step_back(cell, s.units, &back, [at(4)?, at(5)?, at(6)?], gates, state, [a, b, o]);
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

/// Adds `add` to `to`, element by element.
fn add_to<T: Float>(to: &mut [T], add: &[T]) {
    to.iter_mut().zip(add).for_each(|(to, v)| *to = *to + *v);
}

fn lstm_layer_grad<T: Float + Gemm>(c: &mut KernelContext<'_>, cell: &Cell) -> Computed {
    let &[steps, batch, inputs] = c.input(1)?.dims() else {
        return Err(shape_error("x must have rank 3", c.input(1)?.shape()));
    };
    let s = sizes(c, &[batch, inputs], 2)?;
    check_like(c, 9..18, &[steps, s.batch, s.units])?;
    let n_steps = usize::try_from(c.item::<i64>(0)?).map_or(0, |n| n.min(steps));
    let (n, rows) = (s.batch * s.units, s.inputs + s.units);
    let mut outputs = (1..9).map(|i| c.room::<T>(c.input(i)?.shape().clone())).collect::<Result<Vec<_>, _>>()?;
    let [x_grad, cs_grad, h_grad, w_grad, a, f, o, b_grad] = slices::<T, 8>(&mut outputs)?;
    for slice in [&mut *x_grad, cs_grad, h_grad, w_grad, a, f, o, b_grad] {
        slice.fill(T::default());
    }
    let at = |i: usize| c.slice::<T>(i);
    let (x, w, peepholes) = (at(1)?, at(4)?, [at(5)?, at(6)?, at(7)?]);
    let mut scratch = Scratch::<T>::new(s);
    let (mut of_cs, mut of_h) = (vec![T::default(); n], vec![T::default(); n]);
    let (mut xh_grad, mut w_step) = (vec![T::default(); s.batch * rows], vec![T::default(); w.len()]);
    for t in (0..n_steps).rev() {
        let now = |i: usize| Ok::<_, KernelError>(&at(i)?[t * n..][..n]);
        let before = |i: usize, first: usize| if t == 0 { at(first) } else { Ok(&at(i)?[(t - 1) * n..][..n]) };
        of_cs.iter_mut().zip(now(16)?).zip(&*cs_grad).for_each(|((to, a), b)| *to = *a + *b);
        of_h.iter_mut().zip(now(17)?).zip(&*h_grad).for_each(|((to, a), b)| *to = *a + *b);
        let (state, h) = (before(10, 2)?, before(15, 3)?);
        let back = Back {
            i: now(9)?,
            cs: now(10)?,
            f: now(11)?,
            o: now(12)?,
            ci: now(13)?,
            co: now(14)?,
            state,
            cs_grad: &of_cs,
            h_grad: &of_h,
        };
        step_back(cell, s.units, &back, peepholes, &mut scratch.gates, cs_grad, [&mut *a, &mut *f, &mut *o]);
        let gates = matrix(&scratch.gates, s.batch, 4 * s.units);
        multiply(c.sharder, gates, transposed(w, rows, 4 * s.units), &mut xh_grad);
        for (r, row) in xh_grad.chunks_exact(rows.max(1)).enumerate() {
            x_grad[(t * s.batch + r) * s.inputs..][..s.inputs].copy_from_slice(&row[..s.inputs]);
            h_grad[r * s.units..][..s.units].copy_from_slice(&row[s.inputs..]);
        }
        let n_x = s.batch * s.inputs;
        side_by_side(&x[t * n_x..][..n_x], h, (s.inputs, s.units), &mut scratch.xh);
        multiply(c.sharder, transposed(&scratch.xh, s.batch, rows), gates, &mut w_step);
        shard_slice(c.sharder, w_grad, 1, 300, |at, part| add_to(part, &w_step[at..]));
        scratch.gates.chunks_exact((4 * s.units).max(1)).for_each(|row| add_to(b_grad, row));
    }
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

/// Checks the inputs of a gated recurrent unit: x, h, the weights and biases of both parts.
fn gru_sizes(c: &KernelContext<'_>) -> Result<Sizes, KernelError> {
    let (&[batch, inputs], &[_, units]) = (c.input(0)?.dims(), c.input(1)?.dims()) else {
        return Err(shape_error("x and h_prev must be matrices; h_prev", c.input(1)?.shape()));
    };
    let rows = inputs + units;
    let expected: [&[usize]; 5] = [&[batch, units], &[rows, 2 * units], &[rows, units], &[2 * units], &[units]];
    for (i, dims) in expected.into_iter().enumerate() {
        let got = c.input(i + 1)?.shape();
        if got.dims() != dims {
            return Err(shape_error(&format!("input {} must have shape {}", i + 1, Shape::new(dims)), got));
        }
    }
    Ok(Sizes { batch, inputs, units })
}

fn gru_cell<T: Float + Gemm>(c: &mut KernelContext<'_>) -> Computed {
    let s = gru_sizes(c)?;
    let (n, rows) = (s.units, s.inputs + s.units);
    let at = |i: usize| c.slice::<T>(i);
    let (x, h_prev, w_ru, w_c, b_ru, b_c) = (at(0)?, at(1)?, at(2)?, at(3)?, at(4)?, at(5)?);
    let shape = Shape::new(&[s.batch, n]);
    let mut outputs = (0..4).map(|_| c.room::<T>(shape.clone())).collect::<Result<Vec<_>, _>>()?;
    let [r, u, new, h] = slices::<T, 4>(&mut outputs)?;
    let mut xh = vec![T::default(); s.batch * rows];
    side_by_side(x, h_prev, (s.inputs, n), &mut xh);
    let mut gates = vec![T::default(); s.batch * 2 * n];
    multiply(c.sharder, matrix(&xh, s.batch, rows), matrix(w_ru, rows, 2 * n), &mut gates);
    for (k, row) in gates.chunks_exact_mut((2 * n).max(1)).enumerate() {
        add_to(row, b_ru);
        T::sigmoid_all(row);
        r[k * n..][..n].copy_from_slice(&row[..n]);
        u[k * n..][..n].copy_from_slice(&row[n..]);
    }
    let reset: Vec<T> = h_prev.iter().zip(&*r).map(|(h, r)| *h * *r).collect();
    side_by_side(x, &reset, (s.inputs, n), &mut xh);
    multiply(c.sharder, matrix(&xh, s.batch, rows), matrix(w_c, rows, n), new);
    new.chunks_exact_mut(n.max(1)).for_each(|row| add_to(row, b_c));
    T::tanh_all(new);
    let one = T::from_f64(1.0);
    for (((h, u), new), before) in h.iter_mut().zip(&*u).zip(&*new).zip(h_prev) {
        *h = *u * *before + (one - *u) * *new;
    }
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

fn gru_cell_grad<T: Float + Gemm>(c: &mut KernelContext<'_>) -> Computed {
    let s = gru_sizes(c)?;
    let (n, rows) = (s.units, s.inputs + s.units);
    check_like(c, 6..10, &[s.batch, n])?;
    let at = |i: usize| c.slice::<T>(i);
    let (h_prev, w_ru, w_c) = (at(1)?, at(2)?, at(3)?);
    let (r, u, new, of_h) = (at(6)?, at(7)?, at(8)?, at(9)?);
    let shapes = [s.inputs, n, n, 2 * n].map(|n| Shape::new(&[s.batch, n]));
    let mut outputs = shapes.into_iter().map(|shape| c.room::<T>(shape)).collect::<Result<Vec<_>, _>>()?;
    let [of_x, of_h_prev, of_new, of_gates] = slices::<T, 4>(&mut outputs)?;
    let one = T::from_f64(1.0);
    for (k, of_new) in of_new.iter_mut().enumerate() {
        *of_new = of_h[k] * (one - u[k]) * (one - new[k] * new[k]);
    }
    let mut through_new = vec![T::default(); s.batch * rows];
    multiply(c.sharder, matrix(of_new, s.batch, n), transposed(w_c, rows, n), &mut through_new);
    for row in 0..s.batch {
        for i in 0..n {
            let (k, of_reset) = (row * n + i, through_new[row * rows + s.inputs + i]);
            of_gates[row * 2 * n + i] = of_reset * h_prev[k] * r[k] * (one - r[k]);
            of_gates[row * 2 * n + n + i] = of_h[k] * (h_prev[k] - new[k]) * u[k] * (one - u[k]);
        }
    }
    let mut through_gates = vec![T::default(); s.batch * rows];
    multiply(c.sharder, matrix(of_gates, s.batch, 2 * n), transposed(w_ru, rows, 2 * n), &mut through_gates);
    for row in 0..s.batch {
        let (a, b) = (&through_new[row * rows..][..rows], &through_gates[row * rows..][..rows]);
        for i in 0..s.inputs {
            of_x[row * s.inputs + i] = a[i] + b[i];
        }
        for i in 0..n {
            let k = row * n + i;
            of_h_prev[k] = b[s.inputs + i] + a[s.inputs + i] * r[k] + of_h[k] * u[k];
        }
    }
    outputs.into_iter().enumerate().for_each(|(i, t)| c.set(i, t));
    Ok(())
}

fn with_cell(node: &Node, order: Order, compute: fn(&mut KernelContext<'_>, &Cell) -> Computed) -> Built {
    let cell = Cell::of(node, order)?;
    kernel(move |c| compute(c, &cell))
}

macro_rules! cells {
    ($($t:ty, $dtype:ident;)+) => { &[ $(
        cpu("LSTMBlockCell", ("T", &[DType::$dtype]), |n| with_cell(n, ICFO, lstm_cell::<$t>)),
        cpu("LSTMBlockCellGrad", ("T", &[DType::$dtype]), |n| with_cell(n, ICFO, lstm_cell_grad::<$t>)),
        cpu("BlockLSTM", ("T", &[DType::$dtype]), |n| with_cell(n, ICFO, lstm_layer::<$t>)),
        cpu("BlockLSTMGrad", ("T", &[DType::$dtype]), |n| with_cell(n, ICFO, lstm_layer_grad::<$t>)),
        cpu("BlockLSTMV2", ("T", &[DType::$dtype]), |n| with_cell(n, IFCO, lstm_layer::<$t>)),
        cpu("BlockLSTMGradV2", ("T", &[DType::$dtype]), |n| with_cell(n, IFCO, lstm_layer_grad::<$t>)),
        cpu("GRUBlockCell", ("T", &[DType::$dtype]), |_| kernel(gru_cell::<$t>)),
        cpu("GRUBlockCellGrad", ("T", &[DType::$dtype]), |_| kernel(gru_cell_grad::<$t>)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static CELLS: &[KernelDef] = cells! { f32, F32; f64, F64; };

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = &[
    widened("LSTMBlockCell", ("T", DType::NARROW_FLOATS)),
    widened("LSTMBlockCellGrad", ("T", DType::NARROW_FLOATS)),
    widened("BlockLSTM", ("T", DType::NARROW_FLOATS)),
    widened("BlockLSTMGrad", ("T", DType::NARROW_FLOATS)),
    widened("BlockLSTMV2", ("T", DType::NARROW_FLOATS)),
    widened("BlockLSTMGradV2", ("T", DType::NARROW_FLOATS)),
];
