//! The interface of what rows are made of.

use std::io;

use serde_json::Value;

use crate::outcome::Failure;

/// A source of rows.
pub trait RowSource {
    /// The names of the columns.
    fn columns(&self) -> &'static [&'static str];

    /// Reads what is new, or a part of it. Returns whether there is more.
    ///
    /// # Errors
    /// It cannot be read any more.
    fn read(&mut self) -> Result<bool, Failure>;

    /// Passes each row that was read since the last call to `row`, its cells in the order of the columns.
    ///
    /// # Errors
    /// Those of `row`.
    fn take(&mut self, row: &mut dyn FnMut(&[Value]) -> io::Result<()>) -> io::Result<()>;

    /// Whether nothing more will come, where that is known: the writer has ended.
    fn is_over(&self) -> bool;

    /// Prints on standard error what could not be read.
    fn warn(&self);
}
