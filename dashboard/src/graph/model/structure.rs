//! Identical structure, found exactly: the same ops wired the same way, whatever their names.
//!
//! For each scope every node below it gets a Merkle hash over its op and, in order, the hashes of its inputs (edges
//! from outside the scope count as "outside", and inputs from one and the same node are marked); then the same from the
//! consumers' side. The scope's structure is the multiset of these hashes and of its child scopes' structures. Two
//! scopes of equal hash have, up to a 64-bit collision, the same unfoldings upwards and downwards at every node. Nested
//! modules are found like top-level ones, which TensorBoard's template matching misses.
//!
//! The work is the sum over edges of the number of branching scopes around them; a file made to blow that up stops at
//! [`WORK_MAX`] and says so.

use super::{
    columns::Model,
    items::{Edge, ItemId, Kind, Structure, Warning},
};
use rustc_hash::FxHashMap;

/// Visits of an edge in a scope after which scopes are no longer compared.
const WORK_MAX: usize = 40_000_000;

const OUTSIDE: u64 = 0x9e37_79b9_7f4a_7c15;
const BACK: u64 = 0xc2b2_ae3d_27d4_eb4f;
const CONTROL: u64 = 0x1656_67b1_9e37_79f9;

/// Gives every item its structure class.
pub(super) fn find(model: &mut Model) {
    let mut finder = Finder::new(model);
    let n = model.n_items();
    let mut hash = vec![0_u64; n];
    for idx in (0..n as u32).rev() {
        let item = ItemId(idx);
        hash[item.idx()] = if model.is_op(item) {
            finder.op_hash[model.op_id(item) as usize]
        } else {
            finder.scope_hash(model, item, &hash)
        };
    }
    let skipped = finder.n_skipped;
    let mut class_of: FxHashMap<u64, u32> = FxHashMap::default();
    let mut members: Vec<u32> = Vec::new();
    for (structure, hash) in model.structure.iter_mut().zip(&hash) {
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

struct Finder {
    op_hash: Vec<u64>,
    /// Place of each node in an order where producers come before consumers, loops' back edges aside.
    place: Vec<u32>,
    up: Vec<u64>,
    down: Vec<u64>,
    order: Vec<ItemId>,
    work: usize,
    n_skipped: u64,
}

impl Finder {
    fn new(model: &Model) -> Self {
        let op_hash = model.ops.list.iter().map(|op| op.bytes().fold(17, |h, b| mix(h, u64::from(b)))).collect();
        let n = model.n_items();
        Self {
            op_hash,
            place: topological(model),
            up: vec![0; n],
            down: vec![0; n],
            order: vec![],
            work: 0,
            n_skipped: 0,
        }
    }

    fn scope_hash(&mut self, model: &Model, scope: ItemId, hash: &[u64]) -> u64 {
        let first = ItemId(scope.0 + 1);
        if model.end(scope) == first {
            return 0;
        }
        if !model.is_op(first) && model.end(first) == model.end(scope) {
            return mix(hash[first.idx()], 1);
        }
        self.order.clear();
        self.order.extend((first.0..model.end(scope).0).map(ItemId).filter(|&i| model.is_op(i)));
        self.work += self.order.iter().map(|i| 1 + model.edges_in.of(i.idx()).len()).sum::<usize>();
        if self.work > WORK_MAX {
            self.n_skipped += 1;
            return mix(u64::from(scope.0), BACK);
        }
        self.order.sort_unstable_by_key(|i| self.place[i.idx()]);
        self.upwards(model, scope);
        self.downwards(model, scope);
        let nodes = self.order.iter().fold(0_u64, |sum, i| sum.wrapping_add(scramble(self.down[i.idx()])));
        let mut scopes = 0_u64;
        let mut child = first;
        while child < model.end(scope) {
            if !model.is_op(child) {
                scopes = scopes.wrapping_add(scramble(hash[child.idx()]));
            }
            child = model.end(child);
        }
        mix(mix(nodes, scopes), u64::from(model.kind(scope) == Kind::Series))
    }

    fn upwards(&mut self, model: &Model, scope: ItemId) {
        for idx in 0..self.order.len() {
            let item = self.order[idx];
            let mut hash = self.op_hash[model.op_id(item) as usize];
            let mut controls = 0_u64;
            let mut earlier = [ItemId::ROOT; 8];
            for (at, edge) in model.inputs(item).enumerate() {
                let source = if !model.is_below(edge.src, scope) {
                    OUTSIDE
                } else if self.is_back(edge) {
                    mix(BACK, self.op_hash[model.op_id(edge.src) as usize])
                } else {
                    mix(self.up[edge.src.idx()], u64::from(edge.port))
                };
                if edge.control {
                    controls = controls.wrapping_add(scramble(source ^ CONTROL));
                } else {
                    // Two inputs from one node differ from inputs from two equal nodes.
                    let same = earlier.iter().position(|&e| e == edge.src).unwrap_or(earlier.len());
                    earlier[at % earlier.len()] = edge.src;
                    hash = mix(hash, source ^ (same as u64).rotate_right(8));
                }
            }
            self.up[item.idx()] = mix(hash, controls);
        }
    }

    fn downwards(&mut self, model: &Model, scope: ItemId) {
        for idx in (0..self.order.len()).rev() {
            let item = self.order[idx];
            let mut consumers = 0_u64;
            for edge in model.outputs(item) {
                if model.is_below(edge.dst, scope) && !self.is_back(edge) {
                    let kind = if edge.control { CONTROL } else { u64::from(edge.port) };
                    consumers = consumers.wrapping_add(scramble(mix(self.down[edge.dst.idx()], kind)));
                }
            }
            self.down[item.idx()] = mix(self.up[item.idx()], consumers);
        }
    }

    fn is_back(&self, edge: &Edge) -> bool {
        self.place[edge.src.idx()] >= self.place[edge.dst.idx()]
    }
}

/// Producers before consumers (Kahn). `NextIteration` closes a loop: its outputs wait for nothing. Nodes of other
/// cycles come last, in pre-order.
fn topological(model: &Model) -> Vec<u32> {
    let loops = model.ops.idx.get("NextIteration").copied();
    let closes = |item: ItemId| Some(model.op_id(item)) == loops;
    let mut waiting = vec![0_u32; model.n_items()];
    for edge in model.edges.iter().filter(|e| !closes(e.src)) {
        waiting[edge.dst.idx()] += 1;
    }
    let mut place = vec![u32::MAX; model.n_items()];
    let mut ready: Vec<ItemId> = model.items().filter(|&i| model.is_op(i) && waiting[i.idx()] == 0).collect();
    let mut next = 0;
    while let Some(item) = ready.pop() {
        place[item.idx()] = next;
        next += 1;
        if closes(item) {
            continue;
        }
        for edge in model.outputs(item) {
            let left = &mut waiting[edge.dst.idx()];
            *left -= 1;
            if *left == 0 {
                ready.push(edge.dst);
            }
        }
    }
    for item in model.items().filter(|&i| model.is_op(i)) {
        if place[item.idx()] == u32::MAX {
            place[item.idx()] = next;
            next += 1;
        }
    }
    place
}

/// Combines in order.
fn mix(hash: u64, value: u64) -> u64 {
    scramble(hash.rotate_left(23).wrapping_mul(OUTSIDE) ^ value)
}

/// SplitMix64's finaliser.
fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
