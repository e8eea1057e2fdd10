//! Einstein sums of one or two tensors: `bij,bjk->bik`, with `...` for dimensions that broadcast, labels that repeat
//! within an input (diagonals) and within the output (placed on a diagonal).
//!
//! Each input is brought to (batch, free, contracted) order in one walk that takes diagonals and sums what only it
//! has; a batched matrix product follows, and one walk into the output's order.

use num_complex::Complex64;

use super::batch_matmul::{Product, product_of};
use super::layout::walk;
use super::matmul::MatMulGeometry;
use super::support::{Built, cpu, kernel, unique_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::ops::einsum::{EinsumError, Equation, Label, Sizes};
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

impl From<EinsumError> for KernelError {
    fn from(e: EinsumError) -> KernelError {
        KernelError::invalid(e.to_string())
    }
}

/// An input as it is walked: its labels, each once, with sizes and (diagonals added up) strides.
struct View {
    labels: Vec<Label>,
    sizes: Vec<usize>,
    strides: Vec<usize>,
}

impl View {
    fn of(labels: &[Label], shape: &Shape) -> View {
        let mut view = View { labels: Vec::new(), sizes: Vec::new(), strides: Vec::new() };
        for ((label, size), stride) in labels.iter().zip(shape.dims()).zip(shape.strides()) {
            match view.labels.iter().position(|l| l == label) {
                Some(at) => view.strides[at] += stride,
                None => {
                    view.labels.push(*label);
                    view.sizes.push(*size);
                    view.strides.push(stride);
                }
            }
        }
        view
    }

    fn size(&self, label: Label) -> usize {
        self.labels.iter().position(|l| *l == label).map_or(1, |i| self.sizes[i])
    }

    /// The elements in the order of `order`, what is not in there summed. A label that the view lacks is of size 1.
    fn gathered<T: Element>(&self, from: &[T], order: &[Label], zero: T, add: fn(T, T) -> T) -> Vec<T> {
        let rest: Vec<Label> = self.labels.iter().copied().filter(|l| !order.contains(l)).collect();
        let all: Vec<Label> = order.iter().copied().chain(rest.iter().copied()).collect();
        let dims: Vec<usize> = all.iter().map(|l| self.size(*l)).collect();
        let stride = |l: &Label| self.labels.iter().position(|own| own == l).map_or(0, |i| self.strides[i] as isize);
        let strides: Vec<isize> = all.iter().map(stride).collect();
        let n_summed: usize = dims[order.len()..].iter().product();
        let n: usize = dims[..order.len()].iter().product();
        let mut out = vec![zero; n];
        walk(&dims, &strides, 0, |i, at| {
            let to = &mut out[i / n_summed.max(1)];
            *to = add(*to, from[at as usize]);
        });
        out
    }
}

fn einsum<T: Product>(node: &Node) -> Built {
    let equation = Equation::parse(&node.text("equation")?)?;
    kernel(move |c| {
        let out = compute::<T>(c, &equation)?;
        c.set(0, out);
        Ok(())
    })
}

fn compute<T: Product>(c: &KernelContext<'_>, equation: &Equation) -> Result<Tensor, KernelError> {
    let n = c.inputs.len();
    if n != equation.inputs.len() || n > 2 {
        return Err(EinsumError::Count { expected: equation.inputs.len().min(2), got: n }.into());
    }
    let mut sizes = Sizes::default();
    let mut views = Vec::with_capacity(n);
    for i in 0..n {
        let shape = c.input(i)?.shape();
        let labels = equation.resolved(i, shape.rank(), || shape.to_string())?;
        for (label, dim) in labels.iter().zip(shape.dims()) {
            sizes.add(*label, Some(*dim))?;
        }
        views.push(View::of(&labels, shape));
    }
    let mut output = equation.out_labels(&sizes);
    let full_output = output.clone();
    let mut seen = Vec::new();
    output.retain(|l| {
        !seen.contains(l) && {
            seen.push(*l);
            true
        }
    });
    let (values, order) = match views.as_slice() {
        [one] => (one.gathered(c.slice::<T>(0)?, &output, T::ZERO, T::plus), output),
        [a, b] => contract::<T>(c, a, b, &output, &sizes)?,
        _ => return Err(EinsumError::Count { expected: 1, got: 0 }.into()),
    };
    place(c, &values, &order, &full_output, &sizes)
}

/// The product of two views: (broadcast and batch, left, right) labels with their values.
fn contract<T: Product>(
    c: &KernelContext<'_>,
    a: &View,
    b: &View,
    output: &[Label],
    sizes: &Sizes,
) -> Result<(Vec<T>, Vec<Label>), KernelError> {
    let (in_a, in_b) = (|l: &Label| a.labels.contains(l), |l: &Label| b.labels.contains(l));
    let stretches = |l: &Label| matches!(l, Label::Broadcast(_));
    let pick = |f: &dyn Fn(&Label) -> bool| output.iter().copied().filter(|l| f(l)).collect::<Vec<_>>();
    let batch = pick(&|l| stretches(l) || in_a(l) && in_b(l));
    let left = pick(&|l| !stretches(l) && in_a(l) && !in_b(l));
    let right = pick(&|l| !stretches(l) && !in_a(l) && in_b(l));
    let summed: Vec<Label> =
        a.labels.iter().copied().filter(|l| in_b(l) && !output.contains(l) && !stretches(l)).collect();
    let x = a.gathered(c.slice::<T>(0)?, &[&batch[..], &left, &summed].concat(), T::ZERO, T::plus);
    let y = b.gathered(c.slice::<T>(1)?, &[&batch[..], &summed, &right].concat(), T::ZERO, T::plus);
    let n = |labels: &[Label], view: &View| labels.iter().map(|l| view.size(*l)).product::<usize>();
    let dims = |view: &View| batch.iter().map(|l| view.size(*l)).collect::<Vec<_>>();
    let (m, k, cols) = (n(&left, a), n(&summed, a), n(&right, b));
    let shape_x = [dims(a), vec![m, k]].concat();
    let shape_y = [dims(b), vec![k, cols]].concat();
    let whole: usize = batch.iter().map(|l| sizes.of(*l).unwrap_or(1)).product::<usize>();
    let n_out = whole.checked_mul(m).and_then(|n| n.checked_mul(cols));
    let n_out = n_out.filter(|n| *n < isize::MAX as usize / size_of::<T>());
    let mut out = memory::filled(T::ZERO, n_out.ok_or_else(|| KernelError::invalid("the result is too large"))?)?;
    let g = MatMulGeometry::new(&shape_x, &shape_y, (false, false))?;
    product_of::<T>(c.sharder, &g, (&x, &y), (false, false), &mut out)?;
    Ok((out, [batch, left, right].concat()))
}

/// Values with labels in `order`, brought to the output's order; repeated labels take the diagonal of zeros.
fn place<T: Product>(
    c: &KernelContext<'_>,
    values: &[T],
    order: &[Label],
    output: &[Label],
    sizes: &Sizes,
) -> Result<Tensor, KernelError> {
    let size = |l: &Label| sizes.of(*l).unwrap_or(1);
    let shape = Shape::new(&output.iter().map(size).collect::<Vec<_>>());
    let mut t = Tensor::zeros(T::DTYPE, shape.clone(), c.allocator)?;
    let strides = shape.strides();
    let dims: Vec<usize> = order.iter().map(size).collect();
    let along = |l: &Label| output.iter().zip(&strides).filter(|(o, _)| *o == l).map(|(_, s)| *s as isize).sum();
    let along: Vec<isize> = order.iter().map(along).collect();
    let out = unique_slice::<T>(&mut t)?;
    walk(&dims, &along, 0, |i, at| out[at as usize] = values[i]);
    Ok(t)
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static EINSUM: &[KernelDef] = &[
    cpu("Einsum", ("T", &[DType::F32]), einsum::<f32>),
    cpu("Einsum", ("T", &[DType::F64]), einsum::<f64>),
    cpu("Einsum", ("T", &[DType::I32]), einsum::<i32>),
    cpu("Einsum", ("T", &[DType::I64]), einsum::<i64>),
    cpu("Einsum", ("T", &[DType::U64]), einsum::<u64>),
    cpu("Einsum", ("T", &[DType::C128]), einsum::<Complex64>),
    widened("Einsum", ("T", DType::NARROW)),
];
