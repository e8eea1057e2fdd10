//! Why a step did not end well.

use engine_core::kernel::KernelError;

/// Why a step did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// A kernel refused.
    #[error("node {node} (op {op}{inputs}): {source}")]
    Kernel {
        /// The node's full name.
        node: String,
        /// Its op.
        op: String,
        /// The dtypes and shapes of its inputs, as `, inputs float[2,3] ...`; those it had taken are left out.
        inputs: String,
        /// What the kernel says.
        #[source]
        source: Box<KernelError>,
    },
    /// A kernel panicked. The session stays usable.
    #[error("node {node} (op {op}): the kernel panicked: {message}")]
    Panic {
        /// The node's full name.
        node: String,
        /// Its op.
        op: String,
        /// The panic's message.
        message: String,
    },
    /// A kernel ended without setting an output that is used.
    #[error("node {node} (op {op}): the kernel left output {port} unset")]
    MissingOutput {
        /// The node's full name.
        node: String,
        /// Its op.
        op: String,
        /// The output.
        port: usize,
    },
    /// A fetched value was not computed.
    #[error("fetch {name}: there is no value: it is on a branch that was not taken")]
    DeadFetch {
        /// `name:port` of the fetch.
        name: String,
    },
    /// The step's token was cancelled.
    #[error("the step was cancelled after {done} of {total} nodes")]
    Cancelled {
        /// Nodes that had run, about.
        done: u32,
        /// Nodes of the step.
        total: u32,
    },
    /// The step's deadline passed.
    #[error("the deadline passed after {done} of {total} nodes")]
    DeadlineExceeded {
        /// Nodes that had run, about.
        done: u32,
        /// Nodes of the step.
        total: u32,
    },
}

/// Why a worker's loop ended before it ran out of nodes.
pub(crate) enum Stop {
    /// Another worker failed.
    Halted,
    Error(Box<ExecuteError>),
}

impl Stop {
    #[cold]
    pub fn error(error: ExecuteError) -> Stop {
        Stop::Error(Box::new(error))
    }
}
