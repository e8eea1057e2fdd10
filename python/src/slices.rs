//! Slices, marks, counters and flows of the calling thread.

use std::cell::{Cell, RefCell};

use events::{SiteId, SliceGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::sites;

/// The bytes for which room is made: a few short arguments.
const ARGS_CAPACITY: usize = 64;

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
    thread: Cell<usize>,
    guards: RefCell<(Option<SliceGuard>, Vec<SliceGuard>)>,
}

// SAFETY: only `OfThread::guards` and `drop` access the guards, on the thread that made it alone; `thread` is set while
// nobody else has the object.
unsafe impl Send for OfThread {}
// SAFETY: as above.
unsafe impl Sync for OfThread {}

impl OfThread {
    fn new() -> OfThread {
        OfThread { thread: Cell::new(this_thread()), guards: RefCell::default() }
    }

    /// Gives an object that nobody holds to this thread. A slice that was left open ends as if the object had gone.
    fn begin_anew(&self) {
        let is_open = self.guards.borrow().0.is_some();
        let old = OfThread { thread: self.thread.clone(), guards: RefCell::default() };
        if is_open {
            old.guards.swap(&self.guards);
        }
        drop(old);
        self.thread.set(this_thread());
    }

    fn guards(&self) -> PyResult<&RefCell<(Option<SliceGuard>, Vec<SliceGuard>)>> {
        match self.thread.get() == this_thread() {
            true => Ok(&self.guards),
            false => Err(PyRuntimeError::new_err("a slice begins and ends on the thread that made it")),
        }
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        if self.thread.get() != this_thread() {
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

    /// Begins it.
    pub fn open(&self) -> PyResult<()> {
        let (newest, others) = &mut *self.open.guards()?.borrow_mut();
        others.extend(newest.replace(events::slice(self.site)));
        Ok(())
    }

    /// Ends what was begun last.
    pub fn close(&self) -> PyResult<()> {
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
    /// Ends what [`begin`] began. Ending again does nothing.
    fn end(&self) -> PyResult<()> {
        self.close()
    }
}

/// A slice that a `with` statement begins and ends. One without arguments is the object that was made for its name before,
/// if nobody holds it any more: to make an object costs more than all else that a slice does.
pub fn slice<'py>(
    name: &Bound<'py, PyString>,
    category: Option<&Bound<'py, PyString>>,
    args: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if args.is_some_and(|args| !args.is_empty()) {
        return Ok(Bound::new(name.py(), Slice::new(name, category, args)?)?.into_any());
    }
    if let Some(unused) = sites::unused_object(name, category)? {
        unused.cast_exact::<Slice>()?.get().open.begin_anew();
        return Ok(unused);
    }
    let made = Bound::new(name.py(), Slice::new(name, category, None)?)?.into_any();
    sites::store_object(name, category, &made)?;
    Ok(made)
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
    let mut text = String::with_capacity(ARGS_CAPACITY);
    text.push('{');
    for (name, value) in args {
        if text.len() > 1 {
            text.push(',');
        }
        push_text(&name, &mut text)?;
        text.push(':');
        push_json(&value, &mut text)?;
    }
    text.push('}');
    Ok(text)
}

/// Appends a value's `str` in quotes.
fn push_text(value: &Bound<'_, PyAny>, out: &mut String) -> PyResult<()> {
    let text = value.str()?;
    match text.to_str() {
        Ok(text) if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') => {
            out.extend(["\"", text, "\""]);
        }
        _ => out.push_str(&serde_json::Value::String(text.to_string_lossy().into_owned()).to_string()),
    }
    Ok(())
}

/// Appends a value as JSON: by Python's `json` where it is neither number nor text, and as its `str` where that does not
/// know it.
fn push_json(value: &Bound<'_, PyAny>, out: &mut String) -> PyResult<()> {
    if value.is_exact_instance_of::<PyString>() {
        return push_text(value, out);
    }
    if value.is_none() {
        out.push_str("null");
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.push_str(if flag.is_true() { "true" } else { "false" });
    } else if value.is_exact_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(number) => out.push_str(&number.to_string()),
            Err(_) => out.push_str(&value.str()?.to_string_lossy()),
        }
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        // JSON has no infinity.
        match number.value().is_finite() {
            true => out.push_str(&value.str()?.to_string_lossy()),
            false => push_text(value, out)?,
        }
    } else {
        // A value that cannot be shown must not stop the program that is recorded.
        let dumped = dumped(value).map(|text| out.push_str(&text));
        dumped.or_else(|_| push_text(value, out)).or_else(|_| push_text(value.get_type().as_any(), out))?;
    }
    Ok(())
}

/// What Python's `json` makes of a value.
fn dumped(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("default", py.get_type::<PyString>())?;
    options.set_item("allow_nan", false)?;
    py.import("json")?.call_method("dumps", (value,), Some(&options))?.extract()
}
