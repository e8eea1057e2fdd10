//! What a step holds in memory, estimated from shapes.
//!
//! A value lives from the node that makes it to the last node that uses it. Constants, feeds and the values of variables are
//! there anyway and do not count; reshapes and identities pass on what they get; element-wise nodes write into an input
//! that dies with them. Sizes are those that the allocator charges.

use crate::compile::{Source, WorkGraph, WorkId, WorkNode};
use engine_core::buffer::charged;
use engine_core::ops::OpKind as K;

/// A device's peak, before and after the pass, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakEstimate {
    /// Bytes before.
    pub before: usize,
    /// Bytes after.
    pub after: usize,
    /// Bytes that the device hands out at most.
    pub limit: usize,
}

/// The highest point of a walk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Peak {
    pub bytes: usize,
    /// The position in the order.
    pub at: usize,
}

/// Who owns what for how long: for every output of every node, by [`Lives::port`].
#[derive(Debug)]
pub(super) struct Lives {
    first_port: Vec<u32>,
    /// The output whose memory an output is.
    owner: Vec<u32>,
    /// Bytes that an owner holds on this device.
    bytes: Vec<usize>,
    /// How often an owner's memory is used.
    n_uses: Vec<u32>,
}

/// Ops whose outputs are there anyway.
fn is_resident(kind: K) -> bool {
    kind.is_variable() || matches!(kind, K::Const | K::ReadVariable | K::Placeholder)
}

/// Ops that write into an input's memory where nobody else needs it.
pub(super) fn writes_in_place(op: &str) -> bool {
    op == "_FusedElementwise" || engine_ops::kernels::formula::fused_op(op).is_some()
}

impl Lives {
    pub fn of(graph: &WorkGraph, device: usize, unknown_dim: usize) -> Lives {
        let mut first_port = vec![0u32; graph.n_ids() + 1];
        for (id, node) in graph.iter() {
            first_port[id.index() + 1] = node.outputs().len() as u32;
        }
        for i in 1..first_port.len() {
            first_port[i] += first_port[i - 1];
        }
        let n = first_port.last().copied().unwrap_or(0) as usize;
        let mut lives = Lives { first_port, owner: (0..n as u32).collect(), bytes: vec![0; n], n_uses: vec![0; n] };
        for (id, node) in graph.iter() {
            for (port, output) in node.outputs().iter().enumerate() {
                let at = lives.port(id, port as u32);
                if node.device as usize == device && !is_resident(node.kind()) && !node.def.op.view {
                    let dims = output.shape.dims().unwrap_or_default().iter().map(|d| d.unwrap_or(unknown_dim));
                    let n = dims.fold(output.dtype.size(), usize::saturating_mul);
                    lives.bytes[at] = if n <= 16 { 0 } else { charged(n) };
                }
            }
        }
        for (id, node) in graph.iter().filter(|(_, node)| node.def.op.view) {
            if let Some(Source::Port(from, port)) = node.inputs.first().copied() {
                let at = lives.port(id, 0);
                lives.owner[at] = lives.port(from, port) as u32;
            }
        }
        for source in graph.iter().flat_map(|(_, node)| &node.inputs).chain(&graph.fetches) {
            if let Some(owner) = lives.owner_of(*source) {
                lives.n_uses[owner] += 1;
            }
        }
        lives
    }

    pub fn port(&self, id: WorkId, port: u32) -> usize {
        (self.first_port[id.index()] + port) as usize
    }

    /// The output whose memory a source is.
    pub fn owner_of(&self, source: Source) -> Option<usize> {
        let Source::Port(id, port) = source else { return None };
        let mut at = self.port(id, port);
        // Bounded: a loop of identities alone would not end.
        for _ in 0..64 {
            match self.owner[at] as usize {
                owner if owner == at => break,
                owner => at = owner,
            }
        }
        Some(at)
    }

    pub fn bytes(&self, owner: usize) -> usize {
        self.bytes[owner]
    }

    /// How often each owner's memory is used.
    pub fn n_uses(&self) -> &[u32] {
        &self.n_uses
    }

    /// The owners of a node's own outputs.
    pub fn outputs(&self, id: WorkId, node: &WorkNode) -> std::ops::Range<usize> {
        let first = self.port(id, 0);
        first..first + node.outputs().len()
    }

    /// Bytes that running the node takes, and bytes that are free afterwards, with so many uses left of each owner.
    pub fn change(&self, id: WorkId, node: &WorkNode, left: &[u32]) -> (usize, usize) {
        let own = |at: usize| self.owner[at] as usize == at;
        let taken: usize = self.outputs(id, node).filter(|at| own(*at)).map(|at| self.bytes[at]).sum();
        let mut freed: usize =
            self.outputs(id, node).filter(|at| own(*at) && self.n_uses[*at] == 0).map(|at| self.bytes[at]).sum();
        let mut in_place = 0;
        for (i, source) in node.inputs.iter().enumerate() {
            let Some(owner) = self.owner_of(*source) else { continue };
            let uses = node.inputs.iter().filter(|s| self.owner_of(**s) == Some(owner)).count() as u32;
            let is_first = node.inputs[..i].iter().all(|s| self.owner_of(*s) != Some(owner));
            if is_first && left[owner] == uses {
                freed += self.bytes[owner];
                if writes_in_place(node.op()) && self.bytes[owner] == taken {
                    in_place = taken;
                }
            }
        }
        (taken - in_place, freed - in_place)
    }

    /// Counts a node's uses as done.
    pub fn use_up(&self, node: &WorkNode, left: &mut [u32]) {
        for owner in node.inputs.iter().filter_map(|source| self.owner_of(*source)) {
            left[owner] = left[owner].saturating_sub(1);
        }
    }

    /// Goes through a step.
    pub fn walk(&self, graph: &WorkGraph, order: &[WorkId]) -> Peak {
        let mut left = self.n_uses.clone();
        let (mut live, mut peak) = (0usize, Peak::default());
        for (at, id) in order.iter().enumerate() {
            let Some(node) = graph.get(*id) else { continue };
            let (taken, freed) = self.change(*id, node, &left);
            live += taken;
            if live > peak.bytes {
                peak = Peak { bytes: live, at };
            }
            live = live.saturating_sub(freed);
            self.use_up(node, &mut left);
        }
        peak
    }

    /// Whether a node makes or uses a value of at least so many bytes.
    pub fn touches(&self, graph: &WorkGraph, id: WorkId, bytes: usize) -> bool {
        let Some(node) = graph.get(id) else { return false };
        let used = node.inputs.iter().filter_map(|source| self.owner_of(*source));
        self.outputs(id, node).chain(used).any(|owner| self.bytes[owner] >= bytes.max(1))
    }
}
