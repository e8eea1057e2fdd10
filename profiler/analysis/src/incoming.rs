//! Flows between the lines of threads and devices.

/// A flow from one line to another.
pub(crate) struct IncomingFlow {
    pub line: u32,
    /// Time of arrival on `line`.
    pub to: i64,
    pub from_line: u32,
    /// Time at which the flow left `from_line`.
    pub from: i64,
}
