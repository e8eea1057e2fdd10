//! Matrix decompositions, solvers and inverses, on batches of matrices: the last two dimensions are a matrix's.
//!
//! The matrices of a batch are spread over the workers. Products are in [`super::batch_matmul`].

mod field;
mod orthogonal;
mod schur;
mod solve;

use num_complex::Complex64;
use parking_lot::Mutex;

use self::field::{Field, Mat, number, real};
use self::orthogonal::{eigh, least_squares, qr, svd};
use self::schur::{has_real_root, logarithm, square_root, sylvester};
use self::solve::{Lu, backward, cholesky, cholesky_grad, exponential, forward};
use super::broadcast::Broadcast;
use super::support::{Built, Computed, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Results for one matrix of the batch, one per output.
type Results<T> = Result<Vec<Mat<T>>, KernelError>;

/// An input that is a batch of matrices.
struct Batch<'a> {
    dims: &'a [usize],
    rows: usize,
    cols: usize,
}

impl<'a> Batch<'a> {
    fn of(c: &'a KernelContext<'_>, i: usize) -> Result<Batch<'a>, KernelError> {
        let t = c.input(i)?;
        match t.dims() {
            [dims @ .., rows, cols] => Ok(Batch { dims, rows: *rows, cols: *cols }),
            _ => Err(KernelError::invalid(format!("input {i} must be matrices, got shape {}", t.shape()))),
        }
    }

    fn square(c: &'a KernelContext<'_>, i: usize) -> Result<Batch<'a>, KernelError> {
        let batch = Batch::of(c, i)?;
        if batch.rows != batch.cols {
            let shape = c.input(i)?.shape();
            return Err(KernelError::invalid(format!("input {i} must be square matrices, got shape {shape}")));
        }
        Ok(batch)
    }

    fn n(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Calls `f` for each matrix, on several workers, and joins what it gives to outputs of shape `dims` + each of `inner`.
fn each<T: Field>(
    c: &KernelContext<'_>,
    dims: &[usize],
    inner: &[&[usize]],
    cost_ns: u64,
    f: impl Fn(usize) -> Results<T> + Sync,
) -> Result<Vec<Tensor>, KernelError> {
    let n: usize = dims.iter().product();
    let sizes: Vec<usize> = inner.iter().map(|d| d.iter().product()).collect();
    let mut outs = Vec::with_capacity(inner.len());
    for d in inner {
        outs.push(c.room::<T>(Shape::new(&[dims, d].concat()))?);
    }
    let mut slices = Vec::with_capacity(outs.len());
    for out in &mut outs {
        slices.push(super::support::unique_slice::<T>(out)?);
    }
    let (slices, failed) = (Mutex::new(slices), Mutex::new(None));
    c.sharder.parallel_for(n, cost_ns.max(1), &|range| {
        for i in range {
            match f(i) {
                Ok(parts) => {
                    let mut slices = slices.lock();
                    for ((slice, part), size) in slices.iter_mut().zip(parts).zip(&sizes) {
                        slice[i * size..(i + 1) * size].copy_from_slice(&part.data);
                    }
                }
                Err(e) => drop(failed.lock().get_or_insert(e)),
            }
        }
    });
    match failed.into_inner() {
        Some(e) => Err(e),
        None => Ok(outs),
    }
}

/// About what an algorithm of `k n^3` operations takes.
fn cubic(n: usize, k: usize) -> u64 {
    (n.saturating_mul(n).saturating_mul(n).saturating_mul(k) / 2) as u64
}

/// A kernel with one batch of square matrices as its input and one output of shape `inner`.
fn of_square<T: Field>(
    c: &mut KernelContext<'_>,
    as_matrix: bool,
    f: impl Fn(Mat<T>) -> Result<Mat<T>, KernelError> + Sync,
) -> Computed {
    let (dims, n) = {
        let a = Batch::square(c, 0)?;
        (a.dims.to_vec(), a.rows)
    };
    let input = c.take(0)?;
    let data = input.slice::<T>()?;
    let inner: &[usize] = if as_matrix { &[n, n] } else { &[] };
    let one = |i: usize| Ok(vec![f(Mat::new(n, n, &data[i * n * n..(i + 1) * n * n]))?]);
    for (i, out) in each(c, &dims, &[inner], cubic(n, 1), one)?.into_iter().enumerate() {
        c.set(i, out);
    }
    Ok(())
}

fn adjoint_if<T: Field>(a: Mat<T>, adjoint: bool) -> Mat<T> {
    if adjoint { a.adjoint() } else { a }
}

fn not_invertible() -> KernelError {
    KernelError::invalid("the matrix is not invertible")
}

fn inverse<T: Field>(node: &Node) -> Built {
    let adjoint = *node.flag("adjoint")?;
    kernel(move |c| {
        of_square::<T>(c, true, |a| {
            let n = a.rows;
            let lu = Lu::of(adjoint_if(a, adjoint));
            if lu.is_singular() { Err(not_invertible()) } else { Ok(lu.solve(&Mat::identity(n))) }
        })
    })
}

fn determinant<T: Field>(_: &Node) -> Built {
    kernel(|c| of_square::<T>(c, false, |a| Ok(Mat { rows: 1, cols: 1, data: vec![Lu::of(a).determinant()] })))
}

fn log_determinant<T: Field>(_: &Node) -> Built {
    kernel(|c| {
        let a = Batch::square(c, 0)?;
        let dims = a.dims.to_vec();
        let (n, cost) = (a.rows, cubic(a.rows, 1));
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let outs = each(c, &dims, &[&[], &[]], cost, |i| {
            let (sign, log) = Lu::of(Mat::new(n, n, &data[i * n * n..(i + 1) * n * n])).log_determinant();
            Ok([sign, real(log)].map(|v: T| Mat { rows: 1, cols: 1, data: vec![v] }).into())
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        Ok(())
    })
}

/// Of a matrix that has no factor: NaN in the lower triangle, as TensorFlow's.
fn cholesky_kernel<T: Field>(_: &Node) -> Built {
    kernel(|c| {
        of_square::<T>(c, true, |a| {
            Ok(cholesky(&a).unwrap_or_else(|| {
                let mut nans = Mat::zeros(a.rows, a.cols);
                (0..a.rows).for_each(|i| (0..=i).for_each(|j| nans.set(i, j, number(f64::NAN))));
                nans
            }))
        })
    })
}

/// The inputs 0 and 1, their batches broadcast against each other: for each matrix of the output the two positions.
pub(super) struct Pair {
    pub dims: Vec<usize>,
    pub at: Vec<[usize; 2]>,
}

impl Pair {
    pub fn of(a: &[usize], b: &[usize]) -> Result<Pair, KernelError> {
        let along = Broadcast::new(&Shape::new(a), &Shape::new(b))?;
        let at = along.positions()?;
        Ok(Pair { dims: along.shape.dims().to_vec(), at })
    }
}

/// A kernel of two batches of matrices whose output has `shape(a, b)` for each pair.
fn of_two<T: Field>(
    c: &mut KernelContext<'_>,
    broadcast: bool,
    shape: impl Fn((usize, usize), (usize, usize)) -> Result<[usize; 2], String>,
    f: impl Fn(Mat<T>, Mat<T>) -> Result<Mat<T>, KernelError> + Sync,
) -> Computed {
    let (left, right) = (c.input(0)?.clone(), c.input(1)?.clone());
    let (a, b) = (Batch::of(c, 0)?, Batch::of(c, 1)?);
    let texts =
        |problem: String| KernelError::invalid(format!("{problem} (inputs {} and {})", left.shape(), right.shape()));
    if !broadcast && a.dims != b.dims {
        return Err(texts("the batch dimensions differ".into()));
    }
    let pair = Pair::of(a.dims, b.dims)?;
    let inner = shape((a.rows, a.cols), (b.rows, b.cols)).map_err(texts)?;
    let ((ar, ac), (br, bc)) = ((a.rows, a.cols), (b.rows, b.cols));
    let (da, db) = (left.slice::<T>()?, right.slice::<T>()?);
    let cost = cubic(ar.max(bc), 1);
    let outs = each(c, &pair.dims, &[&inner], cost, |i| {
        let [at, bt] = pair.at[i];
        let a = Mat::new(ar, ac, &da[at * ar * ac..(at + 1) * ar * ac]);
        let b = Mat::new(br, bc, &db[bt * br * bc..(bt + 1) * br * bc]);
        Ok(vec![f(a, b)?])
    })?;
    outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
    Ok(())
}

/// The shape of what a square matrix solves for.
fn solved((m, n): (usize, usize), (k, cols): (usize, usize)) -> Result<[usize; 2], String> {
    match (m == n, n == k) {
        (true, true) => Ok([n, cols]),
        (false, _) => Err("the matrices must be square".into()),
        (true, false) => Err("matrix and right-hand side differ in rows".into()),
    }
}

fn matrix_solve<T: Field>(node: &Node) -> Built {
    let adjoint = *node.flag("adjoint")?;
    kernel(move |c| {
        of_two::<T>(c, false, solved, |a, b| {
            let lu = Lu::of(adjoint_if(a, adjoint));
            if lu.is_singular() { Err(not_invertible()) } else { Ok(lu.solve(&b)) }
        })
    })
}

fn triangular_solve<T: Field>(node: &Node) -> Built {
    let (lower, adjoint) = (*node.flag("lower")?, *node.flag("adjoint")?);
    kernel(move |c| {
        of_two::<T>(c, true, solved, |a, mut x| {
            if (0..a.rows).any(|i| a.at(i, i).is_zero()) {
                return Err(not_invertible());
            }
            let a = adjoint_if(a, adjoint);
            if lower != adjoint {
                forward(&a, &mut x, false);
            } else {
                backward(&a, &mut x);
            }
            Ok(x)
        })
    })
}

fn cholesky_grad_kernel<T: Field>(_: &Node) -> Built {
    kernel(|c| of_two::<T>(c, false, solved, |l, grad| Ok(cholesky_grad(&l, &grad))))
}

/// Least squares: by the normal equations (`fast`), with `l2` on their diagonal, or by singular values.
fn solve_ls<T: Field>(node: &Node) -> Built {
    let fast = *node.flag("fast")?;
    kernel(move |c| {
        let l2 = number::<T>(c.item::<f64>(2)?);
        let shape = |(m, n): (usize, usize), (k, cols): (usize, usize)| match m == k {
            true => Ok([n, cols]),
            false => Err("matrix and right-hand side differ in rows".to_owned()),
        };
        let no_factor =
            || KernelError::invalid("the matrix is rank deficient: use fast = false or a larger l2_regularizer");
        of_two::<T>(c, false, shape, |a, b| {
            if !fast {
                return Ok(least_squares(&a, &b));
            }
            let adjoint = a.adjoint();
            let is_tall = a.rows >= a.cols;
            let gram = if is_tall { adjoint.times(&a) } else { a.times(&adjoint) };
            let l = cholesky(&gram.plus(l2, &Mat::identity(gram.rows))).ok_or_else(no_factor)?;
            let mut x = if is_tall { adjoint.times(&b) } else { b };
            forward(&l, &mut x, false);
            backward(&l.adjoint(), &mut x);
            Ok(if is_tall { x } else { adjoint.times(&x) })
        })
    })
}

fn qr_kernel<T: Field>(node: &Node) -> Built {
    let full = *node.flag("full_matrices")?;
    kernel(move |c| {
        let a = Batch::of(c, 0)?;
        let (dims, m, n) = (a.dims.to_vec(), a.rows, a.cols);
        let p = if full { m } else { m.min(n) };
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let outs = each(c, &dims, &[&[m, p], &[p, n]], cubic(m.max(n), 2), |i| {
            let (q, r) = qr(Mat::new(m, n, &data[i * m * n..(i + 1) * m * n]), full);
            Ok(vec![q, r])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        Ok(())
    })
}

/// Real numbers as a column of the field.
fn column<T: Field>(values: &[T::Real]) -> Mat<T> {
    Mat { rows: values.len(), cols: 1, data: values.iter().map(|v| real(*v)).collect() }
}

/// Without vectors, those outputs are empty, as TensorFlow's.
fn svd_kernel<T: Field>(node: &Node) -> Built {
    let (vectors, full) = (*node.flag("compute_uv")?, *node.flag("full_matrices")?);
    kernel(move |c| {
        let a = Batch::of(c, 0)?;
        let (dims, m, n) = (a.dims.to_vec(), a.rows, a.cols);
        let p = m.min(n);
        let (pu, pv) = if full { (m, n) } else { (p, p) };
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let inner: &[&[usize]] = if vectors { &[&[p], &[m, pu], &[n, pv]] } else { &[&[p]] };
        let outs = each(c, &dims, inner, cubic(m.max(n), 20), |i| {
            let a = Mat::new(m, n, &data[i * m * n..(i + 1) * m * n]);
            if a.data.iter().any(|v| !v.is_finite()) {
                return Err(KernelError::invalid("the matrix has elements that are NaN or infinite"));
            }
            let (s, u, v) = svd(&a, full);
            Ok(vec![column(&s), u, v])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        empty_rest::<T>(c, if vectors { 3 } else { 1 })
    })
}

fn empty_rest<T: Element>(c: &mut KernelContext<'_>, first: usize) -> Computed {
    for i in first..c.outputs.len() {
        let empty = c.room::<T>(Shape::new(&[0]))?;
        c.set(i, empty);
    }
    Ok(())
}

fn eigh_kernel<T: Field>(node: &Node) -> Built {
    let vectors = *node.flag("compute_v")?;
    kernel(move |c| {
        let a = Batch::square(c, 0)?;
        let (dims, n) = (a.dims.to_vec(), a.rows);
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let inner: &[&[usize]] = if vectors { &[&[n], &[n, n]] } else { &[&[n]] };
        let outs = each(c, &dims, inner, cubic(n, 20), |i| {
            let (e, v) = eigh(&Mat::new(n, n, &data[i * n * n..(i + 1) * n * n]));
            Ok(vec![column(&e), v])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        empty_rest::<T>(c, if vectors { 2 } else { 1 })
    })
}

/// The older op's one output: the eigenvalues as the first row, the vectors below.
fn eigh_joined<T: Field>(_: &Node) -> Built {
    kernel(|c| {
        let a = Batch::square(c, 0)?;
        let (dims, n) = (a.dims.to_vec(), a.rows);
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let outs = each(c, &dims, &[&[n + 1, n]], cubic(n, 20), |i| {
            let (e, v) = eigh(&Mat::new(n, n, &data[i * n * n..(i + 1) * n * n]));
            Ok(vec![Mat { rows: n + 1, cols: n, data: [column::<T>(&e).data, v.data].concat() }])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        Ok(())
    })
}

fn lu_kernel<T: Field>(node: &Node) -> Built {
    let index = *node.dtype("output_idx_type")?;
    kernel(move |c| {
        let a = Batch::square(c, 0)?;
        let (dims, n) = (a.dims.to_vec(), a.rows);
        let n_batch: usize = a.n();
        let perms = Mutex::new(vec![0i64; n_batch * n]);
        let input = c.take(0)?;
        let data = input.slice::<T>()?;
        let outs = each(c, &dims, &[&[n, n]], cubic(n, 1), |i| {
            let lu = Lu::of(Mat::new(n, n, &data[i * n * n..(i + 1) * n * n]));
            if lu.is_singular() {
                return Err(not_invertible());
            }
            perms.lock()[i * n..(i + 1) * n].iter_mut().zip(&lu.perm).for_each(|(p, q)| *p = *q as i64);
            Ok(vec![lu.factors])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        let p = super::support::indices(index, Shape::new(&[dims.as_slice(), &[n]].concat()), &perms.into_inner())?;
        c.set(1, p);
        Ok(())
    })
}

fn exponential_kernel<T: Field>(_: &Node) -> Built {
    kernel(|c| of_square::<T>(c, true, |a| Ok(exponential(&a))))
}

/// Of a real matrix without a real root: NaN, as TensorFlow's.
fn square_root_kernel<T: Field>(_: &Node) -> Built {
    kernel(|c| {
        of_square::<T>(c, true, |a| {
            let a = a.cast::<Complex64>();
            let is_real = T::from_complex(Complex64::i()).to_complex().im == 0.0;
            let mut root = square_root(&a);
            if is_real && !has_real_root(&a) {
                root.data.fill(number(f64::NAN));
            }
            Ok(root.cast())
        })
    })
}

fn logarithm_kernel<T: Field>(_: &Node) -> Built {
    kernel(|c| of_square::<T>(c, true, |a| Ok(logarithm(&a.cast()).cast())))
}

/// The X of `A X + X B = C`, with `adjoint` of `A* X + X B* = C`.
fn sylvester_kernel<T: Field>(node: &Node) -> Built {
    let adjoint = *node.flag("adjoint")?;
    kernel(move |c| {
        let (a, b, rest) = (Batch::square(c, 0)?, Batch::square(c, 1)?, Batch::of(c, 2)?);
        let (m, n) = (a.rows, b.rows);
        if a.dims != rest.dims || b.dims != rest.dims || (rest.rows, rest.cols) != (m, n) {
            let shape = |i: usize| c.input(i).map(|t| t.shape().to_string());
            let text = format!("shapes {}, {} and {} do not fit", shape(0)?, shape(1)?, shape(2)?);
            return Err(KernelError::invalid(text));
        }
        let dims = rest.dims.to_vec();
        let inputs = [c.input(0)?.clone(), c.input(1)?.clone(), c.input(2)?.clone()];
        let (a, b, rest) = (inputs[0].slice::<T>()?, inputs[1].slice::<T>()?, inputs[2].slice::<T>()?);
        let outs = each(c, &dims, &[&[m, n]], cubic(m.max(n), 20), |i| {
            let of = |data: &[T], rows: usize, cols: usize| {
                Mat::new(rows, cols, &data[i * rows * cols..(i + 1) * rows * cols]).cast::<Complex64>()
            };
            let (a, b) = (adjoint_if(of(a, m, m), adjoint), adjoint_if(of(b, n, n), adjoint));
            Ok(vec![sylvester(&a, &b, &of(rest, m, n)).cast::<T>()])
        })?;
        outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
        Ok(())
    })
}

/// One kernel for each wide type of number; the narrow ones go through those.
macro_rules! fields {
    ($attr:literal: $($op:literal => $build:ident),+ $(,)?) => { &[ $(
        cpu($op, ($attr, &[DType::F32]), $build::<f32>),
        cpu($op, ($attr, &[DType::F64]), $build::<f64>),
        cpu($op, ($attr, &[DType::C128]), $build::<Complex64>),
        widened($op, ($attr, &[DType::F16, DType::BF16, DType::C64])),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static LINALG: &[KernelDef] = fields! { "T":
    "MatrixInverse" => inverse,
    "BatchMatrixInverse" => inverse,
    "MatrixDeterminant" => determinant,
    "BatchMatrixDeterminant" => determinant,
    "LogMatrixDeterminant" => log_determinant,
    "Cholesky" => cholesky_kernel,
    "BatchCholesky" => cholesky_kernel,
    "CholeskyGrad" => cholesky_grad_kernel,
    "MatrixSolve" => matrix_solve,
    "BatchMatrixSolve" => matrix_solve,
    "MatrixTriangularSolve" => triangular_solve,
    "BatchMatrixTriangularSolve" => triangular_solve,
    "MatrixSolveLs" => solve_ls,
    "MatrixExponential" => exponential_kernel,
    "MatrixSquareRoot" => square_root_kernel,
    "MatrixLogarithm" => logarithm_kernel,
    "_Sylvester" => sylvester_kernel,
    "Qr" => qr_kernel,
    "Svd" => svd_kernel,
    "SelfAdjointEig" => eigh_joined,
    "SelfAdjointEigV2" => eigh_kernel,
    "Lu" => lu_kernel,
};

/// The cross product of vectors of 3, along the last dimension.
fn cross<T: Element>(sub_of_products: fn(T, T, T, T) -> T) -> Built {
    kernel(move |c| {
        let (a, b) = (c.input(0)?, c.input(1)?);
        if a.shape() != b.shape() || a.dims().last() != Some(&3) {
            let text = format!("the inputs must be vectors of 3, got shapes {} and {}", a.shape(), b.shape());
            return Err(KernelError::invalid(text));
        }
        let (x, y) = (a.slice::<T>()?, b.slice::<T>()?);
        let out = c.filled::<T>(a.shape().clone(), |out| {
            for ((o, x), y) in out.chunks_exact_mut(3).zip(x.chunks_exact(3)).zip(y.chunks_exact(3)) {
                for (i, o) in o.iter_mut().enumerate() {
                    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                    *o = sub_of_products(x[j], y[k], x[k], y[j]);
                }
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static CROSS: &[KernelDef] = &[
    cpu("Cross", ("T", &[DType::F32]), |_| cross::<f32>(|a, b, c, d| a * b - c * d)),
    cpu("Cross", ("T", &[DType::F64]), |_| cross::<f64>(|a, b, c, d| a * b - c * d)),
    cpu("Cross", ("T", &[DType::I32]), |_| {
        cross::<i32>(|a, b, c, d| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d)))
    }),
    cpu("Cross", ("T", &[DType::I64]), |_| {
        cross::<i64>(|a, b, c, d| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d)))
    }),
    cpu("Cross", ("T", &[DType::U64]), |_| {
        cross::<u64>(|a, b, c, d| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d)))
    }),
    widened("Cross", ("T", DType::NARROW_REAL)),
];
