//! The kernels that there are, by op, device type and element types.

use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::asynchronous::AsyncKernel;
use super::error::KernelError;
use super::interface::{AnyKernel, Kernel};
use crate::dtype::DType;
use crate::graph::{Attr, Node};

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

/// A registered kernel, for listings.
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
