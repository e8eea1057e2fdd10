//! Adjacency, annotations and metaedges.
//!
//! A metaedge joins the two children of the lowest scope that holds both ends of an edge. The search for these children
//! follows jump pointers (Myers, "An applicative random-access stack", 1983), so that its time is logarithmic even in a
//! scope a hundred thousand levels deep.

use super::{
    columns::Model,
    csr::Csr,
    items::{Edge, ItemId, MetaEdge, Role},
};

/// Fills all columns that are derived from the edges.
pub(super) fn connect(model: &mut Model) {
    let n = model.n_items();
    model.edges_in = Csr::index(n, &model.edges, |e| e.dst.0);
    model.edges_out = Csr::index(n, &model.edges, |e| e.src.0);
    annotate(model, n);
    model.flow_in = Csr::index(n, &model.flow, |e| e.dst.0);
    model.flow_out = Csr::index(n, &model.flow, |e| e.src.0);
    model.jump = jump_pointers(model);
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
                for input in model.edges_in.row(edge.src.idx()).iter().map(|&e| model.edges[e as usize]) {
                    if model.role(input.src) == Role::Shown {
                        flow.push(Edge { dst: edge.dst, ..input });
                    }
                }
            }
            (Role::Shown, Role::Summary) if !edge.is_control => summaries.push((edge.src.0, edge.dst)),
            _ => {}
        }
    }
    constants.dedup();
    summaries.dedup();
    model.constants = Csr::from_pairs(n, &constants);
    model.summaries = Csr::from_pairs(n, &summaries);
    model.flow = flow;
}

/// Returns an ancestor of each item, so that chains of pointers to any ancestor have logarithmic length.
fn jump_pointers(model: &Model) -> Vec<ItemId> {
    let mut jump: Vec<ItemId> = Vec::with_capacity(model.n_items());
    for item in model.items() {
        let parent = model.parent(item);
        let (first, second) = match item {
            ItemId::ROOT => (ItemId::ROOT, ItemId::ROOT),
            _ => (jump[parent.idx()], jump[jump[parent.idx()].idx()]),
        };
        let first_length = model.depth(parent) - model.depth(first);
        let second_length = model.depth(first) - model.depth(second);
        jump.push(if first_length == second_length { second } else { parent });
    }
    jump
}

impl Model {
    /// Returns the child of the lowest common scope that holds `item`; the item itself if it holds `other`.
    pub fn side_of(&self, item: ItemId, other: ItemId) -> ItemId {
        let mut ancestor = item;
        loop {
            let (jump, parent) = (self.jump[ancestor.idx()], self.parent(ancestor));
            if !self.is_below(other, jump) {
                ancestor = jump;
            } else if !self.is_below(other, parent) {
                ancestor = parent;
            } else {
                return ancestor;
            }
        }
    }

    /// Returns the child of `scope` that holds `item`, which must be below `scope`.
    pub fn child_towards(&self, scope: ItemId, item: ItemId) -> ItemId {
        let mut ancestor = item;
        while self.parent(ancestor) != scope && ancestor != ItemId::ROOT {
            let jump = self.jump[ancestor.idx()];
            ancestor = if self.depth(jump) > self.depth(scope) { jump } else { self.parent(ancestor) };
        }
        ancestor
    }
}

fn metaedges(model: &Model) -> Csr<MetaEdge> {
    let mut edge_ends: Vec<(ItemId, ItemId, ItemId, u32)> = Vec::with_capacity(model.flow.len());
    for (idx, edge) in model.flow.iter().enumerate() {
        if edge.src != edge.dst {
            let (src, dst) = (model.side_of(edge.src, edge.dst), model.side_of(edge.dst, edge.src));
            edge_ends.push((model.parent(src), src, dst, idx as u32));
        }
    }
    edge_ends.sort_unstable();
    let mut metaedges: Vec<(u32, MetaEdge)> = Vec::new();
    for &(scope, src, dst, idx) in &edge_ends {
        let edge = &model.flow[idx as usize];
        match metaedges.last_mut() {
            Some((_, last)) if (last.src, last.dst) == (src, dst) => last.add(edge),
            _ => metaedges.push((scope.0, MetaEdge::from_edge(src, dst, edge))),
        }
    }
    Csr::from_pairs(model.n_items(), &metaedges)
}

impl MetaEdge {
    /// Creates the metaedge of a single edge.
    pub fn from_edge(src: ItemId, dst: ItemId, edge: &Edge) -> Self {
        let mut metaedge = Self { src, dst, n_data: 0, n_control: 0, n_reference: 0, size: 0, sample: *edge };
        metaedge.add(edge);
        metaedge
    }

    /// Adds an edge.
    pub fn add(&mut self, edge: &Edge) {
        if self.sample.is_control && !edge.is_control {
            self.sample = *edge;
        }
        self.n_data += u32::from(!edge.is_control);
        self.n_control += u32::from(edge.is_control);
        self.n_reference += u32::from(edge.is_reference);
        self.size = self.size.saturating_add(edge.size);
    }

    /// Whether all edges are control edges.
    pub fn is_control(&self) -> bool {
        self.n_data == 0
    }
}
