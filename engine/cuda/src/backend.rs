//! What a device's driver does for the rest of this crate, as little as possible: so that the rest can be run, and is tested,
//! on a processor that plays the device.

use std::ffi::c_void;

use crate::convolution::{Convolution, Pass};
pub use crate::matrix_type::MatrixType;

/// An address in a device's memory.
pub type Address = u64;

/// The streams of a device. Work on one is done in its order; events order one against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Kernels.
    Compute,
    /// Copies from the host.
    ToDevice,
    /// Copies to the host.
    ToHost,
    /// Copies from other devices.
    Peer,
}

impl Lane {
    /// All of them.
    pub const ALL: [Lane; 4] = [Lane::Compute, Lane::ToDevice, Lane::ToHost, Lane::Peer];
}

/// A point in a stream. Its device owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event(pub usize);

/// A compiled kernel, for the life of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function(pub usize);

/// A call of the driver that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {reason}")]
pub struct Failed {
    /// Which.
    pub call: &'static str,
    /// Why: the library's own words.
    pub reason: String,
}

/// `c = op(a) op(b)`, or `c += ...`, of matrices that lie column by column: `op(a)` is `m` by `k`, `op(b)` `k` by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// The elements.
    pub of: MatrixType,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// What is summed over.
    pub k: usize,
    /// Whether `a` is transposed in memory: then it is `k` by `m` there.
    pub transpose_a: bool,
    /// Whether `b` is transposed in memory: then it is `n` by `k` there.
    pub transpose_b: bool,
    /// Elements from one column of `a`, as it lies in memory, to the next.
    pub lda: usize,
    /// As `lda`, of `b`.
    pub ldb: usize,
    /// As `lda`, of `c`.
    pub ldc: usize,
    /// How many products there are.
    pub n_batches: usize,
    /// Elements from one `a` to the next, then of `b`, and of `c`.
    pub strides: [usize; 3],
    /// Whether the result is added to what is there.
    pub adds: bool,
}

/// How many threads run a kernel, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
}

/// A device's driver. Calls return before the device has done what they ask for, but for those of memory and events.
///
/// # Safety
/// What takes addresses reads and writes the device's memory there: the caller owns it until the stream is past.
pub unsafe trait Backend: Send + Sync {
    /// The device's name: `NVIDIA H200`.
    fn name(&self) -> String;

    /// Whether memory that nobody holds is overwritten, when it is handed out and when it is freed, so that tests find
    /// who reads it.
    fn marks_unused(&self) -> bool {
        false
    }

    /// Bytes of memory that are free, and that there are.
    ///
    /// # Errors
    /// As the driver says; so for all others.
    fn memory(&self) -> Result<(usize, usize), Failed>;

    /// Memory of the device.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn alloc(&self, n_bytes: usize) -> Result<Address, Failed>;

    /// Gives memory back. Waits for what is begun.
    fn free(&self, address: Address);

    /// Memory of the host that copies need no detour for.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn alloc_pinned(&self, n_bytes: usize) -> Result<*mut u8, Failed>;

    /// Gives [`Backend::alloc_pinned`]'s back.
    ///
    /// # Safety
    /// It comes from there, once, and no copy uses it any more.
    unsafe fn free_pinned(&self, at: *mut u8);

    /// Copies from the host.
    ///
    /// # Safety
    /// `from` stays as it is until the lane is past.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    unsafe fn copy_to_device(&self, lane: Lane, to: Address, from: *const u8, n_bytes: usize) -> Result<(), Failed>;

    /// Copies to the host.
    ///
    /// # Safety
    /// `to` is nobody else's until the lane is past.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    unsafe fn copy_to_host(&self, lane: Lane, to: *mut u8, from: Address, n_bytes: usize) -> Result<(), Failed>;

    /// Copies within the device.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn copy(&self, lane: Lane, to: Address, from: Address, n_bytes: usize) -> Result<(), Failed>;

    /// Copies from another device of the same kind, which [`Backend::context`] names.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn copy_from_peer(&self, to: Address, peer: usize, from: Address, n_bytes: usize) -> Result<(), Failed>;

    /// What the driver calls the device's memory, for copies from it.
    fn context(&self) -> usize;

    /// Sets `n` words of 32 bits.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn fill_words(&self, lane: Lane, to: Address, word: u32, n: usize) -> Result<(), Failed>;

    /// Sets `n` bytes.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn fill_bytes(&self, lane: Lane, to: Address, byte: u8, n: usize) -> Result<(), Failed>;

    /// A new event.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn event(&self) -> Result<Event, Failed>;

    /// Puts the event behind all work that the lane was given.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn record(&self, event: Event, lane: Lane) -> Result<(), Failed>;

    /// Lets the lane wait until the event was passed.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn wait(&self, lane: Lane, event: Event) -> Result<(), Failed>;

    /// Whether the event was passed. An error is that of what was done before it.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn is_past(&self, event: Event) -> Result<bool, Failed>;

    /// Waits for all work that a lane was given.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn synchronise(&self, lane: Lane) -> Result<(), Failed>;

    /// Compiles a source with macros (`NAME=VALUE`) and gives its kernels of these names.
    ///
    /// # Errors
    /// See [`Backend::memory`]; the compiler's messages.
    fn compile(&self, source: &str, macros: &[String], names: &[&str]) -> Result<Vec<Function>, Failed>;

    /// Starts a kernel on the compute lane.
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel takes.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &mut [*mut c_void]) -> Result<(), Failed>;

    /// Multiplies on the compute lane in the way that the library thinks of first (`way` 0), second, ...; `false` where the device
    /// has no library for it, or the library does not know so many ways.
    ///
    /// # Errors
    /// See [`Backend::memory`].
    fn gemm(&self, gemm: &Gemm, way: usize, a: Address, b: Address, c: Address) -> Result<bool, Failed>;

    /// Bytes of the device's memory that a library needs to convolve; `None`: the device has no library for it, or that knows no way.
    ///
    /// # Errors
    /// The library fails: whoever asks computes it otherwise.
    fn convolution_workspace(&self, convolution: &Convolution, pass: Pass) -> Result<Option<usize>, Failed>;

    /// Convolves on the compute lane, after [`Backend::convolution_workspace`] of the same: image, filter and result, of which the
    /// pass writes one, and memory of as many bytes as it said.
    ///
    /// # Errors
    /// The library fails, and has written nothing that is worth anything.
    fn convolve(
        &self,
        convolution: &Convolution,
        pass: Pass,
        at: [Address; 3],
        workspace: (Address, usize),
    ) -> Result<(), Failed>;
}
