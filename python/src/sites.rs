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
    let (name_at, category_at) = (name.as_ptr(), category.map(Bound::as_ptr));
    let idx = (name_at as usize >> 4 ^ category_at.map_or(0, |at| at as usize >> 5)) % N_ENTRIES;
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(entry)) = entries.get(idx)
        && entry.name.as_ptr() == name_at
        && entry.category.as_ref().map(Py::as_ptr) == category_at
    {
        return Ok(entry.id);
    }
    let category_text = category.map(PyStringMethods::to_cow).transpose()?;
    let id = site(category_text.as_deref().unwrap_or(CATEGORY), &name.to_cow()?);
    if entries.is_empty() {
        entries.resize_with(N_ENTRIES, || None);
    }
    entries[idx] = Some(Entry { name: name.clone().unbind(), category: category.map(|c| c.clone().unbind()), id });
    Ok(id)
}
