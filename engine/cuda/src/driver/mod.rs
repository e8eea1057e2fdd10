//! NVIDIA's driver as a [`Backend`](crate::backend::Backend), by its own libraries: none is needed to build or to start.

mod cuda;
mod dnn;
mod libraries;
mod lt;
mod nvrtc;

pub use cuda::{Cuda, Driver};
pub use libraries::LibraryError;
pub use nvrtc::{Compiler, Target};

/// A library that quickens devices and that they do without.
#[derive(Debug, Clone)]
pub struct Optional {
    /// What it is called.
    pub name: &'static str,
    /// Its version, or that it is there; or why it is not used.
    pub found: Result<String, String>,
}

/// The libraries that devices do without, where they are found. Needs no device.
pub fn optional() -> [Optional; 2] {
    let lt = libraries::CublasLtTable::load().map(|_| "found".to_owned()).map_err(|e| e.to_string());
    let dnn = dnn::find().map(|(_, version)| format!("version {version}"));
    [Optional { name: "cuBLASLt", found: lt }, Optional { name: "cuDNN", found: dnn }]
}
