//! Arithmetic on sparse tensors: products with dense matrices, sums, reductions, softmax.

use std::cmp::Ordering;

use super::rows::{Arith, Combine, number_kernels, row_function};
use super::sparse::{Sparse, offset};
use super::support::{Built, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{Complex64, DType};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// The conjugate, of a complex number.
fn conjugate<T: Arith>(v: T) -> T {
    let any: &dyn std::any::Any = &v;
    let out = any.downcast_ref::<Complex64>().map(num_complex::Complex::conj);
    out.and_then(|z| (&z as &dyn std::any::Any).downcast_ref::<T>().copied()).unwrap_or(v)
}

fn matmul<T: Arith>(node: &Node) -> Built {
    let (adjoint_a, adjoint_b) = (*node.flag("adjoint_a")?, *node.flag("adjoint_b")?);
    kernel(move |c| {
        let a = Sparse::of(c, 0, 1, 2)?;
        let (values, b) = (c.slice::<T>(1)?, c.input(3)?);
        let (&[rows, cols], 2) = (b.dims(), a.rank()) else {
            return Err(KernelError::invalid(format!("b must be a matrix, got shape {}", b.shape())));
        };
        let (k, n) = if adjoint_b { (cols, rows) } else { (rows, cols) };
        let (m, ka) = if adjoint_a { (a.shape[1], a.shape[0]) } else { (a.shape[0], a.shape[1]) };
        if ka != k as i64 {
            return Err(KernelError::invalid(format!("inner dimensions differ: {ka} and {k}")));
        }
        let from = b.slice::<T>()?;
        let out = c.filled::<T>(Shape::new(&[m as usize, n]), |out| {
            out.fill(T::ZERO);
            for (i, v) in values.iter().enumerate() {
                let (r, k) = (a.row(i)[0] as usize, a.row(i)[1] as usize);
                let (r, k, v) = if adjoint_a { (k, r, conjugate(*v)) } else { (r, k, *v) };
                let to = &mut out[r * n..(r + 1) * n];
                match adjoint_b {
                    false => {
                        let row = &from[k * n..(k + 1) * n];
                        to.iter_mut().zip(row).for_each(|(o, b)| *o = o.plus(v.times(*b)));
                    }
                    true => {
                        let column = from[k..].iter().step_by(cols);
                        to.iter_mut().zip(column).for_each(|(o, b)| *o = o.plus(v.times(conjugate(*b))));
                    }
                }
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// Both tensors' coordinates in order: for each of the union, the position in each where it has it.
fn union(a: &Sparse, b: &Sparse) -> Result<Vec<[Option<usize>; 2]>, KernelError> {
    if a.shape != b.shape {
        return Err(KernelError::invalid(format!("the shapes {:?} and {:?} differ", a.shape, b.shape)));
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::with_capacity(a.n + b.n));
    while i < a.n || j < b.n {
        let order = match (i < a.n, j < b.n) {
            (true, true) => a.row(i).cmp(b.row(j)),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        out.push([(order != Ordering::Greater).then_some(i), (order != Ordering::Less).then_some(j)]);
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    Ok(out)
}

fn union_rows(a: &Sparse, b: &Sparse, pairs: &[[Option<usize>; 2]]) -> Result<Tensor, KernelError> {
    let mut at = Vec::with_capacity(pairs.len() * a.rank());
    for pair in pairs {
        match pair {
            [Some(i), _] => at.extend_from_slice(a.row(*i)),
            [None, Some(j)] => at.extend_from_slice(b.row(*j)),
            [None, None] => {}
        }
    }
    Ok(Tensor::from_vec([pairs.len(), a.rank()], at)?)
}

/// The size of a number, for the threshold.
fn magnitude<T: Arith>(v: T) -> f64 {
    match Tensor::scalar(v).to_f64() {
        Ok(values) => values.first().map_or(0.0, |v| v.abs()),
        Err(_) => match (&v as &dyn std::any::Any).downcast_ref::<Complex64>() {
            Some(z) => z.norm(),
            None => 0.0,
        },
    }
}

/// The sum; what both have and what comes out smaller than the threshold is left out.
fn add<T: Arith>(_: &Node) -> Built {
    kernel(|c| {
        let (a, b) = (Sparse::of(c, 0, 1, 2)?, Sparse::of(c, 3, 4, 5)?);
        let (x, y) = (c.slice::<T>(1)?, c.slice::<T>(4)?);
        let threshold = convert(c.input(6)?, DType::F64, c.allocator)?.item::<f64>()?;
        let (mut kept, mut sums) = (Vec::new(), Vec::new());
        for pair in union(&a, &b)? {
            let of = |values: &[T], i: Option<usize>| i.map_or(T::ZERO, |i| values[i]);
            let sum = of(x, pair[0]).plus(of(y, pair[1]));
            if pair.contains(&None) || magnitude(sum) >= threshold {
                kept.push(pair);
                sums.push(sum);
            }
        }
        c.set(0, union_rows(&a, &b, &kept)?);
        c.set(1, Tensor::from_vec([sums.len()], sums)?);
        let shape = c.take(2)?;
        c.set(2, shape);
        Ok(())
    })
}

/// The gradient of each summand's values: the sum's where it has the coordinate.
fn add_grad<T: Arith>(_: &Node) -> Built {
    kernel(|c| {
        let grad = c.slice::<T>(0)?;
        let sum = c.input(3)?;
        let &[n, rank] = sum.dims() else { return Err(KernelError::invalid("sum_indices must be a matrix")) };
        if grad.len() != n {
            return Err(KernelError::invalid(format!("{} gradients for {n} sums", grad.len())));
        }
        let rows = c.ints(3)?;
        let row = |i: usize| &rows[i * rank..(i + 1) * rank];
        let places: Vec<usize> = (0..n).collect();
        let mut outs = Vec::new();
        for i in [1, 2] {
            let own = c.ints(i)?;
            let find = |at: &[i64]| {
                let k = places.binary_search_by(|k| row(*k).cmp(at));
                k.map_or(T::ZERO, |k| grad[k])
            };
            let values: Vec<T> = if rank == 0 { Vec::new() } else { own.chunks_exact(rank).map(find).collect() };
            outs.push(Tensor::from_vec([values.len()], values)?);
        }
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        Ok(())
    })
}

/// The larger or smaller value at each coordinate that either has; the other's is 0.
fn extreme<T: Arith>(_: &Node, how: Combine) -> Built {
    kernel(move |c| {
        let (a, b) = (Sparse::of(c, 0, 1, 2)?, Sparse::of(c, 3, 4, 5)?);
        let (x, y) = (c.slice::<T>(1)?, c.slice::<T>(4)?);
        let pairs = union(&a, &b)?;
        let f = row_function::<T>(how);
        let of = |pair: &[Option<usize>; 2]| {
            let mut value = [pair[0].map_or(T::ZERO, |i| x[i])];
            f(&mut value, &[pair[1].map_or(T::ZERO, |j| y[j])]);
            value[0]
        };
        let values: Vec<T> = pairs.iter().map(of).collect();
        c.set(0, union_rows(&a, &b, &pairs)?);
        c.set(1, Tensor::from_vec([values.len()], values)?);
        Ok(())
    })
}

/// Reduced over axes; `sparse`: only the groups that have values.
fn reduce<T: Arith>(node: &Node, how: Combine, sparse: bool) -> Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let s = Sparse::of(c, 0, 1, 2)?;
        let values = c.slice::<T>(1)?;
        let axes = c.ints(3)?;
        let reduced = engine_core::geometry::axis_mask(&axes, s.rank())?;
        let kept: Vec<usize> = (0..s.rank()).filter(|d| !reduced[*d]).collect();
        let group = |i: usize| kept.iter().map(|d| s.row(i)[*d]).collect::<Vec<i64>>();
        let mut order: Vec<usize> = (0..s.n).collect();
        order.sort_by_key(|i| group(*i));
        let f = row_function::<T>(how);
        let mut groups: Vec<(Vec<i64>, T)> = Vec::new();
        for i in order {
            let at = group(i);
            match groups.last_mut().filter(|(last, _)| *last == at) {
                Some((_, sum)) => f(std::slice::from_mut(sum), &values[i..=i]),
                None => groups.push((at, values[i])),
            }
        }
        let out_shape: Vec<i64> =
            (0..s.rank()).filter_map(|d| if reduced[d] { keep.then_some(1) } else { Some(s.shape[d]) }).collect();
        let widened = |at: &[i64]| -> Vec<i64> {
            let mut rest = at.iter();
            let each = |d: usize| if reduced[d] { keep.then_some(0) } else { rest.next().copied() };
            (0..s.rank()).filter_map(each).collect()
        };
        if sparse {
            let at: Vec<i64> = groups.iter().flat_map(|(at, _)| widened(at)).collect();
            let n = groups.len();
            c.set(0, Tensor::from_vec([n, out_shape.len()], at)?);
            c.set(1, Tensor::from_vec([n], groups.iter().map(|g| g.1).collect::<Vec<T>>())?);
            c.set(2, Tensor::vector(&out_shape));
            return Ok(());
        }
        let dense = Sparse { at: Vec::new(), shape: out_shape, n: 0 }.dense()?;
        let strides = dense.strides();
        let out = c.filled::<T>(dense, |out| {
            out.fill(T::ZERO);
            groups.iter().for_each(|(at, sum)| out[offset(&widened(at), &strides)] = *sum);
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// The dense tensor's value at each coordinate, its dimensions stretched where they are 1 or missing.
fn dense_at<T: Arith>(c: &KernelContext<'_>, s: &Sparse, i: usize) -> Result<Vec<T>, KernelError> {
    let dense = c.input(i)?;
    let lead = s.rank().checked_sub(dense.shape().rank());
    let fits = lead
        .is_some_and(|lead| dense.dims().iter().zip(&s.shape[lead..]).all(|(d, whole)| *d == 1 || *d as i64 == *whole));
    let Some(lead) = lead.filter(|_| fits) else {
        return Err(KernelError::invalid(format!("shape {} does not broadcast to {:?}", dense.shape(), s.shape)));
    };
    let strides = dense.shape().strides();
    let step: Vec<usize> = dense.dims().iter().zip(&strides).map(|(d, s)| if *d == 1 { 0 } else { *s }).collect();
    let values = dense.slice::<T>()?;
    Ok((0..s.n).map(|k| values[offset(&s.row(k)[lead..], &step)]).collect())
}

fn with_dense<T: Arith>(_: &Node, how: Combine) -> Built {
    kernel(move |c| {
        let s = Sparse::of(c, 0, 1, 2)?;
        let dense = dense_at::<T>(c, &s, 3)?;
        let mut out = c.slice::<T>(1)?.to_vec();
        row_function::<T>(how)(&mut out, &dense);
        c.set(0, Tensor::from_vec([out.len()], out)?);
        Ok(())
    })
}

fn add_to_dense<T: Arith>(_: &Node) -> Built {
    kernel(|c| {
        let s = Sparse::of(c, 0, 1, 2)?;
        let dense = c.input(3)?;
        if s.dense()? != *dense.shape() {
            return Err(KernelError::invalid(format!("shapes {:?} and {} differ", s.shape, dense.shape())));
        }
        let (values, strides, from) = (c.slice::<T>(1)?, dense.shape().strides(), dense.slice::<T>()?);
        let out = c.filled::<T>(dense.shape().clone(), |out| {
            out.copy_from_slice(from);
            for (i, v) in values.iter().enumerate() {
                let to = &mut out[offset(s.row(i), &strides)];
                *to = to.plus(*v);
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// Softmax of the values of each innermost row; what is not there has no share.
fn softmax(c: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let s = Sparse::of(c, 0, 1, 2)?;
    if s.rank() < 2 {
        return Err(KernelError::invalid("the tensor must have rank 2 or more"));
    }
    let values = c.input(1)?.to_f64()?;
    let mut order: Vec<usize> = (0..s.n).collect();
    let outer = |i: usize| &s.row(i)[..s.rank() - 1];
    order.sort_by(|a, b| outer(*a).cmp(outer(*b)));
    let mut out = vec![0.0; s.n];
    for group in order.chunk_by(|a, b| outer(*a) == outer(*b)) {
        let largest = group.iter().map(|i| values[*i]).fold(f64::MIN, f64::max);
        let total: f64 = group.iter().map(|i| (values[*i] - largest).exp()).sum();
        group.iter().for_each(|i| out[*i] = (values[*i] - largest).exp() / total);
    }
    let out = convert(&Tensor::from_vec([out.len()], out)?, c.input(1)?.dtype(), c.allocator)?;
    c.set(0, out);
    Ok(())
}

/// The gradients of the values that were there, and the sum of those that were filled in.
fn fill_empty_rows_grad<T: Arith>(_: &Node) -> Built {
    kernel(|c| {
        let (back, grad) = (c.ints(0)?, c.slice::<T>(1)?);
        let mut is_filled = vec![true; grad.len()];
        let mut values = Vec::with_capacity(back.len());
        for i in &back {
            let at = usize::try_from(*i).ok().filter(|at| *at < grad.len());
            let at = at.ok_or_else(|| KernelError::invalid(format!("index {i} is outside of [0, {})", grad.len())))?;
            is_filled[at] = false;
            values.push(grad[at]);
        }
        let filled = grad.iter().zip(&is_filled).filter(|(_, filled)| **filled);
        let sum = filled.fold(T::ZERO, |sum, (g, _)| sum.plus(*g));
        c.set(0, Tensor::from_vec([values.len()], values)?);
        c.set(1, Tensor::scalar(sum));
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SPARSE: &[KernelDef] = number_kernels! {
    "SparseTensorDenseMatMul", "T" => matmul();
    "SparseAdd", "T" => add();
    "SparseAddGrad", "T" => add_grad();
    "SparseSparseMaximum", "T" => extreme(Combine::Max);
    "SparseSparseMinimum", "T" => extreme(Combine::Min);
    "SparseReduceSum", "T" => reduce(Combine::Add, false);
    "SparseReduceSumSparse", "T" => reduce(Combine::Add, true);
    "SparseReduceMax", "T" => reduce(Combine::Max, false);
    "SparseReduceMaxSparse", "T" => reduce(Combine::Max, true);
    "SparseDenseCwiseMul", "T" => with_dense(Combine::Mul);
    "SparseDenseCwiseDiv", "T" => with_dense(Combine::Div);
    "SparseDenseCwiseAdd", "T" => with_dense(Combine::Add);
    "SparseTensorDenseAdd", "T" => add_to_dense();
    "SparseFillEmptyRowsGrad", "T" => fill_empty_rows_grad();
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static SOFTMAX: &[KernelDef] = &[
    cpu("SparseSoftmax", ("T", &[DType::F32, DType::F64]), |_| kernel(softmax)),
    widened("SparseSoftmax", ("T", DType::NARROW_FLOATS)),
];
