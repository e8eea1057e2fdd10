//! Sparse tensors as coordinates (a matrix, one row per value), values, and a shape: ops that rearrange them.

use rustc_hash::FxHashMap;

use super::rows::{MISSING, pick, pick_elements};
use super::support::{Built, Computed, cpu_any, indices, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// The coordinates and the shape of a sparse tensor.
pub(super) struct Sparse {
    pub at: Vec<i64>,
    pub shape: Vec<i64>,
    pub n: usize,
}

impl Sparse {
    /// From three inputs: coordinates, values, shape.
    pub fn of(c: &KernelContext<'_>, indices: usize, values: usize, shape: usize) -> Result<Sparse, KernelError> {
        let n = c.input(values)?.len();
        let sparse = Sparse::unchecked(c, indices, shape)?;
        if sparse.n != n {
            return Err(KernelError::invalid(format!("{} coordinates for {n} values", sparse.n)));
        }
        sparse.check()?;
        Ok(sparse)
    }

    /// From coordinates and a shape, which may not fit.
    pub fn unchecked(c: &KernelContext<'_>, indices: usize, shape: usize) -> Result<Sparse, KernelError> {
        let (at, shape) = (c.ints(indices)?, c.ints(shape)?);
        let t = c.input(indices)?;
        match t.dims() {
            [n, rank] if *rank == shape.len() => Ok(Sparse { at, shape, n: *n }),
            _ => {
                let text = format!("coordinates of shape {} for a tensor of rank {}", t.shape(), shape.len());
                Err(KernelError::invalid(text))
            }
        }
    }

    fn check(&self) -> Computed {
        if let Some(d) = self.shape.iter().find(|d| **d < 0) {
            return Err(KernelError::invalid(format!("the shape has dimension {d}")));
        }
        for i in 0..self.n {
            if self.row(i).iter().zip(&self.shape).any(|(at, d)| *at < 0 || at >= d) {
                let text = format!("coordinate {:?} (number {i}) is outside of shape {:?}", self.row(i), self.shape);
                return Err(KernelError::invalid(text));
            }
        }
        Ok(())
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub fn row(&self, i: usize) -> &[i64] {
        &self.at[i * self.rank()..(i + 1) * self.rank()]
    }

    /// The dense shape.
    pub fn dense(&self) -> Result<Shape, KernelError> {
        let dims: Result<Vec<usize>, _> = self.shape.iter().map(|d| usize::try_from(*d)).collect();
        let shape = dims.ok().map(|dims| Shape::new(&dims)).filter(|shape| shape.checked_n_elements().is_some());
        shape.ok_or_else(|| KernelError::invalid(format!("shape {:?} is too large", self.shape)))
    }

    /// Positions by row-major order of their coordinates; equal ones stay in order.
    pub fn sorted(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.n).collect();
        order.sort_by(|a, b| self.row(*a).cmp(self.row(*b)));
        order
    }
}

/// Where an element of the dense tensor lies, by its coordinates.
pub(super) fn offset(row: &[i64], strides: &[usize]) -> usize {
    row.iter().zip(strides).map(|(at, stride)| *at as usize * stride).sum()
}

fn sparse_to_dense(node: &Node) -> Built {
    let validate = *node.flag("validate_indices")?;
    kernel(move |c| {
        let shape = c.shape_input(1)?;
        let (indices_t, values, default) = (c.input(0)?, c.input(2)?, c.input(3)?);
        let ints = c.ints(0)?;
        let rank = shape.rank();
        // A vector holds the coordinates of a tensor of rank 1, a scalar one of them.
        let n = match indices_t.dims() {
            [n, r] if *r == rank => *n,
            [n] if rank == 1 => *n,
            [] if rank == 1 => 1,
            _ => return Err(KernelError::invalid(format!("indices {} for shape {shape}", indices_t.shape()))),
        };
        let one_value = values.shape().rank() == 0;
        if !one_value && values.len() != n || default.len() != 1 {
            return Err(KernelError::invalid(format!("{n} indices for {} values", values.len())));
        }
        let strides = shape.strides();
        let mut picks = memory::filled((1, 0), checked_len(&shape)?)?;
        let mut last: Option<&[i64]> = None;
        for i in 0..n {
            let row = &ints[i * rank..(i + 1) * rank];
            if row.iter().zip(shape.dims()).any(|(at, d)| usize::try_from(*at).map_or(true, |at| at >= *d)) {
                return Err(KernelError::invalid(format!("index {row:?} (number {i}) is outside of shape {shape}")));
            }
            if validate && last.is_some_and(|last| last >= row) {
                return Err(KernelError::invalid(format!("index {row:?} (number {i}) is repeated or out of order")));
            }
            last = Some(row);
            picks[offset(row, &strides)] = (0, if one_value { 0 } else { i });
        }
        let out = pick(c, values.dtype(), &[values, default], &picks, 1, shape)?;
        c.set(0, out);
        Ok(())
    })
}

/// The number of elements, where a list of as many can be made.
fn checked_len(shape: &Shape) -> Result<usize, KernelError> {
    let n = shape.checked_n_elements().filter(|n| *n < isize::MAX as usize / 16);
    n.ok_or_else(|| KernelError::invalid(format!("shape {shape} is too large")))
}

fn reorder(c: &mut KernelContext<'_>) -> Computed {
    let s = Sparse::of(c, 0, 1, 2)?;
    let order = s.sorted();
    let values = pick_elements(c, c.input(1)?, &order)?;
    let at = order.iter().flat_map(|i| s.row(*i).iter().copied()).collect();
    c.set(0, Tensor::from_vec([s.n, s.rank()], at)?);
    c.set(1, values);
    Ok(())
}

fn reshape(c: &mut KernelContext<'_>) -> Computed {
    let s = Sparse::unchecked(c, 0, 1)?;
    s.check()?;
    let mut wanted = c.ints(2)?;
    let total = s.dense()?.n_elements() as i64;
    let known = wanted.iter().filter(|d| **d != -1).try_fold(1i64, |n, d| n.checked_mul(*d));
    let known = known.filter(|n| *n >= 0).ok_or_else(|| KernelError::invalid(format!("{wanted:?} is not a shape")))?;
    let free: Vec<usize> = (0..wanted.len()).filter(|i| wanted[*i] == -1).collect();
    match free.as_slice() {
        [] if known == total => {}
        [i] if known > 0 && total % known == 0 => wanted[*i] = total / known,
        _ => return Err(KernelError::invalid(format!("{total} elements do not fit {wanted:?}"))),
    }
    let from = s.dense()?.strides();
    let dims: Vec<usize> = wanted.iter().map(|d| *d as usize).collect();
    let to = Shape::new(&dims).strides();
    let mut at = Vec::with_capacity(s.n * wanted.len());
    for i in 0..s.n {
        let mut rest = offset(s.row(i), &from);
        for stride in &to {
            at.push((rest / stride.max(&1)) as i64);
            rest %= stride.max(&1);
        }
    }
    c.set(0, Tensor::from_vec([s.n, wanted.len()], at)?);
    c.set(1, Tensor::vector(&wanted));
    Ok(())
}

fn concat(node: &Node) -> Built {
    let dim = *node.int("concat_dim")?;
    kernel(move |c| {
        let n = c.inputs.len() / 3;
        let parts = (0..n).map(|i| Sparse::of(c, i, n + i, 2 * n + i)).collect::<Result<Vec<_>, _>>()?;
        let rank = parts.first().map_or(0, Sparse::rank);
        let dim = engine_core::geometry::axis(dim, rank)?;
        let mut shape = parts[0].shape.clone();
        shape[dim] = 0;
        let mut all = Sparse { at: Vec::new(), shape: Vec::new(), n: 0 };
        let mut from = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let differs = |d: usize| d != dim && part.shape[d] != shape[d];
            if part.rank() != rank || (0..rank).any(differs) {
                return Err(KernelError::invalid(format!(
                    "part {i} has shape {:?}, part 0 {:?}",
                    part.shape, parts[0].shape
                )));
            }
            for k in 0..part.n {
                all.at.extend(part.row(k).iter().enumerate().map(|(d, at)| if d == dim { at + shape[d] } else { *at }));
                from.push((i, k));
            }
            shape[dim] += part.shape[dim];
        }
        (all.n, all.shape) = (from.len(), shape);
        let order = all.sorted();
        let sources = (0..n).map(|i| c.input(n + i)).collect::<Result<Vec<_>, _>>()?;
        let picks: Vec<(usize, usize)> = order.iter().map(|i| from[*i]).collect();
        let values = pick(c, sources[0].dtype(), &sources, &picks, 1, Shape::new(&[picks.len()]))?;
        let at = order.iter().flat_map(|i| all.row(*i).iter().copied()).collect();
        c.set(0, Tensor::from_vec([all.n, rank], at)?);
        c.set(1, values);
        c.set(2, Tensor::vector(&all.shape));
        Ok(())
    })
}

/// The values within a box, their coordinates counted from its corner.
struct Part {
    at: Vec<i64>,
    values: Tensor,
    shape: Vec<i64>,
}

fn cut(c: &KernelContext<'_>, s: &Sparse, values: &Tensor, begin: &[i64], size: &[i64]) -> Result<Part, KernelError> {
    // What lies beyond the shape is cut off.
    let size: Vec<i64> = (0..s.rank()).map(|d| size[d].min(s.shape[d].saturating_sub(begin[d])).max(0)).collect();
    let inside = |i: &usize| (0..s.rank()).all(|d| (begin[d]..begin[d] + size[d]).contains(&s.row(*i)[d]));
    let kept: Vec<usize> = (0..s.n).filter(inside).collect();
    let at = kept.iter().flat_map(|i| s.row(*i).iter().zip(begin).map(|(at, b)| at - b)).collect();
    Ok(Part { at, values: pick_elements(c, values, &kept)?, shape: size })
}

fn split(node: &Node) -> Built {
    let n = *node.int("num_split")?;
    kernel(move |c| {
        let dim = c.item::<i64>(0)?;
        let s = Sparse::of(c, 1, 2, 3)?;
        let dim = engine_core::geometry::axis(dim, s.rank())?;
        let whole = s.shape[dim];
        if n < 1 || n > whole.max(1) {
            return Err(KernelError::invalid(format!("dimension {dim} of {whole} cannot be split into {n}")));
        }
        let (short, n_long) = (whole / n, whole % n);
        let mut begin = vec![0; s.rank()];
        let mut parts = Vec::new();
        for i in 0..n {
            let mut size = s.shape.clone();
            size[dim] = short + i64::from(i < n_long);
            parts.push(cut(c, &s, c.input(2)?, &begin, &size)?);
            begin[dim] += size[dim];
        }
        let n = parts.len();
        for (i, part) in parts.into_iter().enumerate() {
            let count = part.values.len();
            c.set(i, Tensor::from_vec([count, s.rank()], part.at)?);
            c.set(n + i, part.values);
            c.set(2 * n + i, Tensor::vector(&part.shape));
        }
        Ok(())
    })
}

fn slice(c: &mut KernelContext<'_>) -> Computed {
    let s = Sparse::of(c, 0, 1, 2)?;
    let (begin, size) = (c.ints(3)?, c.ints(4)?);
    if begin.len() != s.rank() || size.len() != s.rank() || begin.iter().chain(&size).any(|v| *v < 0) {
        return Err(KernelError::invalid(format!("start {begin:?} and size {size:?} for rank {}", s.rank())));
    }
    let part = cut(c, &s, c.input(1)?, &begin, &size)?;
    let n = part.values.len();
    c.set(0, Tensor::from_vec([n, s.rank()], part.at)?);
    c.set(1, part.values);
    c.set(2, Tensor::vector(&part.shape));
    Ok(())
}

/// The gradient of each value that the slice kept, zeros for the others.
fn slice_grad(c: &mut KernelContext<'_>) -> Computed {
    let (grad, start) = (c.input(0)?, c.ints(2)?);
    let (all, kept) = (c.ints(1)?, c.ints(3)?);
    let rank = start.len().max(1);
    let mut by_place: FxHashMap<Vec<i64>, usize> = FxHashMap::default();
    for (i, row) in kept.chunks_exact(rank).enumerate() {
        by_place.insert(row.iter().zip(&start).map(|(at, b)| at + b).collect(), i);
    }
    if kept.len() / rank != grad.len() {
        return Err(KernelError::invalid(format!("{} gradients for {} values", grad.len(), kept.len() / rank)));
    }
    let picks: Vec<(usize, usize)> =
        all.chunks_exact(rank).map(|row| by_place.get(row).map_or(MISSING, |i| (0, *i))).collect();
    let out = pick(c, grad.dtype(), &[grad], &picks, 1, Shape::new(&[picks.len()]))?;
    c.set(0, out);
    Ok(())
}

fn fill_empty_rows(c: &mut KernelContext<'_>) -> Computed {
    let s = Sparse::of(c, 0, 1, 2)?;
    let (values, default) = (c.input(1)?, c.input(3)?);
    if s.rank() == 0 || default.len() != 1 {
        return Err(KernelError::invalid("the shape must have rows, and there must be one default value"));
    }
    let n_rows = checked_len(&Shape::new(&[s.shape[0] as usize]))?;
    let mut by_row: Vec<Vec<usize>> = memory::filled(Vec::new(), n_rows)?;
    (0..s.n).for_each(|i| by_row[s.row(i)[0] as usize].push(i));
    let (mut at, mut picks, mut back) = (Vec::new(), Vec::new(), vec![0i64; s.n]);
    for (r, members) in by_row.iter().enumerate() {
        if members.is_empty() {
            at.push(r as i64);
            at.extend(std::iter::repeat_n(0, s.rank() - 1));
            picks.push((1, 0));
        }
        for i in members {
            back[*i] = picks.len() as i64;
            at.extend_from_slice(s.row(*i));
            picks.push((0, *i));
        }
    }
    let empty: Vec<bool> = by_row.iter().map(Vec::is_empty).collect();
    let filled = pick(c, values.dtype(), &[values, default], &picks, 1, Shape::new(&[picks.len()]))?;
    c.set(0, Tensor::from_vec([picks.len(), s.rank()], at)?);
    c.set(1, filled);
    c.set(2, Tensor::from_vec([empty.len()], empty)?);
    c.set(3, indices(DType::I64, Shape::new(&[back.len()]), &back)?);
    Ok(())
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SPARSE: &[KernelDef] = &[
    cpu_any("SparseToDense", sparse_to_dense),
    cpu_any("SparseReorder", |_| kernel(reorder)),
    cpu_any("SparseReshape", |_| kernel(reshape)),
    cpu_any("SparseConcat", concat),
    cpu_any("SparseSplit", split),
    cpu_any("SparseSlice", |_| kernel(slice)),
    cpu_any("SparseSliceGrad", |_| kernel(slice_grad)),
    cpu_any("SparseFillEmptyRows", |_| kernel(fill_empty_rows)),
];
