//! `_Send` and `_Recv`: the two ends of an edge between devices (white paper sections 3.2.2, 5.3 and 5.5).
//!
//! A send hands its value to the step's rendezvous and ends. A receive waits there without a thread, then copies the value
//! into its device's memory. Dead values travel too, so that the other device learns that a branch was not taken.
//!
//! Lossy compression (attribute [`LOSSY`]): a `float` tensor travels as its values' upper 16 bits, sign, exponent and 7 bits
//! of the mantissa, and arrives with zeros in place of the others. The relative error is below 2^-7; infinities stay
//! infinities, NaNs NaNs.

use std::sync::Arc;

use smallvec::smallvec;

use super::support::{Built, Computed};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, Kernel, KernelContext, KernelDef,
    KernelError,
};
use engine_core::buffer::Allocator;
use engine_core::device::DeviceName;
use engine_core::dtype::{DType, bf16};
use engine_core::graph::{Attr, Node};
use engine_core::kernel::{EdgeKey, Key, Message, RendezvousError};
use engine_core::ops::AttrError;
use engine_core::tensor::{Tensor, TensorError};
use engine_core::trace::{Arrival, Awaits, TransferTrace};

/// The attribute that makes an edge lossy, on its `_Send` and its `_Recv`.
pub const LOSSY: &str = "_lossy";

#[linkme::distributed_slice(KERNEL_TABLES)]
static SEND: &[KernelDef] = &[
    super::support::cpu_any("_Send", send),
    super::support::cpu_any("_ToDevice", |_| super::support::cheap(hand_on)),
    super::support::cpu_any("_ToHost", |_| super::support::cheap(hand_on)),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static RECV: &[AsyncKernelDef] = &[AsyncKernelDef { op: "_Recv", device: "CPU", dtypes: ("", &[]), build: recv }];

/// The host's memory is a CPU's.
fn hand_on(ctx: &mut KernelContext<'_>) -> Computed {
    let value = ctx.take(0)?;
    ctx.set(0, value);
    Ok(())
}

/// The edge that a `_Send` or a `_Recv` is an end of.
///
/// # Errors
/// An attribute is missing.
pub fn edge(node: &Node) -> Result<Arc<EdgeKey>, AttrError> {
    let (from, to, edge) = (node.text("send_device")?, node.text("recv_device")?, node.text("tensor_name")?);
    // An incarnation is 64 bits; the attribute holds them as an integer with a sign.
    let incarnation = *node.int("send_device_incarnation")? as u64;
    Ok(Arc::new(EdgeKey::new(&from, incarnation, &to, &edge)))
}

/// Whether values travel as their upper halves.
pub fn is_lossy(node: &Node) -> bool {
    matches!(node.attrs.get(LOSSY), Some(Attr::Bool(true)))
}

/// Whether the ends are in different tasks, so in different processes.
fn is_remote(node: &Node) -> Result<bool, AttrError> {
    let task =
        |name: &str| Ok::<_, AttrError>(node.text(name)?.parse::<DeviceName>().ok().map(|name| name.task_name()));
    Ok(task("send_device")? != task("recv_device")?)
}

struct Send {
    edge: Arc<EdgeKey>,
    is_lossy: bool,
    is_remote: bool,
}

fn send(node: &Node) -> Built {
    Ok(Box::new(Send { edge: edge(node)?, is_lossy: is_lossy(node), is_remote: is_remote(node)? }))
}

impl Kernel for Send {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        let trace = TransferTrace::sending(ctx.node.event_id, self.is_remote);
        let value = ctx.inputs.first_mut().and_then(Option::take);
        let value = match value {
            Some(value) if self.is_lossy && value.dtype() == DType::F32 => Some(shorten(ctx, &value)?),
            other => other,
        };
        let transfer = if trace.is_on() { events::next_flow_id() } else { 0 };
        trace.sent(transfer, ctx.traced_step, value.as_ref().map_or(0, Tensor::n_bytes));
        let key = Key { edge: Arc::clone(&self.edge), frame: ctx.frame };
        Ok(ctx.rendezvous.send(key, Message { value, transfer, is_there: false })?)
    }

    fn is_expensive(&self) -> bool {
        self.is_lossy
    }
}

struct Recv {
    edge: Arc<EdgeKey>,
    is_lossy: bool,
    is_remote: bool,
}

fn recv(node: &Node) -> Result<Box<dyn AsyncKernel>, KernelError> {
    Ok(Box::new(Recv { edge: edge(node)?, is_lossy: is_lossy(node), is_remote: is_remote(node)? }))
}

impl AsyncKernel for Recv {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let key = Key { edge: Arc::clone(&self.edge), frame: ctx.frame };
        let (allocator, is_lossy, is_remote) = (ctx.allocator.clone(), self.is_lossy, self.is_remote);
        let (event_node, step) = (ctx.node.event_id, ctx.traced_step);
        done.waits(events::site!("parked", "receive"), Awaits::Value);
        let receiver = move |result: Result<Message, RendezvousError>| {
            let message = match result {
                Ok(message) => message,
                Err(error) => return done.finish(Err(error.into())),
            };
            let bytes = message.value.as_ref().map_or(0, Tensor::n_bytes);
            done.arrived(Arrival::now(event_node, message.transfer, step, bytes, is_remote));
            let Some(value) = message.value else { return done.finish(Ok(smallvec![None])) };
            if value.device_memory().is_some() {
                // The copy is made here, by the sender's device.
                let room = allocator.clone();
                return value.to_host_then(&room, move |value| {
                    let value = value.and_then(|value| take_in(value, true, is_lossy, &allocator));
                    done.finish(value.map(|value| smallvec![Some(value)]).map_err(KernelError::from));
                });
            }
            let value = take_in(value, message.is_there, is_lossy, &allocator);
            done.finish(value.map(|value| smallvec![Some(value)]).map_err(KernelError::from));
        };
        ctx.rendezvous.recv(key, Box::new(receiver));
    }
}

/// The value in the receiver's memory.
fn take_in(value: Tensor, is_there: bool, is_lossy: bool, allocator: &Allocator) -> Result<Tensor, TensorError> {
    match (is_lossy && value.dtype() == DType::BF16, is_there) {
        (true, _) => lengthen(&value, allocator),
        (false, true) => Ok(value),
        (false, false) => value.copied_to(allocator),
    }
}

/// The upper halves of f32 values.
fn shorten(ctx: &KernelContext<'_>, value: &Tensor) -> Result<Tensor, KernelError> {
    let from = value.slice::<f32>()?;
    ctx.filled::<bf16>(value.shape().clone(), |to| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = upper_half(*from));
        Ok(())
    })
}

fn upper_half(value: f32) -> bf16 {
    // A NaN whose set bits are all in the lower half would become an infinity.
    let quiet = if value.is_nan() { 0x40 } else { 0 };
    bf16::from_bits((value.to_bits() >> 16) as u16 | quiet)
}

/// f32 values of these upper halves, zeros below.
fn lengthen(value: &Tensor, allocator: &Allocator) -> Result<Tensor, TensorError> {
    let from = value.slice::<bf16>()?;
    let mut out = Tensor::with_room(DType::F32, value.shape().clone(), allocator)?;
    if let Some(to) = out.slice_mut::<f32>()? {
        let longer = |from: &bf16| f32::from_bits(u32::from(from.to_bits()) << 16);
        to.iter_mut().zip(from).for_each(|(to, from)| *to = longer(from));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(value: f32) -> f32 {
        f32::from_bits(u32::from(upper_half(value).to_bits()) << 16)
    }

    #[test]
    fn what_is_no_number_stays_what_it_is() {
        for value in [f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -2.5] {
            assert_eq!(round_trip(value).to_bits(), value.to_bits());
        }
        assert!(round_trip(f32::from_bits(0x7f80_0001)).is_nan());
        assert!(round_trip(f32::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn the_lower_half_is_dropped(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            let got = round_trip(value);
            prop_assert_eq!(got.to_bits(), bits & 0xffff_0000);
            if value.is_normal() {
                prop_assert!((got - value).abs() <= value.abs() / 128.0 && got.abs() <= value.abs());
            }
        }
    }
}
