//! The library that CUDA's driver loads into a program that does not use this project: `CUDA_INJECTION64_PATH` names
//! the library, and the driver calls [`InitializeInjection`] when the program initialises CUDA. `NVTX_INJECTION64_PATH`
//! names it for NVTX, which calls [`InitializeInjectionNvtx2`] with the first range of each of the program's libraries
//! that has NVTX in it. `stepscope record` sets both.
//!
//! The library records into the folder that `STEPSCOPE_TRACE` names, until the process exits. Errors are reported in
//! the trace, or on standard error where there is no trace; the program runs on in any case.
//!
//! A program that a recorded program starts (`exec`) is recorded as a process of its own. A child that is only forked
//! inherits its parent's CUDA state, which does not work in the child, and is not recorded. A program that ends without
//! its exit handlers (`_exit`, a signal) loses the last quarter of a second.

// In a foreign program standard error is the only place to report why nothing is recorded.
#![allow(clippy::print_stderr)]

mod process;

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use cupti::{CuptiLibrary, Recorder};
use events::control;

/// The id of the process in which [`start_recording`] ran; 0 before. A forked child inherits its parent's value.
static STARTED_PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process that records, and its recorder, which runs until the process exits.
static RECORDER: Mutex<Option<(u32, Recorder)>> = Mutex::new(None);

/// Starts recording; CUDA's driver calls it once. Returns 1, since 0 would switch profiling off for other tools too.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    // A panic must not unwind into C.
    let _ = catch_unwind(start_recording);
    1
}

/// Passes NVTX's table of functions to CUPTI; NVTX calls it. Returns 1, or 0 where ranges are not recorded.
///
/// # Safety
/// `get_export_table` is NVTX's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: *const c_void) -> c_int {
    let result = catch_unwind(|| {
        start_recording();
        let library = if is_running() { CuptiLibrary::find().ok()? } else { return None };
        // SAFETY: as the caller promises.
        unsafe { library.attach_nvtx(get_export_table) }.ok()
    });
    result.ok().flatten().unwrap_or(0)
}

/// Whether this process is recorded. A forked child is not, although it has its parent's recorder.
fn is_running() -> bool {
    let recorder = RECORDER.try_lock();
    recorder.is_ok_and(|recorder| recorder.as_ref().is_some_and(|(process, _)| *process == std::process::id()))
}

/// Starts recording this process unless it is recorded already.
fn start_recording() {
    let process = std::process::id();
    // An atomic exchange instead of a lock: starting CUPTI may initialise CUDA, which calls this function again.
    match STARTED_PROCESS.swap(process, Ordering::AcqRel) {
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
    // A program that emits events itself has its own copy of the `events` crate: two copies would write the same files.
    if process::has_mapped(&Path::new(&folder).join(control::FILE_NAME)) {
        return eprintln!(
            "stepscope: process {process} records by itself: what CUDA does in it is recorded if it starts cupti::Recorder"
        );
    }
    // The recording threads start with all signals blocked, so that the program's threads receive its signals.
    let blocked = process::SignalBlockGuard::block_all();
    if let Err(error) = events::start_from_env() {
        return eprintln!("stepscope: process {process} is not recorded: {error}");
    }
    // Where CUPTI is missing or returns an error, the trace says why.
    let Ok(recorder) = Recorder::find_and_start() else { return };
    drop(blocked);
    if let Ok(mut running) = RECORDER.lock() {
        *running = Some((process, recorder));
    }
    extern "C" fn at_exit() {
        let _ = catch_unwind(stop_recording);
    }
    // Registered after the exit handler of the events session, and so called before it: CUPTI's last records get into
    // the trace. SAFETY: the handler is a plain function of a library that stays loaded.
    if unsafe { libc::atexit(at_exit) } != 0 {
        eprintln!("stepscope: process {process}: the last of what CUDA does in it is lost");
    }
}

fn stop_recording() {
    // In a forked child the lock may be held for ever, by a thread that exists only in the parent.
    let running = RECORDER.try_lock().ok().and_then(|mut running| running.take());
    match running {
        // The report is not needed: losses are noted in the trace.
        Some((process, recorder)) if process == std::process::id() => drop(recorder.stop()),
        // The parent's recorder: its thread does not run here, and a join would wait for ever.
        Some((_, recorder)) => std::mem::forget(recorder),
        None => {}
    }
}
