//! The handle to a graph, and its nodes.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;

use super::contexts::{ContextId, Contexts};
use super::{Attr, GraphError, Node, NodeId, Output};
use crate::device::DeviceName;
use crate::dtype::DType;
use crate::ops::{Budget, Library, Port};
use crate::shape::PartialShape;

/// A handle to a graph, with the context in which it adds nodes.
///
/// ```
/// # use engine::{DType, Graph, Tensor};
/// # fn main() -> Result<(), engine::Error> {
/// let g = Graph::new();
/// let b = g.variable("b", Tensor::from_vec([100], vec![0.0f32; 100])?); // 100-d vector
/// let w = g.variable("W", Tensor::from_vec([784, 100], vec![0.5f32; 78400])?); // 784x100 matrix
/// let x = g.placeholder("x", DType::F32, [None, Some(784)]);
/// let relu = (x.matmul(w.value) + b.value).relu();
/// assert_eq!(relu.shape().to_string(), "[?,100]");
/// g.check()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Graph {
    pub(super) nodes: Arc<RwLock<Nodes>>,
    /// Empty, or ends with `/`.
    pub(super) scope: Arc<str>,
    pub(super) device: Arc<str>,
    pub(super) control: Arc<[NodeId]>,
    /// Brings what nodes use to where they are; outside of loops and branches there is nothing to bring.
    pub(super) capture: Option<Arc<dyn Capture>>,
    /// The first error of a node that was added as a [`Value`](super::Value).
    pub(super) first_error: Arc<Mutex<Option<GraphError>>>,
}

/// The nodes of a graph, by id and by name, and the functions that they may call.
#[derive(Default, Clone)]
pub struct Nodes {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) by_name: FxHashMap<Arc<str>, NodeId>,
    pub(super) contexts: Contexts,
    /// How often a name (in lower case, scopes included) was asked for.
    pub(super) names: FxHashMap<String, usize>,
    pub(super) functions: Arc<Library>,
    /// Where this is the body of a call whose shapes are asked for.
    pub(super) budget: Option<Budget>,
}

impl Nodes {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node.
    pub fn get(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.nodes.get(id.index())
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<Node>> {
        self.by_name.get(name).and_then(|id| self.get(*id))
    }

    /// All nodes; each comes after its inputs, but for the `Merge` of a loop, whose `NextIteration` comes later.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Node>> {
        self.nodes.iter()
    }

    /// The functions that nodes may call.
    pub fn functions(&self) -> &Library {
        &self.functions
    }

    pub(crate) fn functions_mut(&mut self) -> &mut Library {
        Arc::make_mut(&mut self.functions)
    }

    pub(super) fn shape_of(&self, output: Output) -> PartialShape {
        let port = self.get(output.node).and_then(|n| n.outputs.get(output.port as usize));
        port.map(|p| p.shape.clone()).unwrap_or_default()
    }

    pub(super) fn dtype_of(&self, output: Output) -> Result<DType, GraphError> {
        let node = self.get(output.node).ok_or(GraphError::ForeignNode { id: output.node })?;
        let port = node.outputs.get(output.port as usize);
        let no_port =
            || GraphError::NoSuchPort { name: format!("{}:{}", node.name, output.port), n_outputs: node.outputs.len() };
        port.map(|p| p.dtype).ok_or_else(no_port)
    }

    /// Counts a node's name as asked for; whether it was not before.
    pub(super) fn claim_name(&mut self, name: &str) -> bool {
        let before = self.names.len();
        self.names.entry(name.to_lowercase()).or_insert(1);
        self.names.len() > before
    }

    /// A name that no node or scope has: `name`, `name_1`, `name_2`, ... as TensorFlow counts.
    pub(super) fn unique_name(&mut self, name: &str) -> String {
        let n = self.names.entry(name.to_lowercase()).or_insert(0);
        *n += 1;
        let mut i = *n - 1;
        if i == 0 {
            return name.to_owned();
        }
        loop {
            let candidate = format!("{name}_{i}");
            if !self.names.contains_key(&candidate.to_lowercase()) {
                self.names.insert(name.to_lowercase(), i + 1);
                self.names.insert(candidate.to_lowercase(), 1);
                return candidate;
            }
            i += 1;
        }
    }
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph {
            nodes: Arc::default(),
            scope: "".into(),
            device: "".into(),
            control: Arc::new([]),
            capture: None,
            first_error: Arc::default(),
        }
    }

    /// The nodes, for reading. Holding it keeps others from adding nodes.
    pub fn nodes(&self) -> RwLockReadGuard<'_, Nodes> {
        self.nodes.read()
    }

    /// A graph of its own with the same nodes under the same ids, and the same functions.
    pub fn fork(&self) -> Graph {
        Graph { nodes: Arc::new(RwLock::new(self.nodes().clone())), ..Graph::new() }
    }

    /// An empty graph with the same functions.
    pub fn with_same_functions(&self) -> Graph {
        let nodes = Nodes { functions: Arc::clone(&self.nodes().functions), ..Nodes::default() };
        Graph { nodes: Arc::new(RwLock::new(nodes)), ..Graph::new() }
    }

    /// An empty graph for the body of a call whose shapes are asked for.
    pub(crate) fn for_inference(functions: Arc<Library>, budget: Budget) -> Graph {
        let nodes = Nodes { functions, budget: Some(budget), ..Nodes::default() };
        Graph { nodes: Arc::new(RwLock::new(nodes)), ..Graph::new() }
    }

    /// Takes over the nodes of a fork, where this graph did not change meanwhile; whether it did so.
    pub fn join(&self, fork: &Graph, n_before: usize) -> bool {
        let mut nodes = self.nodes.write();
        let unchanged = nodes.len() == n_before;
        if unchanged {
            *nodes = fork.nodes().clone();
        }
        unchanged
    }

    /// The number of nodes; it grows with every change.
    pub fn n_nodes(&self) -> usize {
        self.nodes().len()
    }

    /// This handle, whose errors are not those of the handle that it was made from.
    pub fn with_own_errors(&self) -> Graph {
        Graph { first_error: Arc::default(), ..self.clone() }
    }

    /// Whether both handles are to the same nodes.
    pub fn is_same(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.nodes, &other.nodes)
    }

    /// The node of an id that this graph gave out.
    ///
    /// # Errors
    /// The id is another graph's.
    pub fn node(&self, id: NodeId) -> Result<Arc<Node>, GraphError> {
        self.nodes().get(id).cloned().ok_or(GraphError::ForeignNode { id })
    }

    /// The output that `name` (`node` or `node:port`) means.
    ///
    /// # Errors
    /// There is no such node or port.
    pub fn output(&self, name: &str) -> Result<Output, GraphError> {
        let (node_name, port) = match name.rsplit_once(':') {
            Some((node, port)) => (node, port.parse().map_err(|_| GraphError::BadName { name: name.to_owned() })?),
            None => (name, 0u32),
        };
        let nodes = self.nodes();
        let node = nodes.find(node_name).ok_or_else(|| GraphError::NoSuchNode { name: node_name.to_owned() })?;
        if port as usize >= node.outputs.len() {
            return Err(GraphError::NoSuchPort { name: name.to_owned(), n_outputs: node.outputs.len() });
        }
        Ok(Output { node: node.id, port })
    }

    /// The node that `name` (`node` or `node:port`) means; unlike [`Graph::output`] it needs no output.
    ///
    /// # Errors
    /// There is no such node.
    pub fn node_of(&self, name: &str) -> Result<NodeId, GraphError> {
        let node = name.rsplit_once(':').map_or(name, |(node, _)| node);
        let found = self.nodes().find(node).map(|node| node.id);
        found.ok_or_else(|| GraphError::NoSuchNode { name: node.to_owned() })
    }

    /// The element type of an output.
    ///
    /// # Errors
    /// It is another graph's.
    pub fn dtype(&self, output: Output) -> Result<DType, GraphError> {
        Ok(self.port(output)?.dtype)
    }

    /// What is known of an output's shape.
    ///
    /// # Errors
    /// It is another graph's.
    pub fn shape(&self, output: Output) -> Result<PartialShape, GraphError> {
        Ok(self.port(output)?.shape)
    }

    fn port(&self, output: Output) -> Result<Port, GraphError> {
        let node = self.node(output.node)?;
        let port = node.outputs.get(output.port as usize).cloned();
        port.ok_or(GraphError::NoSuchPort { name: node.name.to_string(), n_outputs: node.outputs.len() })
    }

    /// The attribute `name` of the node that `output` belongs to.
    ///
    /// # Errors
    /// The output is another graph's.
    pub fn attr(&self, output: Output, name: &str) -> Result<Option<Attr>, GraphError> {
        Ok(self.node(output.node)?.attrs.get(name).cloned())
    }

    /// Says what is known of an output's shape, instead of what was inferred.
    ///
    /// # Errors
    /// There is no such output.
    pub fn set_shape(&self, output: Output, shape: PartialShape) -> Result<(), GraphError> {
        let mut nodes = self.nodes.write();
        let node = nodes.nodes.get_mut(output.node.index()).ok_or(GraphError::ForeignNode { id: output.node })?;
        let mut new = Node::clone(node);
        let n_outputs = new.outputs.len();
        let port = new.outputs.get_mut(output.port as usize);
        port.ok_or(GraphError::NoSuchPort { name: node.name.to_string(), n_outputs })?.shape = shape;
        *node = Arc::new(new);
        Ok(())
    }

    /// A handle whose nodes are named `name/...` (`name_1/...` when that scope is taken), within this one's scope.
    pub fn scope(&self, name: &str) -> Graph {
        let scope = self.nodes.write().unique_name(&format!("{}{name}", self.scope));
        Graph { scope: format!("{scope}/").into(), ..self.clone() }
    }

    /// A handle that adds to the scope `full_name` (without the last `/`; empty: the root) as it is.
    pub fn at_scope(&self, full_name: &str) -> Graph {
        let scope = if full_name.is_empty() { String::new() } else { format!("{full_name}/") };
        Graph { scope: scope.into(), ..self.clone() }
    }

    /// A handle that adds to the root scope, outside of all loops and branches.
    pub(crate) fn at_root(&self) -> Graph {
        Graph { capture: None, ..self.at_scope("") }
    }

    /// The scope's full name, without the last `/`.
    pub fn scope_name(&self) -> &str {
        self.scope.strip_suffix('/').unwrap_or(&self.scope)
    }

    /// A handle whose nodes run on this device (`/job:worker/task:17/device:gpu:3`, any part left out). Within a handle that has
    /// a device already, what is left out stays that one's; the empty name leaves all open again.
    pub fn with_device(&self, device: &str) -> Graph {
        let both = (self.device.parse::<DeviceName>(), device.parse::<DeviceName>());
        let device = match both {
            (Ok(outer), Ok(inner)) if !outer.is_any() && !inner.is_any() => {
                outer.overridden_by(&inner).to_string().into()
            }
            // What is no device's name is an error when the node is placed.
            _ => device.into(),
        };
        Graph { device, ..self.clone() }
    }

    /// A handle whose nodes run after these, besides those this handle's run after.
    pub fn with_control(&self, after: &[NodeId]) -> Graph {
        let control = self.control.iter().chain(after).copied().collect();
        Graph { control, ..self.clone() }
    }
}

/// What a handle does to the nodes that it adds, so that they run where they belong.
pub trait Capture: Send + Sync {
    /// The loop or branch that values from outside are brought into; the root where none are.
    fn context(&self) -> ContextId;

    /// Replaces what the node `name` of `op`, which is about to be added with `graph`, uses from elsewhere, and adds to what it runs
    /// after.
    ///
    /// # Errors
    /// A value cannot come there.
    fn capture(
        &self,
        graph: &Graph,
        name: &str,
        op: &str,
        inputs: &mut [Output],
        control: &mut Vec<NodeId>,
    ) -> Result<(), GraphError>;
}
