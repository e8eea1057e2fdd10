//! Slices, marks, counters and flows of the calling thread.

use std::cell::RefCell;

use events::{SiteId, SliceGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::sites;

/// A slice of the thread that made it: a context manager, or what [`begin`] gives.
#[pyclass(frozen, freelist = 64, module = "stepscope._native")]
pub struct Slice {
    site: SiteId,
    /// A JSON object's text; empty for none.
    args: Box<str>,
    open: OfThread,
}

/// The open slices of one object: more than one if it was entered again before it was left.
struct OfThread {
    /// Identifies the thread.
    thread: usize,
    guards: RefCell<(Option<SliceGuard>, Vec<SliceGuard>)>,
}

// SAFETY: only `OfThread::guards` and `drop` access the cell, on the thread that made it alone.
unsafe impl Send for OfThread {}
// SAFETY: as above.
unsafe impl Sync for OfThread {}

impl OfThread {
    fn new() -> OfThread {
        OfThread { thread: this_thread(), guards: RefCell::default() }
    }

    fn guards(&self) -> PyResult<&RefCell<(Option<SliceGuard>, Vec<SliceGuard>)>> {
        match self.thread == this_thread() {
            true => Ok(&self.guards),
            false => Err(PyRuntimeError::new_err("a slice begins and ends on the thread that made it")),
        }
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        if self.thread != this_thread() {
            // They would end in this thread's ring.
            std::mem::forget(self.guards.take());
        }
    }
}

/// The address of a variable of the thread.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl Slice {
    fn new(
        name: &Bound<'_, PyString>,
        category: Option<&Bound<'_, PyString>>,
        args: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Slice> {
        // Though nothing is recorded now: it may be entered when that has changed.
        let site = sites::find(name, category)?;
        let args = args.filter(|args| events::is_on() && !args.is_empty()).map(json).transpose()?;
        Ok(Slice { site, args: args.unwrap_or_default().into_boxed_str(), open: OfThread::new() })
    }

    fn open(&self) -> PyResult<()> {
        let (newest, others) = &mut *self.open.guards()?.borrow_mut();
        others.extend(newest.replace(events::slice(self.site)));
        Ok(())
    }

    fn close(&self) -> PyResult<()> {
        let (newest, others) = &mut *self.open.guards()?.borrow_mut();
        match std::mem::replace(newest, others.pop()) {
            Some(guard) if !self.args.is_empty() => events::emit_close_with_args(guard, events::now(), &self.args),
            guard => drop(guard),
        }
        Ok(())
    }
}

#[pymethods]
impl Slice {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().open()?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close()
    }

    /// Ends what [`begin`] began. Ending again does nothing.
    fn end(&self) -> PyResult<()> {
        self.close()
    }
}

/// A slice that a `with` statement begins and ends: `with slice("load"):`.
#[pyfunction]
#[pyo3(signature = (name, /, category = None, **args))]
pub fn slice(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<Slice> {
    Slice::new(name, category, args)
}

/// Begins a slice; its `end` ends it, in the same thread.
#[pyfunction]
#[pyo3(signature = (name, /, category = None, **args))]
pub fn begin(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<Slice> {
    let slice = Slice::new(name, category, args)?;
    slice.open()?;
    Ok(slice)
}

/// An event without duration.
#[pyfunction]
#[pyo3(signature = (name, /, category = None, **args))]
pub fn mark(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    if events::is_on() {
        let site = sites::find(name, category)?;
        match args.filter(|args| !args.is_empty()) {
            Some(args) => events::log(site, &json(args)?),
            None => events::instant(site, 0),
        }
    }
    Ok(())
}

/// A counter's value, which holds from now on.
#[pyfunction]
#[pyo3(signature = (name, value, /, category = None))]
pub fn counter(name: &Bound<'_, PyString>, value: f64, category: Option<&Bound<'_, PyString>>) -> PyResult<()> {
    if events::is_on() {
        events::counter(sites::find(name, category)?, value);
    }
    Ok(())
}

/// An arrow leaves the open slice; `flow_in` with the same id is its head.
#[pyfunction]
#[pyo3(signature = (name, id, /))]
pub fn flow_out(name: &Bound<'_, PyString>, id: u32) -> PyResult<()> {
    if events::is_on() {
        events::flow_out(sites::find(name, None)?, id);
    }
    Ok(())
}

/// An arrow ends in the open slice.
#[pyfunction]
#[pyo3(signature = (name, id, /))]
pub fn flow_in(name: &Bound<'_, PyString>, id: u32) -> PyResult<()> {
    if events::is_on() {
        events::flow_in(sites::find(name, None)?, id);
    }
    Ok(())
}

/// An id for a flow, from 1 to 2^32 - 1.
#[pyfunction]
pub fn next_flow_id() -> u32 {
    events::next_flow_id()
}

/// Arguments as a JSON object.
fn json(args: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::from("{");
    for (name, value) in args {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&quoted(&name)?);
        text.push(':');
        text.push_str(&json_of(&value)?);
    }
    text.push('}');
    Ok(text)
}

fn quoted(text: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(serde_json::Value::String(text.str()?.to_string_lossy().into_owned()).to_string())
}

/// A value as JSON: by Python's `json` where it is neither number nor text, and as its `str` where that does not know it.
fn json_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_exact_instance_of::<PyString>() {
        return quoted(value);
    }
    if value.is_none() {
        return Ok("null".to_owned());
    }
    if let Ok(flag) = value.cast_exact::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        // JSON has no infinity.
        return if number.value().is_finite() { Ok(value.str()?.to_string()) } else { quoted(value) };
    }
    // A value that cannot be shown must not stop the program that is recorded.
    dumped(value).or_else(|_| quoted(value)).or_else(|_| quoted(value.get_type().as_any()))
}

/// What Python's `json` makes of a value.
fn dumped(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("default", py.get_type::<PyString>())?;
    options.set_item("allow_nan", false)?;
    py.import("json")?.call_method("dumps", (value,), Some(&options))?.extract()
}
