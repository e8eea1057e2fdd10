//! The library that CUDA's driver loads into a program which knows nothing of us: `CUDA_INJECTION64_PATH` names it, and the driver
//! calls [`InitializeInjection`] when the program initialises CUDA. `NVTX_INJECTION64_PATH` names it for NVTX, which calls
//! [`InitializeInjectionNvtx2`] with the first range of each of the program's libraries that has NVTX in it. `stepscope record` sets both.
//!
//! It records into the folder that `STEPSCOPE_TRACE` names, until the process exits. Whatever goes wrong is reported in the trace, or on
//! standard error where there is none; the program runs on in any case.
//!
//! A program that a recorded one starts (`exec`) records as itself. A child that is only forked has CUDA of its parent, which no longer
//! works there, and is not recorded. Of a program that ends without its exit handlers (`_exit`, a signal) the last quarter of a second is lost.

// In another's program there is no other place to say why nothing is recorded.
#![allow(clippy::print_stderr)]

mod process;

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use cupti::{Loaded, Recorder};
use events::control;

/// The process that began here; 0 before. A forked child has its parent's.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// The recorder that runs until the process exits, and the process.
static RUNNING: Mutex<Option<(u32, Recorder)>> = Mutex::new(None);

/// Called by CUDA's driver, once. 1: it may go on; 0 would switch profiling off for others, too.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    // Not across the border to C.
    let _ = catch_unwind(begin);
    1
}

/// Called by NVTX with its table of functions. CUPTI takes them: 1, or 0 where ranges are not recorded.
///
/// # Safety
/// `get_export_table` is NVTX's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: *const c_void) -> c_int {
    let attached = catch_unwind(|| {
        begin();
        let library = if is_running() { Loaded::find().ok()? } else { return None };
        // SAFETY: as the caller promises.
        unsafe { library.attach_nvtx(get_export_table) }.ok()
    });
    attached.ok().flatten().unwrap_or(0)
}

/// Whether this process is recorded, not its parent alone.
fn is_running() -> bool {
    let running = RUNNING.try_lock();
    running.is_ok_and(|running| running.as_ref().is_some_and(|(process, _)| *process == std::process::id()))
}

/// Starts to record, where nobody does.
fn begin() {
    let process = std::process::id();
    // No lock: what CUPTI does to begin may initialise CUDA, which calls this again.
    match BEGUN.swap(process, Ordering::AcqRel) {
        0 => {}
        before if before == process => return,
        parent => {
            return eprintln!(
                "stepscope: process {process} is not recorded, for it was forked from {parent}, which is: start it with exec \
                 (Python: multiprocessing's method 'spawn')"
            );
        }
    }
    let Some(folder) = std::env::var_os(control::ENV).filter(|folder| !folder.is_empty()) else { return };
    // A program with events of its own has another copy of what keeps them: two would write the same files.
    if process::has_mapped(&Path::new(&folder).join(control::FILE_NAME)) {
        return eprintln!(
            "stepscope: process {process} records by itself: what CUDA does in it is recorded if it starts cupti::Recorder"
        );
    }
    // Threads that the program did not ask for take none of its signals.
    let blocked = process::SignalsBlocked::begin();
    if let Err(error) = events::start_from_env() {
        return eprintln!("stepscope: process {process} is not recorded: {error}");
    }
    // Where there is no CUPTI, or it refuses, the trace says why.
    let Ok(recorder) = Recorder::start_here() else { return };
    drop(blocked);
    if let Ok(mut running) = RUNNING.lock() {
        *running = Some((process, recorder));
    }
    extern "C" fn at_exit() {
        let _ = catch_unwind(end);
    }
    // After that of the events session, so called before it: what CUPTI still has gets into the trace.
    // SAFETY: the handler is a plain function of a library that stays loaded.
    if unsafe { libc::atexit(at_exit) } != 0 {
        eprintln!("stepscope: process {process}: the last of what CUDA does in it is lost");
    }
}

fn end() {
    // In a forked child another thread may have held it for ever.
    let running = RUNNING.try_lock().ok().and_then(|mut running| running.take());
    match running {
        // What it lost is in the trace.
        Some((process, recorder)) if process == std::process::id() => drop(recorder.stop()),
        // The parent's: its thread does not run here, and a join would wait for ever.
        Some((_, recorder)) => std::mem::forget(recorder),
        None => {}
    }
}
