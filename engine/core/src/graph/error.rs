//! Why a graph cannot be what it was asked to be.

use super::NodeId;
use crate::dtype::DType;
use crate::ops::{AttrError, ShapeError};

/// Why a node could not be added, found or differentiated. Messages name node and op.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GraphError {
    /// The op is not registered.
    #[error("node {node}: unknown op {op}")]
    UnknownOp {
        /// The node.
        node: String,
        /// The op.
        op: String,
    },
    /// An attribute is missing, unknown, or of the wrong kind.
    #[error("node {node} ({op}): {source}")]
    Attr {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// What is wrong.
        source: AttrError,
    },
    /// A number was asked for of a type that has none.
    #[error("{dtype} is no type of numbers")]
    NotANumber {
        /// The type.
        dtype: DType,
    },
    /// The number of inputs is not the op's.
    #[error("node {node} ({op}): expected {expected} inputs, got {got}")]
    InputCount {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// How many the op and the attributes ask for.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// An input's element type is not the one that the op and the attributes ask for.
    #[error("node {node} ({op}): input {input} is {got} (from {from}), expected {expected}")]
    InputType {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// The input's name in the op.
        input: &'static str,
        /// The node that the input comes from.
        from: String,
        /// What the op asks for.
        expected: DType,
        /// What it is.
        got: DType,
    },
    /// The inputs' shapes do not fit the op.
    #[error("node {node} ({op}) with inputs {inputs}: {source}")]
    Shape {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// The inputs' shapes.
        inputs: String,
        /// What is wrong.
        source: ShapeError,
    },
    /// A node does not fit into the graph's loops and branches.
    #[error("node {node} ({op}): {source}")]
    ControlFlow {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// What is wrong.
        source: Box<ControlFlowError>,
    },
    /// A node of this name exists.
    #[error("node {name}: the name is taken")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The name has characters that names of nodes cannot have.
    #[error("{name:?} is not a name: letters, digits and _ . - / > only, the first a letter, a digit, . or >")]
    BadName {
        /// The name.
        name: String,
    },
    /// No node has this name.
    #[error("no node {name}")]
    NoSuchNode {
        /// The name.
        name: String,
    },
    /// The node has no such output.
    #[error("no output {name}: the node has {n_outputs} outputs")]
    NoSuchPort {
        /// The name, with the port where one was given.
        name: String,
        /// The node's outputs.
        n_outputs: usize,
    },
    /// An id that this graph did not give out.
    #[error("node id {} belongs to another graph", id.0)]
    ForeignNode {
        /// The id.
        id: NodeId,
    },
    /// A layer is made on a value whose last dimension is not known.
    #[error("node {node}: its last dimension must be known, as a layer's variables have that size")]
    UnknownSize {
        /// The node.
        node: String,
    },
    /// The graph has more nodes than ids.
    #[error("a graph holds at most {} nodes", u32::MAX)]
    TooManyNodes,
}

/// Why a node does not fit into the loops and branches of a graph.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFlowError {
    /// Inputs come from different loops.
    #[error("inputs from different frames: {a} is in {a_frame}, {b} in {b_frame}")]
    MixedFrames {
        /// An input's node.
        a: String,
        /// Its frame.
        a_frame: String,
        /// Another input's node.
        b: String,
        /// Its frame.
        b_frame: String,
    },
    /// An `Enter` does not say into which frame.
    #[error("it has no frame name")]
    NoFrameName,
    /// The attribute `parallel_iterations` of an `Enter` is below 1.
    #[error("{0} parallel iterations; at least 1 is needed")]
    ParallelIterations(i64),
    /// Two `Enter`s lead into one frame from different frames.
    #[error("frame {frame} is entered from {a} and from {b}")]
    TwoParents {
        /// The frame's name.
        frame: String,
        /// A frame that it is entered from.
        a: String,
        /// Another one.
        b: String,
    },
    /// An op of a loop is outside of all.
    #[error("it is outside of any loop: no Enter leads to it")]
    OutsideOfLoop,
    /// A `NextIteration` leads elsewhere than to the head of its loop.
    #[error("it closes a loop that is not its own: {next} is in {next_frame}, the Merge in {frame}")]
    WrongLoop {
        /// The `NextIteration`.
        next: String,
        /// Its frame.
        next_frame: String,
        /// The frame of the `Merge`.
        frame: String,
    },
    /// A loop variable's shape changes from one iteration to the next.
    #[error("the loop variable enters as {before} and comes round as {after}; give it a shape invariant")]
    ShapeVaries {
        /// What the `Merge` says.
        before: String,
        /// What the `NextIteration` brings.
        after: String,
    },
    /// A value inside of a loop is fed: there would be one for each iteration.
    #[error("an input is fed, which is not possible in {frame}")]
    FedInside {
        /// The frame.
        frame: String,
    },
    /// A value inside of a loop is fetched: there is one for each iteration.
    #[error("it is inside of a loop: only results of a loop can be fetched")]
    FetchedInside,
    /// A loop without variables would never end.
    #[error("a loop needs at least one variable")]
    NoVariables,
    /// The body gives another number of values than the loop has variables.
    #[error("the loop has {expected} variables, its body gives {got} values")]
    VariableCount {
        /// The variables.
        expected: usize,
        /// What the body gives.
        got: usize,
    },
    /// The two sides of a conditional give different numbers of values.
    #[error("one side of the conditional gives {then} values, the other {otherwise}")]
    BranchCount {
        /// Of the side for true.
        then: usize,
        /// Of the side for false.
        otherwise: usize,
    },
    /// A node uses a value from inside of a loop or branch that it is not in.
    #[error("it uses {value}, which is inside of {context}: only results of a loop or conditional can be used outside")]
    OutOfContext {
        /// The value's node.
        value: String,
        /// Its loop or branch.
        context: String,
    },
}
