//! Why nodes cannot be placed.

use super::device_set::MAX_DEVICES;
use engine_core::device::{DeviceNameConflict, DeviceNameError};

/// Why nodes cannot be placed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A request is not the name of a device.
    #[error("node {node}: {source}")]
    Name {
        /// The node.
        node: String,
        /// What is wrong with it.
        source: DeviceNameError,
    },
    /// Two nodes that must be together ask for different devices.
    #[error(
        "nodes {first} and {second} must be on one device ({why}), but their requests contradict each other: {conflict}"
    )]
    Requests {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// Why they must be together.
        why: &'static str,
        /// The two requests.
        conflict: Box<DeviceNameConflict>,
    },
    /// Two nodes that must be together have kernels for different device types.
    #[error(
        "nodes {first} (kernels for {first_kinds}) and {second} (kernels for {second_kinds}) must be on one device ({why}), \
         but no device type has kernels for both"
    )]
    Kernels {
        /// The one.
        first: String,
        /// Its device types.
        first_kinds: String,
        /// The other.
        second: String,
        /// Its device types.
        second_kinds: String,
        /// Why they must be together.
        why: &'static str,
    },
    /// The session has no device that a node asks for and that has its kernels.
    #[error(
        "node {node} (op {op}) asks for {asked}{}, which none of the session's devices is ({devices}; kernels for {kinds})",
        restricted.as_ref().map(|other| format!(" together with node {other}")).unwrap_or_default()
    )]
    NoDevice {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
        /// The request, all that must be with it included.
        asked: Box<str>,
        /// Another node of its group that restricts the device types.
        restricted: Option<Box<str>>,
        /// Device types that have all kernels.
        kinds: Box<str>,
        /// The session's devices.
        devices: Box<str>,
    },
    /// More devices than placement can distinguish.
    #[error("a session has at most {MAX_DEVICES} devices, got {0}")]
    TooManyDevices(usize),
}

impl PlacementError {
    /// Whether soft placement would have placed the nodes.
    pub fn gives_way(&self) -> bool {
        matches!(self, PlacementError::Requests { .. } | PlacementError::NoDevice { .. })
    }
}
