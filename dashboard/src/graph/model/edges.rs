//! Adjacency, annotations and metaedges.
//!
//! A metaedge joins the two children of the lowest scope that holds both ends of an edge. Finding them walks up with
//! jump pointers (Myers, "An applicative random-access stack", 1983): logarithmic even in a scope a hundred thousand
//! levels deep.

use super::{
    columns::Model,
    csr::Csr,
    items::{Edge, ItemId, MetaEdge, Role},
};

/// Fills everything that is derived from the edges as written.
pub(super) fn connect(model: &mut Model) {
    let n = model.n_items();
    model.edges_in = Csr::index(n, &model.edges, |e| e.dst.0);
    model.edges_out = Csr::index(n, &model.edges, |e| e.src.0);
    annotate(model, n);
    model.flow_in = Csr::index(n, &model.flow, |e| e.dst.0);
    model.flow_out = Csr::index(n, &model.flow, |e| e.src.0);
    model.jump = jumps(model);
    model.metaedges = metaedges(model);
}

/// Splits the edges into those that are drawn and annotations. The inputs of a constant (control edges of a loop's
/// frame) go to the nodes it feeds.
fn annotate(model: &mut Model, n: usize) {
    let (mut flow, mut constants, mut summaries) = (Vec::with_capacity(model.edges.len()), vec![], vec![]);
    for edge in &model.edges {
        match (model.role(edge.src), model.role(edge.dst)) {
            (Role::Shown, Role::Shown) => flow.push(*edge),
            (Role::Constant, Role::Shown) => {
                constants.push((edge.dst.0, edge.src));
                for above in model.edges_in.of(edge.src.idx()).iter().map(|&e| model.edges[e as usize]) {
                    if model.role(above.src) == Role::Shown {
                        flow.push(Edge { dst: edge.dst, ..above });
                    }
                }
            }
            (Role::Shown, Role::Summary) if !edge.control => summaries.push((edge.src.0, edge.dst)),
            _ => {}
        }
    }
    constants.dedup();
    summaries.dedup();
    model.constants = Csr::from_pairs(n, &constants);
    model.summaries = Csr::from_pairs(n, &summaries);
    model.flow = flow;
}

fn jumps(model: &Model) -> Vec<ItemId> {
    let mut jump: Vec<ItemId> = Vec::with_capacity(model.n_items());
    for item in model.items() {
        let parent = model.parent(item);
        let (one, two) = match item {
            ItemId::ROOT => (ItemId::ROOT, ItemId::ROOT),
            _ => (jump[parent.idx()], jump[jump[parent.idx()].idx()]),
        };
        let first = model.depth(parent) - model.depth(one);
        let second = model.depth(one) - model.depth(two);
        jump.push(if first == second { two } else { parent });
    }
    jump
}

impl Model {
    /// The highest ancestor of `item` (or itself) that does not hold `other`: the child of their lowest common scope
    /// on `item`'s side. The item itself where it holds `other`.
    pub fn side_of(&self, item: ItemId, other: ItemId) -> ItemId {
        let mut at = item;
        loop {
            let (jump, parent) = (self.jump[at.idx()], self.parent(at));
            if !self.is_below(other, jump) {
                at = jump;
            } else if !self.is_below(other, parent) {
                at = parent;
            } else {
                return at;
            }
        }
    }

    /// The child of `scope` that holds `item`, which must lie below it.
    pub fn child_towards(&self, scope: ItemId, item: ItemId) -> ItemId {
        let mut at = item;
        while self.parent(at) != scope && at != ItemId::ROOT {
            let jump = self.jump[at.idx()];
            at = if self.depth(jump) > self.depth(scope) { jump } else { self.parent(at) };
        }
        at
    }
}

fn metaedges(model: &Model) -> Csr<MetaEdge> {
    let mut found: Vec<(ItemId, ItemId, ItemId, u32)> = Vec::with_capacity(model.flow.len());
    for (idx, edge) in model.flow.iter().enumerate() {
        if edge.src != edge.dst {
            let (src, dst) = (model.side_of(edge.src, edge.dst), model.side_of(edge.dst, edge.src));
            found.push((model.parent(src), src, dst, idx as u32));
        }
    }
    found.sort_unstable();
    let mut metaedges: Vec<(u32, MetaEdge)> = Vec::new();
    for &(scope, src, dst, idx) in &found {
        let edge = &model.flow[idx as usize];
        match metaedges.last_mut() {
            Some((_, last)) if (last.src, last.dst) == (src, dst) => last.add(edge),
            _ => metaedges.push((scope.0, MetaEdge::of(src, dst, edge))),
        }
    }
    Csr::from_pairs(model.n_items(), &metaedges)
}

impl MetaEdge {
    pub fn of(src: ItemId, dst: ItemId, edge: &Edge) -> Self {
        let mut made = Self { src, dst, n_data: 0, n_control: 0, n_reference: 0, size: 0, sample: *edge };
        made.add(edge);
        made
    }

    /// Counts one more edge in.
    pub fn add(&mut self, edge: &Edge) {
        if self.sample.control && !edge.control {
            self.sample = *edge;
        }
        self.n_data += u32::from(!edge.control);
        self.n_control += u32::from(edge.control);
        self.n_reference += u32::from(edge.reference);
        self.size = self.size.saturating_add(edge.size);
    }

    /// Whether all edges are control edges.
    pub fn is_control(&self) -> bool {
        self.n_data == 0
    }
}
