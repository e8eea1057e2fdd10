//! Devices: where kernels run, with their memory and their state (white paper, section 3).
//!
//! A process may have several devices, of several types. Each has its own allocator, with a limit and statistics, and its own
//! containers of variables and other objects. What moves from one to another moves through a `_Send` and a `_Recv`.

mod error;
mod factory;
mod local;
mod name;

pub use crate::tensor::{DeviceMemory, Read};
pub use error::DeviceError;
pub use factory::{DEVICE_FACTORIES, DeviceFactory, DeviceOptions, all, kinds, make, register};
pub use local::{Device, Link, Speed};
pub use name::{DeviceName, DeviceNameConflict, DeviceNameError};
