//! What a session keeps: kernels by node, plans by signature.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::device::Device;
use crate::graph::{Node, NodeId};
use crate::kernels::{self, Kernel, NodeInfo};
use crate::plan::prune::Signature;
use crate::plan::{Plan, PlanError};

/// The kernels of nodes that ran, made once each: they may hold state, and plans share them.
#[derive(Default)]
pub(super) struct Kernels(FxHashMap<NodeId, (Arc<dyn Kernel>, NodeInfo)>);

impl Kernels {
    pub fn get(&mut self, node: &Node, device: &Device) -> Result<(Arc<dyn Kernel>, NodeInfo), PlanError> {
        if let Some((kernel, info)) = self.0.get(&node.id) {
            return Ok((Arc::clone(kernel), info.clone()));
        }
        let kernel: Arc<dyn Kernel> = match kernels::build(node, device.kind()) {
            Ok(kernel) => kernel.into(),
            Err(source) => {
                let source = Box::new(source);
                return Err(PlanError::Kernel { node: node.name.to_string(), op: node.op.name, source });
            }
        };
        let event_id = events::node(&node.name, node.op.name, device.name()).get();
        let info = NodeInfo { name: Arc::clone(&node.name), op: node.op.name, event_id };
        self.0.insert(node.id, (Arc::clone(&kernel), info.clone()));
        Ok((kernel, info))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
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

    pub fn clear(&mut self) {
        self.plans.clear();
    }
}
