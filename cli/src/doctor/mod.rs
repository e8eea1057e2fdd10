//! `stepscope doctor`: what works on this machine, and how to get what does not.

mod checks;

pub use checks::loads;

use serde::Serialize;

use crate::args;
use crate::out;
use crate::outcome::Outcome;

/// The outcome of one check.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Works.
    Ok,
    /// Works in a lesser way, or is not needed here.
    Limited,
    /// Does not work; `remedy` says how to get it.
    Missing,
}

/// One line of the report.
#[derive(Serialize, Debug)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What it is good for.
    pub used_for: &'static str,
    /// How to get it, when it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

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
