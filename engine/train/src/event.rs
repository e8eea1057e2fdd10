//! Events of a training run that the user should see.

use std::fmt;
use std::path::Path;

use crate::report::Report;

/// The most waits that the text of a stalled step lists.
const MAX_WAITS: usize = 4;

/// Something that happened while a run trains. Its `Display` is one line for the user.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something was lost or left out, and training goes on.
    Warning(&'a str),
    /// The run continues from a checkpoint.
    Resumed {
        /// The last step that the checkpoint has.
        step: u64,
        /// The checkpoint's prefix.
        checkpoint: &'a Path,
    },
    /// A step makes no progress.
    Stalled {
        /// The training step, if the step belongs to one.
        step: Option<i64>,
        /// The kind of step: `train`, `test`, `init`.
        label: &'a str,
        /// A description of each wait of the step.
        waiting: &'a [String],
    },
    /// The input of a worker's tower could not be started.
    InputFailed {
        /// The worker's task.
        task: &'a str,
        /// The reason.
        error: &'a str,
    },
    /// A process was lost, and the run starts again.
    Restarting {
        /// The process that was lost, and how.
        reason: &'a str,
        /// The number of this restart, from 1.
        restart: u32,
        /// The most restarts that are allowed.
        max: u32,
    },
    /// A report of the training client to its launcher, to be written to standard output as one line.
    Report(&'a Report),
}

/// Receives the events of a run, from any of its threads.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn on_event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn on_event(&self, event: &Event<'_>) {
        self(event);
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Warning(text) => f.write_str(text),
            Event::Resumed { step, checkpoint } => {
                write!(f, "continuing after step {step} from {}", checkpoint.display())
            }
            Event::Stalled { step, label, waiting } => {
                let step = step.map_or(String::new(), |step| format!(" {step}"));
                let mut listed = waiting.iter().take(MAX_WAITS).map(String::as_str).collect::<Vec<_>>().join("; ");
                if waiting.len() > MAX_WAITS {
                    listed += &format!("; and {} more", waiting.len() - MAX_WAITS);
                }
                if listed.is_empty() {
                    listed = "an unknown event".to_owned();
                }
                write!(f, "step{step} ({label}) makes no progress: it waits for {listed}")
            }
            Event::InputFailed { task, error } => write!(f, "{task}: filling the input queue: {error}"),
            Event::Restarting { reason, restart, max } => write!(f, "{reason}; restart {restart} of at most {max}"),
            Event::Report(report) => report.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_step_names_what_it_waits_for() {
        let waiting: Vec<String> = (0..6).map(|i| format!("node n{i} (Recv)")).collect();
        assert_eq!(
            Event::Stalled { step: Some(7), label: "train", waiting: &waiting }.to_string(),
            "step 7 (train) makes no progress: it waits for node n0 (Recv); node n1 (Recv); node n2 (Recv); node n3 (Recv); and 2 more"
        );
        let unknown = Event::Stalled { step: None, label: "init", waiting: &[] }.to_string();
        assert_eq!(unknown, "step (init) makes no progress: it waits for an unknown event");
    }

    #[test]
    fn every_event_is_one_line() {
        let checkpoint = Path::new("ckpt/model-5");
        assert_eq!(Event::Resumed { step: 5, checkpoint }.to_string(), "continuing after step 5 from ckpt/model-5");
        let restart = Event::Restarting { reason: "task 1 was lost", restart: 2, max: 10 };
        assert_eq!(restart.to_string(), "task 1 was lost; restart 2 of at most 10");
        let failed = Event::InputFailed { task: "/job:worker/task:0", error: "no data" };
        assert_eq!(failed.to_string(), "/job:worker/task:0: filling the input queue: no data");
    }
}
