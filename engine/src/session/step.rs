//! A step that is put together from handles or names.

use super::client::Session;
use super::error::RunError;
use super::options::RunOptions;
use crate::compile::Signature;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Value};
use engine_core::tensor::Tensor;

/// What names an output of a graph, or a node.
pub trait Port {
    /// The output.
    ///
    /// # Errors
    /// The graph has no such output.
    fn resolve(self, graph: &Graph) -> Result<Output, GraphError>;

    /// The node, which needs no outputs.
    ///
    /// # Errors
    /// The graph has no such node.
    fn resolve_node(self, graph: &Graph) -> Result<NodeId, GraphError>
    where
        Self: Sized,
    {
        Ok(self.resolve(graph)?.node)
    }
}

impl Port for Value<'_> {
    fn resolve(self, _: &Graph) -> Result<Output, GraphError> {
        Ok(self.output())
    }
}

impl Port for Output {
    fn resolve(self, _: &Graph) -> Result<Output, GraphError> {
        Ok(self)
    }
}

impl Port for NodeId {
    fn resolve(self, _: &Graph) -> Result<Output, GraphError> {
        Ok(self.into())
    }
}

impl Port for &str {
    /// The output of this name, `node` or `node:port`.
    fn resolve(self, graph: &Graph) -> Result<Output, GraphError> {
        graph.output(self)
    }

    fn resolve_node(self, graph: &Graph) -> Result<NodeId, GraphError> {
        graph.node_of(self)
    }
}

/// A step of a session: what it is fed, what it shall give, and what shall run besides.
///
/// ```
/// # use engine::{DType, Graph, Session, SessionOptions, Tensor};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [None]);
/// let session = Session::new(&g, SessionOptions::default())?;
/// let y = session.step().feed(x, Tensor::vector(&[1f32, 2.0])).fetch(2.0 * x).run()?;
/// assert_eq!(y, [Tensor::vector(&[2f32, 4.0])]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a step does nothing until it is run"]
pub struct Step<'s> {
    session: &'s Session,
    options: RunOptions<'s>,
    signature: Signature,
    values: Vec<Tensor>,
    error: Option<GraphError>,
}

impl Session {
    /// A step that does nothing yet.
    pub fn step(&self) -> Step<'_> {
        let (options, signature) = (RunOptions::default(), Signature::default());
        Step { session: self, options, signature, values: Vec::new(), error: None }
    }
}

impl<'s> Step<'s> {
    /// Feeds an output with a value.
    pub fn feed(mut self, port: impl Port, value: impl Into<Tensor>) -> Step<'s> {
        let port = port.resolve(self.session.graph());
        let port = self.keep_error(port);
        self.signature.feeds.extend(port);
        self.values.push(value.into());
        self
    }

    /// Asks for the value of an output: the steps' results are in the order of these calls.
    ///
    /// With a training step as the target, a loss is the one before the update: a step reads a variable once, and the update
    /// waits for gradients that follow from what was read. The exception is a loss that is linear in a variable, whose
    /// gradient does not depend on its value. That one, and what else reads a variable that the step updates, may be
    /// from before the update or after it: fetch it in a step of its own.
    pub fn fetch(mut self, port: impl Port) -> Step<'s> {
        let port = port.resolve(self.session.graph());
        let port = self.keep_error(port);
        self.signature.fetches.extend(port);
        self
    }

    /// Runs a node, whose value nobody wants, and what it depends on. Targets and fetches that do not depend on each other
    /// run in any order.
    pub fn target(mut self, node: impl Port) -> Step<'s> {
        let node = node.resolve_node(self.session.graph());
        let node = self.keep_error(node);
        self.signature.targets.extend(node);
        self
    }

    /// Runs these nodes.
    pub fn targets(mut self, nodes: &[NodeId]) -> Step<'s> {
        self.signature.targets.extend_from_slice(nodes);
        self
    }

    /// Replaces the options.
    pub fn options(mut self, options: RunOptions<'s>) -> Step<'s> {
        self.options = options;
        self
    }

    /// What was found; the first error waits for [`Step::run`].
    fn keep_error<T>(&mut self, found: Result<T, GraphError>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
    }

    /// Runs the step; gives the values of what was asked for.
    ///
    /// # Errors
    /// See [`RunError`]; a port does not exist.
    pub fn run(self) -> Result<Vec<Tensor>, RunError> {
        self.session.graph().check()?;
        self.error.map_or(Ok(()), Err)?;
        self.session.callable(self.signature)?.run_step(&self.options, &self.values)
    }
}
