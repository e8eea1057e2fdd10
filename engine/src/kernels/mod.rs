//! Kernels: implementations of ops for a device and element types, and their registry.
//!
//! A kernel is made once per node from the node's attributes and computes many times, from several threads. Kernels
//! register in the link-time slice [`KERNEL_TABLES`], which other crates may extend, or at run time with [`register`].

mod accumulator;
mod activation;
mod array;
mod asynchronous;
mod barrier;
mod batch_matmul;
mod blocks;
mod broadcast;
mod cancellation;
mod candidates;
mod checkpoint;
mod combine;
mod complex;
mod control_flow;
mod conv;
mod crop;
mod ctc;
mod decode;
mod diagonal;
mod distributions;
pub(crate) mod einsum;
mod elementwise;
mod example;
mod files;
mod find;
mod formats;
mod functional;
pub mod fused;
mod fused_matmul;
mod gemm;
mod images;
mod index;
mod integer;
mod lanes;
pub mod layout;
mod linalg;
mod lookup;
mod media_summary;
mod mutex;
mod narrow;
mod nn;
mod norm;
pub(crate) mod numerics;
mod optional;
pub mod philox;
mod pick;
mod pool;
mod products;
mod quantize;
mod quantized;
mod quantized_pool;
mod queue;
pub mod random;
mod readers;
mod reduce;
mod resize;
mod resize_cubic;
mod resource;
mod rnn;
mod rows;
mod scan;
mod scatter;
mod segment;
mod sequence;
mod sound;
mod sparse;
mod sparse_math;
mod special;
mod special_functions;
mod stack;
mod staging;
mod state;
mod strings;
mod summary;
mod summary_file;
pub mod support;
mod tensor_array;
mod tensor_list;
mod text;
mod training;
mod transcendental;
pub mod transfer;
mod truncated;
mod variables;
pub mod vecmath;
mod wide;
pub mod widen;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

pub use asynchronous::{AsyncKernel, Completion, CompletionSink, ExecutionTag, Outputs};
pub(crate) use cancellation::StepCancellation;
pub use cancellation::{Cancellation, Registration};
pub(crate) use functional::{Functions, KernelStates, NoFunctions};
pub(crate) use gemm::packed_elements;

use crate::buffer::{AllocError, Allocator};
use crate::dtype::{DType, Element};
use crate::graph::{Attr, Node};
use crate::ops::AttrError;
use crate::rendezvous::{Rendezvous, RendezvousError};
use crate::resources::{ResourceError, ResourceManager};
use crate::shape::Shape;
use crate::strided::SliceError;
use crate::tensor::{Tensor, TensorError};

/// An implementation of an op.
pub trait Kernel: Send + Sync {
    /// Computes the outputs from the inputs.
    ///
    /// # Errors
    /// The inputs do not fit the op, or memory is short.
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError>;

    /// Whether one execution may take more than about a microsecond, so that another worker is worth waking.
    fn is_expensive(&self) -> bool {
        true
    }

    /// The state that executions leave behind in the kernel itself (a random generator), for checkpoints.
    fn state(&self) -> Option<&dyn crate::checkpoint::Checkpointed> {
        None
    }
}

/// The kernel of a node, whichever way it ends.
#[derive(Clone)]
pub enum AnyKernel {
    /// It has its outputs when it returns.
    Sync(Arc<dyn Kernel>),
    /// It may end later.
    Async(Arc<dyn AsyncKernel>),
}

impl AnyKernel {
    /// Whether one execution may keep its thread for more than about a microsecond.
    pub fn is_expensive(&self) -> bool {
        match self {
            AnyKernel::Sync(kernel) => kernel.is_expensive(),
            AnyKernel::Async(kernel) => kernel.is_expensive(),
        }
    }

    /// Whether it may end after it returned.
    pub fn is_async(&self) -> bool {
        matches!(self, AnyKernel::Async(_))
    }
}

/// What a kernel needs to know of its node while it computes.
#[derive(Debug, Clone)]
pub struct NodeInfo {
    /// The node's full name.
    pub name: Arc<str>,
    /// The op.
    pub op: &'static str,
    /// The node's id among the events.
    pub event_id: u32,
}

/// Where a value of a step lives: `None` before it is there, after it was taken, and where it is dead.
pub type Slot = Option<Tensor>;

/// An iteration of a loop, by numbers that are the same on all devices and in all processes of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FrameTag {
    /// The frame; 0 outside of all loops.
    pub frame: u64,
    /// The iteration of the frame, from 0.
    pub iteration: u64,
}

/// What a kernel computes from and to.
pub struct KernelContext<'a> {
    /// The inputs. A kernel may take one out (in-place forwarding).
    pub inputs: &'a mut [Slot],
    /// The outputs, empty before.
    pub outputs: &'a mut [Slot],
    /// The node.
    pub node: &'a NodeInfo,
    /// The step.
    pub step_id: u64,
    /// The step's number in events, the same in all tasks; 0 where it is not traced.
    pub traced_step: u32,
    /// The device's state.
    pub resources: &'a ResourceManager,
    /// The step's own objects, gone when it ends: stacks, arrays.
    pub step_resources: &'a ResourceManager,
    /// The device's memory, as far as the host reads it.
    pub allocator: &'a Allocator,
    /// What a device that is no CPU gives its kernels: see [`crate::device::Device::with_driver`].
    pub driver: Option<&'a (dyn std::any::Any + Send + Sync)>,
    /// Splits work over the workers.
    pub sharder: &'a dyn Sharder,
    /// Which iteration this execution belongs to.
    pub frame: FrameTag,
    /// Where the step's sends and receives meet.
    pub rendezvous: &'a dyn Rendezvous,
    pub(crate) cancellation: &'a StepCancellation,
    /// The functions of the session's graph.
    pub(crate) functions: &'a dyn Functions,
}

/// Splits the work of one kernel over several threads.
pub trait Sharder: Sync {
    /// The threads that can work at once, this one included.
    fn n_workers(&self) -> usize;

    /// Calls `body` on disjoint ranges that cover `0..total`, possibly at once, and returns when all are done.
    /// `cost_per_unit_ns` tells how long one unit takes alone: little work stays on this thread.
    fn parallel_for(&self, total: usize, cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync));
}

/// A sharder that does all work on the calling thread.
pub struct Serial;

impl Sharder for Serial {
    fn n_workers(&self) -> usize {
        1
    }

    fn parallel_for(&self, total: usize, _cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync)) {
        if total > 0 {
            body(0..total);
        }
    }
}

/// Why a kernel could not be made or could not compute. The executor adds the node and the op.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// An input is not there.
    #[error("input {0} is missing")]
    MissingInput(usize),
    /// The inputs do not fit the op.
    #[error("{0}")]
    Invalid(String),
    /// A variable was read before it was assigned.
    #[error("variable {0} is not initialised: run its initialiser first")]
    Uninitialised(Arc<str>),
    /// A tensor is of the wrong type or too large, or there is no memory for it.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The name of a resource is taken by another type.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// An attribute is missing or of the wrong kind.
    #[error(transparent)]
    Attr(#[from] AttrError),
    /// There is no more: a queue is closed and too short, a reader is at its end.
    #[error("{0}")]
    OutOfRange(Box<str>),
    /// A queue takes no more rows.
    #[error("{0}")]
    QueueClosed(Box<str>),
    /// A result holds NaN or infinities.
    #[error("{0}")]
    Numerics(Box<str>),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(Box<str>, #[source] std::io::Error),
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] Box<crate::checkpoint::CheckpointError>),
    /// The step was cancelled, or failed elsewhere, while the kernel waited.
    #[error("the step ended while the kernel waited")]
    Cancelled,
    /// An asynchronous kernel will never end.
    #[error("the kernel dropped its completion")]
    Abandoned,
    /// A value did not come from another device.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// A function that is called within its own body failed.
    #[error("function {function}: {source}")]
    Function {
        /// The function.
        function: Arc<str>,
        /// What went wrong in it.
        source: Box<crate::session::RunError>,
    },
    /// A function calls itself more often than is sensible.
    #[error("function {function} calls itself {limit} deep: what ends it never comes, or too late")]
    TooDeep {
        /// The function.
        function: Arc<str>,
        /// How many calls may be open at once.
        limit: u32,
    },
    /// No kernel is registered for the op with these types on this device.
    #[error("no kernel for op {op} on {wanted}")]
    NoKernel {
        /// The op.
        op: &'static str,
        /// The device type, and the node's type attributes, as ` with T=float, ...`.
        wanted: Box<str>,
    },
}

impl From<SliceError> for KernelError {
    fn from(error: SliceError) -> KernelError {
        KernelError::invalid(error.to_string())
    }
}

impl From<AllocError> for KernelError {
    fn from(error: AllocError) -> KernelError {
        KernelError::Tensor(TensorError::Memory(error))
    }
}

impl KernelError {
    /// An error about the inputs, in words.
    pub fn invalid(text: impl Into<String>) -> KernelError {
        KernelError::Invalid(text.into())
    }
}

impl KernelContext<'_> {
    /// Input `i`.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn input(&self, i: usize) -> Result<&Tensor, KernelError> {
        self.inputs.get(i).and_then(Option::as_ref).ok_or(KernelError::MissingInput(i))
    }

    /// Takes input `i` out of its slot: its memory may be reused where the tensor is unique.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn take(&mut self, i: usize) -> Result<Tensor, KernelError> {
        self.inputs.get_mut(i).and_then(Option::take).ok_or(KernelError::MissingInput(i))
    }

    /// Sets output `i`.
    #[inline]
    pub fn set(&mut self, i: usize, value: Tensor) {
        self.outputs[i] = Some(value);
    }

    /// Tells those who register that the step ended early, so that nobody waits in vain.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.get().of_node(self.node)
    }

    /// A tensor for an output, its elements to be overwritten.
    ///
    /// # Errors
    /// There is no memory for it.
    #[inline]
    pub fn room<T: Element>(&self, shape: Shape) -> Result<Tensor, KernelError> {
        Ok(Tensor::with_room(T::DTYPE, shape, self.allocator)?)
    }
}

/// Makes the kernel of a node.
pub type BuildFn = fn(&Node) -> Result<Box<dyn Kernel>, KernelError>;

/// One registered kernel.
pub struct KernelDef {
    /// The op.
    pub op: &'static str,
    /// The device type: `CPU`.
    pub device: &'static str,
    /// The type attribute that chooses among kernels of the op, and the types this one takes; empty: any.
    pub dtypes: (&'static str, &'static [DType]),
    /// Makes it.
    pub build: BuildFn,
}

/// One registered asynchronous kernel: as [`KernelDef`].
pub struct AsyncKernelDef {
    /// The op.
    pub op: &'static str,
    /// The device type: `CPU`.
    pub device: &'static str,
    /// As in [`KernelDef::dtypes`].
    pub dtypes: (&'static str, &'static [DType]),
    /// Makes it.
    pub build: fn(&Node) -> Result<Box<dyn AsyncKernel>, KernelError>,
}

/// Kernels registered at link time.
#[linkme::distributed_slice]
pub static KERNEL_TABLES: [&'static [KernelDef]];

/// Asynchronous kernels registered at link time.
#[linkme::distributed_slice]
pub static ASYNC_KERNEL_TABLES: [&'static [AsyncKernelDef]];

#[derive(Clone, Copy)]
enum Def {
    Sync(&'static KernelDef),
    Async(&'static AsyncKernelDef),
}

impl Def {
    fn key(self) -> (&'static str, &'static str) {
        match self {
            Def::Sync(def) => (def.op, def.device),
            Def::Async(def) => (def.op, def.device),
        }
    }

    fn fits(self, node: &Node) -> bool {
        let (attr, dtypes) = match self {
            Def::Sync(def) => def.dtypes,
            Def::Async(def) => def.dtypes,
        };
        dtypes.is_empty() || matches!(node.attrs.get(attr), Some(Attr::Type(t)) if dtypes.contains(t))
    }

    fn build(self, node: &Node) -> Result<AnyKernel, KernelError> {
        Ok(match self {
            Def::Sync(def) => AnyKernel::Sync((def.build)(node)?.into()),
            Def::Async(def) => AnyKernel::Async((def.build)(node)?.into()),
        })
    }
}

/// By op, then device type: the candidates, the latest registered first.
type Table = FxHashMap<&'static str, Vec<Def>>;

static REGISTRY: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    let tables = KERNEL_TABLES.iter().flat_map(|t| t.iter()).map(Def::Sync);
    for def in tables.chain(ASYNC_KERNEL_TABLES.iter().flat_map(|t| t.iter()).map(Def::Async)) {
        table.entry(def.key().0).or_default().push(def);
    }
    RwLock::new(table)
});

/// Registers a kernel at run time. It comes before those of the same op that were there.
pub fn register(def: KernelDef) {
    let def: &'static KernelDef = Box::leak(Box::new(def));
    REGISTRY.write().entry(def.op).or_default().insert(0, Def::Sync(def));
}

/// Registers an asynchronous kernel at run time. It comes before those of the same op that were there.
pub fn register_async(def: AsyncKernelDef) {
    let def: &'static AsyncKernelDef = Box::leak(Box::new(def));
    REGISTRY.write().entry(def.op).or_default().insert(0, Def::Async(def));
}

/// A registered kernel, for lists of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelInfo {
    /// The device type.
    pub device: &'static str,
    /// The type attribute that chooses it, empty where any type does.
    pub attr: &'static str,
    /// The types of that attribute which it takes; empty: any.
    pub dtypes: &'static [DType],
}

/// All kernels of an op, those that are tried first first.
pub fn registered(op: &str) -> Vec<KernelInfo> {
    let info = |def: &Def| {
        let (attr, dtypes) = match def {
            Def::Sync(def) => def.dtypes,
            Def::Async(def) => def.dtypes,
        };
        KernelInfo { device: def.key().1, attr, dtypes }
    };
    REGISTRY.read().get(op).map(|defs| defs.iter().map(info).collect()).unwrap_or_default()
}

/// Whether any kernel of the op is registered for this device type.
pub fn has_kernel(op: &str, device: &str) -> bool {
    REGISTRY.read().get(op).is_some_and(|defs| defs.iter().any(|def| def.key().1 == device))
}

/// Whether [`build`] finds a kernel for the node's types on this device type.
pub fn supports(node: &Node, device: &str) -> bool {
    let table = REGISTRY.read();
    table.get(node.op.name).is_some_and(|defs| defs.iter().any(|def| def.key().1 == device && def.fits(node)))
}

/// Makes the kernel of `node` for a device type (`CPU`).
///
/// # Errors
/// None is registered for the node's types, or its attributes do not fit.
pub fn build(node: &Node, device: &str) -> Result<AnyKernel, KernelError> {
    // The table is free again before the kernel is made: that of a narrow type asks it for another one.
    let found = REGISTRY.read().get(node.op.name).and_then(|defs| {
        let fits = |def: &&Def| def.key().1 == device && def.fits(node);
        defs.iter().find(fits).copied()
    });
    match found {
        Some(def) => def.build(node),
        None => {
            let wanted = format!("{device}{}", types_text(node)).into();
            Err(KernelError::NoKernel { op: node.op.name, wanted })
        }
    }
}

fn types_text(node: &Node) -> String {
    let types = node.attrs.iter().filter_map(|(name, attr)| match attr {
        Attr::Type(t) => Some(format!("{name}={t}")),
        _ => None,
    });
    let types: Vec<String> = types.collect();
    if types.is_empty() { String::new() } else { format!(" with {}", types.join(", ")) }
}
