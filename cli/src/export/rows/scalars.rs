//! The scalar points of a logdir, in the order of runs, tags and arrival; a followed logdir adds its new points in the
//! same order.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use regex::Regex;
use serde_json::Value;
use summaries::{Logdir, Run, Runs, ScalarSeries, Series};

use super::source::RowSource;
use crate::args::Export;
use crate::logdir::{self, json_number};
use crate::outcome::Failure;
use crate::source::Source;

/// The chosen series of a logdir.
pub struct Scalars {
    logdir: Logdir,
    source: Source,
    is_followed: bool,
    chosen: SelectedTags,
    /// The number of points that were written, by run and tag.
    n_written: HashMap<(String, String), usize>,
}

/// The choice of series.
pub struct SelectedTags {
    run: Option<Regex>,
    tag: Option<Regex>,
}

impl SelectedTags {
    /// The choice that the options make.
    ///
    /// # Errors
    /// `Failure::Usage` when a pattern is no regular expression.
    pub fn from_args(args: &Export) -> Result<SelectedTags, Failure> {
        let (run, tag) = (args.run.as_deref(), args.tag.as_deref());
        Ok(SelectedTags { run: logdir::pattern("--run", run)?, tag: logdir::pattern("--tag", tag)? })
    }

    /// Run, tag and points of each chosen series.
    pub fn series<'a>(&'a self, runs: &'a Runs) -> impl Iterator<Item = (&'a str, &'a str, &'a ScalarSeries)> {
        let matches = |pattern: &Option<Regex>, name: &str| pattern.as_ref().is_none_or(|p| p.is_match(name));
        let runs = runs.by_name.iter().filter(move |(name, _)| matches(&self.run, name));
        let tags = runs.flat_map(|(run, data)| data.series.iter().map(move |(tag, series)| (run, tag, series)));
        tags.filter_map(move |(run, tag, series)| match series {
            Series::Scalar(scalars) if matches(&self.tag, tag) => Some((run.as_str(), tag.as_str(), &**scalars)),
            _ => None,
        })
    }
}

impl Scalars {
    /// Opens a folder, event file or bucket.
    ///
    /// # Errors
    /// `Failure::Usage` when a pattern is no regular expression, or there is no logdir.
    pub fn open(path: &Path, args: &Export) -> Result<Scalars, Failure> {
        let chosen = SelectedTags::from_args(args)?;
        if !args.follow {
            let logdir::CompleteLogdir { logdir, source } = logdir::read(path)?;
            return Ok(Scalars { logdir, source, is_followed: false, chosen, n_written: HashMap::new() });
        }
        let source = Source::follow(path)?;
        logdir::refuse_other_files(path)?;
        let logdir = Logdir::open(&[source.path().to_owned()]).map_err(Failure::wrong_use)?;
        Ok(Scalars { logdir, source, is_followed: true, chosen, n_written: HashMap::new() })
    }
}

impl RowSource for Scalars {
    fn columns(&self) -> &'static [&'static str] {
        &["run", "tag", "step", "wall_time", "value"]
    }

    fn read(&mut self) -> Result<bool, Failure> {
        Ok(self.logdir.poll().has_more)
    }

    fn take_rows(&mut self, row: &mut dyn FnMut(&[Value]) -> io::Result<()>) -> io::Result<()> {
        for (run, tag, scalars) in self.chosen.series(&self.logdir.runs()) {
            let n_written = self.n_written.entry((run.to_owned(), tag.to_owned())).or_default();
            for point in (*n_written..scalars.len()).map(|row| scalars.point(row)) {
                let (wall, value) = (json_number(point.wall), json_number(point.value));
                row(&[run.into(), tag.into(), point.step.into(), wall, value])?;
            }
            *n_written = scalars.len();
        }
        Ok(())
    }

    /// Known for run folders only: other writers of event files do not report their end.
    fn is_over(&self) -> bool {
        let root = self.source.path();
        let is_over = |run: &Run| {
            let folders = run.path.ancestors().take_while(|folder| folder.starts_with(root));
            folders.filter_map(train::is_over).next().unwrap_or(false)
        };
        let runs = self.logdir.runs();
        !runs.by_name.is_empty() && runs.by_name.values().all(is_over)
    }

    fn warn(&self) {
        // Without `--follow` reading has reported the damage.
        if self.is_followed {
            logdir::report_damage(&self.logdir.runs(), &self.source);
        }
    }
}
