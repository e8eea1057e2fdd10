//! SQL for the window, on the tables of an open trace or logdir, by the member `query`.

use std::path::Path;
use std::sync::Arc;

use dashboard::sql::engine::{Engine, RowSet, Table, Tables};
use query::{Database, Options};

/// The engine of `stepscope query`: DataFusion.
pub struct DataFusion;

struct OpenDatabase(Database);

impl Engine for DataFusion {
    fn open(&self, path: &Path) -> Result<Box<dyn Tables>, String> {
        let root = path.to_str().ok_or_else(|| format!("{}: its name is no UTF-8", path.display()))?;
        let database = Database::open(root, Options::default()).map_err(|error| error.to_string())?;
        Ok(Box::new(OpenDatabase(database)))
    }
}

impl Tables for OpenDatabase {
    fn list(&self) -> Vec<Table> {
        let table = |info: &query::schema::TableInfo| Table {
            name: info.name.to_owned(),
            about: info.about.to_owned(),
            columns: info.columns().map(|(name, kind, unit)| [name.to_owned(), kind, unit.to_owned()]).collect(),
        };
        self.0.tables().iter().map(table).collect()
    }

    fn query(&self, sql: &str, max_rows: usize) -> Result<RowSet, String> {
        let answer = self.0.answer(sql, max_rows).map_err(|error| error.to_string())?;
        let query::QueryResult { columns, are_numbers, rows, has_more } = answer;
        Ok(RowSet { columns, are_numbers, rows, has_more })
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let canceller = self.0.canceller();
        Arc::new(move || canceller.cancel())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.0.take_warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The panel's engine returns the rows of a real trace, lists its tables, and reports errors.
    #[test]
    fn tables_of_a_trace_are_asked() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/formats/tests/fixtures/packets.pftrace");
        let tables = DataFusion.open(&path).expect("a trace");
        let listed = tables.list();
        let slices = listed.iter().find(|table| table.name == "slices").expect("slices");
        assert!(slices.columns.iter().any(|[name, ..]| name == "dur_ns"));
        let count = tables.query("select count(*) as n from slices", 10).expect("a count");
        let n: usize = count.rows[0][0].parse().expect("a number");
        assert!(n > 3 && count.columns == ["n"] && count.are_numbers == [true]);
        let first = tables.query("select name, ts_ns from slices order by ts_ns", 3).expect("rows");
        assert_eq!((first.rows.len(), first.has_more, &first.are_numbers[..]), (3, true, &[false, true][..]));
        let all = tables.query("select name from slices", n).expect("rows");
        assert_eq!((all.rows.len(), all.has_more), (n, false));
        let error = tables.query("select nam from slices", 3).expect_err("no such column");
        assert!(error.contains("nam") && error.lines().count() == 1, "{error}");
        assert!(DataFusion.open(Path::new("/nowhere/at/all")).is_err());
    }
}
