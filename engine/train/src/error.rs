//! The error of training.

use std::fmt::Display;

/// Why training failed.
#[derive(Debug)]
pub enum TrainError {
    /// Wrong use or bad input, which the user can correct.
    Usage(anyhow::Error),
    /// The work failed.
    Work(anyhow::Error),
    /// The training client ended with this exit code, and has reported the reason.
    Client(u8),
}

/// A result of training.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    /// Wrong use or bad input, in one line.
    pub fn wrong_use(message: impl Display) -> TrainError {
        TrainError::Usage(anyhow::anyhow!("{message}"))
    }
}

impl From<anyhow::Error> for TrainError {
    fn from(error: anyhow::Error) -> TrainError {
        TrainError::Work(error)
    }
}
