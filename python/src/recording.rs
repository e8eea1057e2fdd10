//! A process that records itself: into a folder of its own choice, or into that of the process that started it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use events::{Options, Session, SliceGuard, StepMark};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use trace_record::{Collector, CollectorOptions};

use crate::sites;

/// A recording in progress, with the thread that collects the events of this process and its children.
#[pyclass(frozen, module = "stepscope._native")]
pub struct Recording {
    folder: PathBuf,
    pid: u32,
    parts: Mutex<Option<(Session, Collector)>>,
}

#[pymethods]
impl Recording {
    /// Starts recording into `folder`, which is made if it is missing.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "as Python's values come")]
    fn new(py: Python<'_>, folder: PathBuf) -> PyResult<Recording> {
        py.detach(|| {
            std::fs::create_dir_all(&folder).map_err(|e| PyOSError::new_err(format!("{}: {e}", folder.display())))?;
            let folder = std::path::absolute(&folder)?;
            let collector = Collector::start(&folder, CollectorOptions::default()).map_err(os_error)?;
            let session = events::start(&folder, Options::default()).map_err(os_error)?;
            sites::N_RECORDINGS.fetch_add(1, Ordering::Relaxed);
            Ok(Recording { folder, pid: std::process::id(), parts: Mutex::new(Some((session, collector))) })
        })
    }

    #[getter]
    fn folder(&self) -> OsString {
        self.folder.clone().into_os_string()
    }

    /// Stops and writes the trace; returns how many events were dropped. Stopping again, or in a forked child, does
    /// nothing.
    fn stop(&self, py: Python<'_>) -> u64 {
        let Some((session, collector)) = self.take() else { return 0 };
        py.detach(|| {
            drop(session);
            let report = collector.stop();
            // Where a child still writes, the trace stays as it was collected, and is as readable.
            let _ = trace_store::sealing::seal(&self.folder);
            report.dropped
        })
    }
}

impl Recording {
    /// What is to be stopped, once. Nothing in a forked child: its threads are the parent's, which stops it.
    fn take(&self) -> Option<(Session, Collector)> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.pid == std::process::id() {
            return parts;
        }
        std::mem::forget(parts);
        None
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// The session of a process that was started by one that records.
static JOINED: Mutex<Option<Session>> = Mutex::new(None);

/// Joins the recording of the process that started this one, or of `stepscope record`; whether there is one.
#[pyfunction]
pub fn join_recording() -> PyResult<bool> {
    events::start_from_env().map_err(os_error)
}

/// Goes on recording in a forked child.
#[pyfunction]
pub fn after_fork_in_child() -> PyResult<()> {
    let mut joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::forget(joined.take());
    *joined = events::start_after_fork().map_err(os_error)?;
    sites::N_RECORDINGS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Whether events are recorded now.
#[pyfunction]
pub fn is_recording() -> bool {
    events::is_on()
}

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

/// Begins a training step of this thread; `step` is its number on the axis of summaries, that of the step in this process,
/// from 0, if it is `None`.
#[pyfunction]
#[pyo3(signature = (step = None, name = "train"))]
pub fn begin_step(py: Python<'_>, step: Option<i64>, name: &str) -> PyResult<()> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    end_step();
    sites::prepare_thread(py)?;
    let mark = events::begin_step();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let slice = events::slice(events::site("step", name));
    STEP.set(Some(Step { mark, slice, number, summary_step: step.unwrap_or(i64::from(number) - 1) }));
    Ok(())
}

/// Ends the step that [`begin_step`] began, if there is one.
#[pyfunction]
pub fn end_step() {
    if let Some(Step { mark, slice, number, summary_step }) = STEP.take() {
        events::emit_close(slice, events::now(), number, summary_step.cast_unsigned());
        events::end_step(mark);
    }
}

fn os_error(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}
