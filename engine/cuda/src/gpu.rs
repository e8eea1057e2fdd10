//! A device: its memory, its streams, its compiled kernels.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use engine::kernels::KernelError;
use engine::tensor::TensorError;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::allocator::{Caching, Source, Stats};
use crate::backend::{Address, Backend, Failed, Function, Gemm, Grid, Lane};
use crate::convolution::{Convolution, Pass};
use crate::events::Events;
use crate::staging::Staging;

/// What kernels of a GPU compute on.
pub struct Gpu {
    name: Box<str>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) memory: Mutex<Caching<Regions>>,
    pub(crate) limit: usize,
    pub(crate) events: Events,
    pub(crate) staging: Arc<Staging>,
    /// By source's name, macros and kernel.
    functions: Mutex<FxHashMap<String, Function>>,
    /// Whether a library may convolve, and how often it did.
    convolves: (AtomicBool, AtomicUsize),
    /// What a library said when it failed first.
    complaint: OnceLock<String>,
    pub(crate) own: Weak<Gpu>,
}

/// Regions from a driver.
pub(crate) struct Regions(Arc<dyn Backend>);

impl Source for Regions {
    fn reserve(&mut self, n_bytes: usize) -> Option<Address> {
        self.0.alloc(n_bytes).ok()
    }

    fn release(&mut self, region: Address) {
        self.0.free(region);
    }
}

/// A value that a kernel is given.
#[derive(Debug, Clone, Copy)]
pub enum Argument {
    /// A number of at most 64 bits, in its lowest bytes.
    Word(u64),
    /// Eight numbers of 64 bits, as a structure.
    Eight([i64; 8]),
}

impl From<u64> for Argument {
    fn from(value: u64) -> Argument {
        Argument::Word(value)
    }
}

impl From<usize> for Argument {
    fn from(value: usize) -> Argument {
        Argument::Word(value as u64)
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Argument {
        Argument::Word(value as u64)
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Argument {
        Argument::Word(u64::from(value.to_bits()))
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Argument {
        Argument::Word(value.to_bits())
    }
}

impl From<[i64; 8]> for Argument {
    fn from(value: [i64; 8]) -> Argument {
        Argument::Eight(value)
    }
}

impl Drop for Gpu {
    /// Blocks hold their device: none is left.
    fn drop(&mut self) {
        self.memory.get_mut().trim();
    }
}

impl Gpu {
    /// The device behind a driver, under the engine's name, which reserves at most `limit` bytes.
    ///
    /// # Errors
    /// No thread can be started for its events.
    pub fn new(name: &str, backend: Arc<dyn Backend>, limit: usize) -> std::io::Result<Arc<Gpu>> {
        let events = Events::start(Arc::clone(&backend), name)?;
        Ok(Arc::new_cyclic(|own| Gpu {
            name: name.into(),
            memory: Mutex::new(Caching::new(Regions(Arc::clone(&backend)), limit)),
            limit,
            events,
            staging: Arc::new(Staging::new(Arc::clone(&backend))),
            functions: Mutex::default(),
            convolves: (AtomicBool::new(true), AtomicUsize::new(0)),
            complaint: OnceLock::new(),
            own: Weak::clone(own),
            backend,
        }))
    }

    /// The engine's name of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its driver.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// What memory was handed out so far.
    pub fn stats(&self) -> Stats {
        self.memory.lock().stats()
    }

    /// Gives memory that nobody uses back to the driver; how many bytes.
    pub fn trim(&self) -> usize {
        self.memory.lock().trim()
    }

    pub(crate) fn failed(&self, reason: impl std::fmt::Display) -> TensorError {
        TensorError::Device { device: self.name.clone(), reason: reason.to_string().into() }
    }

    /// A kernel of a source, compiled when it is first asked for. Equal keys mean equal sources.
    ///
    /// # Errors
    /// It does not compile.
    pub fn function(
        &self,
        key: &str,
        name: &str,
        macros: &[String],
        source: impl FnOnce() -> String,
    ) -> Result<Function, KernelError> {
        let key = format!("{key} {name} {}", macros.join(" "));
        // Held while it compiles: whoever else wants it would compile it too.
        let mut functions = self.functions.lock();
        if let Some(found) = functions.get(&key) {
            return Ok(*found);
        }
        let made = self.backend.compile(&source(), macros, &[name]).map_err(|e| self.failed(format!("{key}: {e}")))?;
        let [function] = made[..] else { return Err(self.failed(format!("{key}: no kernel")).into()) };
        functions.insert(key, function);
        Ok(function)
    }

    /// Starts a kernel.
    ///
    /// # Safety
    /// The arguments are what the kernel takes; memory that it touches is the device's, and large enough.
    ///
    /// # Errors
    /// The driver refuses.
    pub unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[Argument]) -> Result<(), KernelError> {
        let pointer = |argument: &Argument| match argument {
            Argument::Word(word) => std::ptr::from_ref(word).cast_mut().cast::<c_void>(),
            Argument::Eight(words) => words.as_ptr().cast_mut().cast::<c_void>(),
        };
        let mut pointers: smallvec::SmallVec<[*mut c_void; 16]> = arguments.iter().map(pointer).collect();
        // SAFETY: as the caller promises; a number's lowest bytes come first, so that a pointer to it is one to a shorter one.
        unsafe { self.backend.launch(function, grid, &mut pointers) }.map_err(|e| self.failed(e).into())
    }

    /// Multiplies; `false` where the device has no library for it.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn gemm(&self, gemm: &Gemm, a: Address, b: Address, c: Address) -> Result<bool, KernelError> {
        self.backend.gemm(gemm, 0, a, b, c).map_err(|e| self.failed(format!("{e} ({gemm:?})")).into())
    }

    /// Bytes that the device's library needs for a convolution; `None`: there is none, or it does not take it, or fails.
    pub(crate) fn convolution_workspace(&self, convolution: &Convolution, pass: Pass) -> Option<usize> {
        if !self.convolves.0.load(Ordering::Relaxed) {
            return None;
        }
        let found = self.backend.convolution_workspace(convolution, pass);
        found.map_err(|failed| self.complain(&failed)).ok().flatten()
    }

    /// Convolves by the device's library: image, filter, result. `false`: it failed, or there is no memory for it.
    pub(crate) fn convolve(&self, c: &Convolution, pass: Pass, at: [Address; 3], n_bytes: usize) -> bool {
        // Without room for the library, what needs less may still be computed.
        let Ok(room) = (n_bytes > 0).then(|| self.block(n_bytes)).transpose() else { return false };
        let space = room.as_ref().map_or(0, |block| block.address());
        if let Err(failed) = self.backend.convolve(c, pass, at, (space, n_bytes)) {
            self.complain(&failed);
            return false;
        }
        self.convolves.1.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Whether convolutions may be the library's from now on: to compare the two.
    pub fn let_library_convolve(&self, may: bool) {
        self.convolves.0.store(may, Ordering::Relaxed);
    }

    /// How often the library convolved.
    pub fn n_convolved(&self) -> usize {
        self.convolves.1.load(Ordering::Relaxed)
    }

    /// Says that a library failed, and that kernels of our own do its work: once.
    fn complain(&self, failed: &Failed) {
        self.complaint.get_or_init(|| {
            let text = format!("{failed}: computed by stepscope's own kernels instead");
            tracing::warn!(target: "cuda", device = %self.name, "{text}");
            text
        });
    }

    /// What was said of a library that failed, where one did.
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.get().map(String::as_str)
    }

    /// Sets memory to zero in the order of the kernels.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn zero(&self, at: Address, n_bytes: usize) -> Result<(), KernelError> {
        let words = n_bytes / 4;
        let mut done = Ok(());
        if words > 0 {
            done = self.backend.fill_words(Lane::Compute, at, 0, words);
        }
        if done.is_ok() && !n_bytes.is_multiple_of(4) {
            done = self.backend.fill_bytes(Lane::Compute, at + 4 * words as u64, 0, n_bytes % 4);
        }
        done.map_err(|e| self.failed(e).into())
    }

    /// Copies within the device in the order of the kernels.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn copy(&self, to: Address, from: Address, n_bytes: usize) -> Result<(), KernelError> {
        if n_bytes == 0 {
            return Ok(());
        }
        self.backend.copy(Lane::Compute, to, from, n_bytes).map_err(|e| self.failed(e).into())
    }
}
