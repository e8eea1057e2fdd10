//! Kernels: implementations of ops for a device and element types, and their registry.
//!
//! A kernel is made once per node from the node's attributes and computes many times, from several threads. Kernels
//! register in the link-time slice [`KERNEL_TABLES`], which other crates may extend, or at run time with [`register`].

mod array;
mod broadcast;
mod elementwise;
mod gemm;
mod layout;
mod nn;
mod philox;
mod random;
mod reduce;
mod state;
mod summary;
pub mod support;
pub mod vecmath;
pub mod widen;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::buffer::Allocator;
use crate::dtype::{DType, Element};
use crate::graph::{Attr, Node};
use crate::ops::AttrError;
use crate::resources::{ResourceManager, ResourceTypeError};
use crate::shape::Shape;
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
    /// The device's state.
    pub resources: &'a ResourceManager,
    /// The device's memory.
    pub allocator: &'a Allocator,
    /// Splits work over the workers.
    pub sharder: &'a dyn Sharder,
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
    Resource(#[from] ResourceTypeError),
    /// An attribute is missing or of the wrong kind.
    #[error(transparent)]
    Attr(#[from] AttrError),
    /// No kernel is registered for the op with these types on this device.
    #[error("no kernel for op {op} on {wanted}")]
    NoKernel {
        /// The op.
        op: &'static str,
        /// The device type, and the node's type attributes, as ` with T=float, ...`.
        wanted: Box<str>,
    },
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

/// Kernels registered at link time.
#[linkme::distributed_slice]
pub static KERNEL_TABLES: [&'static [KernelDef]];

type Table = FxHashMap<(&'static str, &'static str), Vec<&'static KernelDef>>;

static REGISTRY: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    for def in KERNEL_TABLES.iter().flat_map(|t| t.iter()) {
        table.entry((def.op, def.device)).or_default().push(def);
    }
    RwLock::new(table)
});

/// Registers a kernel at run time. It comes before those of the same op that were there.
pub fn register(def: KernelDef) {
    let def: &'static KernelDef = Box::leak(Box::new(def));
    REGISTRY.write().entry((def.op, def.device)).or_default().insert(0, def);
}

/// Whether any kernel of the op is registered for this device type.
pub fn has_kernel(op: &str, device: &str) -> bool {
    REGISTRY.read().iter().any(|((o, d), _)| *o == op && *d == device)
}

/// Makes the kernel of `node` for a device type (`CPU`).
///
/// # Errors
/// None is registered for the node's types, or its attributes do not fit.
pub fn build(node: &Node, device: &str) -> Result<Box<dyn Kernel>, KernelError> {
    let table = REGISTRY.read();
    // The keys are static; looking up by shorter lives needs none of them to be.
    let candidates = table.iter().find(|((o, d), _)| *o == node.op.name && *d == device).map(|(_, c)| c);
    let fits = |def: &&&KernelDef| {
        let (attr, dtypes) = def.dtypes;
        dtypes.is_empty() || matches!(node.attrs.get(attr), Some(Attr::Type(t)) if dtypes.contains(t))
    };
    match candidates.into_iter().flatten().find(fits) {
        Some(def) => (def.build)(node),
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
