//! A process that records itself, into a folder of its own choice or into that of `stepscope record`.
//!
//! [`stepscope_start`] also collects, so that the folder is a complete trace when [`stepscope_stop`] returns.

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, TryLockError};
use std::time::Duration;

use events::{Options, Session};
use trace_record::{Collector, CollectorOptions};

use crate::errors::{self, Error};

/// What this process records.
struct Recording {
    pid: u32,
    session: Session,
    /// `None` in a forked child, whose events its parent collects.
    collector: Option<Collector>,
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// The recording of this process, under its lock. One that a forked child inherited is its parent's to stop: it is
/// forgotten.
fn recording() -> Result<MutexGuard<'static, Option<Recording>>, Error> {
    let mut recording = lock()?;
    if recording.as_ref().is_some_and(|recording| recording.pid != std::process::id()) {
        std::mem::forget(recording.take());
    }
    Ok(recording)
}

/// The lock is never released in a child that was forked while another thread held it. Another thread may hold it for
/// as long as it takes to write the last events.
fn lock() -> Result<MutexGuard<'static, Option<Recording>>, Error> {
    for _ in 0..10_000 {
        match RECORDING.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Err("another thread has been starting or stopping the recording for 10 seconds".into())
}

/// Starts recording this process into `folder`, which is made if it is missing, until `stepscope_stop` or the exit of
/// the process. A thread of this process collects the events, also those of other processes that record into the folder.
/// Fails where the process records already, or the folder cannot be written or belongs to another recording.
///
/// # Safety
/// `folder` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_start(folder: *const c_char) -> c_int {
    errors::status(|| {
        // SAFETY: as the caller promises.
        let folder = unsafe { errors::bytes(folder, "folder") }?;
        start(Path::new(OsStr::from_bytes(folder.to_bytes())))
    })
}

fn start(folder: &Path) -> Result<(), Error> {
    let mut recording = recording()?;
    // Before the collector makes files in the new folder.
    if let Some(other) = events::current_trace_dir() {
        return Err(events::StartError::AlreadyRecording(other).into());
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make the trace folder {}: {e}", folder.display()))?;
    let folder = std::path::absolute(folder)?;
    let collector = Collector::start(&folder, CollectorOptions::default())?;
    let session = events::start(&folder, Options::default())?;
    *recording = Some(Recording { pid: std::process::id(), session, collector: Some(collector) });
    stop_at_exit();
    Ok(())
}

fn stop_at_exit() {
    extern "C" fn at_exit() {
        errors::status(|| stop().map(|_| ()));
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function. Where it cannot be registered, the events stay in the rings' files,
        // which readers read as well.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

/// Starts recording into the folder that the environment variable `STEPSCOPE_TRACE` names (`stepscope record` sets it),
/// until the process exits. The process that set the variable collects the events. Returns 1, or 0 where the variable is
/// not set, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_start_from_env() -> c_int {
    errors::value(errors::STEPSCOPE_ERROR, || Ok(c_int::from(events::start_from_env()?)))
}

/// Goes on recording in a forked child, into the folder of its parent, which must go on collecting: call it first in the
/// child. Slices that were open at the fork are the parent's. Returns 1, or 0 where the parent does not record, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_start_after_fork() -> c_int {
    errors::value(errors::STEPSCOPE_ERROR, || {
        let mut recording = recording()?;
        let Some(session) = events::start_after_fork()? else { return Ok(0) };
        *recording = Some(Recording { pid: std::process::id(), session, collector: None });
        stop_at_exit();
        Ok(1)
    })
}

/// Stops what `stepscope_start` began and completes the trace. `dropped`, which may be null, gets the number of events
/// that were dropped because a ring was full. Does nothing where nothing is to be stopped. Other threads may go on
/// emitting: their events are not recorded.
///
/// # Safety
/// `dropped` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_stop(dropped: *mut u64) -> c_int {
    errors::status(|| {
        let n_dropped = stop()?;
        if !dropped.is_null() {
            // SAFETY: as the caller promises.
            unsafe { dropped.write(n_dropped) };
        }
        Ok(())
    })
}

fn stop() -> Result<u64, Error> {
    // The lock is held until the end: a recording that starts meanwhile may be into the same folder.
    let mut recording = recording()?;
    let Some(Recording { session, collector, .. }) = recording.take() else { return Ok(0) };
    drop(session);
    let report = collector.map(Collector::stop).unwrap_or_default();
    match report.write_errors {
        0 => Ok(report.dropped),
        n => {
            Err(format!("{n} writes to the trace failed; the events of the last one are still in the rings' files")
                .into())
        }
    }
}

/// Whether events are recorded now.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_is_on() -> bool {
    events::is_on()
}

/// Names the calling thread in the trace, from its next recording on; call it before the thread's first event.
///
/// # Safety
/// `name` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_name_thread(name: *const c_char) -> c_int {
    errors::status(|| {
        // SAFETY: as the caller promises.
        events::prepare_thread(unsafe { errors::text(name, "name") }?);
        Ok(())
    })
}
