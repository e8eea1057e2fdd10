//! Matrix products, row by row as the engine has them, by products column by column as libraries have them.
//!
//! A matrix that lies row by row is its transpose column by column: `c = a b` is `c' = b' a'`, so the operands change places
//! and nothing is moved.

use engine::DType;
use engine::graph::{Attr, Node};
use engine::kernels::matmul::{FusedOps, MatMulGeometry};
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};

use super::elementwise::compute;
use super::support::{FLOATS, Unit, device, gpu, kernel, operand};
use crate::backend::{Address, Gemm, Grid, MatrixType};
use crate::gpu::Gpu;

/// The products of this crate.
pub const UNIT: Unit =
    Unit { name: "matmul.cu", text: include_str!("../cu/matmul.cu"), kernels: &["gemm"], dtypes: FLOATS };
/// Rows and columns of a block's part of the result.
const TILE: usize = 64;
/// Blocks side by side, at most, in the second and third dimension.
const MAX_SIDE: usize = 65_535;

#[linkme::distributed_slice(KERNEL_TABLES)]
static MATMUL: &[KernelDef] = &[
    gpu("MatMul", ("T", FLOATS), |node| matmul(node, "transpose_a", "transpose_b")),
    gpu("BatchMatMul", ("T", FLOATS), |node| matmul(node, "adj_x", "adj_y")),
    gpu("BatchMatMulV2", ("T", FLOATS), |node| matmul(node, "adj_x", "adj_y")),
    gpu("_FusedMatMul", ("T", FLOATS), fused),
];

/// A product of matrices that lie row by row: `[m, k]` and `[k, n]`, or transposed in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub dtype: DType,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub n_batches: usize,
    /// Elements from one `a` to the next, then of `b`, where 0 says that all are the same, and of the result.
    pub strides: [usize; 3],
    /// Elements from one row of `a`, as it lies in memory, to the next, then of `b`, and of the result.
    pub rows: [usize; 3],
    pub adds: bool,
}

impl Product {
    /// One product of matrices whose rows follow each other.
    pub fn packed(dtype: DType, [m, n, k]: [usize; 3], transpose_a: bool, transpose_b: bool) -> Product {
        let rows = [if transpose_a { m } else { k }, if transpose_b { k } else { n }, n];
        let (n_batches, strides) = (1, [0, 0, m * n]);
        Product { dtype, m, n, k, transpose_a, transpose_b, n_batches, strides, rows, adds: false }
    }

    fn gemm(&self) -> Gemm {
        let of = match self.dtype {
            DType::F64 => MatrixType::F64,
            DType::F16 => MatrixType::F16,
            DType::BF16 => MatrixType::Bf16,
            _ if allows_tf32() => MatrixType::Tf32,
            _ => MatrixType::F32,
        };
        Gemm {
            of,
            m: self.n,
            n: self.m,
            k: self.k,
            transpose_a: self.transpose_b,
            transpose_b: self.transpose_a,
            lda: self.rows[1],
            ldb: self.rows[0],
            ldc: self.rows[2],
            n_batches: self.n_batches,
            strides: [self.strides[1], self.strides[0], self.strides[2]],
            adds: self.adds,
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn run(&self, gpu: &Gpu, a: Address, b: Address, c: Address) -> Result<(), KernelError> {
        if self.m * self.n * self.n_batches == 0 {
            return Ok(());
        }
        if self.k == 0 {
            return if self.adds { Ok(()) } else { gpu.zero(c, self.m * self.n * self.n_batches * self.dtype.size()) };
        }
        let gemm = self.gemm();
        if gpu.gemm(&gemm, b, a, c)? {
            return Ok(());
        }
        own(gpu, self.dtype, &gemm, b, a, c)
    }
}

/// Whether f32 products may cut their factors to 10 bits of mantissa: variable STEPSCOPE_TF32, off unless it is 1.
pub(super) fn allows_tf32() -> bool {
    static ALLOWS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ALLOWS.get_or_init(|| std::env::var_os("STEPSCOPE_TF32").is_some_and(|value| value == "1"))
}

/// The product on this crate's kernel.
fn own(gpu: &Gpu, dtype: DType, gemm: &Gemm, a: Address, b: Address, c: Address) -> Result<(), KernelError> {
    let (rows, columns) = (gemm.m.div_ceil(TILE), gemm.n.div_ceil(TILE));
    if columns > MAX_SIDE || gemm.n_batches > MAX_SIDE {
        return Err(KernelError::invalid(format!("a product of {gemm:?} is too large without cuBLASLt")));
    }
    let function = UNIT.kernel(gpu, "gemm", dtype)?;
    let grid = Grid { blocks: [rows as u32, columns as u32, gemm.n_batches as u32], threads: 256 };
    let flag = usize::from;
    let arguments = [
        gemm.m,
        gemm.n,
        gemm.k,
        gemm.lda,
        gemm.ldb,
        gemm.ldc,
        flag(gemm.transpose_a),
        flag(gemm.transpose_b),
        gemm.strides[0],
        gemm.strides[1],
        gemm.strides[2],
        flag(gemm.adds),
    ];
    let mut all: Vec<_> = arguments.into_iter().map(crate::gpu::Argument::from).collect();
    all.extend([a, b, c].map(crate::gpu::Argument::from));
    // SAFETY: the kernel takes these; it touches what the sizes say.
    unsafe { gpu.launch(function, grid, &all) }
}

fn flag(node: &Node, name: &str) -> bool {
    matches!(node.attrs.get(name), Some(Attr::Bool(true)))
}

fn matmul(node: &Node, first: &str, second: &str) -> Built {
    let transposed = (flag(node, first), flag(node, second));
    kernel(node, move |ctx| product(ctx, transposed))
}

/// The product of inputs 0 and 1 as output 0.
fn product(ctx: &mut KernelContext<'_>, transposed: (bool, bool)) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((a, at_a), (b, at_b)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let g = MatMulGeometry::new(a.dims(), b.dims(), transposed)?;
    let (out, at) = gpu.room(a.dtype(), g.output())?;
    let one = Product::packed(a.dtype(), [g.m, g.n, g.k], transposed.0, transposed.1);
    let sizes = [g.m * g.k, g.k * g.n, g.m * g.n];
    if let Some((n_batches, [step_a, step_b])) = g.strided() {
        let strides = [step_a * sizes[0], step_b * sizes[1], sizes[2]];
        Product { n_batches, strides, ..one }.run(gpu, at_a, at_b, at)?;
    } else {
        let matrix = |at: Address, i: usize, size: usize| at + (i * size * a.dtype().size()) as u64;
        for (i, [x, y]) in g.pairs()?.into_iter().enumerate() {
            let (x, y) = (matrix(at_a, x, sizes[0]), matrix(at_b, y, sizes[1]));
            one.run(gpu, x, y, matrix(at, i, sizes[2]))?;
        }
    }
    ctx.set(0, out);
    Ok(())
}

/// A product, its bias, and a relu where the node says so.
fn fused(node: &Node) -> Built {
    let transposed = (flag(node, "transpose_a"), flag(node, "transpose_b"));
    let text = match FusedOps::of(node)? {
        FusedOps::Nothing => None,
        FusedOps::Bias => Some("a + b"),
        FusedOps::BiasRelu => Some("(a + b < (C)0 ? (C)0 : a + b)"),
    };
    kernel(node, move |ctx| {
        product(ctx, transposed)?;
        let Some(text) = text else { return Ok(()) };
        let bias = ctx.input(2)?.clone();
        let Some(value) = ctx.outputs[0].take() else { return Ok(()) };
        if bias.shape().rank() != 1 || value.dims().last() != Some(&bias.len()) {
            let (x, b) = (value.shape(), bias.shape());
            return Err(KernelError::invalid(format!("a bias of shape {b} does not fit a value of shape {x}")));
        }
        ctx.inputs[0] = Some(value);
        let to = ctx.input(0)?.dtype();
        compute(ctx, text, to, &[0, 2])
    })
}
