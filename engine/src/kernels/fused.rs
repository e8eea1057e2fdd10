//! Fused element-wise kernels: a small program over blocks that stay in the cache, so that memory is touched once.
//!
//! The program's values are blocks of [`BLOCK`] elements in registers (vectors in the first-level cache); each step is one
//! vectorised loop. Operands of the output's shape are read where they lie, scalars and rows are repeated into a block once.
//! Where the inputs' shapes turn out otherwise (columns, two kinds of rows, shapes that do not fit) the ops' own kernels run
//! one by one, with the results and the errors that they have alone.
//!
//! ```text
//! inputs x, b (row), s (scalar)       ops    ["AddV2", "Tanh", "Mul"]
//! operands: numbers of inputs, then   operands [0, 1,   3, 3,   4, 2]
//! of results; a unary op has one twice
//! ```

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::support::{Built, Computed, cpu, shard_slice, unique_slice};
use super::{AnyKernel, KERNEL_TABLES, Kernel, KernelContext, KernelDef, KernelError, Slot, build};
use crate::dtype::{DType, Element};
use crate::graph::{Attr, Node};
use crate::ops;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Elements of a register.
const BLOCK: usize = 1024;

/// An op that programs are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedOp {
    /// `-x`
    Neg,
    /// `|x|`
    Abs,
    /// `x * x`
    Square,
    /// `1 / x`
    Reciprocal,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`
    Rsqrt,
    /// e^x
    Exp,
    /// The hyperbolic tangent.
    Tanh,
    /// The logistic function.
    Sigmoid,
    /// 0 where x < 0.
    Relu,
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y`
    Div,
    /// The larger one; NaN where either is.
    Maximum,
    /// The smaller one; NaN where either is.
    Minimum,
    /// `(x - y)^2`
    SquaredDifference,
    /// `dy * (1 - y^2)` of y, dy
    TanhGrad,
    /// `dy * y * (1 - y)` of y, dy
    SigmoidGrad,
    /// dy where x > 0, of dy, x
    ReluGrad,
    /// `x + y` of one shape
    AddN,
    /// `x + y`, y along the last dimension
    BiasAdd,
}

/// How an op may be fused.
pub struct FusedOpDef {
    /// TensorFlow's name.
    pub name: &'static str,
    /// What it does.
    pub op: FusedOp,
    /// How many operands a step of it has. (`AddN` becomes several.)
    pub n_operands: usize,
    /// What an element costs, in picoseconds.
    ps: u64,
}

const fn def(name: &'static str, op: FusedOp, n_operands: usize, ps: u64) -> FusedOpDef {
    FusedOpDef { name, op, n_operands, ps }
}

/// The ops that can be fused.
pub const FUSED_OPS: &[FusedOpDef] = &[
    def("Neg", FusedOp::Neg, 1, 50),
    def("Abs", FusedOp::Abs, 1, 50),
    def("Square", FusedOp::Square, 1, 50),
    def("Reciprocal", FusedOp::Reciprocal, 1, 200),
    def("Sqrt", FusedOp::Sqrt, 1, 300),
    def("Rsqrt", FusedOp::Rsqrt, 1, 400),
    def("Exp", FusedOp::Exp, 1, 500),
    def("Tanh", FusedOp::Tanh, 1, 700),
    def("Sigmoid", FusedOp::Sigmoid, 1, 700),
    def("Relu", FusedOp::Relu, 1, 50),
    def("Add", FusedOp::Add, 2, 50),
    def("AddV2", FusedOp::Add, 2, 50),
    def("Sub", FusedOp::Sub, 2, 50),
    def("Mul", FusedOp::Mul, 2, 50),
    def("Div", FusedOp::Div, 2, 200),
    def("RealDiv", FusedOp::Div, 2, 200),
    def("Maximum", FusedOp::Maximum, 2, 50),
    def("Minimum", FusedOp::Minimum, 2, 50),
    def("SquaredDifference", FusedOp::SquaredDifference, 2, 50),
    def("TanhGrad", FusedOp::TanhGrad, 2, 100),
    def("SigmoidGrad", FusedOp::SigmoidGrad, 2, 100),
    def("ReluGrad", FusedOp::ReluGrad, 2, 50),
    def("AddN", FusedOp::AddN, 2, 50),
    def("BiasAdd", FusedOp::BiasAdd, 2, 50),
];

/// The op of this name, where it can be fused.
pub fn fused_op(name: &str) -> Option<&'static FusedOpDef> {
    FUSED_OPS.iter().find(|def| def.name == name)
}

impl FusedOp {
    /// Whether operands are never broadcast.
    fn wants_one_shape(self) -> bool {
        matches!(self, FusedOp::AddN | FusedOp::TanhGrad | FusedOp::SigmoidGrad | FusedOp::ReluGrad)
    }
}

/// A floating-point type that programs compute with.
trait Float:
    Element
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn is_nan(self) -> bool;
    fn exp_all(values: &mut [Self]);
    fn tanh_all(values: &mut [Self]);
    fn sigmoid_all(values: &mut [Self]);
    /// One step on a block, compiled for the vector units that the machine has.
    fn step(op: FusedOp, a: &[Self], b: &[Self], out: &mut [Self]);
}

macro_rules! float {
    ($t:ty, $exp:expr, $tanh:expr, $sigmoid:expr) => {
        impl Float for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            fn exp_all(values: &mut [$t]) {
                $exp(values);
            }
            fn tanh_all(values: &mut [$t]) {
                $tanh(values);
            }
            fn sigmoid_all(values: &mut [$t]) {
                $sigmoid(values);
            }
            fn step(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                    fn avx512(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                        step(op, a, b, out);
                    }
                    #[target_feature(enable = "avx2,fma")]
                    fn avx2(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                        step(op, a, b, out);
                    }
                    let wide = is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512vl");
                    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        // SAFETY: the features that each function is compiled for were just found.
                        return unsafe { if wide { avx512(op, a, b, out) } else { avx2(op, a, b, out) } };
                    }
                }
                step(op, a, b, out);
            }
        }
    };
}

fn each(values: &mut [f64], f: impl Fn(f64) -> f64) {
    values.iter_mut().for_each(|v| *v = f(*v));
}

float!(f32, super::vecmath::exp, super::vecmath::tanh, super::vecmath::sigmoid);
float!(f64, |v: &mut [f64]| each(v, f64::exp), |v: &mut [f64]| each(v, f64::tanh), |v: &mut [f64]| each(v, |x| 1.0
    / (1.0 + (-x).exp())));

#[inline(always)]
fn one<T: Float>(a: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a));
}

#[inline(always)]
fn two<T: Float>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b));
}

/// One step on a block. The functions are those of the ops' own kernels, so results are too (tests hold that).
#[inline(always)]
fn step<T: Float>(op: FusedOp, a: &[T], b: &[T], out: &mut [T]) {
    match op {
        FusedOp::Neg => one(a, out, |x| -x),
        FusedOp::Abs => one(a, out, Float::abs),
        FusedOp::Square => one(a, out, |x| x * x),
        FusedOp::Reciprocal => one(a, out, |x| T::ONE / x),
        FusedOp::Sqrt => one(a, out, Float::sqrt),
        FusedOp::Rsqrt => one(a, out, |x| T::ONE / x.sqrt()),
        FusedOp::Relu => one(a, out, |x| if x < T::ZERO { T::ZERO } else { x }),
        FusedOp::Exp | FusedOp::Tanh | FusedOp::Sigmoid => {
            out.copy_from_slice(a);
            match op {
                FusedOp::Exp => T::exp_all(out),
                FusedOp::Tanh => T::tanh_all(out),
                _ => T::sigmoid_all(out),
            }
        }
        FusedOp::Add | FusedOp::AddN | FusedOp::BiasAdd => two(a, b, out, |x, y| x + y),
        FusedOp::Sub => two(a, b, out, |x, y| x - y),
        FusedOp::Mul => two(a, b, out, |x, y| x * y),
        FusedOp::Div => two(a, b, out, |x, y| x / y),
        FusedOp::Maximum => two(a, b, out, |x, y| if x > y || x.is_nan() { x } else { y }),
        FusedOp::Minimum => two(a, b, out, |x, y| if x < y || x.is_nan() { x } else { y }),
        FusedOp::SquaredDifference => two(a, b, out, |x, y| (x - y) * (x - y)),
        FusedOp::TanhGrad => two(a, b, out, |y, dy| dy * (T::ONE - y * y)),
        FusedOp::SigmoidGrad => two(a, b, out, |y, dy| dy * y * (T::ONE - y)),
        FusedOp::ReluGrad => two(a, b, out, |dy, x| if x > T::ZERO { dy } else { T::ZERO }),
    }
}

/// One step of a program.
struct Step {
    def: &'static FusedOpDef,
    /// Numbers of inputs, then of results.
    operands: [usize; 2],
    /// The register of its result; the last step has none.
    register: usize,
}

struct Program {
    n_inputs: usize,
    steps: Vec<Step>,
    n_registers: usize,
    ps: u64,
    /// The ops' own kernels, made when they are needed.
    alone: OnceLock<Option<Vec<Arc<dyn Kernel>>>>,
    dtype: DType,
}

impl Program {
    fn new(node: &Node) -> Result<Program, KernelError> {
        let n_inputs = usize::try_from(*node.int("N")?).unwrap_or(0);
        let operands = node.ints("operands")?;
        let Some(Attr::ListStr(ops)) = node.attrs.get("ops") else {
            return Err(KernelError::invalid("attribute ops is missing"));
        };
        let bad = || KernelError::invalid(format!("{operands:?} are not operands of {} ops", ops.len()));
        if ops.is_empty() || operands.len() != 2 * ops.len() {
            return Err(bad());
        }
        let mut steps = Vec::with_capacity(ops.len());
        for (i, (name, operands)) in ops.iter().zip(operands.chunks_exact(2)).enumerate() {
            let def = std::str::from_utf8(name).ok().and_then(fused_op);
            let def = def.ok_or_else(|| KernelError::invalid(format!("{name:?} is not an op that can be fused")))?;
            let known = |o: i64| usize::try_from(o).ok().filter(|o| *o < n_inputs + i);
            let (Some(a), Some(b)) = (known(operands[0]), known(operands[1])) else { return Err(bad()) };
            steps.push(Step { def, operands: [a, b], register: 0 });
        }
        let ps = steps.iter().map(|step| step.def.ps).sum::<u64>() + 200;
        let dtype = *node.dtype("T")?;
        let mut program = Program { n_inputs, steps, n_registers: 0, ps, alone: OnceLock::new(), dtype };
        program.assign_registers();
        Ok(program)
    }

    /// Gives each result a register that no value needed later is in.
    fn assign_registers(&mut self) {
        let n = self.steps.len();
        let mut last_use = vec![0; n];
        for (i, step) in self.steps.iter().enumerate() {
            step.operands.iter().filter(|o| **o >= self.n_inputs).for_each(|o| last_use[o - self.n_inputs] = i);
        }
        let mut free: Vec<usize> = Vec::new();
        for i in 0..n - 1 {
            let register = free.pop().unwrap_or(self.n_registers);
            self.n_registers = self.n_registers.max(register + 1);
            self.steps[i].register = register;
            // Only now: a result never lies where its operands do.
            let [a, b] = self.steps[i].operands;
            let operands = [a, b];
            for o in &operands[usize::from(a == b)..] {
                if let Some(of) = o.checked_sub(self.n_inputs).filter(|of| last_use[*of] == i) {
                    free.push(self.steps[of].register);
                }
            }
        }
    }
}

/// How an input runs along the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Along {
    /// One element.
    Scalar,
    /// The last dimensions, repeated.
    Row,
    /// All of it.
    Full,
}

/// How the inputs lie, where a program can run on them as it is.
struct Layout {
    shape: Shape,
    inputs: SmallVec<[Along; 8]>,
    /// Elements of a row; 0 where there are none.
    row: usize,
}

impl Layout {
    fn new(program: &Program, inputs: &[Tensor]) -> Option<Layout> {
        let largest = inputs.iter().max_by_key(|t| (t.len(), t.shape().rank()))?.shape().clone();
        let mut layout = Layout { shape: largest, inputs: SmallVec::new(), row: 0 };
        for input in inputs {
            let along = layout.along(input.shape())?;
            layout.inputs.push(along);
        }
        layout.suits(program, inputs).then_some(layout)
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

    /// Whether the ops' own kernels would take the operands too.
    fn suits(&self, program: &Program, inputs: &[Tensor]) -> bool {
        let mut values = self.inputs.clone();
        for step in &program.steps {
            let [a, b] = step.operands;
            let is_bias = || {
                let last = self.shape.dims().last().copied().unwrap_or(0);
                self.shape.rank() >= 2 && inputs.get(b).is_some_and(|bias| bias.dims() == [last])
            };
            let fits = match step.def.op {
                FusedOp::BiasAdd => values[a] == Along::Full && is_bias(),
                op if op.wants_one_shape() => values[a] == Along::Full && values[b] == Along::Full,
                _ => true,
            };
            if !fits {
                return false;
            }
            values.push(values[a].max(values[b]));
        }
        true
    }
}

/// A fused kernel for elements of type `T`.
struct Fused<T> {
    program: Program,
    of: std::marker::PhantomData<T>,
}

impl<T: Float> Kernel for Fused<T> {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        let mut inputs: SmallVec<[Tensor; 8]> = SmallVec::new();
        for i in 0..self.program.n_inputs {
            inputs.push(ctx.take(i)?);
        }
        let layout = Layout::new(&self.program, &inputs).filter(|layout| layout.shape.n_elements() > 0);
        let output = match layout {
            None => alone(&self.program, ctx, inputs)?,
            Some(layout) if layout.shape.n_elements() == 1 => {
                let value = Tensor::scalar(single::<T>(&self.program, &inputs)?);
                if layout.shape.rank() == 0 { value } else { value.into_shape(layout.shape)? }
            }
            Some(layout) => blocks::<T>(&self.program, ctx, inputs, &layout)?,
        };
        ctx.set(0, output);
        Ok(())
    }
}

/// The program on inputs of one element.
fn single<T: Float>(program: &Program, inputs: &[Tensor]) -> Result<T, KernelError> {
    let mut values: SmallVec<[T; 32]> = SmallVec::new();
    for input in inputs {
        values.push(input.item::<T>()?);
    }
    for step in &program.steps {
        let [a, b] = step.operands.map(|o| [values[o]]);
        let mut out = [T::ZERO];
        self::step(step.def.op, &a, &b, &mut out);
        values.push(out[0]);
    }
    Ok(values[values.len() - 1])
}

/// What is the same for all blocks.
struct Run<'a, T> {
    program: &'a Program,
    layout: &'a Layout,
    /// The inputs' elements; empty for the one whose memory the output takes.
    inputs: SmallVec<[&'a [T]; 8]>,
    /// Scalars and short rows, repeated over a block.
    repeated: SmallVec<[Vec<T>; 8]>,
    in_place: Option<usize>,
    /// Elements of a block, a multiple of the row where that is shorter.
    block: usize,
}

fn blocks<T: Float>(
    program: &Program,
    ctx: &KernelContext<'_>,
    mut inputs: SmallVec<[Tensor; 8]>,
    layout: &Layout,
) -> Result<Tensor, KernelError> {
    let n = layout.shape.n_elements();
    let block = match layout.row {
        0 => BLOCK.min(n),
        row if row <= BLOCK => (BLOCK / row * row).min(n),
        _ => BLOCK,
    };
    let in_place = (0..inputs.len()).find(|i| layout.inputs[*i] == Along::Full && inputs[*i].is_unique());
    let mut output = match in_place {
        Some(i) => std::mem::replace(&mut inputs[i], Tensor::scalar(T::ZERO)),
        None => ctx.room::<T>(layout.shape.clone())?,
    };
    let mut run = Run { program, layout, inputs: SmallVec::new(), repeated: SmallVec::new(), in_place, block };
    for (i, input) in inputs.iter().enumerate() {
        let values = input.slice::<T>()?;
        let repeated = match layout.inputs[i] {
            Along::Scalar => vec![values[0]; block],
            Along::Row if layout.row <= BLOCK => values.iter().copied().cycle().take(block).collect(),
            _ => Vec::new(),
        };
        run.inputs.push(values);
        run.repeated.push(repeated);
    }
    let cut = if layout.row <= BLOCK { layout.row.max(1) } else { 1 };
    shard_slice(ctx.sharder, unique_slice::<T>(&mut output)?, cut, program.ps, |at, part| run.part(at, part));
    Ok(output)
}

impl<T: Float> Run<'_, T> {
    /// Computes a part of the output, which begins at element `at`.
    fn part(&self, at: usize, part: &mut [T]) {
        let mut registers = vec![vec![T::ZERO; self.block.min(part.len())]; self.program.n_registers + 1];
        let mut done = 0;
        while done < part.len() {
            let begin = at + done;
            let len = match self.layout.row {
                row if row > BLOCK => (row - begin % row).min(self.block),
                _ => self.block,
            };
            let end = (done + len).min(part.len());
            self.block(begin, &mut part[done..end], &mut registers);
            done = end;
        }
    }

    fn block(&self, begin: usize, out: &mut [T], registers: &mut [Vec<T>]) {
        let len = out.len();
        let own = self.program.n_registers;
        if self.in_place.is_some() {
            registers[own][..len].copy_from_slice(out);
        }
        let last = self.program.steps.len() - 1;
        for (i, step) in self.program.steps.iter().enumerate() {
            let mut target = if i == last { Vec::new() } else { std::mem::take(&mut registers[step.register]) };
            let [a, b] = step.operands.map(|o| self.operand(o, begin, len, registers));
            T::step(step.def.op, a, b, if i == last { &mut *out } else { &mut target[..len] });
            if i != last {
                registers[step.register] = target;
            }
        }
    }

    #[inline]
    fn operand<'r>(&'r self, o: usize, begin: usize, len: usize, registers: &'r [Vec<T>]) -> &'r [T] {
        if let Some(of) = o.checked_sub(self.program.n_inputs) {
            return &registers[self.program.steps[of].register][..len];
        }
        match self.layout.inputs[o] {
            Along::Full if self.in_place == Some(o) => &registers[self.program.n_registers][..len],
            Along::Full => &self.inputs[o][begin..begin + len],
            Along::Row if self.layout.row > BLOCK => &self.inputs[o][begin % self.layout.row..][..len],
            _ => &self.repeated[o][..len],
        }
    }
}

/// The ops' own kernels, one by one.
fn alone(program: &Program, ctx: &mut KernelContext<'_>, inputs: SmallVec<[Tensor; 8]>) -> Result<Tensor, KernelError> {
    let kernels =
        program.alone.get_or_init(|| program.steps.iter().map(|step| own_kernel(step, program.dtype)).collect());
    let Some(kernels) = kernels else {
        return Err(KernelError::invalid("an op of the fused node has no kernel of its own"));
    };
    let mut values: Vec<Tensor> = inputs.into_vec();
    for (step, kernel) in program.steps.iter().zip(kernels) {
        let operands = step.operands.iter().take(step.def.n_operands);
        let mut inputs: SmallVec<[Slot; 2]> = operands.map(|o| Some(values[*o].clone())).collect();
        let mut outputs: [Slot; 1] = [None];
        let mut own = KernelContext { inputs: &mut inputs, outputs: &mut outputs, ..*ctx };
        kernel.compute(&mut own).map_err(|error| KernelError::invalid(format!("{}: {error}", step.def.name)))?;
        let [output] = outputs;
        values.push(output.ok_or(KernelError::MissingInput(0))?);
    }
    values.pop().ok_or(KernelError::MissingInput(0))
}

fn own_kernel(step: &Step, dtype: DType) -> Option<Arc<dyn Kernel>> {
    let op = ops::lookup(step.def.name)?;
    let default = |attr: &ops::AttrDef| match attr.name {
        "T" => Some(Attr::Type(dtype)),
        "N" => Some(Attr::Int(2)),
        _ => attr.default.clone(),
    };
    let attrs = op.attrs.iter().filter_map(|attr| Some((attr.name.to_owned(), default(attr)?))).collect();
    let node = Node {
        id: crate::graph::NodeId(u32::MAX),
        name: step.def.name.into(),
        op,
        attrs,
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        device: "".into(),
        outputs: Vec::new(),
    };
    match build(&node, "CPU").ok()? {
        AnyKernel::Sync(kernel) => Some(kernel),
        AnyKernel::Async(_) => None,
    }
}

fn make<T: Float>(node: &Node) -> Built {
    Ok(Box::new(Fused::<T> { program: Program::new(node)?, of: std::marker::PhantomData }))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED: &[KernelDef] = &[
    cpu("_FusedElementwise", ("T", &[DType::F32]), make::<f32>),
    cpu("_FusedElementwise", ("T", &[DType::F64]), make::<f64>),
];
