//! What kernels share: kernels from functions, output memory with in-place forwarding, loops cut into shards.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::{Kernel, KernelContext, KernelDef, KernelError, Sharder};
use engine_core::checkpoint::Checkpointed;
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// What a kernel gives back.
pub type Computed = Result<(), KernelError>;
/// A kernel that was made.
pub type Built = Result<Box<dyn Kernel>, KernelError>;

/// A kernel that is a function.
struct FnKernel<F> {
    f: F,
    expensive: bool,
}

impl<F: Fn(&mut KernelContext<'_>) -> Computed + Send + Sync> Kernel for FnKernel<F> {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        (self.f)(ctx)
    }

    fn is_expensive(&self) -> bool {
        self.expensive
    }
}

/// A kernel from a function.
pub fn kernel<F: Fn(&mut KernelContext<'_>) -> Computed + Send + Sync + 'static>(f: F) -> Built {
    Ok(Box::new(FnKernel { f, expensive: true }))
}

/// A kernel from a function that leaves state behind, which belongs into checkpoints.
struct StatefulKernel<F> {
    f: F,
    state: Option<Arc<dyn Checkpointed>>,
}

impl<F: Fn(&mut KernelContext<'_>) -> Computed + Send + Sync> Kernel for StatefulKernel<F> {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        (self.f)(ctx)
    }

    fn state(&self) -> Option<&dyn Checkpointed> {
        self.state.as_deref()
    }
}

/// A kernel from a function that shares `state`, which belongs into checkpoints.
pub fn kernel_with_state<F: Fn(&mut KernelContext<'_>) -> Computed + Send + Sync + 'static>(
    state: Option<Arc<dyn Checkpointed>>,
    f: F,
) -> Built {
    Ok(Box::new(StatefulKernel { f, state }))
}

/// A kernel from a function that always takes well under a microsecond.
pub fn cheap<F: Fn(&mut KernelContext<'_>) -> Computed + Send + Sync + 'static>(f: F) -> Built {
    Ok(Box::new(FnKernel { f, expensive: false }))
}

/// A line of a kernel table for CPUs: for one element type of an attribute.
pub const fn cpu(op: &'static str, dtypes: (&'static str, &'static [DType]), build: fn(&Node) -> Built) -> KernelDef {
    KernelDef { op, device: "CPU", dtypes, build }
}

/// A line of a kernel table for CPUs, for all element types.
pub const fn cpu_any(op: &'static str, build: fn(&Node) -> Built) -> KernelDef {
    cpu(op, ("", &[]), build)
}

/// Calls a generic function for a Rust type as wide as a dtype that lives in a buffer: for moving elements about.
macro_rules! by_word {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match ($dtype, $dtype.size()) {
            (engine_core::dtype::DType::Bool, _) => $f::<bool>($($arg),*),
            (_, 1) => $f::<u8>($($arg),*),
            (_, 2) => $f::<u16>($($arg),*),
            (_, 4) => $f::<u32>($($arg),*),
            (_, 8) => $f::<u64>($($arg),*),
            (_, 16) => $f::<engine_core::dtype::Complex64>($($arg),*),
            (other, _) => Err($crate::kernels::KernelError::invalid(format!("{other} is not supported here"))),
        }
    };
}
pub(crate) use by_word;

/// A tensor of indices, as int32 or int64.
///
/// # Errors
/// Their number is not the shape's, or one does not fit.
pub fn indices(dtype: DType, shape: Shape, values: &[i64]) -> Result<Tensor, KernelError> {
    if dtype == DType::I64 {
        return Ok(Tensor::from_vec(shape, values.to_vec())?);
    }
    let narrow: Result<Vec<i32>, _> = values.iter().map(|v| i32::try_from(*v)).collect();
    let narrow = narrow.map_err(|_| KernelError::invalid("an index does not fit int32"))?;
    Ok(Tensor::from_vec(shape, narrow)?)
}

/// The elements of a tensor that nobody shares.
///
/// # Errors
/// It is of another type (or, against the caller's word, shared).
pub(crate) fn unique_slice<T: Element>(t: &mut Tensor) -> Result<&mut [T], KernelError> {
    t.slice_mut::<T>()?.ok_or_else(|| KernelError::invalid("the output is shared"))
}

/// Elements of a unit of work that is split over threads.
pub(crate) const UNIT: usize = 4096;

/// A slice whose disjoint parts several threads write.
pub(crate) struct DisjointMut<'a, T> {
    first: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a slice that is borrowed for writing; who takes a part promises that nobody else has any of it,
// and `T` can be sent.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    pub fn new(slice: &'a mut [T]) -> DisjointMut<'a, T> {
        DisjointMut { first: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Where element `i` lies.
    #[inline]
    pub fn at(&self, i: usize) -> *mut T {
        self.first.wrapping_add(i)
    }

    /// The elements `range`.
    ///
    /// # Safety
    /// They lie within the slice, and nobody else has any of them while the part is used.
    #[inline]
    pub unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        debug_assert!(range.start <= range.end && range.end <= self.len, "a part lies within its slice");
        // SAFETY: the slice is borrowed for writing for `'a`; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(range.start), range.len()) }
    }
}

/// Calls `f(first, part)` on parts of `out` that cover it, cut at multiples of `row` elements, possibly at once.
/// `ps_per_element` is what one element costs, in picoseconds.
#[inline]
pub(crate) fn shard_slice<T: Element>(
    sharder: &dyn Sharder,
    out: &mut [T],
    row: usize,
    ps_per_element: u64,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    let n = out.len();
    // Before anything is divided: scalars come by here.
    if n <= 2 * UNIT {
        return f(0, out);
    }
    let row = row.max(1);
    let unit = UNIT.div_ceil(row) * row;
    if n <= 2 * unit || sharder.n_workers() == 1 {
        return f(0, out);
    }
    let parts = DisjointMut::new(out);
    let body = |units: Range<usize>| {
        let (begin, end) = (units.start * unit, (units.end * unit).min(n));
        // SAFETY: the sharder hands out disjoint ranges of `0..n.div_ceil(unit)`, so `begin..end` lies within `out`
        // and no other call gets any of it.
        f(begin, unsafe { parts.part(begin..end) });
    };
    sharder.parallel_for(n.div_ceil(unit), (unit as u64 * ps_per_element / 1000).max(1), &body);
}

/// Calls `f(i, row)` on each row of `row` elements of `out`, possibly at once; a row takes `ps_per_row` picoseconds.
pub(crate) fn shard_rows<T: Element>(
    sharder: &dyn Sharder,
    out: &mut [T],
    row: usize,
    ps_per_row: u64,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    let n = out.len() / row.max(1);
    let parts = DisjointMut::new(out);
    let body = |rows: Range<usize>| {
        for i in rows {
            // SAFETY: the sharder hands out disjoint ranges of `0..n`, so each row lies within `out` and goes to one
            // call.
            f(i, unsafe { parts.part(i * row..(i + 1) * row) });
        }
    };
    sharder.parallel_for(n, (ps_per_row / 1000).max(1), &body);
}
