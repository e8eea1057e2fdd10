//! Steps of a program that works in steps, such as a training.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

use events::{SliceGuard, StepMark};

use crate::errors;

/// A step that has begun.
struct Step {
    mark: StepMark,
    slice: SliceGuard,
    number: u32,
    summary_step: i64,
}

thread_local! {
    static STEP: RefCell<Option<Step>> = const { RefCell::new(None) };
}

/// Begins a step of the calling thread: `name` says what it does (`train`, `eval`), `step` is its number on the axis of
/// summaries, or that of the step in this process, from 0, where it is negative. A step that this thread began before
/// ends. "The next N steps" of `stepscope record --steps N` are counted by these calls.
///
/// # Safety
/// `name` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_begin_step(name: *const c_char, step: i64) -> c_int {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    errors::status(|| {
        // SAFETY: as the caller promises.
        let name = unsafe { errors::text(name, "name") }?;
        end_step();
        let mark = events::begin_step();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let slice = events::slice(events::site("step", name));
        let summary_step = if step < 0 { i64::from(number) - 1 } else { step };
        // Where the thread is ending the slice ends here.
        let _ = STEP.try_with(|current| current.replace(Some(Step { mark, slice, number, summary_step })));
        Ok(())
    })
}

/// Ends the step that this thread began; does nothing where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_end_step() {
    errors::status(|| {
        end_step();
        Ok(())
    });
}

fn end_step() {
    if let Ok(Some(Step { mark, slice, number, summary_step })) = STEP.try_with(RefCell::take) {
        events::emit_close(slice, events::now(), number, summary_step.cast_unsigned());
        events::end_step(mark);
    }
}
