//! Denormal numbers count as zero while kernels run.
//!
//! A network that has converged multiplies ever smaller numbers: gradients and momentum fall below 1.2e-38, where
//! processors take around a hundred cycles for an addition that otherwise takes four. TensorFlow's executor threads
//! read denormals as zero and write zero for them (tensorflow/core/platform/denormal.h), and so do ours: workers always,
//! a caller's thread for the duration of its step.

use std::marker::PhantomData;

/// While it lives, its thread reads and writes denormal numbers as zero. The mode from before returns with its end,
/// so that a caller's own arithmetic is unchanged; guards nest.
pub struct DenormalsAreZero {
    before: Option<Control>,
    /// The mode belongs to the thread: the guard must end where it began.
    _not_send: PhantomData<*const ()>,
}

impl DenormalsAreZero {
    pub fn begin() -> DenormalsAreZero {
        let now = read();
        // Writing the register costs more than reading it; in nested guards nothing changes.
        let before = (now & FLUSH != FLUSH).then_some(now);
        if before.is_some() {
            write(now | FLUSH);
        }
        DenormalsAreZero { before, _not_send: PhantomData }
    }
}

impl Drop for DenormalsAreZero {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
use x86::{Control, FLUSH, read, write};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;

    /// The MXCSR register.
    pub(super) type Control = u32;
    /// Flush to zero (bit 15) and denormals are zero (bit 6): Intel's manual, volume 1, 10.2.3.
    pub(super) const FLUSH: Control = 1 << 15 | 1 << 6;

    pub(super) fn read() -> Control {
        let mut value: Control = 0;
        // SAFETY: stores the register to 4 bytes that are ours.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: Control) {
        // SAFETY: loads the register from 4 bytes that are ours. They were read from it, `FLUSH` apart, so no
        // reserved bit is set. Rust assumes the default mode when it computes constants: those keep their denormals,
        // which the results of kernels do not depend on.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
use arm::{Control, FLUSH, read, write};

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::asm;

    /// The FPCR register.
    pub(super) type Control = u64;
    /// Flush to zero, inputs and outputs (bit 24): Arm's manual, FPCR.FZ.
    pub(super) const FLUSH: Control = 1 << 24;

    pub(super) fn read() -> Control {
        let value: Control;
        // SAFETY: reads a register that every thread may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: Control) {
        // SAFETY: `value` was read from the register, `FLUSH` apart. As for constants, see the x86 version.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

/// Elsewhere the mode stays as it is: results differ below 1.2e-38, and speed there.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use other::{Control, FLUSH, read, write};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod other {
    pub(super) type Control = u32;
    pub(super) const FLUSH: Control = 0;

    pub(super) fn read() -> Control {
        0
    }

    pub(super) fn write(_: Control) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;

    use super::*;

    fn product() -> f32 {
        black_box(1e-30f32) * black_box(1e-10f32)
    }

    #[test]
    fn guards_nest_and_restore() {
        assert!(product() > 0.0);
        let outer = DenormalsAreZero::begin();
        assert_eq!(product(), 0.0);
        // Denormal inputs too.
        assert_eq!(black_box(f32::from_bits(1)) * black_box(1e30f32), 0.0);
        drop(DenormalsAreZero::begin());
        assert_eq!(product(), 0.0);
        drop(outer);
        assert!(product() > 0.0);
    }

    #[test]
    fn a_panic_restores_too() {
        let result = std::panic::catch_unwind(|| {
            let _guard = DenormalsAreZero::begin();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(result.is_err() && product() > 0.0);
    }
}
