//! A device's memory as the engine's tensors use it.

use std::any::Any;
use std::sync::Arc;

use engine::buffer::Allocator;
use engine::device::{DeviceMemory, Read};
use engine::shape::Shape;
use engine::tensor::TensorError;
use engine::{DType, Tensor};

use crate::backend::{Failed, Lane};
use crate::kernels;
use crate::memory::Block;
use crate::staging::Piece;

impl Block {
    /// Begins a copy of the first bytes to the host.
    fn copy_out(&self, n_bytes: usize) -> Result<Piece, Failed> {
        let gpu = &self.gpu;
        let piece = gpu.staging.piece(n_bytes)?;
        gpu.events.order(Lane::Compute, Lane::ToHost)?;
        // SAFETY: the piece is the callback's until the lane is past; the block holds as many bytes.
        unsafe { gpu.backend().copy_to_host(Lane::ToHost, piece.at(), self.address, n_bytes)? };
        Ok(piece)
    }
}

impl DeviceMemory for Block {
    fn device(&self) -> &str {
        self.gpu.name()
    }

    fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    fn read(self: Arc<Self>, dtype: DType, shape: Shape, allocator: Allocator, done: Read) {
        let n_bytes = shape.n_elements() * dtype.size();
        let piece = match self.copy_out(n_bytes) {
            Ok(piece) => piece,
            Err(error) => return done(Err(self.gpu.failed(error))),
        };
        let gpu = Arc::clone(&self.gpu);
        gpu.events.after(Lane::ToHost, move |result| {
            let value = result.map_err(|e| self.gpu.failed(e)).and_then(|()| {
                // SAFETY: the copy is done, and nobody else has the piece.
                let bytes = unsafe { piece.bytes(n_bytes) };
                Tensor::filled_by(dtype, shape, &allocator, |to| {
                    to.copy_from_slice(bytes);
                    Ok(())
                })
            });
            drop(piece);
            // The block first: whoever waits may ask for memory.
            drop(self);
            done(value);
        });
    }

    fn join(&self, values: &[Tensor], dtype: DType, shape: Shape) -> Result<Tensor, TensorError> {
        let gpu = &self.gpu;
        let (joined, mut to) = gpu.room(dtype, shape)?;
        let end = to + joined.n_bytes() as u64;
        for value in values {
            let (value, from) = gpu.bring(value)?;
            // What does not fit is not written.
            let n_bytes = value.n_bytes().min((end - to) as usize);
            gpu.copy(to, from, n_bytes).map_err(|e| gpu.failed(e))?;
            to += n_bytes as u64;
        }
        Ok(joined)
    }

    fn piece(&self, first: usize, dtype: DType, shape: Shape) -> Result<Tensor, TensorError> {
        let (piece, to) = self.gpu.room(dtype, shape)?;
        let (begin, n_bytes) = (first.saturating_mul(dtype.size()), piece.n_bytes());
        if begin.checked_add(n_bytes).is_none_or(|end| end > self.n_bytes) {
            let (has, of) = (self.n_bytes, piece.shape());
            return Err(self.gpu.failed(format!("{of} from element {first} on is not in {has} bytes")));
        }
        self.gpu.copy(to, self.address + begin as u64, n_bytes).map_err(|e| self.gpu.failed(e))?;
        Ok(piece)
    }

    fn sum(&self, a: &Tensor, b: &Tensor) -> Result<Tensor, TensorError> {
        let gpu = &self.gpu;
        let both = [gpu.bring(a)?, gpu.bring(b)?];
        kernels::sum(gpu, &both).map_err(|e| gpu.failed(e))
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
