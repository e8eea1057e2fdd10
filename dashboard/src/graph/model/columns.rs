//! The graph's tables: a column for each property of items and edges.

use super::{
    csr::Csr,
    items::{Control, Edge, ItemId, Kind, MetaEdge, Role, Structure, Warning},
};
use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A graph file as columns.
#[derive(Debug, Default)]
pub struct Model {
    pub(super) def: Arc<GraphDef>,
    /// Full names of nodes, concatenated; a scope's name is a prefix of its first node's.
    pub(super) text: String,
    pub(super) items: Vec<Item>,
    /// The jump pointer of each item: an ancestor, for walks of logarithmic length (see `edges`).
    pub(super) jump: Vec<ItemId>,
    /// The `NodeDef` of each node, as (function + 1 or 0 for the main graph, index).
    pub(super) defs: Vec<(u32, u32)>,
    /// Indices in `ops` and `devices`; `u32::MAX` for scopes.
    pub(super) op: Vec<u32>,
    pub(super) device: Vec<u32>,
    pub(super) ops: Names,
    pub(super) devices: Names,
    pub(super) n_nodes: Vec<u32>,
    pub(super) children: Csr<ItemId>,
    pub(super) op_counts: Csr<(u32, u32)>,
    pub(super) device_counts: Csr<(u32, u32)>,
    pub(super) edges: Vec<Edge>,
    pub(super) edges_in: Csr<u32>,
    pub(super) edges_out: Csr<u32>,
    /// Edges between shown nodes, with their indices by consumer and by producer.
    pub(super) flow: Vec<Edge>,
    pub(super) flow_in: Csr<u32>,
    pub(super) flow_out: Csr<u32>,
    pub(super) metaedges: Csr<MetaEdge>,
    pub(super) constants: Csr<ItemId>,
    pub(super) summaries: Csr<ItemId>,
    pub(super) structure: Vec<Structure>,
    pub(super) control: FxHashMap<ItemId, Control>,
    pub(super) by_name: FxHashMap<Box<str>, ItemId>,
    pub(super) warnings: Vec<Warning>,
}

/// An item in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub name: NameSpan,
    pub kind: Kind,
    pub role: Role,
    pub parent: ItemId,
    /// The first item after its subtree.
    pub end: ItemId,
    pub depth: u32,
    /// The node's index in the model's `defs`; `u32::MAX` for other items.
    pub node: u32,
}

/// The place of a full name in the model's `text`, and where its last component starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameSpan {
    pub start: u32,
    pub leaf: u32,
    pub end: u32,
}

/// Interned strings in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) list: Vec<Box<str>>,
    pub(super) idx: FxHashMap<Box<str>, u32>,
}

impl Names {
    pub(super) fn intern(&mut self, name: &str) -> u32 {
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
    pub fn n_items(&self) -> usize {
        self.items.len()
    }

    /// Number of edges as written in the file.
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// Adds each item's value to its scope's, from the innermost scopes outwards.
    pub fn add_to_scopes<T: Copy>(&self, values: &mut [T], add: impl Fn(&mut T, T)) {
        for item in (1..self.n_items()).rev() {
            let value = values[item];
            add(&mut values[self.items[item].parent.idx()], value);
        }
    }

    /// Every item in pre-order.
    pub fn items(&self) -> impl Iterator<Item = ItemId> + use<> {
        (0..self.items.len() as u32).map(ItemId)
    }

    pub fn kind(&self, item: ItemId) -> Kind {
        self.items[item.idx()].kind
    }

    /// The role of `item` in a picture.
    pub fn role(&self, item: ItemId) -> Role {
        self.items[item.idx()].role
    }

    pub fn is_op(&self, item: ItemId) -> bool {
        self.kind(item) == Kind::Op
    }

    /// Whether `item` can be expanded: a scope with children.
    pub fn is_expandable(&self, item: ItemId) -> bool {
        !self.is_op(item) && !self.children(item).is_empty()
    }

    /// The full name. A node that is also a scope keeps the name from the file.
    pub fn name(&self, item: ItemId) -> &str {
        let span = self.items[item.idx()].name;
        &self.text[span.start as usize..span.end as usize]
    }

    /// The last component of the name; `(A)` for a node `A` that is also a scope.
    pub fn label(&self, item: ItemId) -> std::borrow::Cow<'_, str> {
        let span = self.items[item.idx()].name;
        let leaf = &self.text[span.leaf as usize..span.end as usize];
        let parent = self.parent(item);
        if self.is_op(item) && parent != ItemId::ROOT && self.name(parent) == self.name(item) {
            return format!("({leaf})").into();
        }
        leaf.into()
    }

    /// The scope that holds `item`; the root's is the root.
    pub fn parent(&self, item: ItemId) -> ItemId {
        self.items[item.idx()].parent
    }

    /// The first item after `item`'s subtree.
    pub fn end(&self, item: ItemId) -> ItemId {
        self.items[item.idx()].end
    }

    /// The number of scopes above `item`; 0 for the root.
    pub fn depth(&self, item: ItemId) -> u32 {
        self.items[item.idx()].depth
    }

    /// Whether `item` is `scope` or lies below it.
    pub fn is_below(&self, item: ItemId, scope: ItemId) -> bool {
        scope <= item && item < self.end(scope)
    }

    /// Children that a picture shows as boxes, in the file's order.
    pub fn children(&self, scope: ItemId) -> &[ItemId] {
        self.children.row(scope.idx())
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
        self.op_counts.row(scope.idx()).iter().map(|&(op, n)| (self.ops.get(op), n))
    }

    /// Devices below a scope with their counts, most frequent first; the empty name is "none given".
    pub fn device_counts(&self, scope: ItemId) -> impl Iterator<Item = (&str, u32)> {
        self.device_counts.row(scope.idx()).iter().map(|&(device, n)| (self.devices.get(device), n))
    }

    /// A node's definition; `None` for scopes and for arguments and results of functions.
    pub fn node_def(&self, item: ItemId) -> Option<&NodeDef> {
        let (function, idx) = *self.defs.get(self.items.get(item.idx())?.node as usize)?;
        match function {
            0 => self.def.node.get(idx as usize),
            f => self.def.library.as_ref()?.function.get(f as usize - 1)?.node_def.get(idx as usize),
        }
    }

    /// The item with this full name: the node, or else the scope.
    pub fn find(&self, name: &str) -> Option<ItemId> {
        self.by_name.get(name).copied()
    }

    /// Edges into a node, in the order of its inputs.
    pub fn inputs(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.edges_in.row(item.idx()).iter().map(|&e| &self.edges[e as usize])
    }

    /// Edges out of a node.
    pub fn outputs(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.edges_out.row(item.idx()).iter().map(|&e| &self.edges[e as usize])
    }

    /// Edges between shown nodes whose consumer lies in `item`'s subtree.
    pub fn flow_into(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.flow_in.range(item.idx(), self.end(item).idx()).iter().map(|&e| &self.flow[e as usize])
    }

    /// Edges between shown nodes whose producer lies in `item`'s subtree.
    pub fn flow_out_of(&self, item: ItemId) -> impl Iterator<Item = &Edge> {
        self.flow_out.range(item.idx(), self.end(item).idx()).iter().map(|&e| &self.flow[e as usize])
    }

    /// The metaedges between the children of a scope.
    pub fn metaedges(&self, scope: ItemId) -> &[MetaEdge] {
        self.metaedges.row(scope.idx())
    }

    /// Constants that feed a node directly.
    pub fn constants(&self, item: ItemId) -> &[ItemId] {
        self.constants.row(item.idx())
    }

    /// Summary ops that record a node's outputs.
    pub fn summaries(&self, item: ItemId) -> &[ItemId] {
        self.summaries.row(item.idx())
    }

    pub fn structure(&self, item: ItemId) -> Structure {
        self.structure[item.idx()]
    }

    /// Whether a scope is a loop or a conditional.
    pub fn control(&self, scope: ItemId) -> Option<Control> {
        self.control.get(&scope).copied()
    }

    /// Warnings about what could not be shown as written.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the item whose box shows `item`: the item itself, or for an annotation the annotated node.
    pub fn host(&self, item: ItemId) -> ItemId {
        let is_shown = |&candidate: &ItemId| self.role(candidate) == Role::Shown;
        match self.role(item) {
            Role::Shown => item,
            Role::Constant => self.outputs(item).map(|e| e.dst).find(is_shown).unwrap_or(ItemId::ROOT),
            Role::Summary => self.inputs(item).map(|e| e.src).find(is_shown).unwrap_or(ItemId::ROOT),
            Role::Empty => self.parent(item),
        }
    }
}
