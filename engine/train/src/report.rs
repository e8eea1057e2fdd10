//! The reports of a launcher's training client.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::result::TrainingResult;

/// A report of the client. Its `Display` is the line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// It is alive and has done so many steps.
    Alive {
        /// The last step.
        step: u64,
    },
    /// A task was lost, and with it the run.
    Lost {
        /// Which one, and how.
        reason: String,
    },
    /// The training is over.
    Result(Box<TrainingResult>),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
