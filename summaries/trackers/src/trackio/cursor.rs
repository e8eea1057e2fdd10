//! Where a run's rows of a table were read to.

use rusqlite::Connection;

use crate::{reader::Batch, sqlite};

/// The bytes that a row counts in addition to its contents.
const ROW_BYTES: u64 = 64;

/// The column that distinguishes runs: older versions have names only.
pub(super) fn key_column(connection: &Connection, table: &str) -> &'static str {
    let columns = sqlite::columns(connection, table);
    if columns.iter().any(|column| column == "run_id") { "run_id" } else { "run_name" }
}

/// The rows of one run, in a table whose rows are those of all runs.
///
/// Rows are read by their ids, from the run's first to its last: SQLite would choose the index, and sort all rows of the
/// run for each call. Then what is appended to the table is looked through.
#[derive(Debug)]
pub(super) struct Cursor {
    table: &'static str,
    /// None before the first call.
    range: Option<Range>,
}

/// Ids of rows.
#[derive(Debug, Clone, Copy)]
struct Range {
    /// The last row that was looked at.
    done: i64,
    /// The last one to look at.
    end: i64,
    /// The last row of the table: those from `end` to it are other runs'.
    table_end: i64,
}

impl Cursor {
    pub fn new(table: &'static str) -> Self {
        Self { table, range: None }
    }

    /// Calls `take` with the cells of `columns`, as texts, for each new row, until `batch` has `allowance` bytes.
    pub fn read(
        &mut self,
        connection: &Connection,
        run: &str,
        columns: &[&str],
        allowance: u64,
        batch: &mut Batch,
        mut take: impl FnMut(&[String], &mut Batch),
    ) -> rusqlite::Result<()> {
        let (table, key) = (self.table, key_column(connection, self.table));
        let range = self.next_range(connection, key, run)?;
        let done = self.range.insert(range);
        let columns_text = columns.join(", ");
        let query = format!(
            "SELECT id, {columns_text} FROM {table} NOT INDEXED WHERE id > ?1 AND id <= ?2 AND {key} = ?3 ORDER BY id"
        );
        let mut query = connection.prepare(&query)?;
        let mut rows = query.query(rusqlite::params![range.done, range.end, run])?;
        let mut cells = Vec::with_capacity(columns.len());
        while let Some(row) = rows.next()? {
            if batch.n_bytes >= allowance && batch.n_bytes > 0 {
                batch.has_more = true;
                return Ok(());
            }
            cells.clear();
            for column in 1..=columns.len() {
                cells.push(sqlite::cell(row, column)?);
            }
            batch.n_bytes += ROW_BYTES;
            take(&cells, batch);
            done.done = row.get(0)?;
        }
        (done.done, done.end) = (range.table_end, range.table_end);
        Ok(())
    }

    fn next_range(&self, connection: &Connection, key: &str, run: &str) -> rusqlite::Result<Range> {
        let table = self.table;
        if let Some(range) = self.range.filter(|range| range.done < range.end) {
            return Ok(range);
        }
        let query = format!("SELECT max(id) FROM {table}");
        let table_end: Option<i64> = connection.query_row(&query, [], |row| row.get(0))?;
        let table_end = table_end.unwrap_or(0);
        if let Some(Range { done, .. }) = self.range {
            let table_end = table_end.max(done);
            return Ok(Range { done, end: table_end, table_end });
        }
        let query = format!("SELECT min(id), max(id) FROM {table} WHERE {key} = ?1");
        let own: (Option<i64>, Option<i64>) =
            connection.query_row(&query, [run], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(match own {
            // A row may have come since the query before.
            (Some(first), Some(end)) => Range { done: first.saturating_sub(1), end, table_end: table_end.max(end) },
            _ => Range { done: table_end, end: table_end, table_end },
        })
    }
}
