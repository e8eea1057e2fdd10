//! TensorFlow's first variables, whose outputs are references, and what reads, counts and destroys variables.

use super::shapes::{Inferred, none, scalar, shape_attr};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, reads, stateful};
use engine_core::shape::PartialShape;

const VARIABLE: &str = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''";
const UPDATE: &str = "ref: Ref(T), value: T -> output_ref: Ref(T)";
const T: &str = "T: {numbers, quantized}; use_locking: bool = false";
const RESOURCE_UPDATE: &str = "resource: resource, value: dtype ->";

#[linkme::distributed_slice(OP_TABLES)]
static VARIABLES: &[OpSpec] = &[
    reads("Variable", "-> ref: Ref(dtype)", VARIABLE, variable).kind(K::Variable),
    reads("VariableV2", "-> ref: Ref(dtype)", VARIABLE, shape_attr).kind(K::Variable),
    stateful("TemporaryVariable", "-> ref: Ref(dtype)", "shape: shape; dtype: type; var_name: string = ''", shape_attr),
    stateful("DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type; var_name: string", first),
    stateful("RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", first),
    reads("ReadReference", "ref: Ref(T) -> value: T", "T: type", first),
    stateful("Assign", UPDATE, "T: type; validate_shape: bool = true; use_locking: bool = true", assign),
    stateful("AssignAdd", UPDATE, T, update),
    stateful("AssignSub", UPDATE, T, update),
    stateful("AssignAddVariableOp", RESOURCE_UPDATE, "dtype: type", resource_update),
    stateful("AssignSubVariableOp", RESOURCE_UPDATE, "dtype: type", resource_update),
    reads("IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type", scalar),
    stateful("CountUpTo", "ref: Ref(T) -> output: T", "limit: int; T: {int32, int64}", scalar),
    stateful("ResourceCountUpTo", "resource: resource -> output: T", "limit: int; T: {int32, int64}", scalar),
    stateful("DestroyResourceOp", "resource: resource ->", "ignore_lookup_error: bool = true", none),
    reads("VariableShape", "input: resource -> output: out_type", "out_type: {int32, int64} = int32", shape_of),
];

/// The first version means "unknown" by a shape without dimensions.
fn variable(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::Shape(shape)) = c.attr("shape").filter(|s| **s != Attr::Shape(PartialShape::scalar())) {
        let shape = shape.clone();
        c.set(0, shape);
    }
    Ok(())
}

fn first(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(0);
    c.set(0, shape);
    Ok(())
}

fn assign(c: &mut InferContext<'_>) -> Inferred {
    let (var, value) = (c.input(0), c.input(1));
    let shape = if c.flag("validate_shape") { c.merge(&var, &value)? } else { value };
    c.set(0, shape);
    Ok(())
}

fn update(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.merge(&c.input(0), &c.input(1))?;
    c.set(0, shape);
    Ok(())
}

fn resource_update(c: &mut InferContext<'_>) -> Inferred {
    c.merge(&c.variable_shape(0), &c.input(1)).map(drop)
}

fn shape_of(c: &mut InferContext<'_>) -> Inferred {
    let rank = c.variable_shape(0).rank();
    c.set(0, [rank]);
    Ok(())
}
