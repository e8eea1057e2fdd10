//! How a command ends: done, failed (exit code 1), wrongly used (2), or ended by a signal (128 and its number).

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::out;
use crate::signals;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// Wrong use or bad input, which the user can mend: exit code 2.
    Use(anyhow::Error),
    /// The command that was run ended so, and has said itself what there is to say.
    Command(u8),
    /// Standard output took no more; [`out::failure`] knows why.
    Output,
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Bad input or wrong use, told in one line.
    pub fn wrong_use(message: impl std::fmt::Display) -> Failure {
        Failure::Use(anyhow::anyhow!("{message}"))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Work(error)
    }
}

/// An error with its causes; what an error says of its cause itself is not said again.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.extend([": ", &cause]);
        }
    }
    line
}

/// Prints a failure on one line of stderr and gives its exit code. Results that could not be written are a failure; a reader of them
/// who has left is none.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    let (error, code) = match outcome {
        Ok(()) | Err(Failure::Output) => match out::failure() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => (Some(format!("standard output: {error}")), 1),
            _ => (None, 0),
        },
        Err(Failure::Work(error)) => (Some(one_line(&error)), 1),
        Err(Failure::Use(error)) => (Some(one_line(&error)), 2),
        Err(Failure::Command(code)) => (None, code),
    };
    if let Some(error) = error {
        note!("stepscope: {error}");
    }
    ExitCode::from(signals::exit_code().unwrap_or(code))
}
