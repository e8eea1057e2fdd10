//! Device type `GPU`: NVIDIA's devices that the driver shows.

use std::sync::{Arc, OnceLock};

use engine::device::{DEVICE_FACTORIES, Device, DeviceError, DeviceFactory, DeviceOptions, Link, Speed};
use parking_lot::Mutex;

use crate::backend::Backend;
use crate::driver::{Compiler, Cuda, Driver};
use crate::gpu::Gpu;
use crate::kernels::support::KIND;

/// What placement takes for granted of a GPU: floating-point operations and bytes per nanosecond, and what a launch takes.
pub const SPEED: Speed = Speed { flops_per_ns: 20_000.0, bytes_per_ns: 1_500.0, launch_ns: 5_000.0 };
/// The way to it from the host.
pub const LINK: Link = Link { bytes_per_ns: 20.0, latency_ns: 12_000.0 };
/// Memory that is left to the driver and to libraries.
const LEFT: usize = 512 << 20;

#[linkme::distributed_slice(DEVICE_FACTORIES)]
static GPU: DeviceFactory = DeviceFactory { kind: KIND, count, make: open };

/// How many devices can be used.
pub fn count() -> usize {
    if problem().is_some() { 0 } else { Driver::get().map_or(0, Driver::n_devices) }
}

/// Why there is no GPU to compute on, in a line; `None` where there is.
pub fn problem() -> Option<String> {
    static PROBLEM: OnceLock<Option<String>> = OnceLock::new();
    let look = || match Driver::get() {
        Err(reason) => Some(reason.to_owned()),
        Ok(driver) if driver.n_devices() == 0 => Some("the driver shows no device".to_owned()),
        Ok(_) => Compiler::load().err().map(|e| format!("{e}: kernels cannot be compiled")),
    };
    PROBLEM.get_or_init(look).clone()
}

/// The engine's device on a driver's.
///
/// # Errors
/// Its threads cannot be started, or the driver does not report its memory.
pub fn device(idx: usize, backend: Arc<dyn Backend>, options: &DeviceOptions) -> Result<Device, String> {
    let (_, total) = backend.memory().map_err(|e| e.to_string())?;
    let limit = options.memory_limit.min(total.saturating_sub(LEFT).max(total / 2));
    let device = Device::new(KIND, idx, limit).with_speed(SPEED).with_link(LINK);
    let gpu = Gpu::new(device.name(), backend, limit).map_err(|e| e.to_string())?;
    // Kernels look for this very type.
    let driver: Arc<Arc<Gpu>> = Arc::new(gpu);
    Ok(device.with_driver(driver))
}

/// The memory, streams and kernels of an engine's device, where it is one of this crate.
pub fn gpu_of(device: &Device) -> Option<&Arc<Gpu>> {
    device.driver()?.downcast_ref::<Arc<Gpu>>()
}

fn open(idx: usize, options: &DeviceOptions) -> Result<Device, DeviceError> {
    /// Drivers that are open: a device has one context and one workspace, whatever the number of its sessions.
    static OPEN: Mutex<Vec<Option<Arc<Cuda>>>> = Mutex::new(Vec::new());
    let unavailable = |reason: String| DeviceError::Unavailable { kind: KIND, idx, reason };
    if let Some(reason) = problem() {
        return Err(unavailable(reason));
    }
    let mut open = OPEN.lock();
    if open.len() <= idx {
        open.resize(idx + 1, None);
    }
    let cuda = match &open[idx] {
        Some(cuda) => Arc::clone(cuda),
        None => Arc::new(Cuda::open(idx).map_err(unavailable)?),
    };
    open[idx] = Some(Arc::clone(&cuda));
    device(idx, cuda, options).map_err(unavailable)
}
