//! Graphs from and to TensorFlow's `GraphDef`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use formats::proto::{AttrValue, GraphDef, NodeDef, VersionDef, attr_value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::attr_def::{from_proto, to_proto};
use super::call::as_call;
use super::input::Input;
use super::loops::{Attempt, Heads, head_input};
use super::staged::Staged;
use super::{Attr, FunctionError, Graph, GraphError, ImportError, Node, NodeId, Nodes, Output};
use crate::device::DeviceName;
use crate::ops::{self, OpKind};
use crate::tensor_proto;

/// The definition that is imported, and how.
#[derive(Clone, Copy)]
struct Source<'a> {
    def: &'a GraphDef,
    prefix: &'a str,
    /// The body of a function rather than a graph.
    is_body: bool,
}

impl Source<'_> {
    fn scoped(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

impl Graph {
    /// Adds the nodes of a definition, all or none, their names prefixed with `prefix/` (empty: as they are).
    ///
    /// A node that is colocated with others gets the device of the first of them that has one, instead of its own, as
    /// TensorFlow's `import_graph_def` does it.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn import(&self, def: &GraphDef, prefix: &str) -> Result<(), ImportError> {
        self.import_all(Source { def, prefix, is_body: false })
    }

    /// Adds the nodes of a function's body. Shapes that do not fit are an error of the step that runs the node, since it may
    /// never run.
    pub(crate) fn import_body(&self, def: &GraphDef) -> Result<(), ImportError> {
        self.import_all(Source { def, prefix: "", is_body: true })
    }

    fn import_all(&self, source: Source<'_>) -> Result<(), ImportError> {
        let mut heads = Heads::default();
        loop {
            match self.import_with(source, &mut heads) {
                Ok(()) => return Ok(()),
                // What was assumed of a loop variable does not hold, or may be why some op does not fit.
                Err(Attempt::Again) => {}
                Err(Attempt::Failed(ImportError::Graph(GraphError::Shape { .. }))) if heads.relax_all() => {}
                Err(Attempt::Failed(error)) => return Err(error),
            }
        }
    }

    fn import_with(&self, source: Source<'_>, heads: &mut Heads) -> Result<(), Attempt> {
        let (def, scoped) = (source.def, |name: &str| source.scoped(name));
        let mut staged = Staged::begin(self);
        if let Some(library) = &def.library {
            staged.functions_mut().import(library).map_err(FunctionError::from).map_err(ImportError::from)?;
        }
        let order = order(def, |name| staged.nodes().find(&scoped(name)).is_some())?;
        let devices = match source.is_body {
            true => def.node.iter().map(|node| node.device.clone()).collect(),
            false => {
                devices(def, &order, |name| staged.nodes().find(&scoped(name)).map(|node| node.device.to_string()))?
            }
        };
        for i in order {
            self.import_node(&mut staged, source, &def.node[i], &devices[i])?;
            let name = scoped(&def.node[i].name);
            heads.assume(&mut staged, &name);
        }
        heads.close(&mut staged, def, &scoped)?;
        staged.commit();
        Ok(())
    }

    fn import_node(
        &self,
        staged: &mut Staged<'_>,
        source: Source<'_>,
        def: &NodeDef,
        device: &str,
    ) -> Result<(), ImportError> {
        let scoped = |name: &str| source.scoped(name);
        let function = staged.nodes().functions().get(&def.op).filter(|_| ops::lookup(&def.op).is_none());
        let call = function.map(|function| as_call(function, def)).transpose()?;
        let def = call.as_ref().unwrap_or(def);
        let root = self.at_root();
        let mut node = root.add_node(&def.op).full_name(&scoped(&def.name)).device(device).defer_frame_errors();
        if source.is_body {
            node = node.defer_shape_errors();
        }
        let op =
            ops::lookup(&def.op).ok_or_else(|| GraphError::UnknownOp { node: def.name.clone(), op: def.op.clone() })?;
        let is_merge = op.kind == OpKind::Merge;
        for text in &def.input {
            let input = Input::parse(&def.name, text)?;
            let id = staged.nodes().find(&scoped(input.node)).map(|n| n.id);
            let missing = || ImportError::MissingInput { node: def.name.clone(), input: text.clone() };
            let id = match id {
                // The loop closes later: until then its head's first input stands for what comes round.
                None if is_merge => staged.nodes().find(&scoped(head_input(def)?)).map(|n| n.id),
                id => id,
            };
            let id = id.ok_or_else(missing)?;
            node = match input.port {
                Some(port) => node.input(Output { node: id, port }),
                None => node.after(&[id]),
            };
        }
        for (name, value) in &def.attr {
            check_functions(staged.nodes(), &def.name, value)?;
            // What newer or other programs wrote in addition to the op's own attributes has no meaning here.
            let known = op.attrs.iter().any(|a| a.name == name);
            match from_proto(value) {
                Ok(Attr::ListStr(classes)) if name == COLOCATED && !source.prefix.is_empty() => {
                    node =
                        node.attr(name, Attr::ListStr(classes.into_iter().map(|c| scoped_class(c, scoped)).collect()));
                }
                Ok(value) if known || name.starts_with('_') => node = node.attr(name, value),
                Err(reason) if known => {
                    return Err(ImportError::Attr { node: def.name.clone(), attr: name.clone(), reason });
                }
                _ => {}
            }
        }
        if let (false, OpKind::Enter, Some(frame)) = (source.prefix.is_empty(), op.kind, def.attr.get("frame_name"))
            && let Ok(Attr::Str(frame)) = from_proto(frame)
        {
            // Two copies of a loop are two loops.
            node = node.attr("frame_name", scoped(&String::from_utf8_lossy(&frame)).as_str());
        }
        staged.add(node)?;
        Ok(())
    }

    /// The graph's definition.
    pub fn to_def(&self) -> GraphDef {
        let nodes = self.nodes();
        let name = |id: NodeId| nodes.get(id).map(|n| n.name.to_string()).unwrap_or_default();
        let node = |n: &std::sync::Arc<Node>| {
            let edge = |o: &Output| if o.port == 0 { name(o.node) } else { format!("{}:{}", name(o.node), o.port) };
            let control = n.control_inputs.iter().map(|id| format!("^{}", name(*id)));
            n.to_def(n.inputs.iter().map(edge).chain(control).collect())
        };
        GraphDef {
            node: nodes.iter().map(node).collect(),
            library: nodes.functions().to_def(),
            versions: Some(VersionDef { producer: 1882, min_consumer: 0, bad_consumers: Vec::new() }),
            ..Default::default()
        }
    }
}

impl Node {
    /// The node's definition, with these inputs.
    pub fn to_def(&self, input: Vec<String>) -> NodeDef {
        let mut attr: BTreeMap<String, AttrValue> = self.attrs.iter().map(|(k, v)| (k.clone(), to_proto(v))).collect();
        let shapes = self.outputs.iter().map(|o| tensor_proto::shape_to_proto(&o.shape)).collect();
        let list = attr_value::ListValue { shape: shapes, ..Default::default() };
        attr.insert("_output_shapes".into(), AttrValue { value: Some(attr_value::Value::List(list)) });
        NodeDef {
            name: self.name.to_string(),
            op: self.op.name.to_owned(),
            input,
            device: self.device.to_string(),
            attr,
            ..Default::default()
        }
    }
}

/// The attribute that lists the nodes with which a node is colocated, each as `loc:@name`.
const COLOCATED: &str = "_class";

/// The node that an entry of the attribute `_class` names.
pub fn colocated_with(class: &[u8]) -> Option<&str> {
    std::str::from_utf8(class).ok()?.strip_prefix("loc:@")
}

fn scoped_class(class: Vec<u8>, scoped: impl Fn(&str) -> String) -> Vec<u8> {
    colocated_with(&class).map(|node| format!("loc:@{}", scoped(node)).into_bytes()).unwrap_or(class)
}

/// The device that each node of the definition asks for: its own or, where it is colocated with other nodes, that of the
/// first of these that has one. `of` knows the nodes that are in the graph already.
fn devices(def: &GraphDef, order: &[usize], of: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, ImportError> {
    let others = |node: &NodeDef| match node.attr.get(COLOCATED).and_then(|class| class.value.as_ref()) {
        Some(attr_value::Value::List(list)) => {
            let named = list.s.iter().filter_map(|class| colocated_with(class));
            named.filter(|other| *other != node.name).map(str::to_owned).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let others: Vec<Vec<String>> = def.node.iter().map(others).collect();
    let mut devices: Vec<String> = Vec::with_capacity(def.node.len());
    let mut known = FxHashSet::default();
    for (node, others) in def.node.iter().zip(&others) {
        let own = if others.is_empty() { node.device.as_str() } else { "" };
        if known.insert(own) {
            own.parse::<DeviceName>().map_err(|source| ImportError::Device { node: node.name.clone(), source })?;
        }
        devices.push(own.to_owned());
    }
    if others.iter().all(Vec::is_empty) {
        return Ok(devices);
    }
    let by_name: FxHashMap<&str, usize> =
        def.node.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
    for &i in order {
        let device = |name: &String| match by_name.get(name.as_str()) {
            Some(j) => Some(devices[*j].clone()),
            None => of(name),
        };
        if let Some(device) = others[i].iter().filter_map(device).find(|device| !device.is_empty()) {
            devices[i] = device;
        }
    }
    Ok(devices)
}

/// The definition's nodes in an order in which each comes after its inputs.
fn order(def: &GraphDef, exists: impl Fn(&str) -> bool) -> Result<Vec<usize>, ImportError> {
    let mut by_name = FxHashMap::default();
    for (i, node) in def.node.iter().enumerate() {
        if by_name.insert(node.name.as_str(), i).is_some() {
            return Err(ImportError::Duplicate { name: node.name.clone() });
        }
    }
    let kinds: Vec<OpKind> = def.node.iter().map(|node| ops::kind(&node.op)).collect();
    let mut consumers = vec![Vec::new(); def.node.len()];
    let mut waits_for = vec![0usize; def.node.len()];
    for (i, node) in def.node.iter().enumerate() {
        for text in &node.input {
            let input = Input::parse(&node.name, text)?;
            match by_name.get(input.node) {
                Some(from) if kinds[*from].closes_loop(kinds[i]) => {}
                Some(from) => {
                    consumers[*from].push(i);
                    waits_for[i] += 1;
                }
                None if exists(input.node) => {}
                None => return Err(ImportError::MissingInput { node: node.name.clone(), input: text.clone() }),
            }
        }
    }
    // Of the nodes that are ready the first of the definition, as TensorFlow: where requests for devices contradict each other
    // the order decides.
    let mut ready: BinaryHeap<_> = (0..def.node.len()).filter(|i| waits_for[*i] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(def.node.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for consumer in &consumers[i] {
            waits_for[*consumer] -= 1;
            if waits_for[*consumer] == 0 {
                ready.push(Reverse(*consumer));
            }
        }
    }
    match waits_for.iter().position(|n| *n > 0) {
        Some(i) => Err(cycle_from(def, &by_name, &kinds, &waits_for, i)),
        None => Ok(order),
    }
}

/// The error for nodes that wait for each other: one of those is before `i`, which waits in vain.
fn cycle_from(
    def: &GraphDef,
    by_name: &FxHashMap<&str, usize>,
    kinds: &[OpKind],
    waits_for: &[usize],
    mut i: usize,
) -> ImportError {
    let before = |i: usize| {
        let inputs = def.node[i].input.iter().filter_map(|text| Input::parse("", text).ok());
        let from = inputs.filter_map(|input| by_name.get(input.node).copied());
        { from }.find(|from| waits_for[*from] > 0 && !kinds[*from].closes_loop(kinds[i]))
    };
    // After as many steps as there are nodes it goes round the circle.
    for _ in 0..def.node.len() {
        i = before(i).unwrap_or(i);
    }
    ImportError::Cycle { node: def.node[i].name.clone() }
}

/// That the functions which an attribute names exist.
fn check_functions(nodes: &Nodes, node: &str, value: &AttrValue) -> Result<(), FunctionError> {
    use attr_value::Value;
    let named = match &value.value {
        Some(Value::Func(f)) => std::slice::from_ref(f),
        Some(Value::List(list)) => &list.func,
        _ => &[],
    };
    match named.iter().find(|f| nodes.functions().get(&f.name).is_none()) {
        Some(f) => Err(FunctionError::Missing { node: node.to_owned(), function: f.name.clone() }),
        None => Ok(()),
    }
}
