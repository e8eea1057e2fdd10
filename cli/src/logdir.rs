//! What the commands on logdirs share: reading one whole, telling its damage, numbers in JSON.

use std::io;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use summaries::{FileState, Logdir, Runs};

use crate::outcome::{Failure, Outcome};

/// Reads everything below `path` and tells on stderr what could not be read. A path without event files is wrong use.
pub fn read(path: &Path) -> Result<Logdir, Failure> {
    let mut logdir = Logdir::open(&[path.to_owned()]).map_err(Failure::wrong_use)?;
    logdir.read_all();
    tell_damage(&logdir.runs());
    if logdir.runs().by_name.is_empty() {
        return Err(Failure::wrong_use(format_args!("{}: no event files (*tfevents*) in or below it", path.display())));
    }
    Ok(logdir)
}

fn tell_damage(runs: &Runs) {
    for problem in &runs.problems {
        eprintln!("warning: {}: {}", problem.path.display(), problem.message);
    }
    for run in runs.by_name.values() {
        run.damage.iter().for_each(|damage| eprintln!("warning: {damage}"));
        let n_more = run.n_damaged.saturating_sub(run.damage.len() as u64);
        if n_more > 0 {
            eprintln!("warning: run {}: {n_more} more damaged places", run.name);
        }
        for file in &run.files {
            if let FileState::Unreadable(reason) = &file.state {
                eprintln!("warning: {}: {reason}", file.path.display());
            }
            if file.n_waiting > 0 {
                eprintln!("warning: {}: the last {} bytes are no whole record", file.path.display(), file.n_waiting);
            }
        }
    }
}

/// What writing came to; a reader that has seen enough (`| head`) is no failure.
pub fn written(result: io::Result<()>) -> Outcome {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("writing the result")?),
    }
}

/// A number; NaN and infinities, which JSON does not have, as strings.
pub fn json_number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}
