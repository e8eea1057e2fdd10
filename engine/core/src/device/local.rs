//! A device of this process, and how fast it is.

use std::any::Any;
use std::sync::Arc;

use super::name::DeviceName;
use crate::buffer::Allocator;
use crate::resources::ResourceManager;

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

    /// Between tasks: a network, or another process of the host.
    pub const NETWORK: Link = Link { bytes_per_ns: 2.0, latency_ns: 30_000.0 };

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
    pub(super) incarnation: u64,
    speed: Speed,
    link: Link,
    allocator: Allocator,
    resources: ResourceManager,
    driver: Option<Arc<dyn Any + Send + Sync>>,
}

impl Device {
    /// CPU device `idx` of this process, `/job:localhost/device:cpu:idx`, which hands out at most `memory_limit` bytes.
    pub fn cpu(idx: usize, memory_limit: usize) -> Device {
        Device::new("CPU", idx, memory_limit)
    }

    /// Device `idx` of a type (`CPU`, in upper case), which hands out at most `memory_limit` bytes.
    pub fn new(kind: &'static str, idx: usize, memory_limit: usize) -> Device {
        let name = format!("/job:localhost/device:{}:{idx}", kind.to_ascii_lowercase());
        Device {
            full_name: DeviceName::local(kind, idx),
            kind,
            memory_limit,
            incarnation: threads::unique(),
            speed: Speed::CPU,
            link: Link::MEMORY,
            allocator: Allocator::new(&name, memory_limit),
            resources: ResourceManager::default(),
            driver: None,
            name,
        }
    }

    /// The same device as one of a task of a cluster, `/job:worker/task:1/device:cpu:0`.
    pub fn in_task(self, job: &str, task: u32) -> Device {
        let full_name = DeviceName { job: Some(job.to_owned()), task: Some(task), ..self.full_name };
        let idx = full_name.index.unwrap_or(0);
        let name = format!("/job:{job}/task:{task}/device:{}:{idx}", self.kind.to_ascii_lowercase());
        Device { allocator: Allocator::new(&name, self.memory_limit), full_name, name, ..self }
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

    /// The same device with what its kernels need besides: memory and streams of a GPU.
    pub fn with_driver(self, driver: Arc<dyn Any + Send + Sync>) -> Device {
        Device { driver: Some(driver), ..self }
    }

    /// What its kernels need besides, see [`Device::with_driver`].
    pub fn driver(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.driver.as_deref()
    }

    /// Whether its kernels read the memory that the host reads.
    pub fn is_host(&self) -> bool {
        self.kind == "CPU"
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
        let slower = |a: Link, b: Link| Link {
            bytes_per_ns: a.bytes_per_ns.min(b.bytes_per_ns),
            latency_ns: a.latency_ns.max(b.latency_ns),
        };
        let link = slower(self.link, other.link);
        if self.full_name.task_name() == other.full_name.task_name() { link } else { slower(link, Link::NETWORK) }
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
