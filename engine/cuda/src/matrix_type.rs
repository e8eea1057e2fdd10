//! Element types of matrices.

/// Element types of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixType {
    /// 32 bits.
    F32,
    /// 32 bits in memory; factors are cut to 10 bits of mantissa.
    Tf32,
    /// 64 bits.
    F64,
    /// 16 bits, sums of 32 bits.
    F16,
    /// The upper 16 bits of an f32, sums of 32 bits.
    Bf16,
}
