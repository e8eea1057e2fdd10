//! The ids of slices' names, and the names of threads. Python passes a string each time: its address finds the id that it had last time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use events::{SiteId, site};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// How many names are found by their address: a power of two. Others are looked up by their text.
const N_ENTRIES: usize = 1 << 12;

/// The category of slices that state none.
pub const CATEGORY: &str = "python";

/// A name that was looked up. Holding it keeps its address from being another's.
struct Entry {
    name: Py<PyString>,
    category: Option<Py<PyString>>,
    id: SiteId,
    /// What [`store_object`] stored.
    object: Option<Py<PyAny>>,
}

/// How many recordings this process began, counted from 1.
pub static N_RECORDINGS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// How many recordings had begun when the thread was prepared for the newest; 0: never.
    static PREPARED: Cell<u32> = const { Cell::new(0) };
}

/// Locked only while the interpreter lock (GIL) is held, so never by another thread at a fork.
static ENTRIES: Mutex<Vec<Option<Entry>>> = Mutex::new(Vec::new());

/// Gives the thread the name that it has in Python, once for each recording: before its first event.
#[inline]
pub fn prepare_thread(py: Python<'_>) -> PyResult<()> {
    match PREPARED.get() == N_RECORDINGS.load(Ordering::Relaxed) {
        true => Ok(()),
        false => name_thread(py),
    }
}

#[cold]
fn name_thread(py: Python<'_>) -> PyResult<()> {
    PREPARED.set(N_RECORDINGS.load(Ordering::Relaxed));
    let thread = py.import("threading")?.call_method0("current_thread")?;
    let name: String = thread.getattr("name")?.extract()?;
    events::prepare_thread(&name);
    Ok(())
}

/// The id of a category and a name. Without a category it is [`CATEGORY`].
pub fn find(name: &Bound<'_, PyString>, category: Option<&Bound<'_, PyString>>) -> PyResult<SiteId> {
    prepare_thread(name.py())?;
    with_entry(name, category, |entry| entry.id)
}

/// The object that was [stored](store_object) for a category and a name, if nobody else holds it.
pub fn unused_object<'py>(
    name: &Bound<'py, PyString>,
    category: Option<&Bound<'py, PyString>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = name.py();
    prepare_thread(py)?;
    with_entry(name, category, |entry| {
        let object = entry.object.as_ref()?.bind(py);
        // SAFETY: the object is alive, and the thread has the interpreter lock.
        (unsafe { pyo3::ffi::Py_REFCNT(object.as_ptr()) } == 1).then(|| object.clone())
    })
}

/// Stores an object for the next [`unused_object`].
pub fn store_object(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    object: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let replaced = with_entry(name, category, |entry| entry.object.replace(object.clone().unbind()))?;
    drop(replaced);
    Ok(())
}

/// Gives the entry of a name to `read`; makes it where there is none.
#[inline]
fn with_entry<T>(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    read: impl FnOnce(&mut Entry) -> T,
) -> PyResult<T> {
    let (name_at, category_at) = (name.as_ptr(), category.map(Bound::as_ptr));
    let idx = (name_at as usize >> 4 ^ category_at.map_or(0, |at| at as usize >> 5)) % N_ENTRIES;
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(entry)) = entries.get_mut(idx)
        && entry.name.as_ptr() == name_at
        && entry.category.as_ref().map(Py::as_ptr) == category_at
    {
        return Ok(read(entry));
    }
    let category_text = category.map(PyStringMethods::to_cow).transpose()?;
    let id = site(category_text.as_deref().unwrap_or(CATEGORY), &name.to_cow()?);
    if entries.is_empty() {
        entries.resize_with(N_ENTRIES, || None);
    }
    let category = category.map(|category| category.clone().unbind());
    let mut entry = Entry { name: name.clone().unbind(), category, id, object: None };
    let value = read(&mut entry);
    let replaced = entries[idx].replace(entry);
    drop(entries);
    // Without the lock: what it held may run code of Python when it goes.
    drop(replaced);
    Ok(value)
}
