//! Einstein sums of one or two tensors: `bij,bjk->bik`, with `...` for dimensions that broadcast, labels that repeat
//! within an input (diagonals) and within the output (placed on a diagonal).
//!
//! Each input is brought to (batch, free, contracted) order in one walk that takes diagonals and sums what only it
//! has; a batched matrix product follows, and one walk into the output's order.

use num_complex::Complex64;
use smallvec::SmallVec;

use super::batch_matmul::{Product, product_of};
use super::layout::walk;
use super::support::{Built, cpu, kernel, unique_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::graph::Node;
use crate::memory;
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;

/// A dimension's name: a letter, or a place within the ellipsis, counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis,
    Broadcast(usize),
}

/// An equation: the labels of each input, and the output's.
#[derive(Debug, Clone)]
pub(crate) struct Equation {
    inputs: Vec<Vec<Label>>,
    output: Vec<Label>,
}

/// What is wrong with an equation, or with inputs that it does not fit.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum EinsumError {
    #[error("equation {0:?} is not of the form inputs->output with letters and at most one ... each")]
    Syntax(String),
    #[error("the output has label {0} that no input has")]
    Unknown(char),
    #[error("the equation has {expected} inputs, the node {got}")]
    Count { expected: usize, got: usize },
    #[error("input {input} has shape {shape}, the equation gives it {labels} labels")]
    Rank { input: usize, shape: String, labels: usize },
    #[error("label {label} is {a} and {b}")]
    Size { label: String, a: usize, b: usize },
}

impl From<EinsumError> for KernelError {
    fn from(e: EinsumError) -> KernelError {
        KernelError::invalid(e.to_string())
    }
}

fn labels(text: &str) -> Option<Vec<Label>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if out.contains(&Label::Ellipsis) {
                return None;
            }
            out.push(Label::Ellipsis);
            rest = after;
        } else if c.is_alphabetic() {
            out.push(Label::Letter(c));
            rest = &rest[c.len_utf8()..];
        } else if c == ' ' {
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(out)
}

impl Equation {
    /// Reads an equation.
    pub fn parse(text: &str) -> Result<Equation, EinsumError> {
        let syntax = || EinsumError::Syntax(text.to_owned());
        let (inputs, output) = text.split_once("->").ok_or_else(syntax)?;
        let inputs = inputs.split(',').map(|i| labels(i).ok_or_else(syntax)).collect::<Result<Vec<_>, _>>()?;
        let output = labels(output).ok_or_else(syntax)?;
        for label in &output {
            match label {
                Label::Letter(c) if !inputs.iter().any(|i| i.contains(label)) => return Err(EinsumError::Unknown(*c)),
                _ => {}
            }
        }
        Ok(Equation { inputs, output })
    }

    /// The labels of input `i` of this rank, the ellipsis resolved.
    fn resolved(&self, i: usize, rank: usize, shape: impl Fn() -> String) -> Result<Vec<Label>, EinsumError> {
        let own = &self.inputs[i];
        let wrong = || EinsumError::Rank { input: i, shape: shape(), labels: own.len() };
        let has_ellipsis = own.contains(&Label::Ellipsis);
        let n_named = own.len() - usize::from(has_ellipsis);
        let n_hidden = rank.checked_sub(n_named).filter(|n| has_ellipsis || *n == 0).ok_or_else(wrong)?;
        Ok(expanded(own, n_hidden))
    }

    /// The output's shape as far as it follows from the inputs'.
    pub fn infer(&self, shapes: &[PartialShape]) -> Result<PartialShape, EinsumError> {
        if shapes.len() != self.inputs.len() {
            return Err(EinsumError::Count { expected: self.inputs.len(), got: shapes.len() });
        }
        let mut sizes = Sizes::default();
        for (i, shape) in shapes.iter().enumerate() {
            let Some(dims) = shape.dims() else { return Ok(PartialShape::unknown()) };
            for (label, dim) in self.resolved(i, dims.len(), || shape.to_string())?.iter().zip(dims) {
                sizes.add(*label, *dim)?;
            }
        }
        let dims: Vec<Option<usize>> = self.out_labels(&sizes).iter().map(|l| sizes.of(*l)).collect();
        Ok(PartialShape::new(&dims))
    }

    fn out_labels(&self, sizes: &Sizes) -> Vec<Label> {
        let n_hidden = sizes.0.iter().filter(|(l, _)| matches!(l, Label::Broadcast(_))).count();
        expanded(&self.output, n_hidden)
    }
}

fn expanded(labels: &[Label], n_hidden: usize) -> Vec<Label> {
    let each = |l: &Label| -> SmallVec<[Label; 4]> {
        match l {
            Label::Ellipsis => (0..n_hidden).rev().map(Label::Broadcast).collect(),
            other => SmallVec::from_slice(&[*other]),
        }
    };
    labels.iter().flat_map(each).collect()
}

/// How large the dimension of each label is.
#[derive(Default)]
struct Sizes(Vec<(Label, Option<usize>)>);

impl Sizes {
    fn of(&self, label: Label) -> Option<usize> {
        self.0.iter().find(|(l, _)| *l == label).and_then(|(_, size)| *size)
    }

    fn add(&mut self, label: Label, size: Option<usize>) -> Result<(), EinsumError> {
        let Some((_, known)) = self.0.iter_mut().find(|(l, _)| *l == label) else {
            self.0.push((label, size));
            return Ok(());
        };
        let stretches = matches!(label, Label::Broadcast(_));
        *known = match (*known, size) {
            (Some(1), other) | (other, Some(1)) if stretches => other,
            (Some(a), Some(b)) if a != b => return Err(EinsumError::Size { label: format!("{label:?}"), a, b }),
            (a, b) => a.or(b),
        };
        Ok(())
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
    product_of::<T>(c.sharder, (&shape_x, &x), (&shape_y, &y), (false, false), &mut out)?;
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
