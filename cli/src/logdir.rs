//! Common parts of the commands on logdirs: reads one completely, reports its damage, writes numbers in JSON.

use std::path::Path;

use formats::FileKind;
use regex::Regex;
use serde_json::Value;
use summaries::derive::group::GroupBy;
use summaries::{FileState, Logdir, Runs};

use crate::args::Grouping;
use crate::outcome::Failure;
use crate::progress;
use crate::source::Source;

/// A logdir that was read completely.
pub struct CompleteLogdir {
    /// The logdir.
    pub logdir: Logdir,
    /// Its source, which retains the copy of a bucket as long as values are read from it.
    pub source: Source,
}

/// Reads everything below `path` and reports damage on stderr. A path without event files is wrong use.
pub fn read(path: &Path) -> Result<CompleteLogdir, Failure> {
    progress::set_activity("reading");
    let source = Source::read(path)?;
    refuse_other_files(path)?;
    let mut logdir = Logdir::open(&[source.path().to_owned()]).map_err(Failure::wrong_use)?;
    logdir.read_all();
    report_damage(&logdir.runs(), &source);
    if logdir.runs().by_name.is_empty() {
        return Err(Failure::wrong_use(format_args!(
            "{}: no event files (*tfevents*) or logs of other tools in or below it",
            path.display()
        )));
    }
    Ok(CompleteLogdir { logdir, source })
}

/// Refuses a single file that is no event file by its name or its content.
///
/// # Errors
/// `Failure::Usage` for such a file.
pub fn refuse_other_files(path: &Path) -> Result<(), Failure> {
    let has_name = path.file_name().is_some_and(|name| name.to_string_lossy().contains("tfevents"));
    match formats::sniff(path) {
        Ok(FileKind::Unknown(what)) if path.is_file() && !has_name => {
            Err(Failure::wrong_use(format_args!("{}: no event file ({what})", path.display())))
        }
        _ => Ok(()),
    }
}

/// Reports damage on stderr.
pub fn report_damage(runs: &Runs, source: &Source) {
    let warn = |message: String| note!("warning: {}", source.with_url(message));
    for problem in &runs.problems {
        warn(format!("{}: {}", problem.path.display(), problem.message));
    }
    for run in runs.by_name.values() {
        run.damage.iter().for_each(|damage| warn(damage.to_string()));
        let n_more = run.n_damaged.saturating_sub(run.damage.len() as u64);
        if n_more > 0 {
            warn(format!("run {}: {n_more} more damaged places", run.name));
        }
        for file in &run.files {
            if let FileState::Unreadable(reason) = &file.state {
                warn(format!("{}: {reason}", file.path.display()));
            }
            if file.n_waiting > 0 {
                warn(format!("{}: the last {} bytes are not a complete record", file.path.display(), file.n_waiting));
            }
        }
    }
}

/// The criterion by which the options group runs; `None` without grouping.
///
/// # Errors
/// `Failure::Usage` when the pattern is no regular expression.
pub fn group_by(grouping: &Grouping) -> Result<Option<GroupBy>, Failure> {
    if let Some(hparam) = &grouping.group_hparam {
        return Ok(Some(GroupBy::HParam(hparam.clone())));
    }
    Ok(pattern("--group", grouping.group.as_deref())?.map(GroupBy::Name))
}

/// The regular expression of an option.
///
/// # Errors
/// `Failure::Usage` when the text is no regular expression.
pub fn pattern(option: &str, text: Option<&str>) -> Result<Option<Regex>, Failure> {
    let refused = |text| Failure::wrong_use(format_args!("{option}: '{text}' is no regular expression"));
    text.map(|text| Regex::new(text).map_err(|_| refused(text))).transpose()
}

/// A number in JSON; NaN and infinities, which JSON does not have, are strings.
pub fn json_number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}
