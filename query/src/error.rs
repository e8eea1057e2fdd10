//! The error of a query.

use datafusion::common::utils::datafusion_strsim;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use std::io;

/// Why a query failed. The messages say what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The path or URL is no trace or logdir, or cannot be read.
    #[error("{at}: {reason}")]
    Open {
        /// The path or URL.
        at: String,
        /// The fault.
        reason: String,
    },
    /// The text is no query, or names unknown tables, columns or functions.
    #[error("{0}")]
    Sql(String),
    /// The query needs more memory than it may take.
    #[error(
        "the query needs more memory than its budget ({0}); give it more with --memory, or ask for fewer groups or rows"
    )]
    Memory(String),
    /// Reading or computing failed.
    #[error("{0}")]
    Failed(String),
    /// [`Canceller::cancel`](crate::Canceller::cancel) was called.
    #[error("cancelled")]
    Cancelled,
    /// The result cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl QueryError {
    /// The error of planning a query.
    pub(crate) fn from_plan(error: &DataFusionError) -> QueryError {
        let text = match error.find_root() {
            DataFusionError::SchemaError(error, _) => match error.as_ref() {
                SchemaError::FieldNotFound { field, valid_fields } => no_column(field, valid_fields),
                other => other.to_string(),
            },
            DataFusionError::SQL(error, _) => format!("this is no SQL: {error}"),
            other => other.strip_backtrace(),
        };
        // An error is one line.
        QueryError::Sql(text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
    }

    /// The error of running a query.
    pub(crate) fn from_run(error: &DataFusionError) -> QueryError {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(what) => {
                QueryError::Memory(what.lines().next().unwrap_or("").to_owned())
            }
            DataFusionError::External(inner) => QueryError::Failed(inner.to_string()),
            DataFusionError::ArrowError(inner, _) => QueryError::Failed(inner.to_string()),
            other => QueryError::Failed(other.strip_backtrace()),
        }
    }

    pub(crate) fn no_table(name: &str, tables: &[&str]) -> QueryError {
        let hint =
            nearest(name, tables.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near}? "));
        QueryError::Sql(format!("there is no table {name}; {hint}the tables are {}", tables.join(", ")))
    }
}

fn no_column(field: &Column, valid: &[Column]) -> String {
    let names = || valid.iter().map(Column::name);
    let hint = nearest(field.name(), names()).map_or_else(String::new, |near| format!("did you mean {near}? "));
    let mut all: Vec<&str> = names().collect();
    all.dedup();
    let all =
        if all.is_empty() { "there are none here".to_owned() } else { format!("the columns are {}", all.join(", ")) };
    format!("there is no column {}; {hint}{all}", field.flat_name())
}

/// The known name that is most similar to an unknown one, if any is similar.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &str| datafusion_strsim::levenshtein(&name, known);
    let (distance, nearest) = known.map(|known| (distance(known), known)).min()?;
    let is_near = distance * 2 <= name.chars().count() || nearest.starts_with(&name) || name.starts_with(nearest);
    is_near.then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_mended_and_a_stranger_is_not() {
        let known = ["slices", "stalls", "ts_ns", "dur_ns"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!((near("slics"), near("Stall"), near("dur")), (Some("slices"), Some("stalls"), Some("dur_ns")));
        assert_eq!((near("customers"), near("x")), (None, None));
    }
}
