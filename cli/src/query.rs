//! `stepscope query`: SQL over traces and logdirs.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::Path;
use std::sync::Arc;

use query::{Cluster, Database, Format, Options, QueryError};
use serde_json::json;

use crate::args::{Query, QueryAs, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::signals;
use crate::{export, out};
use text::Table;

/// Runs the query; without one lists the tables.
pub fn run(args: &Query, verbosity: Verbosity) -> Outcome {
    let sql = sql(args)?;
    let format = format(args)?;
    if let Some(path) = &args.out
        && path.exists()
        && !args.force
    {
        return Err(Failure::wrong_use(format_args!("{} exists; --force writes over it", path.display())));
    }
    let options = Options { memory_bytes: args.memory, threads: args.threads };
    let cluster = args.cluster.as_deref().map(|address| cluster_at(address, args)).transpose()?;
    let database = Database::open_on(&args.path, options, cluster).map_err(failure)?;
    let canceller = database.canceller();
    signals::on_stop(move || canceller.cancel())?;
    let outcome = match &sql {
        None => list_tables(&database, format == Format::Json),
        Some(sql) => run_query(&database, sql, format, args, verbosity),
    };
    for warning in database.take_warnings() {
        note!("warning: {warning}");
    }
    outcome
}

/// The cluster of an address.
#[cfg(feature = "cluster")]
fn cluster_at(address: &str, args: &Query) -> Result<Arc<dyn Cluster>, Failure> {
    Ok(Arc::new(cluster::Ballista::new(address, args.scratch.clone()).map_err(Failure::wrong_use)?))
}

#[cfg(not(feature = "cluster"))]
fn cluster_at(_: &str, _: &Query) -> Result<Arc<dyn Cluster>, Failure> {
    Err(Failure::wrong_use(
        "this program was built without --cluster; build it with: cargo build --release --features cluster",
    ))
}

/// The text of the query: the argument, or the content of a file or of standard input.
fn sql(args: &Query) -> Result<Option<String>, Failure> {
    let read = |path: &Path, mut from: Box<dyn Read>| {
        let mut text = String::new();
        let read = from.read_to_string(&mut text);
        read.map_err(|e| Failure::wrong_use(format_args!("{}: {e}", path.display()))).map(|_| Some(text))
    };
    match (&args.sql, &args.file) {
        (Some(sql), _) if sql == "-" => read(Path::new("standard input"), Box::new(io::stdin())),
        (Some(sql), _) => Ok(Some(sql.clone())),
        (None, Some(path)) => {
            let file = File::open(path).map_err(|e| Failure::wrong_use(format_args!("{}: {e}", path.display())))?;
            read(path, Box::new(file))
        }
        (None, None) => Ok(None),
    }
}

fn format(args: &Query) -> Result<Format, Failure> {
    let format_from_name = || match args.out.as_deref()?.extension()?.to_str()? {
        "csv" => Some(QueryAs::Csv),
        "json" | "jsonl" | "ndjson" => Some(QueryAs::Json),
        "parquet" => Some(QueryAs::Parquet),
        _ => None,
    };
    match args.format.or_else(format_from_name).unwrap_or(QueryAs::Table) {
        QueryAs::Table => Ok(Format::Table),
        QueryAs::Csv => Ok(Format::Csv),
        QueryAs::Json => Ok(Format::Json),
        QueryAs::Parquet if args.out.is_none() => Err(Failure::wrong_use("Parquet needs a file: -o FILE")),
        QueryAs::Parquet => Ok(Format::Parquet),
    }
}

fn run_query(database: &Database, sql: &str, format: Format, args: &Query, verbosity: Verbosity) -> Outcome {
    let n_rows = match &args.out {
        None => {
            let mut out = BufWriter::new(out::Results);
            match database.query(sql, args.limit, format, &mut out) {
                Err(QueryError::Output(_)) => return Err(Failure::Output),
                done => done.map_err(failure)?,
            }
        }
        Some(path) => {
            let mut done = Ok(0);
            let written = export::write_file(path, |out| {
                done = database.query(sql, args.limit, format, out);
                // An error here keeps the file from being renamed; `done` has the reason.
                done.as_ref().map(|_| ()).map_err(|e| io::Error::other(e.to_string()))
            });
            let n_rows = done.map_err(failure)?;
            written.map_err(|e| Failure::Work(anyhow::anyhow!("{}: {e}", path.display())))?;
            n_rows
        }
    };
    if verbosity > Verbosity::Quiet && (out::is_stdout_terminal() || args.out.is_some()) {
        note!("{}", text::count_of(n_rows, "row"));
    }
    Ok(())
}

/// Lists the tables with their columns.
fn list_tables(database: &Database, as_json: bool) -> Outcome {
    if !as_json {
        out::line(format!("{}; a type with ? may be null", text::count_of(database.traces().len() as u64, "trace")));
    }
    for table in database.tables() {
        if as_json {
            let column = |(name, kind, unit): (&str, String, &str)| json!({"name": name, "type": kind, "unit": unit});
            let columns: Vec<_> = table.columns().map(column).collect();
            out::object(1, json!({"table": table.name, "about": table.about, "columns": columns}));
            continue;
        }
        out::line(format!("\n{}: {}", table.name, table.about));
        let mut columns = Table::new(["  column", "<type", "<unit"]);
        for (name, kind, unit) in table.columns() {
            columns.row([format!("  {name}"), kind, unit.to_owned()]);
        }
        out::table(&columns);
    }
    Ok(())
}

fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Open { .. } | QueryError::Sql(_) => Failure::wrong_use(error),
        // 128 + SIGINT, a shell's code for a program that Ctrl-C ended.
        QueryError::Cancelled => Failure::Command(130),
        QueryError::Memory(_) | QueryError::Failed(_) | QueryError::Output(_) => Failure::Work(error.into()),
    }
}
