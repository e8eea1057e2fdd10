//! Why a graph cannot be divided.

/// Why a graph cannot be divided.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PartitionError {
    /// A loop on several devices has nothing that says whether it goes on.
    #[error("loop {frame} is on several devices and has no LoopCond")]
    NoCondition {
        /// The loop's frame.
        frame: String,
    },
    /// An edge goes from task to task without a transfer.
    #[error("node {node}: its inputs are in another task")]
    NotDivided {
        /// The node.
        node: String,
    },
}
