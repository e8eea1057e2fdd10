//! Results for C: codes, and the text of the calling thread's last error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call did what it says.
pub const STEPSCOPE_OK: c_int = 0;
/// The call failed; `stepscope_last_error` has the reason.
pub const STEPSCOPE_ERROR: c_int = -1;

/// Why a call failed, in words.
pub(crate) struct Error(String);

impl<T: std::fmt::Display> From<T> for Error {
    fn from(reason: T) -> Self {
        Error(reason.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn store(error: &Error) {
    // A text of C ends at its first zero byte.
    let text = CString::new(error.0.replace('\0', " ")).unwrap_or_default();
    // Fails where the thread is ending: nobody reads it any more.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// What `call` returns; `otherwise`, with the error stored, where it fails or panics.
#[inline]
pub(crate) fn value<T>(otherwise: T, call: impl FnOnce() -> Result<T, Error>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            store(&error);
            otherwise
        }
        Err(_) => {
            store(&"a fault of stepscope: please report it".into());
            otherwise
        }
    }
}

/// As [`value`], for calls that return a code.
#[inline]
pub(crate) fn status(call: impl FnOnce() -> Result<(), Error>) -> c_int {
    value(STEPSCOPE_ERROR, || call().map(|()| STEPSCOPE_OK))
}

/// A text that C passed as argument `what`.
///
/// # Safety
/// `text` is null, or ends with a zero byte and does not change during the call.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(text, what) }?;
    bytes.to_str().map_err(|_| format!("the {what} is not UTF-8: {}", bytes.to_string_lossy()).into())
}

/// As [`text`], in any encoding.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn bytes<'a>(text: *const c_char, what: &str) -> Result<&'a CStr, Error> {
    if text.is_null() {
        return Err(format!("the {what} is a null pointer").into());
    }
    // SAFETY: not null, so it ends with a zero byte, as the caller promises.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Why the last call of this thread that failed did so: UTF-8, never null, empty before the first failure. Valid until
/// the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_last_error() -> *const c_char {
    LAST.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |text| text.as_ptr())).unwrap_or(c"".as_ptr())
}
