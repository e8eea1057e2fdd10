//! Clusters of element-wise nodes that become one node each.
//!
//! Clusters begin as single nodes, and two that an edge joins become one where that is allowed: of one type, shape and
//! device, not too long, with at most one node that is fetched, without a way from the one to the other through nodes
//! outside, and without an output that would be dead, or late, where it was not before. Late: a value that others need must
//! not wait for more heavy nodes than it did.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::liveness::Liveness;
use super::rules::{MAX_OUTPUTS, MAX_STEPS, is_exposed, is_fusable, is_same_place, n_steps};
use crate::compile::CompileError;
use crate::compile::passes::PassContext;
use crate::compile::{Source, Uses, WorkGraph, WorkId, WorkNode};
use engine_core::ops::{Effect, OpKind};
use engine_ops::kernels::formula::fused_op;

/// Nodes that a search for a way around looks at, at most; then the clusters stay two.
const MAX_SEARCH: usize = 512;
/// No cluster.
const NONE: u32 = u32::MAX;

struct Cluster {
    members: SmallVec<[WorkId; 8]>,
    n_steps: usize,
    /// Position of the first member in the order.
    first: u32,
    /// Position of the last member.
    last: u32,
}

/// All clusters of a graph.
pub(super) struct Clusters {
    of: Vec<u32>,
    all: Vec<Cluster>,
}

impl Clusters {
    /// Grows them.
    ///
    /// # Errors
    /// The graph has a cycle.
    pub fn of(graph: &WorkGraph, uses: &Uses, context: &PassContext<'_>) -> Result<Clusters, CompileError> {
        let order = graph.order()?;
        let mut growth = Growth {
            graph,
            uses,
            context,
            liveness: Liveness::of(graph, &order)?,
            depth: depths(graph, &order),
            receivers: graph.senders.iter().map(|(recv, send)| (*send, *recv)).collect(),
            position: vec![0; graph.n_ids()],
            clusters: Clusters { of: vec![NONE; graph.n_ids()], all: Vec::new() },
        };
        order.iter().enumerate().for_each(|(i, id)| growth.position[id.index()] = i as u32);
        for id in order {
            growth.grow(id);
        }
        let mut clusters = growth.clusters;
        for cluster in &mut clusters.all {
            cluster.members.sort_unstable_by_key(|id| growth.position[id.index()]);
        }
        Ok(clusters)
    }

    /// The members of each that has at least two, in topological order.
    pub fn iter(&self) -> impl Iterator<Item = &[WorkId]> {
        self.all.iter().map(|cluster| cluster.members.as_slice()).filter(|members| members.len() > 1)
    }

    /// The number of the cluster that a node is in, with at least one other.
    pub fn number(&self, id: WorkId) -> Option<u32> {
        let number = *self.of.get(id.index())?;
        let is_real = self.all.get(number as usize).is_some_and(|cluster| cluster.members.len() > 1);
        is_real.then_some(number)
    }
}

/// How many heavy nodes lie before each node, one after the other.
fn depths(graph: &WorkGraph, order: &[WorkId]) -> Vec<u32> {
    let mut depth = vec![0u32; graph.n_ids()];
    for id in order {
        let Some(node) = graph.get(*id) else { continue };
        let sender = graph.senders.get(id).copied();
        let before = node.before().chain(sender).filter(|before| !graph.is_back_edge(*before, *id));
        let before = before.map(|before| depth[before.index()]).max().unwrap_or(0);
        depth[id.index()] = before + u32::from(is_heavy(node));
    }
    depth
}

/// Ops that may take much longer than reading their inputs once.
fn is_heavy(node: &WorkNode) -> bool {
    let op = node.op();
    fused_op(op).is_none()
        && node.kind() == OpKind::Compute
        && !node.def.op.view
        && node.def.op.effect != Effect::Step
        && !matches!(op, "Split" | "SplitV" | "Slice" | "StridedSlice" | "ConcatV2" | "Pack" | "Unpack" | "Shape")
}

struct Growth<'a> {
    graph: &'a WorkGraph,
    uses: &'a Uses,
    context: &'a PassContext<'a>,
    liveness: Liveness,
    depth: Vec<u32>,
    /// The `_Recv` of each `_Send`, which waits for it without an edge.
    receivers: FxHashMap<WorkId, WorkId>,
    position: Vec<u32>,
    clusters: Clusters,
}

impl Growth<'_> {
    /// Adds a node to the clusters that it takes values from.
    fn grow(&mut self, id: WorkId) {
        let fits = |node: &&WorkNode| {
            is_fusable(self.graph, node)
                && n_steps(node) <= MAX_STEPS
                && self.context.has_kernel(node, "_FusedElementwise")
        };
        let Some(node) = self.graph.get(id).filter(fits) else { return };
        let (number, position) = (self.clusters.all.len() as u32, self.position[id.index()]);
        let members = SmallVec::from_slice(&[id]);
        self.clusters.all.push(Cluster { members, n_steps: n_steps(node), first: position, last: position });
        self.clusters.of[id.index()] = number;
        for source in &node.inputs {
            if let Source::Port(from, 0) = *source {
                let (a, b) = (self.clusters.of[from.index()], self.clusters.of[id.index()]);
                if a != NONE && a != b && self.may_merge(a, b) {
                    self.merge(a, b);
                }
            }
        }
    }

    /// Makes one cluster of two.
    fn merge(&mut self, a: u32, b: u32) {
        let gone = std::mem::take(&mut self.clusters.all[a as usize].members);
        gone.iter().for_each(|id| self.clusters.of[id.index()] = b);
        let (n_steps, first) = (self.clusters.all[a as usize].n_steps, self.clusters.all[a as usize].first);
        let into = &mut self.clusters.all[b as usize];
        into.members.extend(gone);
        into.n_steps += n_steps;
        into.first = into.first.min(first);
    }

    fn may_merge(&self, a: u32, b: u32) -> bool {
        let [from, to] = [a, b].map(|c| &self.clusters.all[c as usize]);
        let (Some(x), Some(y)) = (self.graph.get(from.members[0]), self.graph.get(to.members[0])) else { return false };
        from.n_steps + to.n_steps <= MAX_STEPS
            && is_same_place(x, y)
            && x.outputs()[0] == y.outputs()[0]
            && self.outputs_stay(from, to)
            && !self.has_way_around(a, b)
    }

    /// Whether the values that others need would be as live and as early as they were.
    fn outputs_stay(&self, a: &Cluster, b: &Cluster) -> bool {
        let members = || a.members.iter().chain(&b.members).copied();
        let is_member = |id: WorkId| a.members.contains(&id) || b.members.contains(&id);
        let exposed: SmallVec<[WorkId; 16]> = members().filter(|id| is_exposed(self.uses, *id, is_member)).collect();
        // One alone waits for all others anyway.
        let ([] | [_]) = exposed.as_slice() else {
            let as_one = |id: &WorkId| (self.liveness.get(*id), self.depth[id.index()]);
            return exposed.len() <= MAX_OUTPUTS
                && exposed.iter().filter(|id| self.uses.is_wanted(**id)).count() <= 1
                && exposed.iter().all(|id| as_one(id) == as_one(&exposed[0]));
        };
        true
    }

    /// Whether something outside waits for `a` and makes `b` wait: as one they would wait for themselves.
    fn has_way_around(&self, a: u32, b: u32) -> bool {
        let end = self.clusters.all[b as usize].last;
        let mut seen: FxHashSet<WorkId> = FxHashSet::default();
        let mut stack: Vec<WorkId> = Vec::new();
        let follow = |id: WorkId, stack: &mut Vec<WorkId>| {
            let consumers = self.uses.of_node(id).iter().map(|one| one.consumer);
            stack.extend(consumers.filter(|to| !self.graph.is_back_edge(id, *to)));
            stack.extend(self.receivers.get(&id));
        };
        self.clusters.all[a as usize].members.iter().for_each(|id| follow(*id, &mut stack));
        // What `b` takes from `a` directly is no way around.
        stack.retain(|id| self.clusters.of[id.index()] != a && self.clusters.of[id.index()] != b);
        while let Some(id) = stack.pop() {
            let cluster = self.clusters.of[id.index()];
            if cluster == b {
                return true;
            }
            if cluster == a || !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_SEARCH {
                return true;
            }
            // Whoever waits for one member waits for all of its cluster.
            let members: &[WorkId] = match self.clusters.all.get(cluster as usize) {
                Some(cluster) if cluster.first <= end => &cluster.members,
                None if self.position[id.index()] <= end => &[id],
                _ => &[],
            };
            for member in members {
                seen.insert(*member);
                follow(*member, &mut stack);
            }
        }
        false
    }
}
