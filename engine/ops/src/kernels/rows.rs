//! Rows: moving them about whatever their type, and combining them element by element.

use super::support::by_word;
use super::{KernelContext, KernelError};
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// A row that is nowhere: zeros, or empty strings.
pub(crate) const MISSING: (usize, usize) = (usize::MAX, 0);

/// A tensor whose rows of `row` elements are picked: each a source and a row of it, or [`MISSING`]. The sources have
/// `dtype`.
pub(crate) fn pick(
    c: &KernelContext<'_>,
    dtype: DType,
    sources: &[&Tensor],
    picks: &[(usize, usize)],
    row: usize,
    shape: Shape,
) -> Result<Tensor, KernelError> {
    fn of<T: Element + Default>(
        c: &KernelContext<'_>,
        dtype: DType,
        sources: &[&Tensor],
        picks: &[(usize, usize)],
        row: usize,
        shape: Shape,
    ) -> Result<Tensor, KernelError> {
        let slices = sources.iter().map(|s| s.words::<T>()).collect::<Result<Vec<_>, _>>()?;
        c.filled_words::<T>(dtype, shape, |out| {
            for (to, (source, at)) in out.chunks_exact_mut(row.max(1)).zip(picks) {
                match slices.get(*source) {
                    Some(from) => to.copy_from_slice(&from[at * row..(at + 1) * row]),
                    None => to.fill(T::default()),
                }
            }
            Ok(())
        })
    }
    if dtype != DType::String {
        return by_word!(dtype, of(c, dtype, sources, picks, row, shape));
    }
    let slices = sources.iter().map(|s| s.strings()).collect::<Result<Vec<_>, _>>()?;
    let mut out = memory::vec(picks.len().saturating_mul(row))?;
    for (source, at) in picks {
        match slices.get(*source) {
            Some(from) => out.extend_from_slice(&from[at * row..(at + 1) * row]),
            None => out.extend(std::iter::repeat_n(Vec::new(), row)),
        }
    }
    Ok(Tensor::from_strings(shape, out)?)
}

/// As [`pick`] from one tensor, elements instead of rows.
pub(crate) fn pick_elements(c: &KernelContext<'_>, from: &Tensor, at: &[usize]) -> Result<Tensor, KernelError> {
    let picks: Vec<(usize, usize)> = at.iter().map(|i| (0, *i)).collect();
    pick(c, from.dtype(), &[from], &picks, 1, Shape::new(&[at.len()]))
}

/// How a value meets the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Set,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// The numbers that kernels combine; narrow types are converted to these.
pub(crate) trait Arith: Element {
    const ZERO: Self;
    const ONE: Self;
    /// The smallest and the largest finite number.
    const LOWEST: Self;
    const HIGHEST: Self;
    fn from_f64(v: f64) -> Self;
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    fn times(self, b: Self) -> Self;
    /// Of integers by 0: 0.
    fn over(self, b: Self) -> Self;
    /// The smaller one (of complex numbers, which no op asks for: the first).
    fn smaller(self, b: Self) -> Self;
    fn larger(self, b: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty),+) => { $(
        impl Arith for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;
            fn from_f64(v: f64) -> $t { v as $t }
            fn plus(self, b: $t) -> $t { self + b }
            fn minus(self, b: $t) -> $t { self - b }
            fn times(self, b: $t) -> $t { self * b }
            fn over(self, b: $t) -> $t { self / b }
            fn smaller(self, b: $t) -> $t { if b < self { b } else { self } }
            fn larger(self, b: $t) -> $t { if b > self { b } else { self } }
        }
    )+ };
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),+) => { $(
        impl Arith for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;
            fn from_f64(v: f64) -> $t { v as $t }
            fn plus(self, b: $t) -> $t { self.wrapping_add(b) }
            fn minus(self, b: $t) -> $t { self.wrapping_sub(b) }
            fn times(self, b: $t) -> $t { self.wrapping_mul(b) }
            fn over(self, b: $t) -> $t { if b == 0 { 0 } else { self.wrapping_div(b) } }
            fn smaller(self, b: $t) -> $t { self.min(b) }
            fn larger(self, b: $t) -> $t { self.max(b) }
        }
    )+ };
}
integers!(i32, i64, u64);

impl Arith for Complex64 {
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    const LOWEST: Complex64 = Complex64::new(0.0, 0.0);
    const HIGHEST: Complex64 = Complex64::new(0.0, 0.0);
    fn from_f64(v: f64) -> Complex64 {
        Complex64::new(v, 0.0)
    }
    fn plus(self, b: Complex64) -> Complex64 {
        self + b
    }
    fn minus(self, b: Complex64) -> Complex64 {
        self - b
    }
    fn times(self, b: Complex64) -> Complex64 {
        self * b
    }
    fn over(self, b: Complex64) -> Complex64 {
        self / b
    }
    fn smaller(self, _: Complex64) -> Complex64 {
        self
    }
    fn larger(self, _: Complex64) -> Complex64 {
        self
    }
}

/// The loop that combines a row with another as long.
pub(crate) fn row_function<T: Arith>(how: Combine) -> fn(&mut [T], &[T]) {
    fn each<T: Arith>(to: &mut [T], from: &[T], f: impl Fn(T, T) -> T) {
        to.iter_mut().zip(from).for_each(|(t, v)| *t = f(*t, *v));
    }
    match how {
        Combine::Set => |to, from| to.copy_from_slice(from),
        Combine::Add => |to, from| each(to, from, T::plus),
        Combine::Sub => |to, from| each(to, from, T::minus),
        Combine::Mul => |to, from| each(to, from, T::times),
        Combine::Div => |to, from| each(to, from, T::over),
        Combine::Min => |to, from| each(to, from, T::smaller),
        Combine::Max => |to, from| each(to, from, T::larger),
    }
}

/// One kernel for each wide type of number, and the narrow ones by way of those: `kernel_lines!("Op", "T", build)`,
/// `build` a generic function of the type.
macro_rules! number_kernels {
    ($($op:literal, $attr:literal => $build:ident($($arg:expr),*);)+) => { &[ $(
        $crate::kernels::support::cpu($op, ($attr, &[DType::F32]), |n| $build::<f32>(n, $($arg),*)),
        $crate::kernels::support::cpu($op, ($attr, &[DType::F64]), |n| $build::<f64>(n, $($arg),*)),
        $crate::kernels::support::cpu($op, ($attr, &[DType::I32]), |n| $build::<i32>(n, $($arg),*)),
        $crate::kernels::support::cpu($op, ($attr, &[DType::I64]), |n| $build::<i64>(n, $($arg),*)),
        $crate::kernels::support::cpu($op, ($attr, &[DType::U64]), |n| $build::<u64>(n, $($arg),*)),
        $crate::kernels::support::cpu($op, ($attr, &[DType::C128]), |n| $build::<Complex64>(n, $($arg),*)),
        $crate::kernels::widen::widened($op, ($attr, DType::NARROW)),
    )+ ] };
}
pub(crate) use number_kernels;
