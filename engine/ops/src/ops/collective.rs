//! Collectives: what the devices of a group compute together, under TensorFlow's names. The members of a group are nodes of one
//! graph on different devices, with the same group and instance keys; the pass `compile::passes::collectives` makes transfers of them.

use super::shapes::{Inferred, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, ShapeError, stateful};
use engine_core::shape::PartialShape;

macro_rules! keys {
    () => {
        "group_size: int; group_key: int; instance_key: int; communication_hint: string = 'auto'; timeout_seconds: float = 0.0"
    };
}
macro_rules! hints {
    () => {
        "communication_hint: string = 'auto'; timeout_seconds: float = 0.0"
    };
}
macro_rules! numbers {
    () => {
        "T: {bfloat16, float, half, double, int32, int64}; "
    };
}
macro_rules! copied {
    () => {
        "T: {bool, float, half, double, int32, int64}; "
    };
}
#[linkme::distributed_slice(OP_TABLES)]
static COLLECTIVE: &[OpSpec] = &[
    stateful(
        "CollectiveReduce",
        "input: T -> data: T",
        concat!(
            numbers!(),
            "merge_op: string; final_op: string; subdiv_offsets: list(int) = []; wait_for: list(int) = []; ",
            keys!()
        ),
        unchanged,
    ).kind(K::Collective),
    stateful(
        "CollectiveReduceV2",
        "input: T, group_size: int32, group_key: int32, instance_key: int32, ordering_token: Nordering_token * resource -> data: T",
        concat!(
            numbers!(),
            "merge_op: string; final_op: string; is_stateless: bool = false; Nordering_token: int = 0; \
             max_subdivs_per_device: int = -1; ",
            hints!()
        ),
        unchanged,
    ).kind(K::Collective),
    stateful(
        "CollectiveReduceScatterV2",
        "input: T, group_size: int32, group_key: int32, instance_key: int32, ordering_token: Nordering_token * resource -> data: T",
        concat!(
            numbers!(),
            "merge_op: string; final_op: string; is_stateless: bool = false; Nordering_token: int = 0; \
             max_subdivs_per_device: int = -1; ",
            hints!()
        ),
        scattered,
    ).kind(K::Collective),
    stateful("CollectiveGather", "input: T -> data: T", concat!(copied!(), "shape: shape; ", keys!()), of_attribute).kind(K::Collective),
    stateful(
        "CollectiveGatherV2",
        "input: T, group_size: int32, group_key: int32, instance_key: int32, ordering_token: Nordering_token * resource -> data: T",
        concat!(copied!(), "is_stateless: bool = false; Nordering_token: int = 0; ", hints!()),
        gathered,
    ).kind(K::Collective),
    stateful("CollectiveBcastSend", "input: T -> data: T", concat!(copied!(), "shape: shape; ", keys!()), unchanged).kind(K::Collective),
    stateful("CollectiveBcastRecv", "-> data: T", concat!(copied!(), "shape: shape; ", keys!()), of_attribute).kind(K::Collective),
    stateful(
        "CollectiveBcastSendV2",
        "input: T, group_size: int32, group_key: int32, instance_key: int32 -> data: T",
        concat!(copied!(), hints!()),
        unchanged,
    ).kind(K::Collective),
    stateful(
        "CollectiveBcastRecvV2",
        "group_size: int32, group_key: int32, instance_key: int32, shape: Tshape -> data: T",
        concat!(copied!(), "Tshape: {int32, int64} = int32; ", hints!()),
        of_input,
    ).kind(K::Collective),
];

/// The shape that an attribute gives.
fn of_attribute(c: &mut InferContext<'_>) -> Inferred {
    let shape = match c.attr("shape") {
        Some(Attr::Shape(shape)) => shape.clone(),
        _ => PartialShape::unknown(),
    };
    c.set(0, shape);
    Ok(())
}

/// The shape that the last input is.
fn of_input(c: &mut InferContext<'_>) -> Inferred {
    let dims = c.ints(3).map(|dims| dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Vec<_>>());
    c.set(0, dims.map_or_else(PartialShape::unknown, |dims| PartialShape::new(&dims)));
    Ok(())
}

/// The input with its first dimension changed by the group's size.
fn along_first(c: &mut InferContext<'_>, change: impl Fn(usize, usize) -> Result<usize, ShapeError>) -> Inferred {
    let (shape, size) = (c.input(0), c.ints(1).and_then(|size| usize::try_from(*size.first()?).ok()));
    let Some(dims) = shape.dims().filter(|dims| !dims.is_empty()) else {
        c.set(0, PartialShape::unknown());
        return Ok(());
    };
    let mut dims = dims.to_vec();
    dims[0] = match (dims[0], size) {
        (Some(first), Some(size)) => Some(change(first, size)?),
        _ => None,
    };
    c.set(0, PartialShape::new(&dims));
    Ok(())
}

fn gathered(c: &mut InferContext<'_>) -> Inferred {
    along_first(c, |first, size| Ok(first.saturating_mul(size)))
}

fn scattered(c: &mut InferContext<'_>) -> Inferred {
    along_first(c, |first, size| match size {
        0 => Err(ShapeError("a group has no members".into())),
        _ if first % size == 0 => Ok(first / size),
        _ => Err(ShapeError(format!("a first dimension of {first} cannot be dealt out to {size} members"))),
    })
}
