//! A device: its memory, its streams, its compiled kernels.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use engine::buffer::AllocError;
use engine::kernels::KernelError;
use engine::shape::Shape;
use engine::tensor::TensorError;
use engine::{DType, Tensor};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::allocator::{Caching, Source, Stats};
use crate::backend::{Address, Backend, Failed, Function, Gemm, Grid, Lane};
use crate::convolution::{Convolution, Pass};
use crate::events::Events;
use crate::memory::Block;
use crate::staging::Staging;

/// What is small is written by the driver itself, without staging.
const WRITTEN_BYTES: usize = 16;

/// What kernels of a GPU compute on. See the module's notes.
pub struct Gpu {
    name: Box<str>,
    backend: Arc<dyn Backend>,
    memory: Mutex<Caching<Regions>>,
    limit: usize,
    pub(crate) events: Events,
    pub(crate) staging: Arc<Staging>,
    /// By source's name, macros and kernel.
    functions: Mutex<FxHashMap<String, Function>>,
    /// Whether a library may convolve, and how often it did.
    convolves: (AtomicBool, AtomicUsize),
    /// What a library said when it failed first.
    complaint: OnceLock<String>,
    own: Weak<Gpu>,
}

/// Regions from a driver.
struct Regions(Arc<dyn Backend>);

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

    /// Memory of so many bytes. What was told to the compute lane of its last user comes before what it is told from now on.
    ///
    /// # Errors
    /// There is none.
    pub fn block(&self, n_bytes: usize) -> Result<Arc<Block>, TensorError> {
        let address = self.memory.lock().alloc(n_bytes).map_err(|e| AllocError {
            device: self.name.clone(),
            requested: e.wanted,
            in_use: e.in_use,
            limit: self.limit.min(e.limit),
        })?;
        let gpu = self.own.upgrade().ok_or_else(|| self.failed("the device is gone"))?;
        let block = Arc::new(Block::new(gpu, address, n_bytes));
        self.mark_unused(address, n_bytes).map_err(|e| self.failed(e))?;
        Ok(block)
    }

    pub(crate) fn give_back(&self, address: Address, n_bytes: usize) {
        // Only a test is told less if this fails.
        self.mark_unused(address, n_bytes).ok();
        self.memory.lock().free(address);
    }

    /// Overwrites memory that has no value, by what is no number of any width.
    fn mark_unused(&self, address: Address, n_bytes: usize) -> Result<(), Failed> {
        match self.backend.marks_unused() {
            true => self.backend.fill_bytes(Lane::Compute, address, 0xFF, n_bytes),
            false => Ok(()),
        }
    }

    /// A tensor to be written, and where it lies.
    ///
    /// # Errors
    /// There is no memory.
    pub fn room(&self, dtype: DType, shape: Shape) -> Result<(Tensor, Address), TensorError> {
        let n_bytes = shape.checked_n_elements().and_then(|n| n.checked_mul(dtype.size()));
        let n_bytes = n_bytes.ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        let block = self.block(n_bytes)?;
        let address = block.address();
        Ok((Tensor::on_device(dtype, shape, block)?, address))
    }

    /// The device's own memory of a tensor, where it is.
    pub fn address_of(&self, tensor: &Tensor) -> Option<Address> {
        let block = Block::of(tensor)?;
        block.is_of(self).then(|| block.address())
    }

    /// The same elements in the device's memory, for kernels that are begun from now on.
    ///
    /// # Errors
    /// There is no memory, or the driver fails.
    pub fn bring(&self, tensor: &Tensor) -> Result<(Tensor, Address), TensorError> {
        if let Some(address) = self.address_of(tensor) {
            return Ok((tensor.clone(), address));
        }
        if tensor.dtype().size() == 0 {
            return Err(TensorError::DType { expected: DType::F32, got: tensor.dtype() });
        }
        let (there, to) = self.room(tensor.dtype(), tensor.shape().clone())?;
        let copied = match Block::of(tensor) {
            Some(block) => self.bring_from_peer(&block, to, tensor.n_bytes()),
            None => self.bring_from_host(tensor, to),
        };
        copied.map_err(|e| self.failed(e)).map(|()| (there, to))
    }

    fn bring_from_host(&self, tensor: &Tensor, to: Address) -> Result<(), Failed> {
        let bytes = tensor.bytes();
        if bytes.len() <= WRITTEN_BYTES {
            return self.write(to, bytes);
        }
        // The memory may be in use by kernels that were begun before.
        self.events.order(Lane::Compute, Lane::ToDevice)?;
        let piece = self.staging.piece(bytes.len()).ok();
        let from = match &piece {
            Some(piece) => {
                // SAFETY: the piece is this function's, and as long; it overlaps nothing.
                unsafe { piece.at().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                piece.at().cast_const()
            }
            None => bytes.as_ptr(),
        };
        // SAFETY: `from` is kept below until the lane is past; `to` was just made.
        let copied = unsafe { self.backend.copy_to_device(Lane::ToDevice, to, from, bytes.len()) };
        let tensor = tensor.clone();
        self.events.after(Lane::ToDevice, move |_| drop((piece, tensor)));
        copied.and_then(|()| self.events.order(Lane::ToDevice, Lane::Compute))
    }

    /// Writes a few bytes in the order of the kernels.
    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), Failed> {
        let (words, rest) = bytes.as_chunks::<4>();
        for (i, word) in words.iter().enumerate() {
            self.backend.fill_words(Lane::Compute, to + 4 * i as u64, u32::from_le_bytes(*word), 1)?;
        }
        for (i, byte) in rest.iter().enumerate() {
            self.backend.fill_bytes(Lane::Compute, to + (4 * words.len() + i) as u64, *byte, 1)?;
        }
        Ok(())
    }

    fn bring_from_peer(&self, block: &Arc<Block>, to: Address, n_bytes: usize) -> Result<(), Failed> {
        let peer = block.gpu();
        self.events.order(Lane::Compute, Lane::Peer)?;
        let ready = peer.events.spare()?;
        let ordered = peer.backend.record(ready, Lane::Compute).and_then(|()| self.backend.wait(Lane::Peer, ready));
        peer.events.keep(ready);
        ordered?;
        self.backend.copy_from_peer(to, peer.backend.context(), block.address(), n_bytes)?;
        let block = Arc::clone(block);
        self.events.after(Lane::Peer, move |_| drop(block));
        self.events.order(Lane::Peer, Lane::Compute)
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
