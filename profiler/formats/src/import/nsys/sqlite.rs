//! Rows of tables of a SQLite file, some thousand at a time.

use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Result};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Rows that one call reads.
const PART: usize = 1 << 14;
/// The longest text of a row.
const MAX_TEXT: i32 = 16 << 20;

pub(super) struct Database {
    connection: Connection,
    /// The connection's path goes through it.
    _file: Arc<File>,
    /// The last row of each table that was read.
    last: FxHashMap<&'static str, i64>,
}

/// The columns of a row that were asked for.
pub(super) struct Row<'a> {
    columns: &'a [&'a str],
    values: Vec<Value>,
}

impl Row<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        self.values.get(self.columns.iter().position(|c| *c == column)?)
    }

    /// A whole number; `None` for NULL and anything else.
    pub(super) fn int(&self, column: &str) -> Option<i64> {
        match self.value(column)? {
            Value::Integer(n) => Some(*n),
            _ => None,
        }
    }

    /// A number with a point.
    pub(super) fn real(&self, column: &str) -> Option<f64> {
        match self.value(column)? {
            Value::Real(n) => Some(*n),
            _ => None,
        }
    }

    /// A text.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        match self.value(column)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Database {
    /// Opens a file that nobody changes: no lock is taken, and no journal next to it is looked for.
    pub(super) fn open(file: &Arc<File>) -> Result<Database> {
        let path = format!("file:/proc/self/fd/{}?immutable=1&mode=ro", file.as_raw_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(Database { connection, _file: Arc::clone(file), last: FxHashMap::default() })
    }

    /// The number that a query gives.
    pub(super) fn number(&self, query: &str) -> Option<i64> {
        self.connection.query_row(query, [], |row| row.get(0)).ok()
    }

    /// The text that a query gives.
    pub(super) fn text(&self, query: &str) -> Option<String> {
        self.connection.query_row(query, [], |row| row.get(0)).ok()
    }

    /// Gives the next rows of a table to `take`; false when there are no more, or there is no such table.
    pub(super) fn rows(&mut self, table: &'static str, columns: &str, mut take: impl FnMut(&Row<'_>)) -> Result<bool> {
        let of_table =
            "select name from pragma_table_info(?1) where ?1 in (select name from sqlite_schema where type = 'table')";
        let mut statement = self.connection.prepare(of_table)?;
        let present: Vec<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_>>()?;
        if present.is_empty() {
            return Ok(false);
        }
        let or_null = |column: &&str| {
            if present.iter().any(|p| p == column) { format!("\"{column}\"") } else { "null".to_owned() }
        };
        let columns: Vec<&str> = columns.split(' ').collect();
        let list: Vec<String> = columns.iter().map(or_null).collect();
        let query = format!(
            "select rowid, {} from main.\"{table}\" where rowid > ?1 order by rowid limit {PART}",
            list.join(", ")
        );
        let mut statement = self.connection.prepare(&query)?;
        let last = self.last.entry(table).or_insert(i64::MIN);
        let mut rows = statement.query([*last])?;
        let mut n = 0;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            // Otherwise the file is damaged so that it goes round.
            if n > 0 && id <= *last {
                return Err(rusqlite::Error::InvalidQuery);
            }
            *last = id;
            n += 1;
            let values = (0..columns.len()).map(|i| row.get(i + 1)).collect::<Result<_>>();
            if let Ok(values) = values {
                take(&Row { columns: &columns, values });
            }
        }
        Ok(n == PART)
    }
}
