//! How the inputs and outputs of a fused node lie, where its program can run on them as it is.

use smallvec::SmallVec;

use super::program::{Program, Window};
use crate::kernels::formula::Operands;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// How an input runs along the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Along {
    /// One element.
    Scalar,
    /// The last dimensions, repeated.
    Row,
    /// Every element.
    Full,
}

/// Elements that lie apart: `part` of them side by side, then the next `stride` behind the begin of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Apart {
    pub begin: usize,
    pub part: usize,
    pub stride: usize,
}

impl Apart {
    /// Calls `f(here, there, n)` for runs of `n` elements that cover `first..first + len`: `here` counts from 0,
    /// `there` is where they lie.
    pub fn runs(&self, first: usize, len: usize, mut f: impl FnMut(usize, usize, usize)) {
        let mut here = 0;
        while here < len {
            let (row, within) = ((first + here) / self.part, (first + here) % self.part);
            let n = (self.part - within).min(len - here);
            f(here, self.begin + row * self.stride + within, n);
            here += n;
        }
    }
}

/// The lie of all inputs and outputs.
pub(super) struct Layout {
    /// Of every result.
    pub shape: Shape,
    pub inputs: SmallVec<[Along; 8]>,
    /// Of the inputs that are windows.
    pub windows: SmallVec<[Option<Apart>; 8]>,
    /// Elements of a row; 0 where there are none.
    pub row: usize,
}

impl Layout {
    /// The lie of these inputs; `None` where the program does not suit them.
    pub fn new(program: &Program, inputs: &[Tensor]) -> Option<Layout> {
        let shapes: Option<SmallVec<[Shape; 8]>> =
            inputs.iter().zip(&program.windows).map(|(input, window)| shape_of(input.shape(), *window)).collect();
        let shapes = shapes?;
        let largest = shapes.iter().max_by_key(|shape| (shape.n_elements(), shape.rank()))?.clone();
        let (inputs_along, windows) = (SmallVec::new(), SmallVec::new());
        let mut layout = Layout { shape: largest, inputs: inputs_along, windows, row: 0 };
        for ((input, shape), window) in inputs.iter().zip(&shapes).zip(&program.windows) {
            let along = layout.along(shape)?;
            if window.is_some() && along != Along::Full {
                return None;
            }
            layout.inputs.push(along);
            layout.windows.push(window.map(|window| apart(input.shape(), window)));
        }
        let axes_fit = program.outputs.iter().all(|o| o.results.len() == 1 || o.axis < layout.shape.rank());
        (axes_fit && layout.suits(program, inputs)).then_some(layout)
    }

    fn along(&mut self, shape: &Shape) -> Option<Along> {
        if *shape == self.shape {
            return Some(Along::Full);
        }
        if shape.rank() > self.shape.rank() {
            return None;
        }
        if shape.n_elements() == 1 {
            return Some(Along::Scalar);
        }
        let own = shape.dims();
        let own = &own[own.iter().position(|d| *d != 1)?..];
        let row: usize = own.iter().product();
        if !self.shape.dims().ends_with(own) || row == 0 || (self.row != 0 && self.row != row) {
            return None;
        }
        self.row = row;
        Some(Along::Row)
    }

    /// Whether the ops' own kernels would take the operands too, and give outputs of one shape.
    fn suits(&self, program: &Program, inputs: &[Tensor]) -> bool {
        let mut values = self.inputs.clone();
        for step in &program.steps {
            let [a, b] = step.operands;
            let is_bias = || {
                let last = self.shape.dims().last().copied().unwrap_or(0);
                self.shape.rank() >= 2 && inputs.get(b).is_some_and(|bias| bias.dims() == [last])
            };
            let fits = match step.def.operands {
                Operands::Bias => values[a] == Along::Full && is_bias(),
                Operands::OneShape | Operands::Several => values[a] == Along::Full && values[b] == Along::Full,
                Operands::Broadcast => true,
            };
            if !fits {
                return false;
            }
            values.push(values[a].max(values[b]));
        }
        let is_whole = |result: &usize| values[program.n_inputs + result] == Along::Full;
        program.outputs.iter().all(|output| output.results.iter().all(is_whole))
    }

    /// The shape of an output, and how one of its results lies in it.
    pub fn output(&self, axis: usize, n: usize, at: usize) -> (Shape, Option<Apart>) {
        if n == 1 {
            return (self.shape.clone(), None);
        }
        let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(self.shape.dims());
        let part: usize = dims[axis..].iter().product();
        dims[axis] *= n;
        (Shape::new(&dims), Some(Apart { begin: at * part, part, stride: n * part }))
    }
}

/// The shape of what a window shows of a tensor, if it lies within.
pub(super) fn shape_of(shape: &Shape, window: Option<Window>) -> Option<Shape> {
    let Some(Window { axis, begin, size }) = window else { return Some(shape.clone()) };
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(shape.dims());
    let dim = dims.get_mut(axis)?;
    if begin.checked_add(size)? > *dim {
        return None;
    }
    *dim = size;
    Some(Shape::new(&dims))
}

/// How a window's elements lie in a tensor.
pub(super) fn apart(shape: &Shape, Window { axis, begin, size }: Window) -> Apart {
    let inner: usize = shape.dims()[axis + 1..].iter().product();
    Apart { begin: begin * inner, part: size * inner, stride: shape.dims()[axis] * inner }
}
