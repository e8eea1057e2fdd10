//! What kernels share: the device of a context, where values lie, launches.

use std::sync::Arc;

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{self, AnyKernel, Kernel, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape, Tensor};

use crate::attribution::working_for;
use crate::backend::{Address, Function, Grid};
use crate::gpu::{Argument, Gpu};

/// The device type that kernels here are registered for.
pub const KIND: &str = "GPU";
/// Floating-point types of most kernels.
pub const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];
/// Types of kernels that only compare, add and multiply.
pub const NUMBERS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64];
/// Threads of a block.
pub const THREADS: u32 = 256;
/// Blocks of kernels that walk over elements: more only begin later.
const MAX_BLOCKS: usize = 132 * 16;
/// Values without fractions of at most so many elements stay on the host: sizes, axes, counters; so do single numbers.
const SMALL: usize = 64;

/// What the definitions of all sources begin with.
pub const PRELUDE: &str = include_str!("../cu/prelude.cu");

/// A line of a kernel table.
pub const fn gpu(op: &'static str, dtypes: (&'static str, &'static [DType]), build: fn(&Node) -> Built) -> KernelDef {
    KernelDef { op, device: KIND, dtypes, build }
}

/// The device that a kernel runs on.
///
/// # Errors
/// It has no driver: it was made to be placed on only.
pub fn device<'a>(ctx: &KernelContext<'a>) -> Result<&'a Arc<Gpu>, KernelError> {
    let driver = ctx.driver.and_then(|driver| driver.downcast_ref::<Arc<Gpu>>());
    driver.ok_or_else(|| KernelError::invalid("the device has no CUDA driver: it can be placed on, not computed on"))
}

/// Input `i` in the device's memory.
///
/// # Errors
/// It is missing, or cannot be copied there.
pub fn operand(ctx: &KernelContext<'_>, i: usize) -> Result<(Tensor, Address), KernelError> {
    Ok(device(ctx)?.bring(ctx.input(i)?)?)
}

/// The only number of input `i`, of a floating-point type.
///
/// # Errors
/// It is missing, of another type, or not alone.
pub fn number(ctx: &KernelContext<'_>, i: usize) -> Result<f64, KernelError> {
    let t = ctx.input(i)?.to_host()?;
    Ok(match t.dtype() {
        DType::F32 => f64::from(t.item::<f32>()?),
        DType::F16 => t.item::<engine::dtype::f16>()?.to_f64(),
        DType::BF16 => t.item::<engine::dtype::bf16>()?.to_f64(),
        _ => t.item::<f64>()?,
    })
}

/// What elements are called in the sources.
pub fn c_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F16 => "half16",
        DType::BF16 => "brain16",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "i64",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::Bool => "bool",
        _ => return None,
    })
}

/// The type that elements are computed in.
pub fn c_wide(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::BF16 => "float",
        other => c_type(other).unwrap_or("double"),
    }
}

/// A type as wide, for moving elements about.
///
/// # Errors
/// No such elements can be moved.
pub fn c_word(dtype: DType) -> Result<&'static str, KernelError> {
    Ok(match dtype.size() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => return Err(KernelError::invalid(format!("{dtype} is not moved on a GPU"))),
    })
}

/// The macros of a source for elements of a type: `T` stored, `C` computed.
pub fn macros(dtype: DType) -> Vec<String> {
    vec![format!("T={}", c_type(dtype).unwrap_or("float")), format!("C={}", c_wide(dtype))]
}

/// The blocks for `n` elements.
pub fn grid(n: usize) -> Grid {
    let blocks = n.div_ceil(THREADS as usize).clamp(1, MAX_BLOCKS) as u32;
    Grid { blocks: [blocks, 1, 1], threads: THREADS }
}

/// A source of this crate: its text, and what it is called.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    /// Its name.
    pub name: &'static str,
    /// Its text, behind the [`PRELUDE`].
    pub text: &'static str,
    /// Its kernels.
    pub kernels: &'static [&'static str],
    /// Types that it is compiled for.
    pub dtypes: &'static [DType],
}

impl Unit {
    /// A kernel of it for a type.
    ///
    /// # Errors
    /// It does not compile.
    pub fn kernel(&self, gpu: &Gpu, kernel: &str, dtype: DType) -> Result<Function, KernelError> {
        gpu.function(self.name, kernel, &macros(dtype), || format!("{PRELUDE}{}", self.text))
    }
}

/// Starts a kernel of a unit on `n` elements.
///
/// # Safety
/// As [`Gpu::launch`].
///
/// # Errors
/// It does not compile, or the driver refuses.
pub unsafe fn run(
    gpu: &Gpu,
    (unit, kernel, dtype): (&Unit, &str, DType),
    n: usize,
    arguments: &[Argument],
) -> Result<(), KernelError> {
    if n == 0 {
        return Ok(());
    }
    let function = unit.kernel(gpu, kernel, dtype)?;
    // SAFETY: as the caller promises.
    unsafe { gpu.launch(function, grid(n), arguments) }
}

/// Whether a value is on the host and belongs there: a size, an axis, a counter, a learning rate.
pub fn is_small(t: &Tensor) -> bool {
    let is_whole = t.dtype() == DType::Bool || t.dtype().is_integer() || t.dtype().size() == 0;
    t.device_memory().is_none() && t.len() <= if is_whole { SMALL } else { 1 }
}

/// A kernel that leaves small values where they are: where all its inputs are such, the CPU's kernel computes it.
struct Small<F> {
    cpu: Option<Arc<dyn Kernel>>,
    gpu: F,
}

impl<F: Fn(&mut KernelContext<'_>) -> Result<(), KernelError> + Send + Sync> Kernel for Small<F> {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        match &self.cpu {
            Some(cpu) if ctx.inputs.iter().flatten().all(is_small) => cpu.compute(ctx),
            _ => {
                let _working = working_for(ctx);
                (self.gpu)(ctx)
            }
        }
    }

    fn is_expensive(&self) -> bool {
        false
    }
}

/// A kernel of the device; the CPU computes what is small.
pub fn kernel<F>(node: &Node, gpu: F) -> Built
where
    F: Fn(&mut KernelContext<'_>) -> Result<(), KernelError> + Send + Sync + 'static,
{
    Ok(Box::new(Small { cpu: cpu(node)?, gpu }))
}

/// The CPU's kernel of a node, where it has one.
fn cpu(node: &Node) -> Result<Option<Arc<dyn Kernel>>, KernelError> {
    match kernels::build(node, "CPU") {
        Ok(AnyKernel::Sync(kernel)) => Ok(Some(kernel)),
        Ok(AnyKernel::Async(_)) | Err(KernelError::NoKernel { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A kernel of the CPU that never looks at elements, or whose inputs are copied to the host before.
struct Borrowed {
    cpu: Arc<dyn Kernel>,
    copies: bool,
}

impl Kernel for Borrowed {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        if self.copies {
            for input in ctx.inputs.iter_mut().flatten() {
                *input = input.to_host()?;
            }
        }
        self.cpu.compute(ctx)
    }

    fn is_expensive(&self) -> bool {
        false
    }

    fn state(&self) -> Option<&dyn engine::checkpoint::Checkpointed> {
        self.cpu.state()
    }
}

fn borrow(node: &Node, copies: bool) -> Built {
    let none = || KernelError::invalid(format!("op {} has no kernel to borrow", node.op.name));
    Ok(Box::new(Borrowed { cpu: cpu(node)?.ok_or_else(none)?, copies }))
}

/// The CPU's kernel: it hands values on, wherever they lie, or looks at their shapes only.
pub fn hands_on(node: &Node) -> Built {
    borrow(node, false)
}

/// The CPU's kernel, on the host: its values are sizes and axes.
pub fn on_the_host(node: &Node) -> Built {
    borrow(node, true)
}

/// Elements from one position to the next, of each dimension.
pub fn strides(dims: &[usize]) -> Vec<i64> {
    Shape::new(dims).strides().iter().map(|stride| *stride as i64).collect()
}

/// Elements that an output of this shape has.
///
/// # Errors
/// It is too large.
pub fn count(shape: &Shape) -> Result<usize, KernelError> {
    shape.checked_n_elements().ok_or_else(|| KernelError::invalid(format!("shape {shape} is too large")))
}
