//! Nodes on their way into a graph, and the checks that each passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::infer::Inputs;
use super::{Attr, Graph, GraphError, InferContext, Node, NodeId, Nodes, Output, Port};
use crate::dtype::DType;
use crate::ops::{self, ArgDef, ArgType, AttrError, AttrKind, OpDef, OpKind, wrong_kind};
use crate::shape::PartialShape;

/// A node on its way into a graph. Errors wait for [`NodeBuilder::build`].
pub struct NodeBuilder<'g> {
    graph: &'g Graph,
    op: &'g str,
    name: Option<String>,
    exact_name: bool,
    inputs: Vec<Output>,
    /// How many outputs make up each of the op's inputs, where lists were given.
    lists: Vec<usize>,
    control: Vec<NodeId>,
    attrs: BTreeMap<String, Attr>,
    device: Option<Arc<str>>,
    defers_frame_errors: bool,
    defers_shape_errors: bool,
}

impl Graph {
    /// Begins a node of the op `op`, with TensorFlow's inputs in TensorFlow's order, attributes and results: the raw ops of
    /// its documentation (<https://www.tensorflow.org/api_docs/python/tf/raw_ops>). `stepscope ops` lists those that are
    /// there, with their attributes; a program finds one in [`crate::ops::lookup`].
    pub fn add_node<'g>(&'g self, op: &'g str) -> NodeBuilder<'g> {
        NodeBuilder::new(self, op)
    }
}

impl<'g> NodeBuilder<'g> {
    fn new(graph: &'g Graph, op: &'g str) -> NodeBuilder<'g> {
        NodeBuilder {
            graph,
            op,
            name: None,
            exact_name: false,
            inputs: Vec::new(),
            lists: Vec::new(),
            control: Vec::new(),
            attrs: BTreeMap::new(),
            device: None,
            defers_frame_errors: false,
            defers_shape_errors: false,
        }
    }

    /// Names the node within the handle's scope, `name_1` where that is taken. Without it the op's name is used.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Names the node exactly so, scope included; that it is taken is an error.
    pub fn full_name(mut self, name: &str) -> Self {
        self.exact_name = true;
        self.name(name)
    }

    /// Adds an input.
    pub fn input(mut self, output: impl Into<Output>) -> Self {
        self.inputs.push(output.into());
        self.lists.push(1);
        self
    }

    /// Adds an input that is a list.
    pub fn inputs(mut self, outputs: &[impl Into<Output> + Copy]) -> Self {
        self.inputs.extend(outputs.iter().map(|output| (*output).into()));
        self.lists.push(outputs.len());
        self
    }

    /// Adds nodes that must run before.
    pub fn after(mut self, nodes: &[NodeId]) -> Self {
        self.control.extend_from_slice(nodes);
        self
    }

    /// Sets an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Asks for a device, instead of the handle's.
    pub fn device(mut self, device: &str) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Makes a node that does not fit into the graph's loops an error of the step that runs the node.
    pub(super) fn defer_frame_errors(mut self) -> Self {
        self.defers_frame_errors = true;
        self
    }

    /// Makes shapes that do not fit an error of the step that runs the node.
    pub(super) fn defer_shape_errors(mut self) -> Self {
        self.defers_shape_errors = true;
        self
    }

    /// Checks the node and adds it to the graph. Attributes that follow from the inputs need not be given.
    ///
    /// # Errors
    /// The op is unknown, or inputs, attributes, shapes or the name do not fit.
    pub fn build(mut self) -> Result<NodeId, GraphError> {
        let graph = self.graph;
        let Some(capture) = &graph.capture else {
            return self.build_in(&mut graph.nodes.write()).map(|(id, _)| id);
        };
        self.control.extend_from_slice(&graph.control);
        let name = self.full();
        capture.capture(graph, &name, self.op, &mut self.inputs, &mut self.control)?;
        let graph = &graph.outside();
        let inside = NodeBuilder { graph, ..self };
        inside.build_in(&mut graph.nodes.write()).map(|(id, _)| id)
    }

    pub(super) fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Whether an input stands for one that could not be added.
    pub(super) fn has_invalid_input(&self) -> bool {
        self.inputs.iter().map(|input| &input.node).chain(&self.control).any(|node| *node == Output::INVALID.node)
    }

    fn asked(&self) -> &str {
        self.name.as_deref().unwrap_or(self.op)
    }

    /// The name with its scope, as it is asked for.
    fn full(&self) -> String {
        if self.exact_name { self.asked().to_owned() } else { format!("{}{}", self.graph.scope, self.asked()) }
    }

    /// As [`NodeBuilder::build`], in the graph's nodes, locked; and whether the name was never asked for before.
    pub(super) fn build_in(self, nodes: &mut Nodes) -> Result<(NodeId, bool), GraphError> {
        let graph = self.graph;
        let full = self.full();
        let unknown = || GraphError::UnknownOp { node: self.asked().to_owned(), op: self.op.to_owned() };
        let op = ops::lookup(self.op).ok_or_else(unknown)?;
        if !is_name(&full) {
            return Err(GraphError::BadName { name: full });
        }
        if self.exact_name && nodes.by_name.contains_key(full.as_str()) {
            return Err(GraphError::DuplicateName { name: full });
        }
        let control: Vec<NodeId> = dedup(graph.control.iter().chain(&self.control).copied());
        let inputs = self.inputs;
        let mut check = Check { nodes, name: &full, op, inputs: &inputs, attrs: self.attrs };
        if let Some(id) = control.iter().find(|id| nodes.get(**id).is_none()) {
            return Err(GraphError::ForeignNode { id: *id });
        }
        check.lists(&self.lists)?;
        check.defaults()?;
        check.input_types()?;
        let outputs = check.outputs(self.defers_shape_errors)?;
        let attrs = check.attrs;
        let id = NodeId(u32::try_from(nodes.len()).map_err(|_| GraphError::TooManyNodes)?);
        let (name, is_new_name): (Arc<str>, bool) = match self.exact_name {
            true => (full.as_str().into(), nodes.claim_name(&full)),
            false => (nodes.unique_name(&full).into(), true),
        };
        let device = self.device.unwrap_or_else(|| graph.device.clone());
        let node = Node { id, name, op, attrs, inputs, control_inputs: control, device, outputs };
        nodes.place(&node, self.defers_frame_errors)?;
        nodes.by_name.insert(node.name.clone(), id);
        nodes.nodes.push(Arc::new(node));
        Ok((id, is_new_name))
    }

    /// Makes node `id` the one that is built, with its name and its place; it must give what it gave.
    ///
    /// # Errors
    /// As [`NodeBuilder::build`]; the node is not the graph's, or the types of the outputs change.
    pub(crate) fn build_in_place_of(self, id: NodeId) -> Result<(), GraphError> {
        let mut nodes = self.graph.nodes.write();
        let old = nodes.get(id).cloned().ok_or(GraphError::ForeignNode { id })?;
        let (new_id, _) = self.name("replacement").build_in(&mut nodes)?;
        let Some(built) = nodes.nodes.pop() else { return Err(GraphError::ForeignNode { id: new_id }) };
        nodes.by_name.remove(&built.name);
        nodes.contexts.forget_last();
        let mut node = Node::clone(&built);
        if !node.outputs.iter().map(|o| o.dtype).eq(old.outputs.iter().map(|o| o.dtype)) {
            let n_outputs = node.outputs.len();
            return Err(GraphError::NoSuchPort { name: old.name.to_string(), n_outputs });
        }
        (node.id, node.name) = (id, old.name.clone());
        for (new, old) in node.outputs.iter_mut().zip(&old.outputs) {
            // What was known, and what follows from the inputs.
            new.shape = new.shape.merge(&old.shape).unwrap_or_else(|| new.shape.clone());
        }
        nodes.nodes[id.index()] = Arc::new(node);
        Ok(())
    }

    /// As [`NodeBuilder::build`]; gives the node's first output.
    ///
    /// # Errors
    /// As there.
    pub fn output(self) -> Result<Output, GraphError> {
        self.build().map(Output::from)
    }
}

fn dedup(ids: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut out: Vec<NodeId> = ids.collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Whether TensorFlow would take `name` for a node.
fn is_name(name: &str) -> bool {
    let ok = |c: char| c.is_ascii_alphanumeric() || "_.\\-/>".contains(c);
    name.chars().all(ok) && name.starts_with(|c: char| c.is_ascii_alphanumeric() || ".>_".contains(c))
}

/// The checks of a node against its op.
struct Check<'a> {
    nodes: &'a Nodes,
    name: &'a str,
    op: &'static OpDef,
    inputs: &'a [Output],
    attrs: BTreeMap<String, Attr>,
}

impl Check<'_> {
    fn attr_error(&self, source: AttrError) -> GraphError {
        GraphError::Attr { node: self.name.to_owned(), op: self.op.name, source }
    }

    /// Infers attributes from the inputs: lengths of lists, element types.
    fn lists(&mut self, lists: &[usize]) -> Result<(), GraphError> {
        let mut next = 0;
        for (arg, n) in self.op.inputs.iter().zip(lists) {
            let ports = self.inputs.get(next..next + n).unwrap_or_default();
            next += n;
            let dtypes = ports.iter().map(|o| self.nodes.dtype_of(*o)).collect::<Result<Vec<_>, _>>()?;
            match (&arg.ty, dtypes.first()) {
                (ArgType::Attr(t), Some(d)) => self.infer(t, Attr::Type(*d)),
                (ArgType::Repeat(n_attr, t), first) => {
                    self.infer(n_attr, Attr::Int(*n as i64));
                    if let Some(d) = first {
                        self.infer(t, Attr::Type(*d));
                    }
                }
                (ArgType::RepeatFixed(n_attr, _), _) => self.infer(n_attr, Attr::Int(*n as i64)),
                (ArgType::List(t), _) => self.infer(t, Attr::ListType(dtypes)),
                _ => {}
            }
        }
        Ok(())
    }

    fn infer(&mut self, attr: &str, value: Attr) {
        self.attrs.entry(attr.to_owned()).or_insert(value);
    }

    /// Fills in defaults and checks kinds and values. Attributes that begin with `_` are the user's own.
    fn defaults(&mut self) -> Result<(), GraphError> {
        let known = |name: &str| name.starts_with('_') || self.op.attrs.iter().any(|a| a.name == name);
        if let Some(name) = self.attrs.keys().find(|name| !known(name)) {
            return Err(self.attr_error(AttrError::Unknown { op: self.op.name, name: name.as_str().into() }));
        }
        for def in &self.op.attrs {
            // A GraphDef does not say of which kind an empty list is.
            if let Some(Attr::ListInt(list)) = self.attrs.get(def.name)
                && list.is_empty()
                && let Some(empty) = empty_list(def.kind)
            {
                self.attrs.insert(def.name.to_owned(), empty);
            }
            match (self.attrs.get(def.name), &def.default) {
                (Some(value), _) => check_attr(def, value).map_err(|e| self.attr_error(e))?,
                (None, Some(default)) => {
                    self.attrs.insert(def.name.to_owned(), default.clone());
                }
                (None, None) => return Err(self.attr_error(AttrError::Missing(def.name.into()))),
            }
        }
        Ok(())
    }

    /// The element types of a list of inputs or outputs, with the argument that each belongs to.
    fn types(&self, args: &'static [ArgDef]) -> Result<Vec<(&'static str, DType)>, GraphError> {
        let mut out = Vec::new();
        let missing = |name: &str| self.attr_error(AttrError::Missing(name.into()));
        for arg in args {
            let one = |name: &str| match self.attrs.get(name) {
                Some(Attr::Type(t)) => Ok(*t),
                _ => Err(missing(name)),
            };
            match &arg.ty {
                ArgType::Fixed(t) => out.push((arg.name, *t)),
                ArgType::Attr(t) => out.push((arg.name, one(t)?)),
                ArgType::Repeat(n, t) => {
                    let t = one(t)?;
                    out.extend((0..self.n_ports(n)?).map(|_| (arg.name, t)));
                }
                ArgType::RepeatFixed(n, t) => out.extend((0..self.n_ports(n)?).map(|_| (arg.name, *t))),
                ArgType::List(ts) => {
                    let Some(Attr::ListType(list)) = self.attrs.get(*ts) else { return Err(missing(ts)) };
                    out.extend(list.iter().map(|t| (arg.name, *t)));
                }
            }
        }
        Ok(out)
    }

    /// The length of a list, as attribute `n` gives it.
    fn n_ports(&self, n: &str) -> Result<u16, GraphError> {
        let Some(Attr::Int(n_ports)) = self.attrs.get(n) else {
            return Err(self.attr_error(AttrError::Missing(n.into())));
        };
        u16::try_from(*n_ports).map_err(|_| {
            let problem = format!("{n_ports} is not allowed (allowed: 0 to 65535)").into();
            self.attr_error(AttrError::Value { name: n.into(), problem })
        })
    }

    fn input_types(&self) -> Result<(), GraphError> {
        let expected = self.types(&self.op.inputs)?;
        if expected.len() != self.inputs.len() {
            return Err(GraphError::InputCount {
                node: self.name.to_owned(),
                op: self.op.name,
                expected: expected.len(),
                got: self.inputs.len(),
            });
        }
        for (output, (input, expected)) in self.inputs.iter().zip(expected) {
            let got = self.nodes.dtype_of(*output)?;
            if got != expected {
                let from = self.nodes.get(output.node).map(|n| n.name.to_string()).unwrap_or_default();
                let node = self.name.to_owned();
                return Err(GraphError::InputType { node, op: self.op.name, input, from, expected, got });
            }
        }
        Ok(())
    }

    /// Types and shapes of the outputs.
    fn outputs(&self, defers_shape_errors: bool) -> Result<Vec<Port>, GraphError> {
        let types = self.types(&self.op.outputs)?;
        let (nodes, inputs) = (self.nodes, Inputs { nodes: self.nodes, inputs: self.inputs });
        let mut infer = InferContext::new(&inputs, &self.attrs, types.len(), &nodes.functions, nodes.budget.as_ref());
        // In a body, a call is about to be replaced by a body of its own: inferring its shapes would be done twice.
        let is_replaced = defers_shape_errors && self.op.kind == OpKind::Call;
        let inferred = if is_replaced { Ok(()) } else { (self.op.shape_fn)(&mut infer) };
        let shapes = match inferred {
            Ok(()) => infer.into_outputs(),
            Err(_) if defers_shape_errors => vec![PartialShape::unknown(); types.len()],
            Err(source) => {
                let shapes: Vec<String> = self.inputs.iter().map(|o| self.nodes.shape_of(*o).to_string()).collect();
                let (node, op, inputs) = (self.name.to_owned(), self.op.name, shapes.join(", "));
                return Err(GraphError::Shape { node, op, inputs, source });
            }
        };
        Ok(types.into_iter().zip(shapes).map(|((_, dtype), shape)| Port { dtype, shape }).collect())
    }
}

fn empty_list(kind: AttrKind) -> Option<Attr> {
    match kind {
        AttrKind::ListFloat => Some(Attr::ListFloat(Vec::new())),
        AttrKind::ListStr => Some(Attr::ListStr(Vec::new())),
        AttrKind::ListType => Some(Attr::ListType(Vec::new())),
        AttrKind::ListShape => Some(Attr::ListShape(Vec::new())),
        AttrKind::ListFunc => Some(Attr::ListFunc(Vec::new())),
        _ => None,
    }
}

fn check_attr(def: &ops::AttrDef, value: &Attr) -> Result<(), AttrError> {
    if !value.is_kind(def.kind) {
        return Err(wrong_kind(def.name, def.kind, Some(value)));
    }
    match value {
        Attr::Type(t) if !def.allowed.is_empty() && !def.allowed.contains(t) => {
            let problem = format!("{t} is not allowed (allowed: {:?})", def.allowed).into();
            Err(AttrError::Value { name: def.name.into(), problem })
        }
        _ => Ok(()),
    }
}
