//! The thread that asks. It keeps the tables of the last path open, since opening them may take long.

use super::{
    engine::{Answer, Engine, Tables},
    model::{MAX_ROWS, Outcome, Subject},
};
use crate::timeline::background::Background;
use events::clock;
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

type Cancel = Arc<dyn Fn() + Send + Sync>;

/// A question about a subject; without text only its tables are listed.
pub struct Question {
    /// What it is about.
    pub subject: Subject,
    /// The query.
    pub sql: String,
}

/// Asks one question at a time.
pub struct Worker {
    background: Background<Question, Outcome>,
    /// Ends the query that runs.
    running: Arc<Mutex<Option<Cancel>>>,
}

struct Open {
    path: Arc<Path>,
    tables: Box<dyn Tables>,
}

impl Worker {
    /// Starts the thread; `wake` is called after each answer.
    pub fn start(engine: Arc<dyn Engine>, wake: impl Fn() + Send + 'static) -> Self {
        let running = Arc::<Mutex<Option<Cancel>>>::default();
        let theirs = running.clone();
        let open = Mutex::new(None);
        let answer = move |question: Question| {
            let begin_ns = clock::mono_now();
            let outcome = answer(&*engine, &mut open.lock(), question, &theirs);
            Outcome { took_ns: clock::mono_now() - begin_ns, ..outcome }
        };
        Self { background: Background::start("sql", answer, wake), running }
    }

    /// Asks; what waits is given up, what runs goes on before it.
    pub fn ask(&self, question: Question) {
        self.background.request(question);
    }

    /// The last answer.
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        self.background.result()
    }

    /// Whether a question is being answered.
    pub fn is_busy(&self) -> bool {
        self.background.is_busy()
    }

    /// Ends the query that runs.
    pub fn cancel(&self) {
        if let Some(cancel) = &*self.running.lock() {
            cancel();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The thread is waited for, and a query may have minutes to go.
        self.cancel();
    }
}

fn answer(
    engine: &dyn Engine,
    open: &mut Option<Open>,
    question: Question,
    running: &Mutex<Option<Cancel>>,
) -> Outcome {
    let Question { subject, sql } = question;
    let path = subject.path;
    let mut outcome = Outcome {
        sql,
        path: path.clone(),
        tables: Vec::new(),
        answer: Ok(Answer::default()),
        warnings: Vec::new(),
        took_ns: 0,
    };
    if subject.is_live || open.as_ref().is_some_and(|open| open.path != path) {
        *open = None;
    }
    let tables = match open {
        Some(open) => &open.tables,
        None => match engine.open(&path) {
            Ok(tables) => &open.insert(Open { path, tables }).tables,
            Err(error) => {
                outcome.answer = Err(error);
                return outcome;
            }
        },
    };
    outcome.tables = tables.list();
    if !outcome.sql.trim().is_empty() {
        *running.lock() = Some(tables.canceller());
        outcome.answer = tables.query(&outcome.sql, MAX_ROWS);
        *running.lock() = None;
        outcome.warnings = tables.take_warnings();
    }
    outcome
}
