//! `slice`, `__enter__` and `__exit__` without PyO3's conversion of arguments, which costs more than a slice itself: with
//! Python's stable ABI, PyO3 makes a tuple for each call.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::slices::{self, Slice};

const SLICE_DOC: &CStr = c"slice($module, name, /, category=None, **args)
--

A slice that a `with` statement begins and ends, on one thread: `with slice(\"load\", batch=3):`.";

/// Python holds on to the definitions as long as the process lives.
fn definition(name: &'static CStr, method: PyMethodDefPointer, flags: i32, doc: &'static CStr) -> *mut PyMethodDef {
    Box::leak(Box::new(PyMethodDef { ml_name: name.as_ptr(), ml_meth: method, ml_flags: flags, ml_doc: doc.as_ptr() }))
}

/// Adds `slice` to the module, and makes `Slice` a context manager.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let function = definition(
        c"slice",
        PyMethodDefPointer { PyCFunctionFastWithKeywords: slice },
        ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        SLICE_DOC,
    );
    // SAFETY: the definition lives for ever; the function may be called with any arguments.
    let function = unsafe {
        let name = module.name()?;
        Bound::from_owned_ptr_or_err(py, ffi::PyCFunction_NewEx(function, std::ptr::null_mut(), name.as_ptr()))
    }?;
    module.add("slice", function)?;
    let class = py.get_type::<Slice>();
    let enter =
        definition(c"__enter__", PyMethodDefPointer { PyCFunction: enter }, ffi::METH_NOARGS, c"Begins the slice.");
    let exit =
        definition(c"__exit__", PyMethodDefPointer { PyCFunctionFast: exit }, ffi::METH_FASTCALL, c"Ends the slice.");
    for (name, method) in [("__enter__", enter), ("__exit__", exit)] {
        // SAFETY: a method descriptor calls its function only with an instance of the class.
        let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), method)) }?;
        class.setattr(name, method)?;
    }
    Ok(())
}

/// Gives a result, or an exception, to Python. A panic is an exception, too.
fn reply(py: Python<'_>, call: impl FnOnce() -> PyResult<*mut PyObject>) -> *mut PyObject {
    let result = catch_unwind(AssertUnwindSafe(call));
    let result = result.unwrap_or_else(|_| Err(PyRuntimeError::new_err("a fault of stepscope: please report it")));
    result.unwrap_or_else(|error| {
        error.restore(py);
        std::ptr::null_mut()
    })
}

/// `slice(name, category=None, /, **args)`.
unsafe extern "C" fn slice(
    _module: *mut PyObject,
    args: *const *mut PyObject,
    n_args: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls with the interpreter lock held.
    let py = unsafe { Python::assume_attached() };
    reply(py, || {
        let n_args = n_args as usize;
        // SAFETY: Python gives `n_args` objects, and after them one for each of `names`.
        let borrowed = |i: usize| unsafe { Borrowed::from_ptr(py, *args.add(i)) };
        if n_args == 1 && names.is_null() {
            // All that most slices need.
            let name = borrowed(0);
            return Ok(slices::slice(&*name.cast::<PyString>()?, None, None)?.into_ptr());
        }
        if n_args == 0 || n_args > 2 {
            return Err(PyTypeError::new_err(format!("slice() takes a name and a category, not {n_args} values")));
        }
        let name = borrowed(0);
        let mut category = (n_args == 2).then(|| borrowed(1).to_owned());
        let named = PyDict::new(py);
        // SAFETY: a tuple of strings, or null.
        let names = unsafe { Bound::from_borrowed_ptr_or_opt(py, names) };
        for (i, key) in names.iter().flat_map(|names| names.cast::<PyTuple>().into_iter().flatten()).enumerate() {
            let value = borrowed(n_args + i);
            if key.cast::<PyString>()?.to_cow()? != "category" {
                named.set_item(key, value)?;
            } else if category.replace(value.to_owned()).is_some() {
                return Err(PyTypeError::new_err("slice() takes its category once"));
            }
        }
        let category = category.filter(|category| !category.is_none());
        let category = category.as_ref().map(|category| category.cast::<PyString>()).transpose()?;
        Ok(slices::slice(&*name.cast::<PyString>()?, category, Some(&named))?.into_ptr())
    })
}

unsafe extern "C" fn enter(slice: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls with the interpreter lock held, and with an instance of the class.
    let (py, slice) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slice))
    };
    reply(py, || {
        slice.cast::<Slice>()?.get().open()?;
        Ok(slice.to_owned().into_ptr())
    })
}

unsafe extern "C" fn exit(slice: *mut PyObject, _: *mut *mut PyObject, _: ffi::Py_ssize_t) -> *mut PyObject {
    // SAFETY: as above.
    let (py, slice) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slice))
    };
    reply(py, || {
        slice.cast::<Slice>()?.get().close()?;
        Ok(py.None().into_ptr())
    })
}
