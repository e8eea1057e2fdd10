//! What a session keeps: kernels by node, plans by signature.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::options::Numerics;
use crate::checkpoint::{CheckpointError, Fields};
use crate::device::Device;
use crate::graph::{Attr, NodeId};
use crate::kernels::{self, AnyKernel, NodeInfo};
use crate::passes::WorkNode;
use crate::plan::{Plan, PlanError, Signature};

/// The kernels of nodes that ran, made once each: plans share them.
///
/// Those with state (random numbers, readers, queues) go by name, which outlives every rewriting; the others by the node
/// of the session's graph, and what passes make has its kernel made anew for each plan.
#[derive(Default)]
pub(super) struct Kernels {
    stateful: SharedKernels,
    stateless: FxHashMap<NodeId, Made>,
    /// What is done about results that are no finite numbers.
    numerics: Numerics,
}

/// Kernels with state of the nodes of one graph, by name. Sessions that are given the same ones share the state: those of the
/// parts that a task runs of one client's graph.
#[derive(Clone, Default)]
pub struct SharedKernels(Arc<Mutex<Stateful>>);

#[derive(Default)]
struct Stateful {
    made: FxHashMap<Arc<str>, Made>,
    /// Restored state of kernels that are yet to be made.
    pending: FxHashMap<Arc<str>, Fields>,
}

/// A kernel, its node, and the number of the device that it was made for.
type Made = (AnyKernel, NodeInfo, u32);

impl Kernels {
    pub fn new(numerics: Numerics, stateful: SharedKernels) -> Kernels {
        Kernels { numerics, stateful, ..Kernels::default() }
    }

    pub fn numerics(&self) -> Numerics {
        self.numerics
    }

    pub fn get(&mut self, node: &WorkNode, devices: &[Arc<Device>]) -> Result<(AnyKernel, NodeInfo), PlanError> {
        let Some(device) = devices.get(node.device as usize) else {
            let problem = format!("node {} is on device number {} of {}", node.name(), node.device, devices.len());
            return Err(PlanError::Pass { pass: "place", problem });
        };
        let is_kept = |made: &Made| devices.get(made.2 as usize).is_some_and(|d| d.kind() == device.kind());
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
            restore(&kernel, &fields).map_err(|e| PlanError::Pass { pass: "restore", problem: e.to_string() })?;
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
            Numerics::Fail => kernels::numerics::checked(kernel),
            Numerics::Trace => kernels::numerics::traced(kernel, name),
        }
    }

    /// Forgets those that go by their node: the ids mean other nodes now.
    pub fn forget_stateless(&mut self) {
        self.stateless.clear();
    }

    /// The state of the kernels that have some.
    pub fn save(&self) -> Vec<(Arc<str>, Fields)> {
        let state = |(name, made): (&Arc<str>, &Made)| match &made.0 {
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

fn build(node: &WorkNode, device: &Device) -> Result<AnyKernel, PlanError> {
    kernels::build(&node.def, device.kind()).map_err(|source| PlanError::Kernel {
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

/// More signatures than this are compiled again when their turn comes.
const MAX_PLANS: usize = 128;

/// Compiled signatures; the one that was not used longest makes room.
#[derive(Default)]
pub(super) struct Plans {
    plans: FxHashMap<Signature, (Arc<Plan>, u64)>,
    clock: u64,
}

impl Plans {
    pub fn get(&mut self, signature: &Signature) -> Option<Arc<Plan>> {
        self.clock += 1;
        let (plan, used) = self.plans.get_mut(signature)?;
        *used = self.clock;
        Some(Arc::clone(plan))
    }

    pub fn insert(&mut self, signature: Signature, plan: Arc<Plan>) {
        if self.plans.len() >= MAX_PLANS {
            let oldest = self.plans.iter().min_by_key(|(_, (_, used))| *used).map(|(signature, _)| signature.clone());
            oldest.map(|signature| self.plans.remove(&signature));
        }
        self.plans.insert(signature, (plan, self.clock));
    }

    /// The plans that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.plans.values().map(|(plan, _)| plan)
    }

    pub fn clear(&mut self) {
        self.plans.clear();
    }
}
