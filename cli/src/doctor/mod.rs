//! `stepscope doctor`: checks what works on this machine, and says how to get what does not.

mod check;
mod checks;

use crate::args;
use crate::out;
use crate::outcome::Outcome;

use check::State;

/// Runs every check and prints the report. A missing facility is a finding, not a failure.
pub fn run(args: &args::Doctor) -> Outcome {
    let checks = checks::all();
    if args.json {
        out::object(1, serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "checks": checks }));
        return Ok(());
    }
    for check in &checks {
        let mark = match check.state {
            State::Ok => "ok     ",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        say!("{mark}  {:<16} {}", check.name, check.seen);
        if let Some(remedy) = &check.remedy {
            say!("{:27}for {}: {remedy}", "", check.used_for);
        }
    }
    Ok(())
}
