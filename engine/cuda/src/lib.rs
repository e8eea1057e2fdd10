//! CUDA devices for the engine: device type `GPU`, found at run time. Linking this crate registers it, with its kernels.
//!
//! The map: what a driver does ([`backend`], [`convolution`]), NVIDIA's ([`driver`]); a device's memory ([`allocator`], [`memory`]), the order of
//! its streams (`events`), copies (`staging`), the device as a whole ([`gpu`]), as the engine knows it ([`device`]); what
//! computes ([`kernels`]), and for whom ([`attribution`]).
//!
//! Kernels are begun in the order in which the executor runs their nodes, on one stream, and return at once: what they give is
//! memory that is not yet written, to be read by what is begun later. Nothing waits but copies to the host.

pub mod allocator;
pub mod attribution;
pub mod backend;
pub mod convolution;
pub mod device;
pub mod driver;
mod events;
pub mod gpu;
pub mod kernels;
mod matrix_type;
pub mod memory;
mod shared_memory;
mod staging;
