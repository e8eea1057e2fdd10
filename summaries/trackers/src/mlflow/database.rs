//! MLflow's database (mlflow's store/tracking/dbmodels/models.py).

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::{
    entry::{Entry, Param, Value},
    json::param_of_text,
    log::{Log, LogKind},
    names::{StoredRun, full_names},
    reader::{Batch, Reader, keep_entries},
    sqlite::{self, Stamp},
};

/// The bytes that a row of metrics counts.
const ROW_BYTES: u64 = 64;
/// The fewest rows that are read at a time.
const MIN_ROWS: u64 = 64;

/// Whether the database is one of MLflow's.
pub(crate) fn is_one(tables: &[String]) -> bool {
    ["experiments", "runs", "metrics", "params"].iter().all(|name| tables.iter().any(|table| table == name))
}

/// The runs that are not deleted.
pub(crate) fn runs(connection: &Connection, path: &Path) -> Vec<Log> {
    const QUERY: &str = "SELECT e.name, r.name, r.run_uuid FROM runs r JOIN experiments e USING (experiment_id) \
                         WHERE r.lifecycle_stage IS NOT 'deleted' AND e.lifecycle_stage IS NOT 'deleted' \
                         ORDER BY r.start_time, r.run_uuid";
    let read = || -> rusqlite::Result<Vec<StoredRun>> {
        let mut query = connection.prepare(QUERY)?;
        let rows = query.query_map([], |row| {
            Ok(StoredRun { group: sqlite::cell(row, 0)?, name: sqlite::cell(row, 1)?, id: sqlite::cell(row, 2)? })
        })?;
        rows.collect()
    };
    let runs = read().unwrap_or_default();
    let folder = path.parent().unwrap_or(path);
    let names = full_names(&runs);
    let log = |(run, name): (StoredRun, String)| Log {
        kind: LogKind::MlflowDatabase,
        folder: folder.to_owned(),
        name,
        path: path.to_owned(),
        id: run.id,
    };
    runs.into_iter().zip(names).map(log).collect()
}

/// Follows the rows of a run.
#[derive(Debug)]
pub(crate) struct RunRows {
    path: PathBuf,
    run: String,
    /// The last row that was read, and how many were.
    last: Option<LastRow>,
    n_rows: u64,
    params: BTreeMap<String, Param>,
    note: Option<String>,
    /// The database when all was read.
    stamp: Option<Stamp>,
}

/// A row, and its contents: the table has no ids, and VACUUM counts the rows anew, in their order.
#[derive(Debug, PartialEq)]
struct LastRow {
    row: i64,
    key: String,
    timestamp: i64,
    step: i64,
}

impl LastRow {
    /// Of a row that begins with these columns.
    fn new(row: &Row<'_>) -> rusqlite::Result<Self> {
        let integer = |column| Ok::<_, rusqlite::Error>(sqlite::integer(row.get_ref(column)?).unwrap_or(0));
        Ok(Self { row: row.get(0)?, key: sqlite::cell(row, 1)?, timestamp: integer(2)?, step: integer(3)? })
    }
}

impl RunRows {
    pub fn new(path: &Path, run: &str) -> Self {
        Self {
            path: path.to_owned(),
            run: run.to_owned(),
            last: None,
            n_rows: 0,
            params: BTreeMap::new(),
            note: None,
            stamp: None,
        }
    }

    fn read_all(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        self.read_params(connection, batch)?;
        self.read_note(connection, batch)?;
        self.read_metrics(connection, allowance, batch)
    }

    fn read_params(&mut self, connection: &Connection, batch: &mut Batch) -> rusqlite::Result<()> {
        let mut query = connection.prepare("SELECT key, value FROM params WHERE run_uuid = ?1")?;
        let rows =
            query.query_map([&self.run], |row| Ok((sqlite::cell(row, 0)?, param_of_text(&sqlite::cell(row, 1)?))))?;
        let params: BTreeMap<String, Param> = rows.collect::<rusqlite::Result<_>>()?;
        if params != self.params {
            self.params.clone_from(&params);
            batch.entries.push(Entry { tag: String::new(), step: 0, wall: 0.0, value: Value::Params(params) });
        }
        Ok(())
    }

    fn read_note(&mut self, connection: &Connection, batch: &mut Batch) -> rusqlite::Result<()> {
        const QUERY: &str = "SELECT value FROM tags WHERE run_uuid = ?1 AND key = 'mlflow.note.content'";
        let note = connection.query_row(QUERY, [&self.run], |row| sqlite::cell(row, 0)).optional()?;
        if let Some(note) = note.filter(|note| self.note.as_ref() != Some(note)) {
            self.note = Some(note.clone());
            batch.entries.push(Entry { tag: "note".to_owned(), step: 0, wall: 0.0, value: Value::Text(note) });
        }
        Ok(())
    }

    /// Where to go on: the last row, and how many rows after it were read before.
    fn begin(&self, connection: &Connection) -> rusqlite::Result<(i64, u64)> {
        const QUERY: &str = "SELECT rowid, key, timestamp, step FROM metrics WHERE rowid = ?1 AND run_uuid = ?2";
        let Some(last) = &self.last else { return Ok((0, 0)) };
        let now = connection.query_row(QUERY, rusqlite::params![last.row, self.run], LastRow::new).optional()?;
        Ok(if now.as_ref() == Some(last) { (last.row, 0) } else { (0, self.n_rows) })
    }

    fn read_metrics(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        const QUERY: &str = "SELECT rowid, key, timestamp, step, value, is_nan FROM metrics \
                             WHERE run_uuid = ?1 AND rowid > ?2 ORDER BY rowid LIMIT ?3 OFFSET ?4";
        let (begin, skipped) = self.begin(connection)?;
        let limit = (allowance / ROW_BYTES).max(MIN_ROWS).min(i64::MAX as u64);
        let mut query = connection.prepare(QUERY)?;
        let mut rows = query.query(rusqlite::params![self.run, begin, limit.cast_signed(), skipped.cast_signed()])?;
        let mut n_rows = 0;
        while let Some(row) = rows.next()? {
            let last = LastRow::new(row)?;
            let is_nan = sqlite::integer(row.get_ref(5)?) == Some(1);
            let value = if is_nan { f64::NAN } else { value(sqlite::number(row.get_ref(4)?).unwrap_or(f64::NAN)) };
            let (step, wall) = (last.step, last.timestamp as f64 / 1e3);
            batch.entries.push(Entry { tag: last.key.clone(), step, wall, value: Value::Scalar(value) });
            n_rows += 1;
            self.n_rows += 1;
            self.last = Some(last);
        }
        batch.n_bytes += n_rows * ROW_BYTES;
        batch.has_more = n_rows == limit;
        Ok(())
    }
}

/// The value that was logged: MLflow stores an infinity as the largest number (store/tracking/sqlalchemy_store.py).
fn value(stored: f64) -> f64 {
    if stored.abs() == f64::MAX { f64::INFINITY.copysign(stored) } else { stored }
}

impl Reader for RunRows {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        let stamp = Stamp::now(&self.path)?;
        if stamp.is_unchanged(self.stamp.as_ref()) {
            return Ok(());
        }
        self.stamp = None;
        let connection = sqlite::open(&self.path)?;
        let result = self.read_all(&connection, allowance, batch).map_err(sqlite::error);
        if result.is_ok() && !batch.has_more {
            self.stamp = Some(stamp);
        }
        keep_entries(result, batch)
    }
}
