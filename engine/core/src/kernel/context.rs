//! What a kernel computes from and to.

use super::cancellation::{Cancellation, StepCancellation};
use super::error::KernelError;
use super::functions::Functions;
use super::info::{FrameTag, NodeInfo, Slot};
use super::rendezvous::Rendezvous;
use super::sharder::Sharder;
use crate::buffer::Allocator;
use crate::dtype::Element;
use crate::resources::ResourceManager;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// What a kernel computes from and to.
pub struct KernelContext<'a> {
    /// The inputs. A kernel may take one out (in-place forwarding).
    pub inputs: &'a mut [Slot],
    /// The outputs, empty before.
    pub outputs: &'a mut [Slot],
    /// The node.
    pub node: &'a NodeInfo,
    /// The step.
    pub step_id: u64,
    /// The step's number in events, the same in all tasks; 0 where it is not traced.
    pub traced_step: u32,
    /// The device's state.
    pub resources: &'a ResourceManager,
    /// The step's own objects, gone when it ends: stacks, arrays.
    pub step_resources: &'a ResourceManager,
    /// The device's memory, as far as the host reads it.
    pub allocator: &'a Allocator,
    /// What a device that is no CPU gives its kernels: see [`crate::device::Device::with_driver`].
    pub driver: Option<&'a (dyn std::any::Any + Send + Sync)>,
    /// Splits work over the workers.
    pub sharder: &'a dyn Sharder,
    /// Which iteration this execution belongs to.
    pub frame: FrameTag,
    /// Where the step's sends and receives meet.
    pub rendezvous: &'a dyn Rendezvous,
    /// Whether the step is cancelled, and what to call when it is.
    pub cancellation: &'a StepCancellation,
    /// The functions of the session's graph.
    pub functions: &'a dyn Functions,
}

impl KernelContext<'_> {
    /// Input `i`.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn input(&self, i: usize) -> Result<&Tensor, KernelError> {
        self.inputs.get(i).and_then(Option::as_ref).ok_or_else(|| KernelError::MissingInput(i))
    }

    /// Takes input `i` out of its slot: its memory may be reused where the tensor is unique.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn take(&mut self, i: usize) -> Result<Tensor, KernelError> {
        self.inputs.get_mut(i).and_then(Option::take).ok_or_else(|| KernelError::MissingInput(i))
    }

    /// Sets output `i`.
    #[inline]
    pub fn set(&mut self, i: usize, value: Tensor) {
        self.outputs[i] = Some(value);
    }

    /// Notifies those who register that the step ended early, so that nobody waits in vain.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.get().of_node(self.node)
    }

    /// A tensor for an output, its elements to be overwritten.
    ///
    /// # Errors
    /// There is no memory for it.
    #[inline]
    pub fn room<T: Element>(&self, shape: Shape) -> Result<Tensor, KernelError> {
        Ok(Tensor::with_room(T::DTYPE, shape, self.allocator)?)
    }
}
