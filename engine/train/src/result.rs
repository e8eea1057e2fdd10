//! The result of training, and how it gets from the process that trains to the one that started it.

use std::borrow::Cow;

use engine::tasks::Quality;
use serde::{Deserialize, Deserializer, Serialize};

/// The state of a training loop at its end. In JSON, NaN is null.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingResult {
    /// The last step, lower than the number asked for when the run was stopped.
    pub steps: u64,
    /// Steps that this process did, without those of the checkpoint that it continued from.
    pub n_done: u64,
    /// Examples in these steps.
    pub examples: u64,
    /// Whether the run was stopped.
    pub stopped: bool,
    /// Whether the run continued from a checkpoint.
    pub continued: bool,
    /// Loss over the last batch; NaN where there was no step.
    #[serde(deserialize_with = "f32_or_nan")]
    pub final_loss: f32,
    /// The evaluation on the test batches.
    pub test: TestResult,
    /// Wall time of the training loop, nanoseconds.
    pub wall_ns: i64,
    /// CPU time of the process during the loop, nanoseconds.
    pub cpu_ns: i64,
    /// Warnings for the user, such as summaries that could not be written.
    pub warnings: Vec<String>,
}

/// An evaluation on the test batches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TestResult {
    /// The mean loss.
    #[serde(deserialize_with = "f64_or_nan")]
    pub loss: f64,
    /// The share of examples that are classified correctly; `None` where the model does not classify.
    pub accuracy: Option<f64>,
    /// The quality that the task is judged by.
    #[serde(with = "QualityFields")]
    pub quality: Quality,
}

/// The fields of [`Quality`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Quality")]
struct QualityFields {
    name: Cow<'static, str>,
    #[serde(deserialize_with = "f64_or_nan")]
    value: f64,
    #[serde(deserialize_with = "f64_or_nan")]
    goal: f64,
    is_limit: bool,
}

fn f64_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn f32_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f32::NAN))
}

impl TrainingResult {
    /// Steps that were done before this process began.
    pub fn restored_steps(&self) -> u64 {
        self.steps - self.n_done
    }

    /// Steps per second of the training loop.
    pub fn steps_per_second(&self) -> f64 {
        self.n_done as f64 / self.seconds()
    }

    /// Examples per second of the training loop.
    pub fn examples_per_second(&self) -> f64 {
        self.examples as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.wall_ns.max(1) as f64 / 1e9
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn result() -> TrainingResult {
        let quality = Quality { name: "test accuracy".into(), value: 0.9, goal: 0.95, is_limit: false };
        TrainingResult {
            steps: 7,
            n_done: 3,
            examples: 384,
            stopped: true,
            continued: true,
            final_loss: 0.3,
            test: TestResult { loss: 0.1 + 0.2, accuracy: None, quality },
            wall_ns: 1_500_000_000,
            cpu_ns: 2_000,
            warnings: vec!["w".into()],
        }
    }

    #[test]
    fn a_result_survives_json() {
        let result = result();
        let text = serde_json::to_string(&result).unwrap();
        let back: TrainingResult = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{back:?}"), format!("{result:?}"));
        assert!(serde_json::from_str::<TrainingResult>("{\"steps\": 1}").is_err());
    }

    #[test]
    fn what_is_no_number_is_null() {
        let mut result = result();
        (result.final_loss, result.test.loss, result.test.quality.value) = (f32::NAN, f64::NAN, f64::NAN);
        let text = serde_json::to_string(&result).unwrap();
        assert!(text.contains("\"final_loss\":null"), "{text}");
        let back: TrainingResult = serde_json::from_str(&text).unwrap();
        assert!(back.final_loss.is_nan() && back.test.loss.is_nan() && back.test.quality.value.is_nan());
    }

    #[test]
    fn speed_counts_own_steps_only() {
        let result = result();
        assert_eq!((result.restored_steps(), result.steps_per_second(), result.examples_per_second()), (4, 2.0, 256.0));
        let instant = TrainingResult { wall_ns: 0, ..result };
        assert!(instant.steps_per_second().is_finite());
    }
}
