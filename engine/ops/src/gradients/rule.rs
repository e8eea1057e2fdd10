//! The rules by which gradients pass ops, and their registry.

use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::context::{GradientContext, conjugate};
use super::error::GradientError;
use engine_core::graph::Value;

/// Whether a rule could add its nodes.
pub(super) type RuleResult = Result<(), GradientError>;

/// Adds the nodes that compute the gradients of a node's inputs.
pub type GradientFn = fn(&GradientContext<'_>) -> Result<(), GradientError>;

/// The slope of a function of one input at `x`, where its value is `y`.
pub type SlopeFn = for<'a> fn(x: Value<'a>, y: Value<'a>) -> Value<'a>;

/// The gradient of the input `x` of a function, from the gradient `g` of its value `y`.
pub type UnaryFn = for<'a> fn(g: Value<'a>, x: Value<'a>, y: Value<'a>) -> Value<'a>;

/// The gradients of two inputs `xs` that are broadcast against each other, from the gradient `g` of the function's value `y`.
pub type BinaryFn = for<'a> fn(g: Value<'a>, xs: [Value<'a>; 2], y: Value<'a>) -> [Value<'a>; 2];

/// How gradients pass an op.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// By this function.
    Function(GradientFn),
    /// By the slope of a function of one input, with which the gradient is multiplied; conjugated where it is complex, as
    /// TensorFlow's gradients are those of the real part of the loss.
    Slope(SlopeFn),
    /// By the gradient of the first input, the only one that has one.
    Unary(UnaryFn),
    /// By the gradients of a function of two inputs that are broadcast against each other.
    Binary(BinaryFn),
    /// Not at all: the outputs do not change, or only in steps, when the inputs change.
    Zero,
    /// Together with the loop that the node belongs to.
    Loop,
}

impl Rule {
    /// Adds the gradients of the context's node.
    pub(super) fn apply(self, c: &GradientContext<'_>) -> Result<(), GradientError> {
        match self {
            Rule::Function(function) => {
                let done = function(c);
                // A node that could not be added is the cause of what the function says.
                c.graph().check()?;
                done?;
            }
            Rule::Slope(slope) => {
                let grad = c.grad(0);
                c.set(0, grad * conjugate(slope(c.input(0), c.output(0))));
            }
            Rule::Unary(gradient) => c.set(0, gradient(c.grad(0), c.input(0), c.output(0))),
            Rule::Binary(gradients) => {
                let [x, y] = gradients(c.grad(0), [c.input(0), c.input(1)], c.output(0));
                c.set_broadcast([(0, x), (1, y)]);
            }
            Rule::Zero => {}
            Rule::Loop => return Err(c.unsupported("since it is not where a loop has such a node")),
        }
        Ok(c.graph().check()?)
    }
}

/// The rule of one op.
pub type GradientSpec = (&'static str, Rule);

/// Tables of gradient rules, by op.
#[linkme::distributed_slice]
pub static GRADIENT_TABLES: [&'static [GradientSpec]];

static BY_OP: LazyLock<RwLock<FxHashMap<&'static str, Rule>>> =
    LazyLock::new(|| RwLock::new(GRADIENT_TABLES.iter().flat_map(|table| table.iter().copied()).collect()));

/// The rule of an op, where it has one.
pub fn rule(op: &str) -> Option<Rule> {
    BY_OP.read().get(op).copied()
}

/// Registers the rule of an op at run time; it replaces one that was there.
pub fn register((op, rule): GradientSpec) {
    BY_OP.write().insert(op, rule);
}
