//! A graph file as columns: the tree of name scopes, its nodes, its edges, and what is known of each.
//!
//! Items are numbered in pre-order, so that everything below a scope is one contiguous range and "is below" is two
//! comparisons. Edges are kept twice: [`Model::inputs`] / [`Model::outputs`] are the graph as written; flow edges and
//! metaedges are what a picture shows, with constants and summary ops made annotations of the nodes they belong to.
//!
//! Reading order: [`build`](Model::build) in `build`, input strings in `input_ref`, tensor shapes in `shapes`, folding
//! in `series`, identical structure in `structure`, side areas in `extract`.

mod build;
mod control;
mod csr;
mod edges;
pub(crate) mod extract;
mod input_ref;
mod series;
mod shapes;
mod structure;
mod tree;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use build::function_prefix;
pub use control::Control;
pub use csr::Csr;
pub use input_ref::{InputRef, parse_input};
pub use shapes::{Shape, output_shape};

use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An item of a [`Model`]: a name scope, a folded series or a node. Numbers are pre-order positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub u32);

impl ItemId {
    /// The graph itself.
    pub const ROOT: Self = Self(0);

    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The whole graph.
    Root,
    /// A name scope.
    Scope,
    /// Nodes of one op whose names differ in the trailing `_N` only.
    Series,
    /// The function library.
    Library,
    /// The body of a library function.
    Function,
    /// A node.
    Op,
}

/// How a picture shows an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// As a box.
    Shown,
    /// As an annotation of its consumers: a constant that feeds something.
    Constant,
    /// As an annotation of its producers: a summary op.
    Summary,
    /// Not at all: a scope that holds only annotations.
    Empty,
}

/// An edge of the graph as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Producer.
    pub src: ItemId,
    /// Consumer.
    pub dst: ItemId,
    /// The producer's output; 0 for control edges.
    pub port: u32,
    /// Orders execution, carries no tensor.
    pub control: bool,
    /// The consumer writes the variable behind the tensor (input 0 of `Assign` and its like).
    pub reference: bool,
    /// Elements of the tensor, unknown dimensions counted as 1; 1 where no shape is known; 0 for control edges.
    pub size: u64,
}

/// All edges between two children of one scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaEdge {
    /// Producing child.
    pub src: ItemId,
    /// Consuming child.
    pub dst: ItemId,
    /// Edges that carry tensors.
    pub n_data: u32,
    /// Control edges.
    pub n_control: u32,
    /// Edges by which the consumer writes a variable; counted in `n_data` too.
    pub n_reference: u32,
    /// Elements over all tensors.
    pub size: u64,
    /// One of the edges, for the label.
    pub sample: Edge,
}

/// A structure shared by several scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Equal for items of equal structure; numbered by first appearance.
    pub class: u32,
    /// How many items share it.
    pub n_members: u32,
}

/// Something in the file that could not be shown as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How often.
    pub count: u64,
    /// What, with one example.
    pub text: String,
}

/// A graph file as columns. See the module's text.
#[derive(Debug, Default)]
pub struct Model {
    def: Arc<GraphDef>,
    /// Full names of nodes one after another; a scope's name is a prefix of its first node's.
    text: String,
    /// Per item: place of its full name in `text` and where its last component starts.
    name: Vec<NameSpan>,
    kind: Vec<KindColumn>,
    parent: Vec<ItemId>,
    /// Per item: the first item after its subtree.
    end: Vec<ItemId>,
    depth: Vec<u32>,
    /// Per item: an ancestor further up, for logarithmic walks (see `edges`).
    jump: Vec<ItemId>,
    /// Per item: its place in `defs` (nodes only).
    def_idx: Vec<u32>,
    /// Per node: which `NodeDef`, as (function + 1 or 0 for the main graph, index).
    defs: Vec<(u32, u32)>,
    op: Vec<u32>,
    device: Vec<u32>,
    ops: Names,
    devices: Names,
    n_nodes: Vec<u32>,
    children: Csr<ItemId>,
    op_counts: Csr<(u32, u32)>,
    device_counts: Csr<(u32, u32)>,
    edges: Vec<Edge>,
    edges_in: Csr<u32>,
    edges_out: Csr<u32>,
    /// Edges between shown nodes, sorted by consumer; and the same by producer.
    flow: Vec<Edge>,
    flow_in: Csr<u32>,
    flow_out: Csr<u32>,
    metaedges: Csr<MetaEdge>,
    constants: Csr<ItemId>,
    summaries: Csr<ItemId>,
    structure: Vec<Structure>,
    control: FxHashMap<ItemId, Control>,
    by_name: FxHashMap<Box<str>, ItemId>,
    warnings: Vec<Warning>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NameSpan {
    start: u32,
    leaf: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KindColumn {
    kind: Kind,
    role: Role,
}

/// Interned strings in order of first appearance.
#[derive(Debug, Default)]
struct Names {
    list: Vec<Box<str>>,
    idx: FxHashMap<Box<str>, u32>,
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&idx) = self.idx.get(name) {
            return idx;
        }
        let idx = self.list.len() as u32;
        self.list.push(name.into());
        self.idx.insert(name.into(), idx);
        idx
    }

    fn get(&self, idx: u32) -> &str {
        self.list.get(idx as usize).map_or("", |name| name)
    }
}

impl Model {
    /// Number of items, scopes and nodes.
    pub fn n_items(&self) -> usize {
        self.kind.len()
    }

    /// Number of edges as written in the file.
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// Every item in pre-order.
    pub fn items(&self) -> impl Iterator<Item = ItemId> + use<> {
        (0..self.kind.len() as u32).map(ItemId)
    }

    /// What `item` is.
    pub fn kind(&self, item: ItemId) -> Kind {
        self.kind[item.idx()].kind
    }

    /// How a picture shows `item`.
    pub fn role(&self, item: ItemId) -> Role {
        self.kind[item.idx()].role
    }

    /// Whether `item` is a node.
    pub fn is_op(&self, item: ItemId) -> bool {
        self.kind(item) == Kind::Op
    }

    /// Whether `item` can be expanded: it is no node and has something to show.
    pub fn is_expandable(&self, item: ItemId) -> bool {
        !self.is_op(item) && !self.children(item).is_empty()
    }

    /// The full name. A node that is also a scope keeps the name the file gives it.
    pub fn name(&self, item: ItemId) -> &str {
        let span = self.name[item.idx()];
        &self.text[span.start as usize..span.end as usize]
    }

    /// The last component of the name; `(A)` for a node `A` that is also a scope.
    pub fn label(&self, item: ItemId) -> std::borrow::Cow<'_, str> {
        let span = self.name[item.idx()];
        let leaf = &self.text[span.leaf as usize..span.end as usize];
        let parent = self.parent(item);
        if self.is_op(item) && parent != ItemId::ROOT && self.name(parent) == self.name(item) {
            return format!("({leaf})").into();
        }
        leaf.into()
    }

    /// The scope that holds `item`; the root's is the root.
    pub fn parent(&self, item: ItemId) -> ItemId {
        self.parent[item.idx()]
    }

    /// The first item after `item`'s subtree.
    pub fn end(&self, item: ItemId) -> ItemId {
        self.end[item.idx()]
    }

    /// How many scopes lie above `item`; 0 for the root.
    pub fn depth(&self, item: ItemId) -> u32 {
        self.depth[item.idx()]
    }

    /// Whether `item` is `scope` or lies below it.
    pub fn is_below(&self, item: ItemId, scope: ItemId) -> bool {
        scope <= item && item < self.end(scope)
    }

    /// Children that a picture shows as boxes, in the file's order.
    pub fn children(&self, scope: ItemId) -> &[ItemId] {
        self.children.of(scope.idx())
    }

    /// Nodes below `item`, annotations counted; 1 for a node.
    pub fn n_nodes(&self, item: ItemId) -> u32 {
        self.n_nodes[item.idx()]
    }

    /// A node's op; empty for scopes.
    pub fn op(&self, item: ItemId) -> &str {
        self.ops.get(self.op[item.idx()])
    }

    /// A node's op as a number that is the same for equal ops; `u32::MAX` for scopes.
    pub fn op_id(&self, item: ItemId) -> u32 {
        self.op[item.idx()]
    }

    /// A node's device as the file gives it; empty where it gives none.
    pub fn device(&self, item: ItemId) -> &str {
        self.devices.get(self.device[item.idx()])
    }

    /// Ops below a scope with their counts, most frequent first.
    pub fn op_counts(&self, scope: ItemId) -> impl Iterator<Item = (&str, u32)> {
        self.op_counts.of(scope.idx()).iter().map(|&(op, n)| (self.ops.get(op), n))
    }

    /// Devices below a scope with their counts, most frequent first; the empty name is "none given".
    pub fn device_counts(&self, scope: ItemId) -> impl Iterator<Item = (&str, u32)> {
        self.device_counts.of(scope.idx()).iter().map(|&(device, n)| (self.devices.get(device), n))
    }

    /// Devices in the file in order of first appearance.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.devices.list.iter().map(|name| &**name)
    }

    /// A node's definition; `None` for scopes and for arguments and results of functions.
    pub fn node_def(&self, item: ItemId) -> Option<&NodeDef> {
        let (function, idx) = *self.defs.get(*self.def_idx.get(item.idx())? as usize)?;
        match function {
            0 => self.def.node.get(idx as usize),
            f => self.def.library.as_ref()?.function.get(f as usize - 1)?.node_def.get(idx as usize),
        }
    }

    /// The definition that the model was built from.
    pub fn def(&self) -> &Arc<GraphDef> {
        &self.def
    }

    /// The item with this full name: the node, or else the scope.
    pub fn find(&self, name: &str) -> Option<ItemId> {
        self.by_name.get(name).copied()
    }

    /// Edges into a node, in the order of its inputs.
    pub fn inputs(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.edges_in.of(item.idx()).iter().map(|&e| &self.edges[e as usize])
    }

    /// Edges out of a node.
    pub fn outputs(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.edges_out.of(item.idx()).iter().map(|&e| &self.edges[e as usize])
    }

    /// Edges between shown nodes whose consumer lies in `item`'s subtree.
    pub fn flow_into(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.flow_in.range(item.idx(), self.end(item).idx()).iter().map(|&e| &self.flow[e as usize])
    }

    /// Edges between shown nodes whose producer lies in `item`'s subtree.
    pub fn flow_out_of(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.flow_out.range(item.idx(), self.end(item).idx()).iter().map(|&e| &self.flow[e as usize])
    }

    /// Edges between the children of `scope`.
    pub fn metaedges(&self, scope: ItemId) -> &[MetaEdge] {
        self.metaedges.of(scope.idx())
    }

    /// Constants that feed a node directly.
    pub fn constants(&self, item: ItemId) -> &[ItemId] {
        self.constants.of(item.idx())
    }

    /// Summary ops that record a node's outputs.
    pub fn summaries(&self, item: ItemId) -> &[ItemId] {
        self.summaries.of(item.idx())
    }

    /// The structure of a scope, or of a node (its op).
    pub fn structure(&self, item: ItemId) -> Structure {
        self.structure[item.idx()]
    }

    /// Whether a scope is a loop or a conditional.
    pub fn control(&self, scope: ItemId) -> Option<Control> {
        self.control.get(&scope).copied()
    }

    /// What could not be shown as written.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The shown box that stands for `item`: itself, or for an annotation the node it annotates.
    pub fn host(&self, item: ItemId) -> ItemId {
        let shown = |candidate: ItemId| self.role(candidate) == Role::Shown;
        match self.role(item) {
            Role::Shown => item,
            Role::Constant => self.outputs(item).map(|e| e.dst).find(|&i| shown(i)).unwrap_or(ItemId::ROOT),
            Role::Summary => self.inputs(item).map(|e| e.src).find(|&i| shown(i)).unwrap_or(ItemId::ROOT),
            Role::Empty => self.parent(item),
        }
    }

    /// Whether any shape is known, so that sizes of edges mean something.
    pub fn has_sizes(&self) -> bool {
        self.flow.iter().any(|edge| edge.size > 1)
    }
}
