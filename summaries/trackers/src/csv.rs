//! Tables of comma-separated values: Lightning's `metrics.csv` (lightning's fabric/loggers/csv_logs.py), and any other with
//! a header.

mod columns;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use self::columns::Columns;
use crate::{
    entry::{Entry, Value},
    file,
    progress::Progress,
    reader::{Batch, Problem, Reader, keep_entries},
    tail::{Line, Tail, first_line},
    yaml,
};

/// The longest header that is read.
const MAX_HEADER: u64 = 1 << 20;

/// Follows a table, and the hyperparameters next to it.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    tail: Tail,
    header: String,
    columns: Columns,
    /// Lightning writes the whole table anew when a column is added.
    progress: Progress,
    params: PathBuf,
    params_time: Option<SystemTime>,
}

impl Table {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            tail: Tail::new(path),
            header: String::new(),
            columns: Columns::default(),
            progress: Progress::default(),
            params: path.with_file_name("hparams.yaml"),
            params_time: None,
        }
    }

    /// Whether the line is a header with a column of steps.
    pub fn is_header(line: &str) -> bool {
        Columns::parse(line).is_log()
    }

    /// Whether the first row of a file with a header has a step.
    pub fn has_step(path: &Path) -> bool {
        let lines = Tail::new(path).read(MAX_HEADER, &mut Batch::default()).unwrap_or_default().lines;
        let [header, row, ..] = &*lines else { return false };
        Columns::parse(&header.text).row(&row.text).is_some_and(|row| row.step().is_some())
    }

    /// Hands out the hyperparameters when their file has changed.
    fn read_params(&mut self, batch: &mut Batch) {
        let Ok(metadata) = fs::metadata(&self.params) else { return };
        let time = metadata.modified().ok();
        if time == self.params_time {
            return;
        }
        match yaml::read_params(&self.params) {
            Ok(params) if params.is_empty() => {}
            Ok(params) => {
                let wall = file::seconds(time);
                batch.n_bytes += metadata.len();
                batch.entries.push(Entry { tag: String::new(), step: 0, wall, value: Value::Params(params) });
            }
            // It may be half written.
            Err(_) if !file::is_settled(&metadata) => return,
            Err(_) => {
                let problem = Problem { what: "an hparams.yaml that is no YAML", bytes: 0..metadata.len() };
                batch.problems.push(problem);
            }
        }
        self.params_time = time;
    }

    fn row(&mut self, line: &Line, modified: f64, batch: &mut Batch) {
        let Some(row) = self.columns.row(&line.text) else {
            let what = "a row with another number of cells than its header";
            batch.problems.push(Problem { what, bytes: line.bytes.clone() });
            return;
        };
        let Some(index) = self.progress.next(|| row.content()) else { return };
        let step = row.step().unwrap_or(index as i64);
        let wall = row.wall().unwrap_or(modified);
        for (name, value) in row.scalars() {
            batch.entries.push(Entry { tag: name.to_owned(), step, wall, value: Value::Scalar(value) });
        }
    }

    fn read_rows(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        let Some(header) = first_line(&self.path, MAX_HEADER)? else { return Ok(()) };
        if header != self.header {
            self.tail.restart();
            self.progress.restart();
            self.columns = Columns::parse(&header);
            self.header = header;
        }
        let read = self.tail.read(allowance, batch)?;
        if read.is_restarted {
            self.progress.restart();
        }
        if first_line(&self.path, MAX_HEADER)?.as_ref() != Some(&self.header) {
            // Written anew meanwhile: the next call begins again.
            self.header.clear();
            batch.has_more = false;
            return Ok(());
        }
        for line in read.lines.iter().filter(|line| line.bytes.start > 0 && !line.text.trim().is_empty()) {
            self.row(line, read.modified, batch);
        }
        Ok(())
    }
}

impl Reader for Table {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        self.read_params(batch);
        let result = self.read_rows(allowance, batch);
        keep_entries(result, batch)
    }
}
