//! The plans that a session keeps, by signature.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::compile::Signature;
use crate::run::executor::Executable;

/// More signatures than this are compiled again when their turn comes.
const MAX_PLANS: usize = 128;

/// Compiled signatures; the one that was not used longest makes room.
#[derive(Default)]
pub(super) struct Plans {
    plans: FxHashMap<Signature, (Arc<Executable>, u64)>,
    clock: u64,
}

impl Plans {
    pub fn get(&mut self, signature: &Signature) -> Option<Arc<Executable>> {
        self.clock += 1;
        let (plan, used) = self.plans.get_mut(signature)?;
        *used = self.clock;
        Some(Arc::clone(plan))
    }

    pub fn insert(&mut self, signature: Signature, plan: Arc<Executable>) {
        if self.plans.len() >= MAX_PLANS {
            let oldest = self.plans.iter().min_by_key(|(_, (_, used))| *used).map(|(signature, _)| signature.clone());
            oldest.map(|signature| self.plans.remove(&signature));
        }
        self.plans.insert(signature, (plan, self.clock));
    }

    /// The plans that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Executable>> {
        self.plans.values().map(|(plan, _)| plan)
    }

    pub fn clear(&mut self) {
        self.plans.clear();
    }
}
