//! Scopes of identical structure: the same ops wired in the same way, whatever their names.
//!
//! For each scope, every node below gets a Merkle hash over its op and, in order, the hashes of its inputs (edges from
//! outside the scope count as "outside", and inputs from the same node are marked); then a second hash from the side of
//! the consumers. The scope's structure is the multiset of these hashes and of its child scopes' structures. Two scopes
//! of equal hash have, up to a 64-bit collision, the same unfoldings upwards and downwards at every node. Nested
//! modules are found like top-level ones, which TensorBoard's template matching misses.
//!
//! The work is the sum over edges of the number of branching scopes around them. If a file makes this sum huge, the
//! comparison ends at [`MAX_WORK`] with a warning.

use super::{
    columns::Model,
    items::{Edge, ItemId, Kind, Structure, Warning},
};
use rustc_hash::FxHashMap;

/// Visits of edges after which further scopes are not compared.
const MAX_WORK: usize = 40_000_000;

/// Salts of the hashes.
const OUTSIDE: u64 = 0x9e37_79b9_7f4a_7c15;
const BACK: u64 = 0xc2b2_ae3d_27d4_eb4f;
const CONTROL: u64 = 0x1656_67b1_9e37_79f9;

/// Assigns a structure class to every item.
pub(super) fn assign_classes(model: &mut Model) {
    let mut finder = Finder::new(model);
    let n = model.n_items();
    let mut hashes = vec![0_u64; n];
    for idx in (0..n as u32).rev() {
        let item = ItemId(idx);
        hashes[item.idx()] = if model.is_op(item) {
            finder.op_hash[model.op_id(item) as usize]
        } else {
            finder.scope_hash(model, item, &hashes)
        };
    }
    let skipped = finder.n_skipped;
    let mut class_of: FxHashMap<u64, u32> = FxHashMap::default();
    let mut members: Vec<u32> = Vec::new();
    for (structure, hash) in model.structure.iter_mut().zip(&hashes) {
        let class = *class_of.entry(*hash).or_insert_with(|| {
            members.push(0);
            members.len() as u32 - 1
        });
        structure.class = class;
        members[class as usize] += 1;
    }
    for Structure { class, n_members } in &mut model.structure {
        *n_members = members[*class as usize];
    }
    if skipped > 0 {
        let text = "scopes were too deeply interwoven to compare their structure".to_owned();
        model.warnings.push(Warning { count: skipped, text });
    }
}

/// The hashes of one scope at a time.
struct Finder {
    op_hash: Vec<u64>,
    /// The position of each node in topological order, without the back edges of loops.
    topo_idx: Vec<u32>,
    /// The hash of each node over its producers.
    up: Vec<u64>,
    /// The hash of each node over its consumers and `up`.
    down: Vec<u64>,
    /// The nodes of the scope in topological order.
    order: Vec<ItemId>,
    /// Visits of edges so far.
    work: usize,
    /// Scopes that were not compared.
    n_skipped: u64,
}

impl Finder {
    fn new(model: &Model) -> Self {
        let op_hash = model.ops.list.iter().map(|op| op.bytes().fold(17, |h, b| mix(h, u64::from(b)))).collect();
        let n = model.n_items();
        Self {
            op_hash,
            topo_idx: topological_positions(model),
            up: vec![0; n],
            down: vec![0; n],
            order: vec![],
            work: 0,
            n_skipped: 0,
        }
    }

    fn scope_hash(&mut self, model: &Model, scope: ItemId, hashes: &[u64]) -> u64 {
        let first = ItemId(scope.0 + 1);
        if model.end(scope) == first {
            return 0;
        }
        if !model.is_op(first) && model.end(first) == model.end(scope) {
            return mix(hashes[first.idx()], 1);
        }
        self.order.clear();
        self.order.extend((first.0..model.end(scope).0).map(ItemId).filter(|&i| model.is_op(i)));
        self.work += self.order.iter().map(|i| 1 + model.edges_in.row(i.idx()).len()).sum::<usize>();
        if self.work > MAX_WORK {
            self.n_skipped += 1;
            return mix(u64::from(scope.0), BACK);
        }
        self.order.sort_unstable_by_key(|i| self.topo_idx[i.idx()]);
        self.hash_upwards(model, scope);
        self.hash_downwards(model, scope);
        let nodes = self.order.iter().fold(0_u64, |sum, i| sum.wrapping_add(scramble(self.down[i.idx()])));
        let mut scopes = 0_u64;
        let mut child = first;
        while child < model.end(scope) {
            if !model.is_op(child) {
                scopes = scopes.wrapping_add(scramble(hashes[child.idx()]));
            }
            child = model.end(child);
        }
        mix(mix(nodes, scopes), u64::from(model.kind(scope) == Kind::Series))
    }

    fn hash_upwards(&mut self, model: &Model, scope: ItemId) {
        for idx in 0..self.order.len() {
            let item = self.order[idx];
            let mut hash = self.op_hash[model.op_id(item) as usize];
            let mut controls = 0_u64;
            let mut recent_sources = [ItemId::ROOT; 8];
            for (i, edge) in model.inputs(item).enumerate() {
                let source = if !model.is_below(edge.src, scope) {
                    OUTSIDE
                } else if self.is_back(edge) {
                    mix(BACK, self.op_hash[model.op_id(edge.src) as usize])
                } else {
                    mix(self.up[edge.src.idx()], u64::from(edge.port))
                };
                if edge.is_control {
                    controls = controls.wrapping_add(scramble(source ^ CONTROL));
                } else {
                    // Two inputs from one node differ from inputs from two equal nodes.
                    let same_idx = recent_sources.iter().position(|&e| e == edge.src).unwrap_or(recent_sources.len());
                    recent_sources[i % recent_sources.len()] = edge.src;
                    hash = mix(hash, source ^ (same_idx as u64).rotate_right(8));
                }
            }
            self.up[item.idx()] = mix(hash, controls);
        }
    }

    fn hash_downwards(&mut self, model: &Model, scope: ItemId) {
        for idx in (0..self.order.len()).rev() {
            let item = self.order[idx];
            let mut consumers = 0_u64;
            for edge in model.outputs(item) {
                if model.is_below(edge.dst, scope) && !self.is_back(edge) {
                    let kind = if edge.is_control { CONTROL } else { u64::from(edge.port) };
                    consumers = consumers.wrapping_add(scramble(mix(self.down[edge.dst.idx()], kind)));
                }
            }
            self.down[item.idx()] = mix(self.up[item.idx()], consumers);
        }
    }

    fn is_back(&self, edge: &Edge) -> bool {
        self.topo_idx[edge.src.idx()] >= self.topo_idx[edge.dst.idx()]
    }
}

/// Returns the position of each node in topological order (Kahn), without the edges out of `NextIteration`, which close
/// loops. Nodes of other cycles come last, in pre-order.
fn topological_positions(model: &Model) -> Vec<u32> {
    let next_iteration = model.ops.idx.get("NextIteration").copied();
    let closes_loop = |item: ItemId| Some(model.op_id(item)) == next_iteration;
    let mut n_pending = vec![0_u32; model.n_items()];
    for edge in model.edges.iter().filter(|e| !closes_loop(e.src)) {
        n_pending[edge.dst.idx()] += 1;
    }
    let mut positions = vec![u32::MAX; model.n_items()];
    let mut ready: Vec<ItemId> = model.items().filter(|&i| model.is_op(i) && n_pending[i.idx()] == 0).collect();
    let mut next = 0;
    while let Some(item) = ready.pop() {
        positions[item.idx()] = next;
        next += 1;
        if closes_loop(item) {
            continue;
        }
        for edge in model.outputs(item) {
            let n_left = &mut n_pending[edge.dst.idx()];
            *n_left -= 1;
            if *n_left == 0 {
                ready.push(edge.dst);
            }
        }
    }
    for item in model.items().filter(|&i| model.is_op(i)) {
        if positions[item.idx()] == u32::MAX {
            positions[item.idx()] = next;
            next += 1;
        }
    }
    positions
}

/// Combines a hash with a value; the order matters.
fn mix(hash: u64, value: u64) -> u64 {
    scramble(hash.rotate_left(23).wrapping_mul(OUTSIDE) ^ value)
}

/// SplitMix64's finaliser.
fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
