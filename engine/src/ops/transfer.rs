//! Ops that partitioning puts on edges between devices, under TensorFlow's names.

use super::shapes::{Inferred, none};
use super::{OP_TABLES, OpSpec, stateful};
use crate::graph::InferContext;

const SEND: &str = "T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
                    recv_device: string; client_terminated: bool = false";
const RECV: &str = "tensor_type: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
                    recv_device: string; client_terminated: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static TRANSFER: &[OpSpec] =
    &[stateful("_Send", "tensor: T ->", SEND, none), stateful("_Recv", "-> tensor: tensor_type", RECV, unknown)];

fn unknown(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, crate::shape::PartialShape::unknown());
    Ok(())
}
