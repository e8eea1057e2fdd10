//! Devices: where kernels run, with their memory and their state.

use crate::buffer::Allocator;
use crate::resources::ResourceManager;

/// A device of this process. Sessions on it share its containers of variables.
pub struct Device {
    name: String,
    kind: &'static str,
    allocator: Allocator,
    resources: ResourceManager,
}

impl Device {
    /// CPU device `idx` of this process, `/job:localhost/device:cpu:idx`, which hands out at most `memory_limit` bytes.
    pub fn cpu(idx: usize, memory_limit: usize) -> Device {
        let name = format!("/job:localhost/device:cpu:{idx}");
        let allocator = Allocator::new(&name, memory_limit);
        Device { name, kind: "CPU", allocator, resources: ResourceManager::default() }
    }

    /// The full name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device type, as kernels are registered for it.
    pub fn kind(&self) -> &'static str {
        self.kind
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
