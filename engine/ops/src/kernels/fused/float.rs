//! The floating-point types that programs compute with.

use std::cell::RefCell;

use crate::kernels::formula::{FusedOp, Step};
use engine_core::dtype::Element;

/// A floating-point type that programs compute with.
pub(super) trait Float: Element + Default {
    /// An op's step, compiled for the vector units that the machine has.
    fn step(op: &FusedOp) -> Step<Self>;
    /// Calls `f` with `n` numbers of this thread's, of any values.
    fn with_scratch<R>(n: usize, f: impl FnOnce(&mut [Self]) -> R) -> R;
}

macro_rules! float {
    ($t:ident) => {
        impl Float for $t {
            fn step(op: &FusedOp) -> Step<$t> {
                op.$t
            }
            fn with_scratch<R>(n: usize, f: impl FnOnce(&mut [$t]) -> R) -> R {
                thread_local! {
                    static SCRATCH: RefCell<Vec<$t>> = const { RefCell::new(Vec::new()) };
                }
                SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
                    Ok(mut scratch) => {
                        let longer = scratch.len().max(n);
                        scratch.resize(longer, 0.0);
                        f(&mut scratch[..n])
                    }
                    Err(_) => f(&mut vec![0.0; n]),
                })
            }
        }
    };
}
float!(f32);
float!(f64);
