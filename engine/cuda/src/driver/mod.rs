//! NVIDIA's driver as a [`Backend`](crate::backend::Backend), by its own libraries: none is needed to build or to start.

mod cuda;
mod libraries;
mod lt;
mod nvrtc;

pub use cuda::{Cuda, Driver};
pub use libraries::LibraryError;
pub use nvrtc::{Compiler, Target};
