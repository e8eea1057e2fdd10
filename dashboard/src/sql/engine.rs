//! The interface of the SQL engine, which the program provides if it is built with one.

use std::{path::Path, sync::Arc};

/// Opens the subjects of queries.
pub trait Engine: Send + Sync {
    /// The tables of a trace, a logdir, or a folder of many of them.
    ///
    /// # Errors
    /// An error of one line, for the user.
    fn open(&self, path: &Path) -> Result<Box<dyn Tables>, String>;
}

/// The tables of one path. Used by one thread, which a query may block for long.
pub trait Tables: Send {
    /// All tables.
    fn list(&self) -> Vec<Table>;

    /// The rows of a query, at most `max_rows`.
    ///
    /// # Errors
    /// An error of one line, for the user.
    fn query(&self, sql: &str, max_rows: usize) -> Result<RowSet, String>;

    /// A function that ends the running query from another thread.
    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync>;

    /// Warnings about lost or damaged data that the queries since the last call have read.
    fn take_warnings(&self) -> Vec<String>;
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name in queries.
    pub name: String,
    /// The meaning of a row.
    pub about: String,
    /// Name, type and unit of each column; the unit may be empty.
    pub columns: Vec<[String; 3]>,
}

/// Rows of a result, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    /// The columns' names.
    pub columns: Vec<String>,
    /// For each column, whether it holds numbers.
    pub are_numbers: Vec<bool>,
    /// The rows, with a cell for each column; null is empty.
    pub rows: Vec<Vec<String>>,
    /// Whether further rows were left out.
    pub has_more: bool,
}
