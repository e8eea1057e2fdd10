//! A check and its result.

use serde::Serialize;

/// The outcome of one check.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Works.
    Ok,
    /// Works with limits, or is not needed here.
    Limited,
    /// Does not work; `remedy` says what to do.
    Missing,
}

/// One line of the report.
#[derive(Serialize, Debug)]
pub struct Check {
    /// The subject of the check.
    pub name: &'static str,
    /// The state of the subject.
    pub state: State,
    /// The finding.
    pub seen: String,
    /// The purpose of the subject.
    pub used_for: &'static str,
    /// The remedy where the subject does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    /// Makes a check from its result: a finding, or a finding and a remedy where the subject does not work.
    pub fn from_result(name: &'static str, used_for: &'static str, found: Result<String, (String, String)>) -> Check {
        match found {
            Ok(seen) => Check { name, state: State::Ok, seen, used_for, remedy: None },
            Err((seen, remedy)) => Check { name, state: State::Missing, seen, used_for, remedy: Some(remedy) },
        }
    }
}
