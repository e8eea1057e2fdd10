//! The kinds of kernels, by the names that libraries and compilers give them.

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KernelKind {
    /// Matrix products.
    MatrixProduct,
    /// Attention, fused.
    Attention,
    /// Convolutions and their gradients.
    Convolution,
    /// Normalisation over a layer, a batch or groups.
    Normalization,
    /// Sums, norms, softmax, losses: what joins many values.
    Reduction,
    /// One value at a time.
    Elementwise,
    /// Updates of parameters, many tensors at a time.
    Optimizer,
    /// Rows that indices select, or are added to.
    Indexing,
    /// What a compiler made of several ops: Triton's kernels, XLA's fusions.
    Compiled,
    /// Exchanges between devices.
    Communication,
    /// Copies, fills, concatenations.
    Memory,
    /// Any other.
    Other,
}

use KernelKind as K;

impl KernelKind {
    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            K::MatrixProduct => "matrix products",
            K::Attention => "attention",
            K::Convolution => "convolutions",
            K::Normalization => "normalisation",
            K::Reduction => "reductions",
            K::Elementwise => "element-wise",
            K::Optimizer => "optimizer",
            K::Indexing => "indexing",
            K::Compiled => "compiled",
            K::Communication => "communication",
            K::Memory => "memory",
            K::Other => "other",
        }
    }

    /// The kind of a kernel with this name that an op launched (empty where it is not known).
    pub(super) fn new(kernel: &str, op: &str) -> KernelKind {
        if COMPILED.iter().any(|prefix| kernel.starts_with(prefix)) {
            return K::Compiled;
        }
        let op = op.rsplit("::").next().unwrap_or(op).trim_start_matches('_');
        find(OPS, op).or_else(|| find(KERNELS, kernel)).unwrap_or(K::Other)
    }
}

fn find(rows: &[(KernelKind, &[&str])], name: &str) -> Option<KernelKind> {
    let is_in = |words: &[&str]| words.iter().any(|word| has(name, word));
    rows.iter().find(|(_, words)| is_in(words)).map(|(kind, _)| *kind)
}

/// Whether a name has a part: `=sum` the name is, `^foreach` it begins so, else it holds the part.
fn has(name: &str, part: &str) -> bool {
    match part.as_bytes().first() {
        Some(b'=') => name == &part[1..],
        Some(b'^') => name.starts_with(&part[1..]),
        _ => name.contains(part),
    }
}

/// The beginnings of the names of compilers' kernels: Inductor's and Triton's, XLA's.
const COMPILED: &[&str] = &["triton_", "fusion", "loop_", "input_", "wrapped_", "command_buffer"];

/// PyTorch's ops, without namespace and leading `_`, from native_functions.yaml; in the order in which they are tried.
const OPS: &[(KernelKind, &[&str])] = &[
    (K::Attention, &["attention", "^flash_attn", "^fmha"]),
    (K::Convolution, &["conv"]),
    (K::Normalization, &["layer_norm", "batch_norm", "group_norm", "rms_norm", "instance_norm", "layernorm"]),
    (K::Optimizer, &["^foreach_", "^fused_ad", "^fused_sgd", "^amp_"]),
    (
        K::MatrixProduct,
        &[
            "=mm",
            "=bmm",
            "=addmm",
            "=baddbmm",
            "=addbmm",
            "=addmv",
            "=mv",
            "=dot",
            "=matmul",
            "=linear",
            "scaled_mm",
            "grouped_mm",
            "=int_mm",
            "=addmm_activation",
        ],
    ),
    (
        K::Indexing,
        &[
            "embedding",
            "^index",
            "=gather",
            "=scatter",
            "^scatter_",
            "=take",
            "^masked_s",
            "=nonzero",
            "^sort",
            "^topk",
        ],
    ),
    (
        K::Memory,
        &[
            "=copy_",
            "=to_copy",
            "=fill_",
            "=zero_",
            "=cat",
            "=stack",
            "=clone",
            "=contiguous",
            "=local_scalar_dense",
            "=repeat",
            "=constant_pad_nd",
        ],
    ),
    (
        K::Reduction,
        &[
            "=sum",
            "=mean",
            "=prod",
            "=max",
            "=min",
            "=amax",
            "=amin",
            "^argm",
            "=norm",
            "vector_norm",
            "^var",
            "^std",
            "softmax",
            "logsumexp",
            "_loss",
            "^cumsum",
            "^cumprod",
            "=any",
            "=all",
            "^max_pool",
            "^avg_pool",
            "^adaptive_",
        ],
    ),
];

/// Names of kernels: cuBLAS, CUTLASS and nvjet; cuDNN; FlashAttention; PyTorch's own; cub; in the order in which they
/// are tried.
const KERNELS: &[(KernelKind, &[&str])] = &[
    (K::Communication, &["^nccl", "^rccl"]),
    (K::Attention, &["fmha", "flash_", "flash::", "attention", "mha_"]),
    (K::Convolution, &["conv", "wgrad", "dgrad", "implicit_gemm", "winograd", "cudnn_infer", "_fprop"]),
    (K::Optimizer, &["multi_tensor_apply"]),
    (K::MatrixProduct, &["gemm", "^nvjet", "cutlass", "^cublas", "gemv", "^Cijk_", "splitKreduce", "^dot_kernel"]),
    (K::Normalization, &["layer_norm", "batch_norm", "bn_fw", "bn_bw", "group_norm", "rms_norm", "GammaBeta"]),
    (K::Indexing, &["embedding", "index", "gather", "scatter", "RadixSort", "radixSort", "topk"]),
    (K::Memory, &["^Memcpy", "^Memset", "direct_copy", "FillFunctor", "CatArray", "^copy"]),
    (K::Reduction, &["reduce", "softmax", "SoftMax", "nll_loss", "scan", "pool"]),
    (K::Elementwise, &["elementwise"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_of_their_ops_kind_or_of_their_names() {
        for (kernel, op, kind) in [
            ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "aten::mm", K::MatrixProduct),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(Params)", "", K::MatrixProduct),
            ("sm80_xmma_wgrad_implicit_gemm_indexed_bf16bf16", "", K::Convolution),
            ("void at::native::reduce_kernel<128, 4>(...)", "aten::convolution_backward", K::Convolution),
            ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop", "aten::_cudnn_attention_backward", K::Attention),
            ("void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>(int)", "aten::fill_", K::Memory),
            (
                "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>(int)",
                "aten::add",
                K::Elementwise,
            ),
            ("void at::native::reduce_kernel<512, 1, ReduceOp<float>>(...)", "aten::sum", K::Reduction),
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<...>",
                "aten::_foreach_mul_",
                K::Optimizer,
            ),
            ("triton_per_fused_native_layer_norm_3", "", K::Compiled),
            ("loop_add_fusion", "", K::Compiled),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "", K::Communication),
            ("my_kernel(float*)", "", K::Other),
        ] {
            assert_eq!(KernelKind::new(kernel, op), kind, "{kernel} of {op:?}");
        }
    }
}
