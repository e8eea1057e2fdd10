//! Pieces of a device's memory that tensors share, and how values come there.

use std::sync::Arc;

use engine::buffer::AllocError;
use engine::shape::Shape;
use engine::tensor::TensorError;
use engine::{DType, Tensor};

use crate::backend::{Address, Failed, Lane};
use crate::gpu::Gpu;

/// What is small is written by the driver itself, without staging.
const WRITTEN_BYTES: usize = 16;

/// A piece. It goes back to its device when the last tensor drops it: kernels that were begun on it are in the compute lane,
/// and so is whoever gets it next; copies of other lanes hold it until they are done.
pub struct Block {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) address: Address,
    pub(crate) n_bytes: usize,
}

impl Block {
    /// The block that a tensor lies in, where it is one.
    pub fn of(tensor: &Tensor) -> Option<Arc<Block>> {
        let memory = Arc::clone(tensor.device_memory()?);
        memory.into_any().downcast::<Block>().ok()
    }

    /// Where it begins.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Whose memory it is.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Whether it is memory of this device.
    pub fn is_of(&self, gpu: &Gpu) -> bool {
        std::ptr::eq(&raw const *self.gpu, gpu)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.gpu.give_back(self.address, self.n_bytes);
    }
}

impl Gpu {
    /// Memory of so many bytes. Work of its last user in the compute lane comes before work that the lane is given from now on.
    ///
    /// # Errors
    /// There is none.
    pub fn block(&self, n_bytes: usize) -> Result<Arc<Block>, TensorError> {
        let address = self.memory.lock().alloc(n_bytes).map_err(|e| AllocError {
            device: self.name().into(),
            requested: e.wanted,
            in_use: e.in_use,
            limit: self.limit.min(e.limit),
        })?;
        let gpu = self.own.upgrade().ok_or_else(|| self.failed("the device is gone"))?;
        let block = Arc::new(Block { gpu, address, n_bytes });
        self.mark_unused(address, n_bytes).map_err(|e| self.failed(e))?;
        Ok(block)
    }

    fn give_back(&self, address: Address, n_bytes: usize) {
        // Only a test finds less if this fails.
        self.mark_unused(address, n_bytes).ok();
        self.memory.lock().free(address);
    }

    /// Overwrites memory that has no value, by what is no number of any width.
    fn mark_unused(&self, address: Address, n_bytes: usize) -> Result<(), Failed> {
        match self.backend.marks_unused() {
            true => self.backend.fill_bytes(Lane::Compute, address, 0xFF, n_bytes),
            false => Ok(()),
        }
    }

    /// A tensor to be written, and where it lies.
    ///
    /// # Errors
    /// There is no memory.
    pub fn room(&self, dtype: DType, shape: Shape) -> Result<(Tensor, Address), TensorError> {
        let n_bytes = shape.checked_n_elements().and_then(|n| n.checked_mul(dtype.size()));
        let n_bytes = n_bytes.ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        let block = self.block(n_bytes)?;
        let address = block.address();
        Ok((Tensor::on_device(dtype, shape, block)?, address))
    }

    /// The device's own memory of a tensor, where it is.
    pub fn address_of(&self, tensor: &Tensor) -> Option<Address> {
        let block = Block::of(tensor)?;
        block.is_of(self).then(|| block.address())
    }

    /// The same elements in the device's memory, for kernels that are begun from now on.
    ///
    /// # Errors
    /// There is no memory, or the driver fails.
    pub fn bring(&self, tensor: &Tensor) -> Result<(Tensor, Address), TensorError> {
        if let Some(address) = self.address_of(tensor) {
            return Ok((tensor.clone(), address));
        }
        if tensor.dtype().size() == 0 {
            return Err(TensorError::DType { expected: DType::F32, got: tensor.dtype() });
        }
        let (there, to) = self.room(tensor.dtype(), tensor.shape().clone())?;
        let copied = match Block::of(tensor) {
            Some(block) => self.bring_from_peer(&block, to, tensor.n_bytes()),
            None => self.bring_from_host(tensor, to),
        };
        copied.map_err(|e| self.failed(e)).map(|()| (there, to))
    }

    fn bring_from_host(&self, tensor: &Tensor, to: Address) -> Result<(), Failed> {
        let bytes = tensor.bytes();
        if bytes.len() <= WRITTEN_BYTES {
            return self.write(to, bytes);
        }
        // The memory may be in use by kernels that were begun before.
        self.events.order(Lane::Compute, Lane::ToDevice)?;
        let piece = self.staging.piece(bytes.len()).ok();
        let from = match &piece {
            Some(piece) => {
                // SAFETY: the piece is this function's, and as long; it overlaps nothing.
                unsafe { piece.at().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                piece.at().cast_const()
            }
            None => bytes.as_ptr(),
        };
        // SAFETY: `from` is kept below until the lane is past; `to` was just made.
        let copied = unsafe { self.backend.copy_to_device(Lane::ToDevice, to, from, bytes.len()) };
        let tensor = tensor.clone();
        self.events.after(Lane::ToDevice, move |_| drop((piece, tensor)));
        copied.and_then(|()| self.events.order(Lane::ToDevice, Lane::Compute))
    }

    /// Writes a few bytes in the order of the kernels.
    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), Failed> {
        let (words, rest) = bytes.as_chunks::<4>();
        for (i, word) in words.iter().enumerate() {
            self.backend.fill_words(Lane::Compute, to + 4 * i as u64, u32::from_le_bytes(*word), 1)?;
        }
        for (i, byte) in rest.iter().enumerate() {
            self.backend.fill_bytes(Lane::Compute, to + (4 * words.len() + i) as u64, *byte, 1)?;
        }
        Ok(())
    }

    fn bring_from_peer(&self, block: &Arc<Block>, to: Address, n_bytes: usize) -> Result<(), Failed> {
        let peer = block.gpu();
        self.events.order(Lane::Compute, Lane::Peer)?;
        let ready = peer.events.spare()?;
        let ordered = peer.backend.record(ready, Lane::Compute).and_then(|()| self.backend.wait(Lane::Peer, ready));
        peer.events.keep(ready);
        ordered?;
        self.backend.copy_from_peer(to, peer.backend.context(), block.address(), n_bytes)?;
        let block = Arc::clone(block);
        self.events.after(Lane::Peer, move |_| drop(block));
        self.events.order(Lane::Peer, Lane::Compute)
    }
}
