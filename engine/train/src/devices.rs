//! Devices by the names that users give: `cpu:0`, `gpu:1`, `/device:GPU:0`.

use std::str::FromStr;
use std::sync::Arc;

use engine::SessionOptions;
use engine::compile::placement::PlacementOptions;
use engine::device::{Device, DeviceName, DeviceOptions, make};

use crate::error::{Result, TrainError};

/// The type of the device that every machine has.
const CPU: &str = "CPU";
const GPU: &str = "GPU";

/// A device of this machine, by type and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The type, in upper case.
    kind: String,
    idx: usize,
}

impl DeviceSpec {
    /// The name with which a node requests the device.
    pub fn name(&self) -> String {
        format!("/device:{}:{}", self.kind, self.idx)
    }
}

impl FromStr for DeviceSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<DeviceSpec, String> {
        // A type alone means its first device.
        let text = if text.contains(':') { text.to_owned() } else { format!("{text}:0") };
        let name: DeviceName = text.parse().map_err(|e: engine::device::DeviceNameError| e.to_string())?;
        match name {
            DeviceName { job: None, replica: None, task: None, kind: Some(kind), index: Some(index) } => {
                Ok(DeviceSpec { kind, idx: index as usize })
            }
            _ => {
                Err("expected a type and a number, as cpu:0 or gpu:1; devices of other processes: --cluster".to_owned())
            }
        }
    }
}

/// Checks that the devices exist.
///
/// # Errors
/// `TrainError::Usage` names the first device that is missing, the reason and the remedy.
pub fn check(specs: &[DeviceSpec]) -> Result<()> {
    for device in specs {
        let n_gpus = cuda::device::count();
        let why = match device.kind.as_str() {
            CPU => continue,
            GPU => match cuda::device::problem() {
                Some(problem) => problem,
                None if device.idx >= n_gpus => format!("there are {n_gpus}, numbered from 0"),
                None => continue,
            },
            other => format!("there are no devices of type {other} (types: {})", engine::device::kinds().join(", ")),
        };
        let remedy = if device.kind == GPU && n_gpus == 0 {
            "it needs NVIDIA's driver and CUDA's NVRTC (in the toolkit, or `pip install nvidia-cuda-nvrtc` and STEPSCOPE_CUDA_LIBRARIES=its lib folder); \
             'stepscope doctor' lists what is available; --device cpu:0 needs none"
        } else {
            "'stepscope doctor' lists what is available"
        };
        return Err(TrainError::wrong_use(format_args!("no device {}: {why}; {remedy}", device.name())));
    }
    Ok(())
}

/// Whether any of the devices is a GPU.
pub fn has_gpu(specs: &[DeviceSpec]) -> bool {
    specs.iter().any(|device| device.kind == GPU)
}

/// The options of a session on these devices, and on the first CPU for ops without a kernel on them.
///
/// # Errors
/// A device is missing or cannot be opened.
pub fn session_options(specs: &[DeviceSpec]) -> Result<SessionOptions> {
    check(specs)?;
    let host = DeviceSpec { kind: CPU.to_owned(), idx: 0 };
    let others = specs.iter().filter(|device| **device != host);
    let mut all: Vec<&DeviceSpec> = std::iter::once(&host).chain(others).collect();
    // `dedup` needs equal devices to be neighbours; the host stays first.
    all[1..].sort_by(|a, b| (&a.kind, a.idx).cmp(&(&b.kind, b.idx)));
    all.dedup();
    let open = |device: &&DeviceSpec| make(&device.kind, device.idx, &DeviceOptions::default());
    let devices: std::result::Result<Vec<Arc<Device>>, _> = all.iter().map(open).collect();
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    let devices = devices.map_err(|error| TrainError::Work(error.into()))?;
    Ok(SessionOptions { devices, placement, ..SessionOptions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> DeviceSpec {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_a_type_and_a_number() {
        for text in ["gpu:1", "GPU:1", "/gpu:1", "/device:gpu:1"] {
            assert_eq!(spec(text).name(), "/device:GPU:1");
        }
        assert_eq!(spec("gpu"), spec("gpu:0"));
        for text in ["", "gpu:", "gpu:x", "gpu:*", "0", "/job:worker/task:1/device:GPU:0", "gpu:0 ", "cpu:-1"] {
            assert!(text.parse::<DeviceSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_cpu_is_always_there_and_every_device_once() {
        let options = session_options(&["cpu:2", "cpu:0", "cpu:1", "cpu:2"].map(spec)).unwrap();
        let names: Vec<&str> = options.devices.iter().map(|device| device.name()).collect();
        assert_eq!(
            names,
            ["/job:localhost/device:cpu:0", "/job:localhost/device:cpu:1", "/job:localhost/device:cpu:2"]
        );
        assert!(options.placement.is_soft);
    }

    #[test]
    fn a_missing_device_is_reported_with_a_remedy() {
        let refused = |text: &str| match check(&[spec(text)]) {
            Err(TrainError::Usage(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused("tpu:0").contains("no devices of type TPU (types: CPU, GPU)"), "{}", refused("tpu:0"));
        let text = refused("gpu:4000");
        assert!(text.starts_with("no device /device:GPU:4000: ") && text.contains("stepscope doctor"), "{text}");
        if cuda::device::count() == 0 {
            assert!(text.contains("pip install nvidia-cuda-nvrtc") && text.contains("--device cpu:0"), "{text}");
        }
    }
}
