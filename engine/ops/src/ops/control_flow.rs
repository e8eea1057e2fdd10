//! Control flow: the five primitives of dynamic dataflow and their company (white paper section 4.4).
//!
//! `RefSwitch` and the like are what old graphs have around variables; values pass them as they pass the others.

use super::shapes::{Inferred, none, scalar, unchanged};
use engine_core::ops::flow::{SHAPE_INVARIANT, common_of};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, op, stateful};
use engine_core::shape::PartialShape;

const SWITCH: &str = "data: T, pred: bool -> output_false: T, output_true: T";
const MERGE: &str = "inputs: N * T -> output: T, value_index: int32";
const ENTER: &str = "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10";
const FORWARD: &str = "data: T -> output: T";

#[linkme::distributed_slice(OP_TABLES)]
static CONTROL_FLOW: &[OpSpec] = &[
    op("Switch", SWITCH, "T: type", switch).kind(K::Switch),
    op("RefSwitch", SWITCH, "T: type", switch).kind(K::Switch),
    op("Merge", MERGE, "T: type; N: int", merge).kind(K::Merge),
    op("RefMerge", MERGE, "T: type; N: int", merge).kind(K::Merge),
    op("Enter", FORWARD, ENTER, enter).kind(K::Enter),
    op("RefEnter", FORWARD, ENTER, enter).kind(K::Enter),
    op("Exit", FORWARD, "T: type", unchanged).kind(K::Exit),
    op("RefExit", FORWARD, "T: type", unchanged).kind(K::Exit),
    op("NextIteration", FORWARD, "T: type", unchanged).kind(K::NextIteration),
    op("RefNextIteration", FORWARD, "T: type", unchanged).kind(K::NextIteration),
    op("LoopCond", "input: bool -> output: bool", "", loop_cond).kind(K::LoopCond),
    op("ControlTrigger", "->", "", none).kind(K::ControlTrigger),
    stateful("Abort", "->", "error_msg: string = ''; exit_without_error: bool = false", none),
];

fn switch(c: &mut InferContext<'_>) -> Inferred {
    let (data, pred) = (c.input(0), c.of_rank(1, 0));
    pred?;
    c.set(0, data.clone());
    c.set(1, data);
    Ok(())
}

/// What all inputs have in common.
fn merge(c: &mut InferContext<'_>) -> Inferred {
    let shape = (1..c.n_inputs()).fold(c.input(0), |common, i| common_of(&common, &c.input(i)));
    c.set(0, shape);
    c.set(1, PartialShape::scalar());
    Ok(())
}

fn enter(c: &mut InferContext<'_>) -> Inferred {
    let shape = match c.attr(SHAPE_INVARIANT) {
        Some(Attr::Shape(invariant)) => invariant.clone(),
        _ => c.input(0),
    };
    c.set(0, shape);
    Ok(())
}

fn loop_cond(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(0, 0)?;
    scalar(c)
}
