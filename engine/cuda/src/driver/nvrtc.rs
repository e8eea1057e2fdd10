//! NVRTC: kernels from their sources, at run time. Needs no device.

use std::ffi::{CString, c_char, c_int};

use super::libraries::{Handle, LibraryError, NvrtcTable};
use crate::backend::Failed;

/// What is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The machine code of a compute capability: `90` for 9.0.
    Machine(u32),
    /// The intermediate code of a compute capability, which a driver translates for newer devices.
    Virtual(u32),
}

/// The library.
pub struct Compiler {
    table: NvrtcTable,
    /// Compute capabilities that it knows, the oldest first.
    known: Vec<u32>,
    version: (c_int, c_int),
}

/// A program, destroyed with this.
struct Program<'a> {
    table: &'a NvrtcTable,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is a program's, destroyed once.
        unsafe { (self.table.nvrtcDestroyProgram)(&raw mut self.handle) };
    }
}

fn check(call: &'static str, result: c_int) -> Result<(), Failed> {
    if result == 0 { Ok(()) } else { Err(Failed { call, reason: format!("nvrtcResult {result}") }) }
}

impl Compiler {
    /// Finds the library.
    ///
    /// # Errors
    /// It is not there, or lacks a function.
    pub fn load() -> Result<Compiler, LibraryError> {
        let table = NvrtcTable::load()?;
        let (mut n, mut version) = (0, (0, 0));
        // SAFETY: both write to the addresses that they are given; a failure leaves zeros.
        unsafe {
            (table.nvrtcVersion)(&raw mut version.0, &raw mut version.1);
            (table.nvrtcGetNumSupportedArchs)(&raw mut n);
        }
        let mut known = vec![0 as c_int; usize::try_from(n).unwrap_or(0)];
        if !known.is_empty() {
            // SAFETY: there is room for as many as it said.
            unsafe { (table.nvrtcGetSupportedArchs)(known.as_mut_ptr()) };
        }
        let mut known: Vec<u32> = known.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
        known.sort_unstable();
        Ok(Compiler { table, known, version })
    }

    /// Its version: 12, 4.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compute capabilities that it compiles for, the oldest first.
    pub fn known(&self) -> &[u32] {
        &self.known
    }

    /// What to compile for, for a device of this compute capability: its machine code, or the newest intermediate code
    /// that is not newer than the device.
    pub fn target(&self, capability: u32) -> Target {
        if self.known.contains(&capability) {
            return Target::Machine(capability);
        }
        let older = self.known.iter().rev().find(|known| **known < capability).copied();
        Target::Virtual(older.unwrap_or(capability))
    }

    /// Compiles a source with macros (`NAME=VALUE`): an image for the driver, ending in a zero.
    ///
    /// # Errors
    /// The compiler's messages.
    pub fn compile(&self, source: &str, macros: &[String], target: Target) -> Result<Vec<u8>, Failed> {
        let bad = |_| Failed { call: "nvrtcCreateProgram", reason: "a zero in the source".to_owned() };
        // Not as options: those also hold in the compiler's own headers, which have names like `T`.
        let defined = macros.iter().map(|name| format!("#define {}\n", name.replacen('=', " ", 1)));
        let source = CString::new(defined.collect::<String>() + source).map_err(bad)?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the source ends in a zero; no name and no headers are allowed.
        let created = unsafe {
            let (no_name, none) = (std::ptr::null(), std::ptr::null());
            (self.table.nvrtcCreateProgram)(&raw mut handle, source.as_ptr(), no_name, 0, none, none)
        };
        check("nvrtcCreateProgram", created)?;
        let program = Program { table: &self.table, handle };
        let architecture = match target {
            Target::Machine(capability) => format!("--gpu-architecture=sm_{capability}"),
            Target::Virtual(capability) => format!("--gpu-architecture=compute_{capability}"),
        };
        let options = [architecture, "--std=c++17".to_owned()];
        let options: Vec<CString> = options.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(bad)?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: as many options as are said, each ending in a zero, alive until it returns.
        let compiled =
            unsafe { (self.table.nvrtcCompileProgram)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
        if compiled != 0 {
            let reason = self.log(&program).unwrap_or_else(|| format!("nvrtcResult {compiled}"));
            return Err(Failed { call: "nvrtcCompileProgram", reason });
        }
        self.image(&program, target)
    }

    fn log(&self, program: &Program<'_>) -> Option<String> {
        let mut n_bytes = 0;
        // SAFETY: writes a number.
        let sized = unsafe { (self.table.nvrtcGetProgramLogSize)(program.handle, &raw mut n_bytes) };
        let mut log = vec![0u8; n_bytes];
        // SAFETY: there is room for as many bytes as it said.
        let status = unsafe { (self.table.nvrtcGetProgramLog)(program.handle, log.as_mut_ptr().cast()) };
        let text = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        (sized == 0 && status == 0).then_some(text)
    }

    fn image(&self, program: &Program<'_>, target: Target) -> Result<Vec<u8>, Failed> {
        let table = &self.table;
        let (call, size, get) = match target {
            Target::Machine(_) => ("nvrtcGetCUBIN", table.nvrtcGetCUBINSize, table.nvrtcGetCUBIN),
            Target::Virtual(_) => ("nvrtcGetPTX", table.nvrtcGetPTXSize, table.nvrtcGetPTX),
        };
        let mut n_bytes = 0usize;
        // SAFETY: writes a number.
        check(call, unsafe { size(program.handle, &raw mut n_bytes) })?;
        let mut image = vec![0u8; n_bytes + 1];
        // SAFETY: there is room for as many bytes as it said.
        check(call, unsafe { get(program.handle, image.as_mut_ptr().cast()) })?;
        Ok(image)
    }
}
