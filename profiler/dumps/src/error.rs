//! Why a file cannot be read, in one line each.

use std::io;

/// Why a file cannot be read. Each is one line for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader failed.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The pickle is more than data: it names a function or a class. Nothing was called.
    #[error("the file wants to {action}: it is no dump of PyTorch")]
    Executable {
        /// What it asks for, as "call os.system".
        action: String,
    },
    /// The bytes are no pickle of protocol 2 to 5.
    #[error("byte {offset}: {what}")]
    Pickle {
        /// Where, in bytes from the beginning of the file.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The text is no JSON.
    #[error("neither a pickle nor JSON: {0}")]
    Json(String),
    /// The data are readable, but not of the kind that was asked for.
    #[error("the file is no {expected}: {what}")]
    OtherContent {
        /// The kind that was asked for.
        expected: &'static str,
        /// What is missing.
        what: &'static str,
    },
}
