//! The kernels of nodes, which plans share.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{CompileError, WorkNode};
use crate::checkpoint::{CheckpointError, Fields};
use engine_core::device::Device;
use engine_core::graph::{Attr, NodeId};
use engine_core::kernel::{self, AnyKernel, NodeInfo};
use engine_ops::kernels::numerics;

/// What is done about results that are no finite numbers. Element-wise ops are not fused where results are looked at, so that
/// each has its own name; kernels that hand on what others made (queues, transfers) are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Numerics {
    /// Nothing: results are not looked at.
    #[default]
    Ignore,
    /// The first op that makes a NaN or an infinity fails the step, by name.
    Fail,
    /// The trace says of each node whether its results are finite, once and whenever that changes.
    Trace,
}

/// The kernels of nodes that ran, made once each: plans share them.
///
/// Those with state (random numbers, readers, queues) go by name, which outlives every rewriting; the others by the node
/// of the session's graph, and what passes make has its kernel made anew for each plan.
#[derive(Default)]
pub(super) struct Kernels {
    stateful: SharedKernels,
    stateless: FxHashMap<NodeId, CachedKernel>,
    /// What is done about results that are no finite numbers.
    numerics: Numerics,
}

/// Kernels with state of the nodes of one graph, by name. Sessions that are given the same ones share the state: those of the
/// parts that a task runs of one client's graph.
#[derive(Clone, Default)]
pub struct SharedKernels(Arc<Mutex<Stateful>>);

#[derive(Default)]
struct Stateful {
    made: FxHashMap<Arc<str>, CachedKernel>,
    /// Restored state of kernels that are yet to be made.
    pending: FxHashMap<Arc<str>, Fields>,
}

/// A kernel, its node, and the number of the device that it was made for.
type CachedKernel = (AnyKernel, NodeInfo, u32);

impl Kernels {
    pub fn new(numerics: Numerics, stateful: SharedKernels) -> Kernels {
        Kernels { numerics, stateful, ..Kernels::default() }
    }

    pub fn get(&mut self, node: &WorkNode, devices: &[Arc<Device>]) -> Result<(AnyKernel, NodeInfo), CompileError> {
        let Some(device) = devices.get(node.device as usize) else {
            let problem = format!("node {} is on device number {} of {}", node.name(), node.device, devices.len());
            return Err(CompileError::Pass { pass: "place", problem });
        };
        let is_kept = |made: &CachedKernel| devices.get(made.2 as usize).is_some_and(|d| d.kind() == device.kind());
        let known = match node.origin {
            // A transfer's attributes are its plan's.
            _ if node.kind().is_transfer() => None,
            _ if node.is_stateful() => self.stateful.0.lock().made.get(node.name()).cloned(),
            Some(id) => self.stateless.get(&id).cloned(),
            None => None,
        };
        let (kernel, info) = match known.filter(is_kept) {
            Some((kernel, info, on)) if on == node.device => return Ok((kernel, info)),
            Some((kernel, ..)) => (kernel, info(node, device)),
            None => (self.watched(build(node, device)?, node.name()), info(node, device)),
        };
        let pending = self.stateful.0.lock().pending.remove(node.name());
        if let Some(fields) = pending {
            restore(&kernel, &fields).map_err(|e| CompileError::Pass { pass: "restore", problem: e.to_string() })?;
        }
        let made = (kernel.clone(), info.clone(), node.device);
        match node.origin {
            _ if node.is_stateful() => drop(self.stateful.0.lock().made.insert(Arc::clone(node.name()), made)),
            Some(id) => drop(self.stateless.insert(id, made)),
            None => {}
        }
        Ok((kernel, info))
    }

    /// The kernel of the node of this name, its results looked at if they are to be.
    fn watched(&self, kernel: AnyKernel, name: &str) -> AnyKernel {
        match self.numerics {
            Numerics::Ignore => kernel,
            Numerics::Fail => numerics::checked(kernel),
            Numerics::Trace => numerics::traced(kernel, name),
        }
    }

    /// Forgets those that go by their node: the ids mean other nodes now.
    pub fn forget_stateless(&mut self) {
        self.stateless.clear();
    }

    /// The state of the kernels that have some.
    pub fn save(&self) -> Vec<(Arc<str>, Fields)> {
        let state = |(name, made): (&Arc<str>, &CachedKernel)| match &made.0 {
            AnyKernel::Sync(kernel) => Some((Arc::clone(name), kernel.state()?.save())),
            AnyKernel::Async(_) => None,
        };
        self.stateful.0.lock().made.iter().filter_map(state).collect()
    }

    /// Gives kernels their state, those that are made later included.
    pub fn restore(&self, mut state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError> {
        let mut stateful = self.stateful.0.lock();
        for (name, made) in &stateful.made {
            if let Some(fields) = state.remove(name) {
                restore(&made.0, &fields)?;
            }
        }
        stateful.pending = state;
        Ok(())
    }

    pub fn clear(&mut self) {
        self.stateful.0.lock().made.clear();
        self.stateless.clear();
    }
}

fn restore(kernel: &AnyKernel, fields: &Fields) -> Result<(), CheckpointError> {
    match kernel {
        AnyKernel::Sync(kernel) => kernel.state().map_or(Ok(()), |state| state.restore(fields)),
        AnyKernel::Async(_) => Ok(()),
    }
}

fn build(node: &WorkNode, device: &Device) -> Result<AnyKernel, CompileError> {
    kernel::build(&node.def, device.kind()).map_err(|source| CompileError::Kernel {
        node: node.name().to_string(),
        op: node.op(),
        source: Box::new(source),
    })
}

fn info(node: &WorkNode, device: &Device) -> NodeInfo {
    let (name, op) = (node.name(), node.op());
    // The nodes that a pass fused into this one run where it does. A trace names them too, so that who looks at the graph as it was
    // written finds their device.
    if let Some(Attr::ListStr(originals)) = node.def.attrs.get("originals") {
        for original in originals.iter().filter_map(|bytes| std::str::from_utf8(bytes).ok()) {
            if *original != **name {
                let _ = events::node(original, op, device.name());
            }
        }
    }
    NodeInfo { name: Arc::clone(name), op, event_id: events::node(name, op, device.name()).get() }
}
