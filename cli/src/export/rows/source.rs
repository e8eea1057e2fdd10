//! The interface of sources of rows.

use std::io;

use serde_json::Value;

use crate::outcome::Failure;

/// A source of rows.
pub trait RowSource {
    /// The names of the columns.
    fn columns(&self) -> &'static [&'static str];

    /// Reads new data, or a part of it. Returns whether there is more.
    ///
    /// # Errors
    /// The source cannot be read any more.
    fn read(&mut self) -> Result<bool, Failure>;

    /// Calls `row` with each row that was read since the last call; its cells are in the order of the columns.
    ///
    /// # Errors
    /// Those of `row`.
    fn take_rows(&mut self, row: &mut dyn FnMut(&[Value]) -> io::Result<()>) -> io::Result<()>;

    /// Whether the source is known to be complete, because its writer has ended.
    fn is_over(&self) -> bool;

    /// Prints warnings about unreadable data on standard error.
    fn warn(&self);
}
