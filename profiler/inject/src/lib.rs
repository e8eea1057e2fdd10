//! The library that CUDA's driver loads into a program which knows nothing of us: `CUDA_INJECTION64_PATH` names it, and the driver
//! calls [`InitializeInjection`] when the program initialises CUDA. `NVTX_INJECTION64_PATH` names it for NVTX, which calls
//! [`InitializeInjectionNvtx2`] with the program's first range. `stepscope record` sets both.
//!
//! It records into the folder that `STEPSCOPE_TRACE` names, until the process exits. Whatever goes wrong is told in the trace, or on
//! standard error where there is none; the program runs on in any case.

// In another's program there is no other place to say why nothing is recorded.
#![allow(clippy::print_stderr)]

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupti::{Loaded, Recorder};

/// What runs until the process exits.
struct Injected {
    recorder: Option<Recorder>,
    process: u32,
}

static INJECTED: Mutex<Option<Injected>> = Mutex::new(None);

fn injected() -> MutexGuard<'static, Option<Injected>> {
    INJECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    let _ = catch_unwind(begin);
    let attached = catch_unwind(|| {
        let library = Loaded::find().ok()?;
        // SAFETY: as the caller promises.
        unsafe { library.attach_nvtx(get_export_table) }.ok()
    });
    attached.ok().flatten().unwrap_or(0)
}

/// Starts to record, where nobody does.
fn begin() {
    let mut injected = injected();
    let process = std::process::id();
    // A forked child has its parent's memory, but neither its threads nor CUDA.
    if injected.is_some() {
        return;
    }
    *injected = Some(Injected { recorder: None, process });
    let Some(folder) = std::env::var_os(events::control::ENV).filter(|folder| !folder.is_empty()) else { return };
    // A program with events of its own has another copy of what keeps them: two would write the same files.
    if events::meta::path(Path::new(&folder), process).exists() {
        eprintln!(
            "stepscope: process {process} records by itself: what CUDA does in it is recorded if it starts cupti::Recorder"
        );
        return;
    }
    if let Err(error) = events::start_from_env() {
        eprintln!("stepscope: process {process} is not recorded: {error}");
        return;
    }
    // Where there is no CUPTI, or it refuses, the trace tells why.
    let library = Loaded::find().map_err(cupti::Unavailable::NoLibrary);
    let recorder = library.and_then(|library| Recorder::start(Arc::new(library)));
    if let Some(injected) = injected.as_mut() {
        injected.recorder = recorder.ok();
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
    let recorder = injected().take().filter(|injected| injected.process == std::process::id());
    if let Some(recorder) = recorder.and_then(|injected| injected.recorder) {
        // What it lost is in the trace.
        let _ = recorder.stop();
    }
}
