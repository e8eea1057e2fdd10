//! Slices of the calling thread.
//!
//! The thread keeps its open slices, and C holds their numbers: a number that is wrong, was closed already or is another
//! thread's is an error, and a slice that was left open (by `longjmp`, a forgotten call) ends with the one around it.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use events::SliceGuard;

use crate::args::{self, stepscope_arg};
use crate::errors::{self, Error};
use crate::sites::{self, stepscope_site_t};

/// An open slice of one thread; 0: none, because nothing was recorded when it began.
pub type stepscope_slice_t = u64;

/// The number of slices that a thread may have open at once; further ones are not recorded.
pub const STEPSCOPE_MAX_OPEN: u32 = 65_536;

/// The open slices of a thread, innermost last.
struct OpenSlices {
    /// The thread's own number, in the upper half of its slices' numbers. 0 before the first.
    thread: u32,
    n_opened: u32,
    slices: Vec<(stepscope_slice_t, SliceGuard)>,
}

thread_local! {
    static OPEN: RefCell<OpenSlices> = const { RefCell::new(OpenSlices { thread: 0, n_opened: 0, slices: Vec::new() }) };
}

/// Gives the calling thread's open slices to `call`; an error in a signal handler that interrupts such a call, and at
/// the thread's end.
#[inline]
fn with_open<T>(call: impl FnOnce(&mut OpenSlices) -> Result<T, Error>) -> Result<T, Error> {
    let result = OPEN.try_with(|open| open.try_borrow_mut().map(|mut open| call(&mut open)));
    match result {
        Ok(Ok(value)) => value,
        Ok(Err(_)) => Err("called in a signal handler, within another call".into()),
        Err(_) => Err("the thread is ending".into()),
    }
}

impl OpenSlices {
    #[inline]
    fn push(&mut self, site: stepscope_site_t) -> Result<stepscope_slice_t, Error> {
        static N_THREADS: AtomicU32 = AtomicU32::new(0);
        if self.thread == 0 {
            self.thread = N_THREADS.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        }
        if self.slices.len() >= STEPSCOPE_MAX_OPEN as usize {
            return Err(format!("{STEPSCOPE_MAX_OPEN} slices are open: some are not closed").into());
        }
        self.n_opened = self.n_opened.wrapping_add(1);
        let number = u64::from(self.thread) << 32 | u64::from(self.n_opened);
        self.slices.push((number, events::slice(sites::id(site))));
        Ok(number)
    }

    /// Removes a slice; those inside it end at `end`.
    #[inline]
    fn remove(&mut self, slice: stepscope_slice_t, end: u64) -> Result<SliceGuard, Error> {
        if self.slices.last().is_none_or(|(number, _)| *number != slice) {
            let is_open = self.slices.iter().rev().any(|(number, _)| *number == slice);
            if !is_open {
                return Err("this slice is not open on the calling thread".into());
            }
            while let Some((_, inner)) = self.slices.pop_if(|(number, _)| *number != slice) {
                events::emit_close(inner, end, 0, 0);
            }
        }
        self.slices.pop().map(|(_, guard)| guard).ok_or_else(|| "no slice is open".into())
    }
}

/// Begins a slice of the calling thread, which `stepscope_close` ends on the same thread. Returns 0, which may be passed
/// to `stepscope_close`, while nothing is recorded.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_open(site: stepscope_site_t) -> stepscope_slice_t {
    if !events::is_on() {
        return 0;
    }
    errors::value(0, || with_open(|open| open.push(site)))
}

/// Ends a slice that this thread began; slices inside it that are still open end with it.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_close(slice: stepscope_slice_t) -> c_int {
    if slice == 0 {
        return errors::STEPSCOPE_OK;
    }
    let end = events::now();
    errors::status(|| {
        with_open(|open| {
            events::emit_close(open.remove(slice, end)?, end, 0, 0);
            Ok(())
        })
    })
}

/// As `stepscope_close`, with `n_args` arguments, which the slice's details show. Where an argument cannot be used the
/// slice ends without them.
///
/// # Safety
/// `args` has `n_args` elements, each with texts that end with a zero byte; it may be null where `n_args` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_close_with(
    slice: stepscope_slice_t,
    args: *const stepscope_arg,
    n_args: usize,
) -> c_int {
    if slice == 0 {
        return errors::STEPSCOPE_OK;
    }
    let end = events::now();
    errors::status(|| {
        with_open(|open| {
            let guard = open.remove(slice, end)?;
            // SAFETY: as the caller promises.
            match unsafe { args::json(args, n_args) } {
                Ok(text) if !text.is_empty() => events::emit_close_with_args(guard, end, &text),
                without => {
                    events::emit_close(guard, end, 0, 0);
                    without?;
                }
            }
            Ok(())
        })
    })
}
