//! A device played by the processor: the same sources, compiled for the host by the C++ compiler, on memory of the host. All
//! that is NVIDIA's is missing (streams, copies of their own, cuBLASLt); all that is ours runs.

#![allow(dead_code, reason = "each test uses its part")]

mod convolve;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use cuda::backend::{Address, Backend, Event, Failed, Function, Gemm, Grid, Lane};
use cuda::convolution::{Convolution, Pass};
use cuda::driver::{Compiler, Target};
use engine::device::{Device, DeviceOptions};

type Entry = unsafe extern "C" fn(*mut *mut c_void, *const u32, u32);

/// What the device has of a library for convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// None.
    Missing,
    /// One that computes what is described, by a plain loop (`convolve`).
    Plain,
    /// One that fails when it is asked.
    Refuses,
    /// One that fails when it is to begin.
    Breaks,
}

/// Bytes that the library asks for, which are not a whole number of anything.
const WORKSPACE: usize = 1003;

/// A device that the processor plays.
pub struct Emulator {
    library: Library,
    folder: tempfile::TempDir,
    blocks: Mutex<HashMap<usize, Layout>>,
    functions: Mutex<Vec<(libloading::Library, Entry)>>,
    n_events: AtomicUsize,
}

fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// A device of it, or `None`, aloud, where there is no C++ compiler.
pub fn device(memory: usize) -> Option<Arc<Device>> {
    device_with(memory, Library::Missing)
}

/// One with a library for convolutions.
pub fn device_with(memory: usize, library: Library) -> Option<Arc<Device>> {
    let has_compiler = Command::new(compiler()).arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_compiler {
        test_support::left_out(format_args!("no C++ compiler ({}) to run kernels on the host", compiler()));
        return None;
    }
    let emulator = Emulator {
        library,
        folder: tempfile::tempdir().unwrap(),
        blocks: Mutex::default(),
        functions: Mutex::default(),
        n_events: AtomicUsize::new(0),
    };
    let options = DeviceOptions { memory_limit: memory };
    Some(Arc::new(cuda::device::device(0, Arc::new(emulator), &options).unwrap()))
}

fn failed(call: &'static str, reason: impl std::fmt::Display) -> Failed {
    Failed { call, reason: reason.to_string() }
}

// SAFETY: addresses are pointers to memory of the host; everything is done when a call returns.
unsafe impl Backend for Emulator {
    fn name(&self) -> String {
        "emulated".to_owned()
    }

    fn marks_unused(&self) -> bool {
        true
    }

    fn memory(&self) -> Result<(usize, usize), Failed> {
        Ok((8 << 30, 8 << 30))
    }

    fn alloc(&self, n_bytes: usize) -> Result<Address, Failed> {
        let layout = Layout::from_size_align(n_bytes, 256).map_err(|e| failed("alloc", e))?;
        // SAFETY: the allocator asks for at least one piece.
        let at = unsafe { alloc_zeroed(layout) } as usize;
        self.blocks.lock().unwrap().insert(at, layout);
        Ok(at as Address)
    }

    fn free(&self, address: Address) {
        let layout = self.blocks.lock().unwrap().remove(&(address as usize)).expect("a block that was given");
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(address as *mut u8, layout) };
    }

    fn alloc_pinned(&self, n_bytes: usize) -> Result<*mut u8, Failed> {
        self.alloc(n_bytes).map(|at| at as *mut u8)
    }

    unsafe fn free_pinned(&self, at: *mut u8) {
        self.free(at as Address);
    }

    unsafe fn copy_to_device(&self, _: Lane, to: Address, from: *const u8, n_bytes: usize) -> Result<(), Failed> {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy(from, to as *mut u8, n_bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(&self, _: Lane, to: *mut u8, from: Address, n_bytes: usize) -> Result<(), Failed> {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy(from as *const u8, to, n_bytes) };
        Ok(())
    }

    fn copy(&self, lane: Lane, to: Address, from: Address, n_bytes: usize) -> Result<(), Failed> {
        // SAFETY: all memory is the host's.
        unsafe { self.copy_to_device(lane, to, from as *const u8, n_bytes) }
    }

    fn copy_from_peer(&self, to: Address, _: usize, from: Address, n_bytes: usize) -> Result<(), Failed> {
        self.copy(Lane::Peer, to, from, n_bytes)
    }

    fn context(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn fill_words(&self, _: Lane, to: Address, word: u32, n: usize) -> Result<(), Failed> {
        // SAFETY: the caller's memory.
        unsafe { std::slice::from_raw_parts_mut(to as *mut u32, n) }.fill(word);
        Ok(())
    }

    fn fill_bytes(&self, _: Lane, to: Address, byte: u8, n: usize) -> Result<(), Failed> {
        // SAFETY: the caller's memory.
        unsafe { std::slice::from_raw_parts_mut(to as *mut u8, n) }.fill(byte);
        Ok(())
    }

    fn event(&self) -> Result<Event, Failed> {
        Ok(Event(self.n_events.fetch_add(1, Ordering::Relaxed)))
    }

    fn record(&self, _: Event, _: Lane) -> Result<(), Failed> {
        Ok(())
    }

    fn wait(&self, _: Lane, _: Event) -> Result<(), Failed> {
        Ok(())
    }

    fn is_past(&self, _: Event) -> Result<bool, Failed> {
        Ok(true)
    }

    fn synchronise(&self, _: Lane) -> Result<(), Failed> {
        Ok(())
    }

    fn compile(&self, source: &str, macros: &[String], names: &[&str]) -> Result<Vec<Function>, Failed> {
        // What is made as it comes is compiled for a GPU too, where NVRTC is found.
        static NVRTC: LazyLock<Option<Compiler>> = LazyLock::new(|| Compiler::load().ok());
        if let Some(nvrtc) = &*NVRTC {
            nvrtc.compile(source, macros, Target::Virtual(90))?;
        }
        let mut text = include_str!("host.cpp").to_owned();
        for name in macros {
            let (name, value) = name.split_once('=').unwrap();
            text.push_str(&format!("#define {name} {value}\n"));
        }
        text.push_str(source);
        let waits = source.contains("__syncthreads");
        for name in names {
            text.push_str(&format!(
                "static void with_{name}(void **a) {{ call(&{name}, a); }}\n\
                 extern \"C\" __attribute__((visibility(\"default\"))) void run_{name}(void **a, const unsigned *grid, unsigned threads) {{\n\
                 run(with_{name}, a, grid, threads, {waits}); }}\n"
            ));
        }
        let mut functions = self.functions.lock().unwrap();
        let out = self.folder.path().join(format!("unit{}.so", functions.len()));
        let mut child = Command::new(compiler())
            .args(["-x", "c++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared"])
            // Else a `__shared__` array of a template is one for all libraries of the process: two devices would write into it at once.
            .args(["-fvisibility=hidden", "-o"])
            .arg(&out)
            .arg("-")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed("c++", e))?;
        child.stdin.take().unwrap().write_all(text.as_bytes()).map_err(|e| failed("c++", e))?;
        let done = child.wait_with_output().map_err(|e| failed("c++", e))?;
        if !done.status.success() {
            return Err(failed("c++", String::from_utf8_lossy(&done.stderr)));
        }
        let mut made = Vec::new();
        for name in names {
            // SAFETY: the library is ours.
            let library = unsafe { libloading::Library::new(&out) }.map_err(|e| failed("dlopen", e))?;
            let symbol = CString::new(format!("run_{name}")).unwrap();
            // SAFETY: the text above declares it so.
            let entry = *unsafe { library.get::<Entry>(symbol.as_bytes_with_nul()) }.map_err(|e| failed("dlsym", e))?;
            made.push(Function(functions.len()));
            functions.push((library, entry));
        }
        Ok(made)
    }

    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &mut [*mut c_void]) -> Result<(), Failed> {
        // The lock also keeps launches apart: indices are variables of the whole unit.
        let functions = self.functions.lock().unwrap();
        // SAFETY: as the caller promises.
        unsafe { (functions[function.0].1)(arguments.as_mut_ptr(), grid.blocks.as_ptr(), grid.threads) };
        Ok(())
    }

    fn gemm(&self, _: &Gemm, _: usize, _: Address, _: Address, _: Address) -> Result<bool, Failed> {
        Ok(false)
    }

    fn convolution_workspace(&self, convolution: &Convolution, _: Pass) -> Result<Option<usize>, Failed> {
        assert!(convolution.lengths().is_some(), "{convolution:?}");
        match self.library {
            Library::Missing => Ok(None),
            Library::Refuses => Err(failed("cudnnCreate", "CUDNN_STATUS_NOT_INITIALIZED (1001)")),
            Library::Plain | Library::Breaks => Ok(Some(WORKSPACE)),
        }
    }

    fn convolve(
        &self,
        c: &Convolution,
        pass: Pass,
        at: [Address; 3],
        workspace: (Address, usize),
    ) -> Result<(), Failed> {
        assert!(workspace.0 != 0 && workspace.1 == WORKSPACE);
        if self.library == Library::Breaks {
            return Err(failed("cudnnConvolutionForward", "CUDNN_STATUS_EXECUTION_FAILED (5000)"));
        }
        // SAFETY: the caller's memory, as long as the description says.
        unsafe { convolve::convolve(c, pass, at) };
        Ok(())
    }
}
