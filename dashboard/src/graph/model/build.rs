//! Builds a [`Model`] from a GraphDef, in linear time except for sorting the metaedges.

use super::{
    columns::{Item, Model, Names},
    control,
    csr::Csr,
    edges,
    input_ref::parse_input,
    items::{Edge, ItemId, Kind, Role, Structure, Warning},
    shapes, structure,
    tree::{self, LIBRARY, RawNode},
};
use crate::selection::is_at_or_below;
use formats::proto::{FunctionDef, GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Characters of a function's name in the paths of its nodes, at most: a long name times many nodes would take memory
/// out of proportion to the file.
const MAX_FUNCTION_NAME: usize = 200;

/// Returns the prefix of the full names of a function's nodes.
pub(crate) fn function_prefix(function: &str) -> String {
    let name: String = function.chars().filter(|&c| c != '/').take(MAX_FUNCTION_NAME).collect();
    format!("{LIBRARY}/{name}/")
}

impl Model {
    /// Builds the model of a graph. Never fails: errors in the file become [`Model::warnings`].
    pub fn build(def: Arc<GraphDef>) -> Self {
        let mut draft = Draft::default();
        draft.read_graph(&def);
        let roles = draft.roles();
        let raw: Vec<RawNode> = draft.nodes.iter().zip(roles).map(|(node, role)| RawNode { role, ..*node }).collect();
        let items = tree::build(&mut draft.text, &raw);
        let mut model = draft.finish(def, items);
        model.count_nodes();
        edges::connect(&mut model);
        structure::assign_classes(&mut model);
        model.control = control::find(&model);
        model
    }
}

/// The graph before its tree is built. The ids in edges are indices of `nodes`.
#[derive(Default)]
struct Draft {
    /// Full names of nodes, concatenated.
    text: String,
    nodes: Vec<RawNode>,
    /// The `NodeDef` of each node, as in [`Model`].
    defs: Vec<(u32, u32)>,
    devices_of: Vec<u32>,
    ops: Names,
    devices: Names,
    edges: Vec<Edge>,
    duplicates: Tally,
    missing: Tally,
}

/// A count of problems, with the first as an example.
#[derive(Default)]
struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    fn add(&mut self, example: impl FnOnce() -> String) {
        if self.count == 0 {
            self.example = example().chars().take(160).collect();
        }
        self.count += 1;
    }

    fn warning(&self, problem: &str) -> Option<Warning> {
        (self.count > 0).then(|| Warning { count: self.count, text: format!("{problem}: {}", self.example) })
    }
}

impl Draft {
    fn read_graph(&mut self, def: &GraphDef) {
        let mut idx_of_name: FxHashMap<&str, u32> = FxHashMap::default();
        idx_of_name.reserve(def.node.len());
        for (idx, node) in def.node.iter().enumerate() {
            let node_idx = self.add(&node.name, "", &node.op, &node.device, (0, idx as u32));
            if !insert_first(&mut idx_of_name, &node.name, node_idx) {
                self.duplicates.add(|| node.name.clone());
            }
        }
        self.read_inputs(&def.node, 0, &idx_of_name, &def.node);
        let functions = def.library.as_ref().map_or(&[][..], |library| &library.function);
        for (idx, function) in functions.iter().enumerate() {
            self.read_function(idx as u32, function);
        }
    }

    /// Adds the nodes and edges of a library function.
    fn read_function(&mut self, idx: u32, function: &FunctionDef) {
        let Some(signature) = &function.signature else { return };
        let prefix = function_prefix(&signature.name);
        let mut idx_of_name: FxHashMap<&str, u32> = FxHashMap::default();
        for arg in &signature.input_arg {
            let node_idx = self.add(&arg.name, &prefix, "_Arg", "", (idx + 1, u32::MAX));
            idx_of_name.insert(&arg.name, node_idx);
        }
        let first = self.nodes.len() as u32;
        for (def_idx, node) in function.node_def.iter().enumerate() {
            let node_idx = self.add(&node.name, &prefix, &node.op, &node.device, (idx + 1, def_idx as u32));
            if !insert_first(&mut idx_of_name, &node.name, node_idx) {
                self.duplicates.add(|| format!("{prefix}{}", node.name));
            }
        }
        self.read_inputs(&function.node_def, first, &idx_of_name, &function.node_def);
        for (result, input) in &function.ret {
            let dst = self.add(result, &prefix, "_Retval", "", (idx + 1, u32::MAX));
            let input = parse_input(input);
            if let Some(&src) = idx_of_name.get(input.node) {
                let (src, dst) = (ItemId(src), ItemId(dst));
                self.edges.push(Edge { src, dst, port: input.port, is_control: false, is_reference: false, size: 1 });
            }
        }
    }

    /// Adds a node; returns its index.
    fn add(&mut self, name: &str, prefix: &str, op: &str, device: &str, def: (u32, u32)) -> u32 {
        let start = self.text.len() as u32;
        self.text.push_str(prefix);
        self.text.push_str(name);
        let op = self.ops.intern(op);
        self.nodes.push(RawNode { start, end: self.text.len() as u32, op, role: Role::Shown });
        self.defs.push(def);
        self.devices_of.push(self.devices.intern(device));
        self.nodes.len() as u32 - 1
    }

    /// Adds the edges into `nodes`, the first of which has index `first`. `defs` are the definitions of the producers.
    fn read_inputs(&mut self, nodes: &[NodeDef], first: u32, idx_of_name: &FxHashMap<&str, u32>, defs: &[NodeDef]) {
        for (idx, node) in nodes.iter().enumerate() {
            let dst = first + idx as u32;
            for (input_idx, input) in node.input.iter().enumerate() {
                let parsed = parse_input(input);
                let Some(&src) = idx_of_name.get(parsed.node) else {
                    self.missing.add(|| format!("{} of {}", input, node.name));
                    continue;
                };
                let def = src.checked_sub(first).and_then(|idx| defs.get(idx as usize));
                let size = match (parsed.is_control, def) {
                    (true, _) => 0,
                    (false, Some(def)) => shapes::output_size(def, parsed.port),
                    (false, None) => 1,
                };
                let is_reference = input_idx == 0 && !parsed.is_control && writes_its_first_input(&node.op);
                let (src, dst, port, is_control) = (ItemId(src), ItemId(dst), parsed.port, parsed.is_control);
                self.edges.push(Edge { src, dst, port, is_control, is_reference, size });
            }
        }
    }

    /// Returns the role of each node: constants that only feed nodes, and summary ops that record a node near them,
    /// become annotations.
    fn roles(&self) -> Vec<Role> {
        let is_summary_op: Vec<bool> = self.ops.list.iter().map(|op| is_summary(op)).collect();
        let constant = self.ops.idx.get("Const").copied();
        let name_of = |idx: usize| &self.text[self.nodes[idx].start as usize..self.nodes[idx].end as usize];
        let none = vec![false; self.nodes.len()];
        let (mut feeds, mut controls, mut records_value) = (none.clone(), none.clone(), none);
        for edge in &self.edges {
            let (src, dst) = (edge.src.idx(), edge.dst.idx());
            let source_op = self.nodes[src].op;
            if edge.is_control {
                controls[src] = true;
            } else {
                feeds[src] = true;
            }
            let is_value = !edge.is_control && Some(source_op) != constant && !is_summary_op[source_op as usize];
            // A summary op in a scope of its own (`summaries/...`) is part of the graph, not an annotation.
            records_value[dst] |= is_value && is_near(name_of(dst), name_of(src));
        }
        let role = |(idx, node): (usize, &RawNode)| {
            if Some(node.op) == constant && feeds[idx] && !controls[idx] {
                Role::Constant
            } else if is_summary_op[node.op as usize] && records_value[idx] {
                Role::Summary
            } else {
                Role::Shown
            }
        };
        self.nodes.iter().enumerate().map(role).collect()
    }

    /// Moves the columns into a model, with edges between items instead of nodes.
    fn finish(mut self, def: Arc<GraphDef>, items: Vec<Item>) -> Model {
        let mut item_of = vec![ItemId::ROOT; self.nodes.len()];
        for (idx, item) in items.iter().enumerate() {
            if item.node != u32::MAX {
                item_of[item.node as usize] = ItemId(idx as u32);
            }
        }
        let op_column = |item: &Item| self.nodes.get(item.node as usize).map_or(u32::MAX, |node| node.op);
        let device_column = |item: &Item| self.devices_of.get(item.node as usize).copied().unwrap_or(u32::MAX);
        for edge in &mut self.edges {
            (edge.src, edge.dst) = (item_of[edge.src.idx()], item_of[edge.dst.idx()]);
        }
        let warnings = [
            self.missing.warning("inputs name nodes that do not exist"),
            self.duplicates.warning("nodes share a name"),
        ];
        let mut model = Model {
            op: items.iter().map(op_column).collect(),
            device: items.iter().map(device_column).collect(),
            structure: vec![Structure::default(); items.len()],
            items,
            warnings: warnings.into_iter().flatten().collect(),
            edges: self.edges,
            text: self.text,
            defs: self.defs,
            ops: self.ops,
            devices: self.devices,
            def,
            ..Model::default()
        };
        model.index_names();
        model
    }
}

/// Inserts unless the key has a value; returns whether `value` was inserted.
fn insert_first<'a>(map: &mut FxHashMap<&'a str, u32>, key: &'a str, value: u32) -> bool {
    *map.entry(key).or_insert(value) == value
}

impl Model {
    /// Fills the index of names.
    fn index_names(&mut self) {
        self.by_name.reserve(self.items.len());
        // Nodes win over scopes of the same name; the first of equal names wins.
        for is_op in [true, false] {
            for idx in 0..self.items.len() as u32 {
                let item = ItemId(idx);
                if self.is_op(item) == is_op && item != ItemId::ROOT && self.name(item).len() < 4096 {
                    let name: Box<str> = self.name(item).into();
                    self.by_name.entry(name).or_insert(item);
                }
            }
        }
    }

    /// Fills children, node counts and the histograms of ops and devices.
    fn count_nodes(&mut self) {
        let n = self.items.len();
        let mut pairs = Vec::with_capacity(n);
        let mut n_nodes = vec![0_u32; n];
        for idx in (1..n).rev() {
            n_nodes[idx] += u32::from(self.items[idx].kind == Kind::Op);
            n_nodes[self.items[idx].parent.idx()] += n_nodes[idx];
        }
        for idx in 1..n {
            if self.items[idx].role == Role::Shown {
                pairs.push((self.items[idx].parent.0, ItemId(idx as u32)));
            }
        }
        self.children = Csr::from_pairs(n, &pairs);
        self.n_nodes = n_nodes;
        self.op_counts = self.histogram(&self.op, self.ops.list.len());
        self.device_counts = self.histogram(&self.device, self.devices.list.len());
    }

    /// Counts a column's values below each scope. The work is the sum of the nodes' depths, which is at most the total
    /// length of all names.
    fn histogram(&self, column: &[u32], n_values: usize) -> Csr<(u32, u32)> {
        let mut rows = Csr::with_capacity(column.len(), column.len());
        let (mut counts, mut values) = (vec![0_u32; n_values], Vec::new());
        // Only nodes are visited, because scopes have no values: names of many components would take quadratic time.
        let nodes: Vec<usize> = (0..column.len()).filter(|&idx| self.items[idx].kind == Kind::Op).collect();
        let mut first = 0;
        for idx in 0..column.len() {
            first += usize::from(nodes.get(first).is_some_and(|&node| node < idx));
            if self.items[idx].kind != Kind::Op {
                let end = self.items[idx].end.idx();
                for &node in nodes[first..].iter().take_while(|&&node| node < end) {
                    let value = column[node];
                    let Some(count) = counts.get_mut(value as usize) else { continue };
                    if *count == 0 {
                        values.push(value);
                    }
                    *count += 1;
                }
            }
            values.sort_unstable_by_key(|&value| (std::cmp::Reverse(counts[value as usize]), value));
            rows.push_row(values.drain(..).map(|value| (value, std::mem::take(&mut counts[value as usize]))));
        }
        rows
    }
}

/// Whether a summary op is in the scope of the node that it records, or in an outer one.
fn is_near(summary: &str, recorded: &str) -> bool {
    summary.rsplit_once('/').is_none_or(|(scope, _)| is_at_or_below(scope, recorded))
}

pub(super) fn is_summary(op: &str) -> bool {
    op.strip_suffix("Summary").is_some_and(|kind| !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Ops whose input 0 is the variable they write (TensorBoard's reference edges).
fn writes_its_first_input(op: &str) -> bool {
    matches!(
        op,
        "Assign"
            | "AssignAdd"
            | "AssignSub"
            | "CountUpTo"
            | "AssignVariableOp"
            | "AssignAddVariableOp"
            | "AssignSubVariableOp"
    ) || op.strip_prefix("Scatter").is_some_and(|rest| {
        matches!(rest, "Add" | "Sub" | "Update" | "Div" | "Mul" | "Max" | "Min" | "NdUpdate" | "NdAdd" | "NdSub")
    })
}
