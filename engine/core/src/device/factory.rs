//! Device types: who makes devices of a type, and how many there can be. Other crates add theirs at link time or later.

use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use super::error::DeviceError;
use super::local::Device;
use super::name::DeviceName;

/// What can be chosen for a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceOptions {
    /// Bytes that it hands out at most.
    pub memory_limit: usize,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions { memory_limit: usize::MAX }
    }
}

/// A device type.
#[derive(Clone, Copy)]
pub struct DeviceFactory {
    /// The type, in upper case: `CPU`.
    pub kind: &'static str,
    /// How many devices of it the machine has.
    pub count: fn() -> usize,
    /// Makes device `idx`. More than `count` may be asked for; a type that cannot refuses.
    pub make: fn(idx: usize, options: &DeviceOptions) -> Result<Device, DeviceError>,
}

/// Device types registered at link time.
#[linkme::distributed_slice]
pub static DEVICE_FACTORIES: [DeviceFactory];

#[linkme::distributed_slice(DEVICE_FACTORIES)]
static CPU: DeviceFactory = DeviceFactory {
    kind: "CPU",
    // A CPU device is the whole processor; further ones are asked for.
    count: || 1,
    make: |idx, options| Ok(Device::cpu(idx, options.memory_limit)),
};

/// The last one of a type counts.
static REGISTRY: LazyLock<RwLock<Vec<DeviceFactory>>> = LazyLock::new(|| RwLock::new(DEVICE_FACTORIES.to_vec()));

/// Registers a device type at run time; it replaces one of the same name for devices made afterwards.
pub fn register(factory: DeviceFactory) {
    let mut registry = REGISTRY.write();
    registry.retain(|known| known.kind != factory.kind);
    registry.push(factory);
}

/// The device types that are registered, by name.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = REGISTRY.read().iter().map(|factory| factory.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Makes device `idx` of a type, which is matched without regard to case.
///
/// # Errors
/// The type is not registered, or refuses.
pub fn make(kind: &str, idx: usize, options: &DeviceOptions) -> Result<Arc<Device>, DeviceError> {
    let found = REGISTRY.read().iter().rev().find(|factory| factory.kind.eq_ignore_ascii_case(kind)).copied();
    let Some(factory) = found else {
        return Err(DeviceError::UnknownKind { kind: kind.to_owned(), known: kinds().join(", ") });
    };
    (factory.make)(idx, options).map(Arc::new)
}

impl Device {
    /// What is known here of a device of another process: graphs are placed on it and divided for it, steps run there.
    ///
    /// # Errors
    /// The name is not full, or nobody here knows the device type, so that nothing can be placed on it.
    pub fn elsewhere(name: &DeviceName, incarnation: u64, memory_limit: usize) -> Result<Device, DeviceError> {
        let (Some(job), Some(task), Some(kind), Some(idx)) = (&name.job, name.task, &name.kind, name.index) else {
            return Err(DeviceError::NotFull { name: name.to_string() });
        };
        let Some(known) = kinds().into_iter().find(|known| known == kind) else {
            return Err(DeviceError::UnknownKind { kind: kind.clone(), known: kinds().join(", ") });
        };
        let mut device = Device::new(known, idx as usize, memory_limit).in_task(job, task);
        device.incarnation = incarnation;
        Ok(device)
    }
}

/// All devices of the machine, by type.
///
/// # Errors
/// One cannot be made.
pub fn all(options: &DeviceOptions) -> Result<Vec<Arc<Device>>, DeviceError> {
    let factories = REGISTRY.read().clone();
    let each = factories.iter().flat_map(|factory| (0..(factory.count)()).map(move |idx| (factory, idx)));
    each.map(|(factory, idx)| (factory.make)(idx, options).map(Arc::new)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_registered_and_replaced() {
        let options = DeviceOptions { memory_limit: 1000 };
        let cpu = make("cpu", 3, &options).unwrap();
        assert_eq!((cpu.name(), cpu.memory_limit()), ("/job:localhost/device:cpu:3", 1000));
        let err = make("ABACUS", 0, &options).unwrap_err().to_string();
        assert!(err.starts_with("no device type ABACUS (there are ") && err.contains("CPU"), "{err}");
        register(DeviceFactory {
            kind: "ABACUS",
            count: || 2,
            make: |idx, o| Ok(Device::new("ABACUS", idx, o.memory_limit)),
        });
        assert_eq!(
            make("abacus", 1, &options).unwrap().full_name().to_string(),
            "/job:localhost/replica:0/task:0/device:ABACUS:1"
        );
        assert_eq!(all(&options).unwrap().iter().filter(|d| d.kind() == "ABACUS").count(), 2);
    }
}
