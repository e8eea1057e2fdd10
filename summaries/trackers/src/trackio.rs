//! trackio's `PROJECT.db`: rows of JSON (trackio's sqlite_storage.py), and media in a folder next to it.

mod cursor;
mod value;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use jiter::{JsonObject, JsonValue};
use rusqlite::{Connection, OptionalExtension as _};

use self::{
    cursor::{Cursor, key_column},
    value::Media,
};
use crate::{
    entry::{Entry, Param, Value},
    json,
    log::{Log, LogKind},
    names::{StoredRun, full_names},
    reader::{Batch, Problem, Reader, keep_entries},
    sqlite::{self, Stamp},
    time,
};

/// A row that cannot be read.
const NO_OBJECT: Problem = Problem { what: "a row that is no object of JSON", bytes: 0..0 };

/// Whether the database is one of trackio's.
pub(crate) fn is_one(connection: &Connection, tables: &[String]) -> bool {
    let columns = sqlite::columns(connection, "metrics");
    let has = |name: &str| columns.iter().any(|column| column == name);
    tables.iter().any(|table| table == "metrics") && ["run_name", "step", "timestamp", "metrics"].iter().all(|c| has(c))
}

/// The runs of a project.
pub(crate) fn runs(connection: &Connection, path: &Path) -> Vec<Log> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for table in ["metrics", "system_metrics", "configs"] {
        found.extend(runs_of_table(connection, table).unwrap_or_default());
    }
    let group = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let run = |(id, name): (String, String)| StoredRun { group: group.clone(), name, id };
    let runs: Vec<StoredRun> = found.into_iter().map(run).collect();
    let names = full_names(&runs);
    let log = |(run, name): (StoredRun, String)| Log {
        kind: LogKind::Trackio,
        folder: path.parent().unwrap_or(path).to_owned(),
        name,
        path: path.to_owned(),
        id: run.id,
    };
    runs.into_iter().zip(names).map(log).collect()
}

/// The ids and names of the runs of a table, each found by the index: a project may have millions of rows.
fn runs_of_table(connection: &Connection, table: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let key = key_column(connection, table);
    let query = format!(
        "WITH RECURSIVE ids(id) AS (SELECT min({key}) FROM {table} UNION ALL \
         SELECT (SELECT min({key}) FROM {table} WHERE {key} > ids.id) FROM ids WHERE ids.id IS NOT NULL) \
         SELECT id, (SELECT run_name FROM {table} WHERE {key} = ids.id LIMIT 1) FROM ids WHERE id IS NOT NULL"
    );
    let mut query = connection.prepare(&query)?;
    let rows = query.query_map([], |row| Ok((sqlite::cell(row, 0)?, sqlite::cell(row, 1)?)))?;
    rows.collect()
}

/// Follows the rows of a run.
#[derive(Debug)]
pub(crate) struct RunRows {
    path: PathBuf,
    run: String,
    metrics: Cursor,
    system: Cursor,
    alerts: Cursor,
    /// The number of rows of `system_metrics`, which have no steps.
    n_system: i64,
    params: BTreeMap<String, Param>,
    /// The database when all was read.
    stamp: Option<Stamp>,
}

impl RunRows {
    pub fn new(path: &Path, run: &str) -> Self {
        Self {
            path: path.to_owned(),
            run: run.to_owned(),
            metrics: Cursor::new("metrics"),
            system: Cursor::new("system_metrics"),
            alerts: Cursor::new("alerts"),
            n_system: 0,
            params: BTreeMap::new(),
            stamp: None,
        }
    }

    fn read_all(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        self.read_params(connection, batch)?;
        self.read_metrics(connection, allowance, batch)?;
        // Older versions lack these tables.
        let tables = sqlite::tables(connection);
        let has = |name: &str| tables.iter().any(|table| table == name);
        if has("system_metrics") {
            self.read_system(connection, allowance, batch)?;
        }
        if has("alerts") {
            self.read_alerts(connection, allowance, batch)?;
        }
        Ok(())
    }

    fn read_params(&mut self, connection: &Connection, batch: &mut Batch) -> rusqlite::Result<()> {
        if sqlite::columns(connection, "configs").is_empty() {
            return Ok(());
        }
        let key = key_column(connection, "configs");
        let query = format!("SELECT config, created_at FROM configs WHERE {key} = ?1 ORDER BY id DESC LIMIT 1");
        let row = connection.query_row(&query, [&self.run], |row| Ok((sqlite::cell(row, 0)?, sqlite::cell(row, 1)?)));
        let Some((text, created)) = row.optional()? else { return Ok(()) };
        let Some(JsonValue::Object(config)) = json::parse(&text) else {
            batch.problems.push(Problem { what: "a configuration that is no object of JSON", bytes: 0..0 });
            return Ok(());
        };
        let mut params = json::params(&config, ".");
        // What trackio itself adds.
        params.retain(|name, _| !name.starts_with('_'));
        if params != self.params && !params.is_empty() {
            self.params.clone_from(&params);
            let wall = time::parse(&created).unwrap_or(0.0);
            batch.entries.push(Entry { tag: String::new(), step: 0, wall, value: Value::Params(params) });
        }
        Ok(())
    }

    fn read_metrics(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        let media = Media::new(&self.path);
        let columns = ["timestamp", "step", "metrics"];
        self.metrics.read(connection, &self.run, &columns, allowance, batch, |row, batch| {
            let wall = time::parse(&row[0]).unwrap_or(0.0);
            let step = row[1].parse().unwrap_or(0);
            batch.n_bytes += row[2].len() as u64;
            match json::parse(&row[2]) {
                Some(JsonValue::Object(metrics)) => entries(&metrics, step, wall, &media, batch),
                _ => batch.problems.push(NO_OBJECT),
            }
        })
    }

    fn read_system(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        let n_system = &mut self.n_system;
        let columns = ["timestamp", "metrics"];
        self.system.read(connection, &self.run, &columns, allowance, batch, |row, batch| {
            let wall = time::parse(&row[0]).unwrap_or(0.0);
            let step = *n_system;
            *n_system += 1;
            batch.n_bytes += row[1].len() as u64;
            let Some(JsonValue::Object(metrics)) = json::parse(&row[1]) else {
                batch.problems.push(NO_OBJECT);
                return;
            };
            json::walk(&metrics, ".", &|_| false, &mut |name, value| {
                let value = value::scalar(value).map(Value::Scalar);
                let tag = format!("system/{name}");
                batch.entries.extend(value.map(|value| Entry { tag, step, wall, value }));
            });
        })
    }

    fn read_alerts(&mut self, connection: &Connection, allowance: u64, batch: &mut Batch) -> rusqlite::Result<()> {
        let columns = ["timestamp", "step", "title", "text", "level"];
        self.alerts.read(connection, &self.run, &columns, allowance, batch, |row, batch| {
            let wall = time::parse(&row[0]).unwrap_or(0.0);
            let step = row[1].parse().unwrap_or(0);
            let text = format!("**{}** ({})\n\n{}", row[2], row[4], row[3]);
            batch.n_bytes += text.len() as u64;
            batch.entries.push(Entry { tag: "alerts".to_owned(), step, wall, value: Value::Text(text) });
        })
    }
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

/// The values of a row. Dictionaries that are no media have their values under `NAME.KEY`, as trackio shows nested ones.
fn entries(metrics: &JsonObject<'_>, step: i64, wall: f64, media: &Media, batch: &mut Batch) {
    json::walk(metrics, ".", &value::is_typed, &mut |tag, logged| match value::read(logged, media) {
        Ok(Some(value)) => {
            if let Value::Image { file, .. } | Value::Audio(file) = &value {
                batch.n_bytes += file.len() as u64;
            }
            batch.entries.push(Entry { tag, step, wall, value });
        }
        Ok(None) => {}
        Err(what) => batch.problems.push(Problem { what, bytes: 0..0 }),
    });
}
