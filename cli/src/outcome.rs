//! The failures of commands, and their exit codes.

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// Wrong use or bad input, which the user can correct: exit code 2.
    Usage(anyhow::Error),
    /// The command that was run ended with this exit code, and has reported the reason.
    Command(u8),
    /// Writing to standard output failed; `out::failure` has the reason.
    Output,
}

/// The result of a command.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Bad input or wrong use, in one line.
    pub fn wrong_use(message: impl std::fmt::Display) -> Failure {
        Failure::Usage(anyhow::anyhow!("{message}"))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Work(error)
    }
}

impl From<train::TrainError> for Failure {
    fn from(error: train::TrainError) -> Failure {
        match error {
            train::TrainError::Usage(error) => Failure::Usage(error),
            train::TrainError::Work(error) => Failure::Work(error),
            train::TrainError::Client(code) => Failure::Command(code),
        }
    }
}

impl From<gather::SendError> for Failure {
    fn from(error: gather::SendError) -> Failure {
        match error {
            gather::SendError::Address(_) | gather::SendError::InUse(_) => Failure::wrong_use(error),
            _ => Failure::Work(error.into()),
        }
    }
}
