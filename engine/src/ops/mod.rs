//! Ops: the kinds of computation, with TensorFlow's names and attributes, and their registry.
//!
//! An op is written as one line of a table, in TensorFlow's own notation:
//! `op("MatMul", "a: T, b: T -> product: T", "transpose_a: bool = false; T: {float, double}", shape_fn)`.
//! Tables register in the link-time slice [`OP_TABLES`], which other crates may extend, or at run time with [`register`].

mod activation;
pub mod aliases;
mod array;
mod arrays;
mod candidates;
mod checkpoint;
mod collective;
pub(crate) mod control_flow;
mod conv;
mod ctc;
mod elementwise;
mod facts;
mod functional;
mod fused;
mod indexing;
mod input;
mod layout;
mod linalg;
mod lookup;
mod math;
mod nn;
mod norm;
mod optional;
mod pool;
mod quantized;
mod queue;
mod random;
mod resize;
mod rnn;
mod scatter;
mod segment;
mod sequence;
mod shapes;
mod sparse;
mod spec;
mod staging;
mod state;
mod strings;
mod summary;
mod sync;
mod tensor_list;
mod training;
mod transfer;
mod variables;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::graph::Attr;
pub use facts::{Effect, OpKind};
pub use spec::{OpSpec, SpecError, checks, of_step, op, random, reads, stateful};

/// The kind of a computation: what a node's inputs, outputs and attributes must be.
#[derive(Debug)]
pub struct OpDef {
    /// TensorFlow's name.
    pub name: &'static str,
    /// The inputs. A list input stands for several ports.
    pub inputs: Vec<ArgDef>,
    /// The outputs.
    pub outputs: Vec<ArgDef>,
    /// The attributes.
    pub attrs: Vec<AttrDef>,
    /// The part that it plays in a graph.
    pub kind: OpKind,
    /// What it does besides computing its outputs.
    pub effect: Effect,
    /// Whether the order of its two inputs does not matter.
    pub commutes: bool,
    /// Whether its output is its first input's memory.
    pub view: bool,
    /// Infers shapes.
    pub shape_fn: ShapeFn,
}

impl OpDef {
    /// Whether it has state or effects, so that equal nodes are not the same node and it cannot be folded.
    pub fn is_stateful(&self) -> bool {
        self.effect != Effect::None
    }

    /// The element types of the ports that `args` (the inputs or the outputs) stand for, given a node's attributes.
    ///
    /// # Errors
    /// An attribute that tells them is missing.
    pub fn port_types(&self, args: &[ArgDef], attrs: &BTreeMap<String, Attr>) -> Result<Vec<DType>, AttrError> {
        let mut out = Vec::with_capacity(args.len());
        let missing = |name: &str| AttrError::Missing(name.into());
        let dtype = |name: &str| match attrs.get(name) {
            Some(Attr::Type(t)) => Ok(*t),
            _ => Err(missing(name)),
        };
        let count = |name: &str| match attrs.get(name) {
            Some(Attr::Int(n)) => usize::from(u16::try_from(*n).unwrap_or(0)),
            _ => 0,
        };
        for arg in args {
            match &arg.ty {
                ArgType::Fixed(t) => out.push(*t),
                ArgType::Attr(t) => out.push(dtype(t)?),
                ArgType::Repeat(n, t) => out.extend(std::iter::repeat_n(dtype(t)?, count(n))),
                ArgType::RepeatFixed(n, t) => out.extend(std::iter::repeat_n(*t, count(n))),
                ArgType::List(ts) => match attrs.get(*ts) {
                    Some(Attr::ListType(list)) => out.extend(list),
                    _ => return Err(missing(ts)),
                },
            }
        }
        Ok(out)
    }
}

/// Infers the shapes of a node's outputs and checks those of its inputs.
pub type ShapeFn = fn(&mut crate::graph::InferContext<'_>) -> Result<(), crate::graph::ShapeError>;

/// An input or output.
#[derive(Debug, Clone)]
pub struct ArgDef {
    /// The name.
    pub name: &'static str,
    /// The element type or types.
    pub ty: ArgType,
    /// Whether it is a variable itself, not its value: `ref: Ref(T)`, the type of TensorFlow's first variables.
    pub is_ref: bool,
}

/// How the element types of an input or output are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgType {
    /// Always this one: `x: float`.
    Fixed(DType),
    /// The type attribute: `x: T`.
    Attr(&'static str),
    /// As many ports of one type as an attribute says: `x: N * T`.
    Repeat(&'static str, &'static str),
    /// As many ports of a fixed type as an attribute says: `x: N * string`.
    RepeatFixed(&'static str, DType),
    /// One port for each type of a list attribute: `x: Tdense`, where that is a `list(type)`.
    List(&'static str),
}

/// An attribute.
#[derive(Debug, Clone)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: AttrKind,
    /// The value of nodes that do not give one; without it the attribute is required (or inferred from inputs).
    pub default: Option<Attr>,
    /// For types: which are allowed; empty means any.
    pub allowed: Vec<DType>,
}

/// The kind of an attribute's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttrKind {
    /// Integer.
    Int,
    /// Float.
    Float,
    /// Bool.
    Bool,
    /// Bytes.
    Str,
    /// Element type.
    Type,
    /// Shape, possibly partial.
    Shape,
    /// Tensor.
    Tensor,
    /// List of integers.
    ListInt,
    /// List of floats.
    ListFloat,
    /// List of bytes.
    ListStr,
    /// List of element types.
    ListType,
    /// List of shapes.
    ListShape,
    /// Function of the graph's library.
    Func,
    /// List of functions.
    ListFunc,
}

/// An attribute of a node is not what the op wants.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AttrError {
    /// It is missing.
    #[error("attribute {0} is missing")]
    Missing(Box<str>),
    /// It is of another kind.
    #[error("attribute {name} is {got}, expected {expected:?}")]
    Kind {
        /// The attribute.
        name: Box<str>,
        /// The kind it should have.
        expected: AttrKind,
        /// What it is.
        got: Box<str>,
    },
    /// The op has no such attribute.
    #[error("op {op} has no attribute {name}")]
    Unknown {
        /// The op.
        op: &'static str,
        /// The attribute.
        name: Box<str>,
    },
    /// The value is outside of what the op allows.
    #[error("attribute {name} = {problem}")]
    Value {
        /// The attribute.
        name: Box<str>,
        /// Its value, and what would be allowed.
        problem: Box<str>,
    },
}

/// Ops registered at link time.
#[linkme::distributed_slice]
pub static OP_TABLES: [&'static [OpSpec]];

static REGISTRY: LazyLock<RwLock<FxHashMap<&'static str, &'static OpDef>>> = LazyLock::new(|| {
    let mut table = FxHashMap::default();
    for spec in OP_TABLES.iter().flat_map(|t| t.iter()) {
        // A line that does not parse leaves its op unknown; a test parses them all.
        if let Ok(def) = spec.parse() {
            table.insert(spec.name, &*Box::leak(Box::new(def)));
        }
    }
    RwLock::new(table)
});

/// The op of this name, or of the one that the white paper's name stands for ([`aliases`]).
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    let registry = REGISTRY.read();
    registry.get(name).or_else(|| registry.get(aliases::resolve(name)?)).copied()
}

/// The kind of the op of this name; [`OpKind::Compute`] where there is none.
pub fn kind(name: &str) -> OpKind {
    lookup(name).map_or(OpKind::Compute, |def| def.kind)
}

/// All ops, by name.
pub fn all() -> Vec<&'static OpDef> {
    let mut all: Vec<_> = REGISTRY.read().values().copied().collect();
    all.sort_unstable_by_key(|def| def.name);
    all
}

/// Registers an op at run time; it replaces one of the same name for graphs built afterwards.
///
/// # Errors
/// The line cannot be parsed.
pub fn register(spec: &OpSpec) -> Result<(), SpecError> {
    let def = &*Box::leak(Box::new(spec.parse()?));
    REGISTRY.write().insert(spec.name, def);
    Ok(())
}
