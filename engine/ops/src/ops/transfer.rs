//! Ops that partitioning puts on edges between devices, under TensorFlow's names.

use super::shapes::{Inferred, none, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, op, stateful};
use engine_core::shape::PartialShape;

const SEND: &str = "T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
                    recv_device: string; client_terminated: bool = false";
const RECV: &str = "tensor_type: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
                    recv_device: string; client_terminated: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static TRANSFER: &[OpSpec] = &[
    stateful("_Send", "tensor: T ->", SEND, none).kind(K::Send),
    stateful("_Recv", "-> tensor: tensor_type", RECV, received).kind(K::Recv),
    // A client's feeds and fetches lie in the host's memory.
    op("_ToDevice", "tensor: T -> there: T", "T: type", unchanged),
    op("_ToHost", "tensor: T -> here: T", "T: type", unchanged),
];

/// What was known of the value where the graph was divided.
fn received(c: &mut InferContext<'_>) -> Inferred {
    let shape = match c.attr("_output_shapes") {
        Some(Attr::ListShape(shapes)) => shapes.first().cloned(),
        _ => None,
    };
    c.set(0, shape.unwrap_or_else(PartialShape::unknown));
    Ok(())
}
