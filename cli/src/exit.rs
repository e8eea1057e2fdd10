//! The end of the program: the failure of a command on one line, and the exit code.

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::outcome::{Failure, Outcome};
use crate::{out, signals};

/// An error with its causes on one line, without causes whose text is part of the error's own.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.extend([": ", &cause]);
        }
    }
    line
}

/// Prints a failure on one line of stderr and returns its exit code. Results that could not be written are a failure,
/// unless their reader has left.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    let (error, code) = match outcome {
        Ok(()) | Err(Failure::Output) => match out::failure() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => (Some(format!("standard output: {error}")), 1),
            _ => (None, 0),
        },
        Err(Failure::Work(error)) => (Some(one_line(&error)), 1),
        Err(Failure::Usage(error)) => (Some(one_line(&error)), 2),
        Err(Failure::Command(code)) => (None, code),
    };
    if let Some(error) = error {
        note!("stepscope: {error}");
    }
    ExitCode::from(signals::exit_code().unwrap_or(code))
}
