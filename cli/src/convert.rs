//! `stepscope convert`: writes other tools' logs as event files.

use serde_json::json;
use summaries::{ConvertError, ConvertedRun};

use crate::args;
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::progress;

/// Converts the logs below each path.
pub fn run(args: &args::Convert) -> Outcome {
    for path in &args.paths {
        if !path.exists() {
            return Err(Failure::wrong_use(format_args!("{}: no such file or folder", path.display())));
        }
    }
    for path in &args.paths {
        let show = |n_done: usize, n_runs: usize| progress::set_share(n_done as f64 / n_runs.max(1) as f64);
        let (runs, problems) = summaries::convert(path, &args.out, show).map_err(|error| match error {
            ConvertError::Exists(_) | ConvertError::NoLog(_) => Failure::wrong_use(error),
            ConvertError::File { .. } => Failure::Work(error.into()),
        })?;
        for problem in &problems {
            note!("warning: {}: {}", problem.path.display(), problem.message);
        }
        for run in &runs {
            run.damage.iter().for_each(|damage| note!("warning: {damage}"));
            print(run, args.json);
        }
    }
    Ok(())
}

fn print(run: &ConvertedRun, is_json: bool) {
    if is_json {
        let file = run.file.as_ref().map(|file| file.display().to_string());
        out::object(1, json!({"run": run.run, "file": file, "values": run.n_values, "damaged": run.damage.len()}));
        return;
    }
    match &run.file {
        Some(file) => say!("{} ({} values)", file.display(), text::count(run.n_values)),
        None => note!("warning: {}: no values logged", run.run),
    }
}
