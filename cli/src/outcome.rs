//! How a command ends: done, failed (exit code 1), or wrongly used (exit code 2).

use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// Wrong use or bad input, which the user can mend: exit code 2.
    Use(anyhow::Error),
    /// The command that was run ended so, and has said itself what there is to say.
    Command(u8),
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

/// Prints a failure on one line of stderr and gives its exit code.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    let (error, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Work(error)) => (error, 1),
        Err(Failure::Use(error)) => (error, 2),
        Err(Failure::Command(code)) => return ExitCode::from(code),
    };
    eprintln!("stepscope: {}", one_line(&error));
    ExitCode::from(code)
}
