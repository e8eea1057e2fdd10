//! The thread that runs queries. The tables of the last path stay open, as opening them may take long.

use super::{
    engine::{Engine, RowSet, Tables},
    model::{MAX_ROWS, Outcome},
};
use events::clock;
use std::{path::Path, sync::Arc};
use ui::{Background, background::Cancel};

/// A query about a subject; without a text only its tables are listed.
pub struct Query {
    /// The path of the subject.
    pub path: Arc<Path>,
    /// Whether the subject grows, so that tables opened before are out of date.
    pub is_live: bool,
    pub sql: String,
}

/// Runs one query at a time. [`Background::cancel`] ends it.
pub type Worker = Background<Query, Outcome>;

struct OpenTables {
    path: Arc<Path>,
    tables: Box<dyn Tables>,
}

/// Starts the thread; `wake` is called after each outcome.
pub fn start(engine: Arc<dyn Engine>, wake: impl Fn() + Send + 'static) -> Worker {
    let mut open = None;
    let answer = move |query: Query, cancel: &Cancel| {
        let begin_ns = clock::mono_now();
        let outcome = answer(&*engine, &mut open, query, cancel);
        Outcome { took_ns: clock::mono_now() - begin_ns, ..outcome }
    };
    Background::start_cancellable("sql", answer, wake)
}

fn answer(engine: &dyn Engine, open: &mut Option<OpenTables>, query: Query, cancel: &Cancel) -> Outcome {
    let Query { path, is_live, sql } = query;
    let mut outcome = Outcome {
        sql,
        path: path.clone(),
        tables: Vec::new(),
        answer: Ok(RowSet::default()),
        warnings: Vec::new(),
        took_ns: 0,
    };
    if is_live || open.as_ref().is_some_and(|open| open.path != path) {
        *open = None;
    }
    let tables = match open {
        Some(open) => &open.tables,
        None => match engine.open(&path) {
            Ok(tables) => &open.insert(OpenTables { path, tables }).tables,
            Err(error) => {
                outcome.answer = Err(error);
                return outcome;
            }
        },
    };
    outcome.tables = tables.list();
    if !outcome.sql.trim().is_empty() {
        cancel.set_action(Some(tables.canceller()));
        outcome.answer = tables.query(&outcome.sql, MAX_ROWS);
        cancel.set_action(None);
        outcome.warnings = tables.take_warnings();
    }
    outcome
}
