//! Devices: where kernels run, with their memory and their state (white paper, section 3).
//!
//! A process may have several devices, of several types. Each has its own allocator, with a limit and statistics, and its own
//! containers of variables and other objects. What moves from one to another moves through a `_Send` and a `_Recv`.

mod factory;
mod name;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Allocator;
use crate::resources::ResourceManager;
pub use factory::{DEVICE_FACTORIES, DeviceError, DeviceFactory, DeviceOptions, all, kinds, make, register};
pub use name::{DeviceName, DeviceNameConflict, DeviceNameError};

/// How fast a device is, for the static cost model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Floating-point operations per nanosecond of large kernels.
    pub flops_per_ns: f64,
    /// Bytes per nanosecond that kernels read and write.
    pub bytes_per_ns: f64,
    /// Nanoseconds that any kernel takes at least.
    pub launch_ns: f64,
}

impl Speed {
    /// One core of a CPU.
    pub const CPU: Speed = Speed { flops_per_ns: 100.0, bytes_per_ns: 10.0, launch_ns: 100.0 };
}

/// A way between two devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Bytes per nanosecond.
    pub bytes_per_ns: f64,
    /// Nanoseconds that any transfer takes at least.
    pub latency_ns: f64,
}

impl Link {
    /// Between CPU devices of one process: a copy in memory and a hand-over.
    pub const MEMORY: Link = Link { bytes_per_ns: 8.0, latency_ns: 1_000.0 };

    /// How long `bytes` take.
    pub fn transfer_ns(&self, bytes: f64) -> f64 {
        self.latency_ns + bytes / self.bytes_per_ns
    }
}

/// A device of this process. Sessions on it share its containers of variables.
pub struct Device {
    name: String,
    full_name: DeviceName,
    kind: &'static str,
    memory_limit: usize,
    incarnation: u64,
    speed: Speed,
    link: Link,
    allocator: Allocator,
    resources: ResourceManager,
}

/// Numbers the devices of this process; see [`Device::incarnation`].
static NEXT_DEVICE: AtomicU64 = AtomicU64::new(1);

impl Device {
    /// CPU device `idx` of this process, `/job:localhost/device:cpu:idx`, which hands out at most `memory_limit` bytes.
    pub fn cpu(idx: usize, memory_limit: usize) -> Device {
        Device::new("CPU", idx, memory_limit)
    }

    /// Device `idx` of a type (`CPU`, in upper case), which hands out at most `memory_limit` bytes.
    pub fn new(kind: &'static str, idx: usize, memory_limit: usize) -> Device {
        let name = format!("/job:localhost/device:{}:{idx}", kind.to_ascii_lowercase());
        // Distinct within the process by the number, between processes by the time.
        let number = NEXT_DEVICE.fetch_add(1, Ordering::Relaxed);
        let incarnation = (events::clock::wall_now_ns() as u64).rotate_left(20) ^ number;
        Device {
            full_name: DeviceName::local(kind, idx),
            kind,
            memory_limit,
            incarnation,
            speed: Speed::CPU,
            link: Link::MEMORY,
            allocator: Allocator::new(&name, memory_limit),
            resources: ResourceManager::default(),
            name,
        }
    }

    /// `n` CPU devices, each with its own `memory_limit`.
    pub fn cpus(n: usize, memory_limit: usize) -> Vec<Arc<Device>> {
        (0..n).map(|idx| Arc::new(Device::cpu(idx, memory_limit))).collect()
    }

    /// The same device, said to be so fast.
    pub fn with_speed(self, speed: Speed) -> Device {
        Device { speed, ..self }
    }

    /// The same device, said to be reached so fast.
    pub fn with_link(self, link: Link) -> Device {
        Device { link, ..self }
    }

    /// The name as the white paper writes it: `/job:localhost/device:cpu:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name with all its parts.
    pub fn full_name(&self) -> &DeviceName {
        &self.full_name
    }

    /// The device type, as kernels are registered for it.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Bytes that it hands out at most.
    pub fn memory_limit(&self) -> usize {
        self.memory_limit
    }

    /// A number that no other device has, nor this one after a restart of its process: a message for an earlier
    /// incarnation meets nobody.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// How fast it is, for the static cost model.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// How fast tensors get here from `other`.
    pub fn link_from(&self, other: &Device) -> Link {
        Link {
            bytes_per_ns: self.link.bytes_per_ns.min(other.link.bytes_per_ns),
            latency_ns: self.link.latency_ns.max(other.link.latency_ns),
        }
    }

    /// Its memory.
    pub fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    /// Its variables and other objects.
    pub fn resources(&self) -> &ResourceManager {
        &self.resources
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.name)
    }
}
