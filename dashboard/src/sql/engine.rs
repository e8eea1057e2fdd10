//! What answers SQL: given by the program, which may be built without it.

use std::{path::Path, sync::Arc};

/// Opens what is asked about.
pub trait Engine: Send + Sync {
    /// The tables of a trace, a logdir, or a folder of many.
    ///
    /// # Errors
    /// One line, for the user.
    fn open(&self, path: &Path) -> Result<Box<dyn Tables>, String>;
}

/// The tables of one path. Used by one thread, which may wait for long.
pub trait Tables: Send {
    /// The tables that queries can name.
    fn list(&self) -> Vec<Table>;

    /// The rows of a query, at most `max_rows`.
    ///
    /// # Errors
    /// One line, for the user.
    fn query(&self, sql: &str, max_rows: usize) -> Result<RowSet, String>;

    /// Ends a query from another thread.
    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync>;

    /// What was lost or damaged in what the queries since the last call read.
    fn take_warnings(&self) -> Vec<String>;
}

/// A table that queries can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// As queries say it.
    pub name: String,
    /// What a row is.
    pub about: String,
    /// Name, type and unit (or nothing) of each column.
    pub columns: Vec<[String; 3]>,
}

/// Rows as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    /// The columns' names.
    pub columns: Vec<String>,
    /// Of each column, whether it holds numbers.
    pub are_numbers: Vec<bool>,
    /// As many cells each as there are columns; null is empty.
    pub rows: Vec<Vec<String>>,
    /// There are further rows.
    pub has_more: bool,
}
