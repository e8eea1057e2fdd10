//! What a kernel is: an implementation of an op for a device and element types.
//!
//! A kernel is made once per node from the node's attributes and computes many times, from several threads. Kernels
//! register in the link-time slice [`KERNEL_TABLES`], which other crates may extend, or at run time with [`register`]. Those of
//! CPUs are in `engine_ops::kernels`.

mod access;
mod asynchronous;
mod cancellation;
mod context;
mod error;
mod functions;
mod info;
mod interface;
mod registry;
mod rendezvous;
mod sharder;

pub use asynchronous::{AsyncKernel, Completion, CompletionSink, ExecutionTag, Outputs};
pub use cancellation::StepCancellation;
pub use cancellation::{Cancellation, Registration};
pub use context::KernelContext;
pub use error::KernelError;
pub use functions::{Functions, KernelStates, NoFunctions};
pub use info::{FrameTag, NodeInfo, Slot};
pub use interface::{AnyKernel, Kernel};
pub use registry::{
    ASYNC_KERNEL_TABLES, AsyncKernelDef, BuildFn, KERNEL_TABLES, KernelDef, KernelInfo, build, has_kernel, register,
    register_async, registered, supports,
};
pub use rendezvous::NoRendezvous;
pub use rendezvous::{EdgeKey, Key, Message, Receiver, Rendezvous, RendezvousError};
pub use sharder::{Serial, Sharder};
