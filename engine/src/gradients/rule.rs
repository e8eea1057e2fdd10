//! The rules by which gradients pass ops, and their registry.

use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::context::GradientContext;
use super::error::GradientError;

/// Adds the nodes that compute the gradients of a node's inputs.
pub type GradientFn = fn(&mut GradientContext<'_>) -> Result<(), GradientError>;

/// How gradients pass an op.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// By this function.
    Function(GradientFn),
    /// Not at all: the outputs do not change, or only in steps, when the inputs change.
    Zero,
    /// Together with the loop that the node belongs to.
    Loop,
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
