//! Ops that hand values on, look at shapes, or compute with sizes: nothing of them runs on the device.

use engine::graph::Node;
use engine::kernels::support::{Built, cheap};
use engine::kernels::transfer::{edge, is_lossy};
use engine::kernels::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, Kernel, KernelContext, KernelDef,
    KernelError,
};
use engine::run::rendezvous::{EdgeKey, Key, Message};
use engine::{DType, Tensor};
use smallvec::smallvec;
use std::sync::Arc;

use crate::attribution::working_for;

use super::support::{KIND, c_type, device, gpu, hands_on, is_small, on_the_host};

macro_rules! lines {
    ($name:ident, $build:expr; $($op:literal)*) => {
        #[linkme::distributed_slice(KERNEL_TABLES)]
        static $name: &[KernelDef] = &[$(gpu($op, ("", &[]), $build)),*];
    };
}

// What these are given is not looked at, but for sizes and axes.
lines! { HANDED_ON, hands_on;
"NoOp" "Identity" "IdentityN" "StopGradient" "PreventGradient" "Snapshot" "ControlTrigger"
"Merge" "RefMerge" "Enter" "RefEnter" "Exit" "RefExit" "NextIteration" "RefNextIteration"
"VarHandleOp" "VarIsInitializedOp" "ReadVariableOp" "VariableShape" "DestroyResourceOp"
"Shape" "ShapeN" "Size" "Rank" "Reshape" "ExpandDims" "Squeeze" "StackV2" "StackPushV2" "StackPopV2" "StackCloseV2" }

// Sizes, axes and conditions: their values are needed on the host.
lines! { ON_THE_HOST, on_the_host;
"Switch" "RefSwitch" "LoopCond" "BroadcastGradientArgs" "BroadcastArgs" "ConcatOffset" "InvertPermutation" "Range"
"Assert" "EnsureShape" "ListDiff" "Where" "Unique" }

// Arrays of tensors, which keep values wherever they lie. (Lists are values themselves, which go from device to device: on the CPU.)
lines! { KEPT, kept;
"TensorArrayV3" "TensorArrayGradV3" "TensorArrayGradWithShape" "TensorArrayWriteV3" "TensorArrayReadV3" "TensorArrayGatherV3"
"TensorArrayScatterV3" "TensorArrayConcatV3" "TensorArraySplitV3" "TensorArraySizeV3" "TensorArrayCloseV3" }
lines! { COPIED, to_device; "_ToDevice" }

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[gpu("Const", ("", &[]), constant), gpu("_Send", ("", &[]), send)];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static WAITING: &[AsyncKernelDef] = &[
    AsyncKernelDef { op: "_ToHost", device: KIND, dtypes: ("", &[]), build: |_| Ok(Box::new(ToHost)) },
    AsyncKernelDef { op: "_Recv", device: KIND, dtypes: ("", &[]), build: recv },
];

/// Ops on whole numbers that the host alone computes.
pub(super) fn whole(node: &Node) -> Built {
    on_the_host(node)
}

/// Positions, sizes and shapes come to the host; values are kept where they lie, and joined, cut and added up there
/// ([`engine::device::DeviceMemory`]).
fn kept(node: &Node) -> Built {
    let cpu = hands_on(node)?;
    cheap(move |ctx| {
        let is_size = |t: &Tensor| t.dtype().is_integer() && t.shape().rank() <= 1;
        for input in ctx.inputs.iter_mut().flatten().filter(|input| is_size(input)) {
            *input = input.to_host()?;
        }
        let _working = working_for(ctx);
        cpu.compute(ctx)
    })
}

/// A value in the device's memory, if it belongs there.
fn placed(ctx: &KernelContext<'_>, value: Tensor) -> Result<Tensor, KernelError> {
    if is_small(&value) || c_type(value.dtype()).is_none() {
        return Ok(value);
    }
    Ok(device(ctx)?.bring(&value)?.0)
}

fn to_device(_: &Node) -> Built {
    cheap(|ctx| {
        let _working = working_for(ctx);
        let value = ctx.take(0)?;
        let there = placed(ctx, value)?;
        ctx.set(0, there);
        Ok(())
    })
}

/// Copied to the device once.
fn constant(node: &Node) -> Built {
    let cpu = hands_on(node)?;
    let there = parking_lot::Mutex::new(None::<Tensor>);
    cheap(move |ctx| {
        let mut there = there.lock();
        let known = match &*there {
            Some(known) if known.device_memory().is_none() || device(ctx)?.address_of(known).is_some() => known.clone(),
            _ => {
                cpu.compute(ctx)?;
                let value = ctx.outputs[0].take().ok_or_else(|| KernelError::invalid("a constant without a value"))?;
                placed(ctx, value)?
            }
        };
        *there = Some(known.clone());
        ctx.set(0, known);
        Ok(())
    })
}

/// Values that are fetched.
struct ToHost;

impl AsyncKernel for ToHost {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        match ctx.take(0) {
            Ok(value) => value.to_host_then(ctx.allocator, move |here| {
                done.finish(here.map(|here| smallvec![Some(here)]).map_err(KernelError::from));
            }),
            Err(error) => done.finish(Err(error)),
        }
    }
}

struct Send {
    edge: Arc<EdgeKey>,
    is_lossy: bool,
    /// Whether the receiver is in another process, which cannot read the device's memory.
    is_remote: bool,
}

/// The receiver copies: the value is handed over as it lies.
fn send(node: &Node) -> Built {
    let task = |name: String| name.split("/device:").next().map(str::to_owned);
    let is_remote = task(node.text("send_device")?.to_string()) != task(node.text("recv_device")?.to_string());
    Ok(Box::new(Send { edge: edge(node)?, is_lossy: is_lossy(node), is_remote }))
}

impl Kernel for Send {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let mut value = ctx.inputs.first_mut().and_then(Option::take);
        // What is on the host is a number or two.
        let is_there = |value: &Tensor| value.dtype() == DType::F32 && value.device_memory().is_some();
        if self.is_lossy && value.as_ref().is_some_and(is_there) {
            let gpu = device(ctx)?;
            value = value.map(|value| super::transfer::shortened(gpu, &value)).transpose()?;
        }
        if self.is_remote {
            value = value.map(|value| value.to_host()).transpose()?;
        }
        let key = Key { edge: Arc::clone(&self.edge), frame: ctx.frame };
        Ok(ctx.rendezvous.send(key, Message { value, transfer: 0, is_there: false })?)
    }

    fn is_expensive(&self) -> bool {
        false
    }
}

struct Recv {
    edge: Arc<EdgeKey>,
    is_lossy: bool,
}

fn recv(node: &Node) -> Result<Box<dyn AsyncKernel>, KernelError> {
    Ok(Box::new(Recv { edge: edge(node)?, is_lossy: is_lossy(node) }))
}

impl AsyncKernel for Recv {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        let key = Key { edge: Arc::clone(&self.edge), frame: ctx.frame };
        let gpu = match device(ctx) {
            Ok(gpu) => Arc::clone(gpu),
            Err(error) => return done.finish(Err(error)),
        };
        let is_lossy = self.is_lossy;
        let receiver = move |result: Result<Message, engine::run::rendezvous::RendezvousError>| {
            let value = result.map_err(KernelError::from).and_then(|message| match message.value {
                // It came as the upper halves of its values.
                Some(value) if is_lossy && value.dtype() == DType::BF16 => {
                    super::transfer::lengthened(&gpu, &value).map(Some)
                }
                Some(value) if is_small(&value) || c_type(value.dtype()).is_none() => Ok(Some(value)),
                Some(value) => Ok(Some(gpu.bring(&value)?.0)),
                None => Ok(None),
            });
            done.finish(value.map(|value| smallvec![value]));
        };
        ctx.rendezvous.recv(key, Box::new(receiver));
    }
}
