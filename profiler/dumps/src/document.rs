//! A file that was read, before anything knows what it is.

use crate::{tree::Tree, value::Value, warnings::Warnings};

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its data.
    pub tree: Tree,
    /// Where they begin.
    pub root: Value,
    /// How many bytes were read.
    pub n_bytes: u64,
    pub warnings: Warnings,
}
