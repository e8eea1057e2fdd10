//! Why there is no device.

/// Why there is no such device.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeviceError {
    /// Nobody registered the type.
    #[error("no device type {kind} (there are {known})")]
    UnknownKind {
        /// The type asked for.
        kind: String,
        /// The types that are registered.
        known: String,
    },
    /// A name that leaves something open where a device is meant.
    #[error("{name:?} is not the full name of a device")]
    NotFull {
        /// The name.
        name: String,
    },
    /// The device could not be made.
    #[error("device {kind}:{idx}: {reason}")]
    Unavailable {
        /// The type.
        kind: &'static str,
        /// Which one.
        idx: usize,
        /// Why not.
        reason: String,
    },
}
