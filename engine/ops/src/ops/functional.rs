//! Ops that call functions of the graph's library. But for calls within the called function's own body they have no
//! kernels: what they call takes their place (see [`engine_core::functions`], which has the ops of plain calls: their shapes are
//! those of the functions).

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, op, stateful};

const RECURSIVE: &str = "Tin: list(type); Tout: list(type); f: func";
const IF: &str = "Tcond: type; Tin: list(type); Tout: list(type); then_branch: func; else_branch: func; \
                  output_shapes: list(shape) = []";
const CASE: &str = "Tin: list(type); Tout: list(type); branches: list(func); output_shapes: list(shape) = []";
const WHILE: &str = "T: list(type); cond: func; body: func; output_shapes: list(shape) = []; \
                     parallel_iterations: int = 10";
const SYMBOLIC_GRADIENT: &str = "Tin: list(type); Tout: list(type); f: func";

#[linkme::distributed_slice(OP_TABLES)]
static FUNCTIONAL: &[OpSpec] = &[
    stateful("If", "cond: Tcond, input: Tin -> output: Tout", IF, declared).kind(K::If),
    op("StatelessIf", "cond: Tcond, input: Tin -> output: Tout", IF, declared).kind(K::If),
    stateful("Case", "branch_index: int32, input: Tin -> output: Tout", CASE, declared).kind(K::Case),
    op("StatelessCase", "branch_index: int32, input: Tin -> output: Tout", CASE, declared).kind(K::Case),
    stateful("While", "input: T -> output: T", WHILE, declared).kind(K::While),
    op("StatelessWhile", "input: T -> output: T", WHILE, declared).kind(K::While),
    stateful("_RecursiveCall", "args: Tin -> output: Tout", RECURSIVE, none),
    // A condition that is no bool.
    op("ToBool", "input: T -> output: bool", "T: type", scalar),
    op("IdentityN", "input: T -> output: T", "T: list(type)", as_inputs).kind(K::IdentityN),
    op("SymbolicGradient", "input: Tin -> output: Tout", SYMBOLIC_GRADIENT, as_inputs).kind(K::SymbolicGradient),
];

/// The shapes that the node declares.
fn declared(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::ListShape(shapes)) = c.attr("output_shapes").cloned() {
        let n_outputs = c.n_outputs();
        shapes.into_iter().take(n_outputs).enumerate().for_each(|(i, shape)| c.set(i, shape));
    }
    Ok(())
}

/// Each output has the shape of the input in its place.
fn as_inputs(c: &mut InferContext<'_>) -> Inferred {
    for i in 0..c.n_outputs() {
        c.set(i, c.input(i));
    }
    Ok(())
}
