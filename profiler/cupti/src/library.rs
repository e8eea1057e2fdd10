//! The functions of CUPTI that are used.
//!
//! [`Library`] is the interface, which tests implement with a fake; [`CuptiLibrary`] is NVIDIA's library, found at run
//! time.
//! Functions are looked up one by one: where a version lacks one, the error names it.

use crate::layout::Kind;
use crate::record::Text;
use std::ffi::{CStr, c_char, c_void};

/// The function by which CUPTI requests a buffer.
pub type RequestBuffer = extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);
/// The function by which CUPTI returns a buffer.
pub type CompleteBuffer = extern "C" fn(context: *mut c_void, stream: u32, buffer: *mut u8, size: usize, valid: usize);
/// The function by which CUPTI reads the time, in ticks.
pub type Clock = extern "C" fn() -> u64;

/// The error of one of the library's functions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function}: {text}")]
pub struct CuptiError {
    /// The function's name.
    pub function: &'static str,
    /// The library's description of the error, or that it has no such function.
    pub text: String,
}

/// The functions of CUPTI that a session calls. Their errors are those that the library reports.
pub trait Library: Send + Sync {
    /// Returns the version as `cuptiGetVersion` reports it.
    fn version(&self) -> Result<u32, CuptiError>;
    /// Registers the functions by which CUPTI requests and returns buffers.
    fn register(&self, requested: RequestBuffer, completed: CompleteBuffer) -> Result<(), CuptiError>;
    /// Makes CUPTI take all times from this clock.
    fn use_clock(&self, clock: Clock) -> Result<(), CuptiError>;
    /// Makes CUPTI report threads by the system's ids.
    fn use_system_thread_ids(&self) -> Result<(), CuptiError>;
    /// Switches the recording of a kind on or off.
    fn switch(&self, kind: Kind, on: bool) -> Result<(), CuptiError>;
    /// Makes CUPTI return the buffers whose records are all complete; every buffer if `is_forced`.
    fn flush(&self, is_forced: bool) -> Result<(), CuptiError>;
    /// The offset of the record after `record` in a buffer (the first for `None`); `None` at the end.
    fn next(&self, buffer: &[u8], record: Option<usize>) -> Option<usize>;
    /// The number of records of a context and stream that CUPTI dropped since the last call.
    fn dropped(&self, context: usize, stream: u32) -> u64;
    /// The name of a function of the runtime or the driver by its callback id.
    fn call_name(&self, is_runtime: bool, id: u32) -> Option<String>;
    /// The text at an address that a record holds.
    fn text(&self, text: Text) -> Option<String>;
    /// Attributes this thread's calls to `id`, until [`Library::pop`].
    fn push(&self, id: u64) -> Result<(), CuptiError>;
    /// Ends the last [`Library::push`] of this thread.
    fn pop(&self) -> Result<(), CuptiError>;
}

/// NVIDIA's library, loaded into this process.
pub struct CuptiLibrary {
    library: &'static libloading::Library,
}

/// `CUPTI_SUCCESS`.
const OK: u32 = 0;
/// `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0`, the kind of our correlation ids.
pub(crate) const CUSTOM_CORRELATION: u32 = 3;

impl CuptiLibrary {
    /// Finds the library.
    ///
    /// # Errors
    /// No library is found.
    pub fn find() -> Result<CuptiLibrary, CuptiError> {
        let missing = || CuptiError { function: "dlopen", text: "no libcupti is found".to_owned() };
        Ok(CuptiLibrary { library: crate::find::library().ok_or_else(missing)? })
    }

    /// Attaches CUPTI to NVTX's calls; returns CUPTI's result for NVTX: 1 where it records them.
    ///
    /// # Errors
    /// This version has no such function.
    ///
    /// # Safety
    /// `get_export_table` is the function that NVTX passes to an injected library.
    pub unsafe fn attach_nvtx(&self, get_export_table: *const c_void) -> Result<i32, CuptiError> {
        // SAFETY: int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t), as NVTX calls it.
        let attach =
            unsafe { self.function::<unsafe extern "C" fn(*const c_void) -> i32>("InitializeInjectionNvtx2") }?;
        // SAFETY: as the caller promises.
        Ok(unsafe { attach(get_export_table) })
    }

    /// Looks a function up by its name.
    ///
    /// # Safety
    /// `F` is the function's type.
    unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, CuptiError> {
        // SAFETY: as the caller promises.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        found
            .map(|f| *f)
            .map_err(|_| CuptiError { function: name, text: "this version has no such function".to_owned() })
    }

    fn check(&self, function: &'static str, result: u32) -> Result<(), CuptiError> {
        if result == OK {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: CUptiResult cuptiGetResultString(CUptiResult, const char **).
        let describe =
            unsafe { self.function::<unsafe extern "C" fn(u32, *mut *const c_char) -> u32>("cuptiGetResultString") };
        // SAFETY: `text` is valid for a pointer; the function writes one to a static string, or nothing.
        let is_found = describe.is_ok_and(|f| unsafe { f(result, &raw mut text) } == OK) && !text.is_null();
        // SAFETY: a static string of the library.
        let description = is_found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        Err(CuptiError { function, text: description.unwrap_or_else(|| format!("error {result}")) })
    }
}

/// Calls a function of the library that returns a result code.
macro_rules! call {
    ($self:ident, $name:literal, ($($type:ty),*), ($($arg:expr),*)) => {{
        // SAFETY: the types are those of NVIDIA's header (enums are 32 bits there), and the arguments live as long as
        // the call.
        let result = unsafe {
            $self.function::<unsafe extern "C" fn($($type),*) -> u32>($name).map(|f| f($($arg),*))
        };
        result.and_then(|result| $self.check($name, result))
    }};
}

impl Library for CuptiLibrary {
    fn version(&self) -> Result<u32, CuptiError> {
        let mut version = 0u32;
        call!(self, "cuptiGetVersion", (*mut u32), (&raw mut version)).map(|()| version)
    }

    fn register(&self, requested: RequestBuffer, completed: CompleteBuffer) -> Result<(), CuptiError> {
        call!(self, "cuptiActivityRegisterCallbacks", (RequestBuffer, CompleteBuffer), (requested, completed))
    }

    fn use_clock(&self, clock: Clock) -> Result<(), CuptiError> {
        call!(self, "cuptiActivityRegisterTimestampCallback", (Clock), (clock))
    }

    fn use_system_thread_ids(&self) -> Result<(), CuptiError> {
        // CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM.
        call!(self, "cuptiSetThreadIdType", (u32), (1))
    }

    fn switch(&self, kind: Kind, on: bool) -> Result<(), CuptiError> {
        if on {
            call!(self, "cuptiActivityEnable", (u32), (kind as u32))
        } else {
            call!(self, "cuptiActivityDisable", (u32), (kind as u32))
        }
    }

    fn flush(&self, is_forced: bool) -> Result<(), CuptiError> {
        // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED is 1.
        call!(self, "cuptiActivityFlushAll", (u32), (u32::from(is_forced)))
    }

    fn next(&self, buffer: &[u8], record: Option<usize>) -> Option<usize> {
        let begin = buffer.as_ptr();
        let mut next_record: *const u8 = match record {
            Some(offset) => buffer.get(offset..).map(<[u8]>::as_ptr)?,
            None => std::ptr::null(),
        };
        let name = "cuptiActivityGetNextRecord";
        // SAFETY: CUptiResult cuptiActivityGetNextRecord(uint8_t *, size_t, CUpti_Activity **): it reads the buffer,
        // which came from CUPTI, and moves the pointer to a record in it.
        let result = unsafe {
            let f = self.function::<unsafe extern "C" fn(*const u8, usize, *mut *const u8) -> u32>(name).ok()?;
            f(begin, buffer.len(), &raw mut next_record)
        };
        let offset = (next_record as usize).checked_sub(begin as usize)?;
        (result == OK && offset < buffer.len() && record.is_none_or(|before| before < offset)).then_some(offset)
    }

    fn dropped(&self, context: usize, stream: u32) -> u64 {
        let mut n = 0usize;
        let context = context as *mut c_void;
        let result = call!(
            self,
            "cuptiActivityGetNumDroppedRecords",
            (*mut c_void, u32, *mut usize),
            (context, stream, &raw mut n)
        );
        result.map_or(0, |()| n as u64)
    }

    fn call_name(&self, is_runtime: bool, id: u32) -> Option<String> {
        let mut name: *const c_char = std::ptr::null();
        // CUPTI_CB_DOMAIN_DRIVER_API and CUPTI_CB_DOMAIN_RUNTIME_API.
        let domain = if is_runtime { 2u32 } else { 1 };
        call!(self, "cuptiGetCallbackName", (u32, u32, *mut *const c_char), (domain, id, &raw mut name)).ok()?;
        // SAFETY: not null, so a static string of the library.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn text(&self, text: Text) -> Option<String> {
        let text = usize::try_from(text.0).ok().filter(|a| *a != 0)? as *const c_char;
        // SAFETY: CUPTI keeps the names that its records point to for as long as the program runs.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    fn push(&self, id: u64) -> Result<(), CuptiError> {
        call!(self, "cuptiActivityPushExternalCorrelationId", (u32, u64), (CUSTOM_CORRELATION, id))
    }

    fn pop(&self) -> Result<(), CuptiError> {
        let mut last = 0u64;
        call!(self, "cuptiActivityPopExternalCorrelationId", (u32, *mut u64), (CUSTOM_CORRELATION, &raw mut last))
    }
}
