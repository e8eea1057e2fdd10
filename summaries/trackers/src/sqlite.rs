//! SQLite databases of programs that may be writing them: opened read-only for each look, so that none is locked for long.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, OpenFlags, Row, limits::Limit, types::ValueRef};

use crate::file;

const MAGIC: &[u8] = b"SQLite format 3\0";
/// The largest text of a row.
const MAX_TEXT: i32 = 64 << 20;
/// The longest time that a writer is waited for.
const BUSY: Duration = Duration::from_millis(100);
/// Two changes within this time may have the same time.
const SAME_TIME: Duration = Duration::from_secs(2);

/// Opens a database. Its journal is read with it, as SQLite demands of every reader.
///
/// # Errors
/// It does not exist, cannot be read, or is no database.
pub(crate) fn open(path: &Path) -> io::Result<Connection> {
    // SQLite would say no more than that it cannot open it.
    fs::metadata(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT).map_err(error)?;
    connection.busy_timeout(BUSY).map_err(error)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(error)?;
    Ok(connection)
}

/// SQLite's error as one of reading.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn error(error: rusqlite::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// When a database and its journal were last changed, and their sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    files: [Option<(SystemTime, u64)>; 2],
    is_settled: bool,
}

impl Stamp {
    /// # Errors
    /// The database does not exist.
    pub fn now(path: &Path) -> io::Result<Self> {
        let mut journal = OsString::from(path);
        journal.push("-wal");
        let files = [Some(fs::metadata(path)?), fs::metadata(journal).ok()];
        let is_settled = files.iter().flatten().all(|metadata| file::is_older(metadata, SAME_TIME));
        let stamp = |metadata: &fs::Metadata| Some((metadata.modified().ok()?, metadata.len()));
        Ok(Self { files: files.each_ref().map(|metadata| metadata.as_ref().and_then(stamp)), is_settled })
    }

    /// Whether nothing was written since `earlier`, for sure.
    pub fn is_unchanged(&self, earlier: Option<&Self>) -> bool {
        earlier.is_some_and(|earlier| earlier.is_settled && earlier.files == self.files)
    }
}

/// Whether a file is a database.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// The names of the tables.
pub(crate) fn tables(connection: &Connection) -> Vec<String> {
    texts(connection, "SELECT name FROM sqlite_master WHERE type = ?1", "table").unwrap_or_default()
}

/// The names of a table's columns.
pub(crate) fn columns(connection: &Connection, table: &str) -> Vec<String> {
    texts(connection, "SELECT name FROM pragma_table_info(?1)", table).unwrap_or_default()
}

fn texts(connection: &Connection, query: &str, parameter: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare(query)?;
    let texts = query.query_map([parameter], |row| cell(row, 0))?;
    texts.collect()
}

/// A cell as text, whatever its type.
pub(crate) fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text).into_owned()),
    }
}

/// A cell as a number.
pub(crate) fn number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    }
}

/// A cell as a whole number.
pub(crate) fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => Some(number as i64),
        _ => None,
    }
}

/// A cell of a row as text; empty for NULL.
pub(crate) fn cell(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(text(row.get_ref(column)?).unwrap_or_default())
}
