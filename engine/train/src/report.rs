//! The reports of a launcher's training client.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::result::TrainingResult;

/// A report of the client. Its `Display` is one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// The client is alive.
    Alive {
        /// The number of steps that are done.
        step: u64,
    },
    /// A task was lost, and with it the run.
    Lost {
        /// The task that was lost, and how.
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
