//! What training comes to, and how it gets from the process that trains to the one that started it.

use engine::tasks::Quality;
use serde_json::{Value, json};

/// What a training loop knows of itself when it ends.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The step that it came to, which is fewer than asked for when the run was stopped.
    pub steps: u64,
    /// Steps that this process did: it may have continued from a checkpoint.
    pub n_done: u64,
    /// Examples that these saw.
    pub examples: u64,
    /// Whether somebody stopped it.
    pub stopped: bool,
    /// Whether it continued from a checkpoint.
    pub continued: bool,
    /// Loss over the last batch; none where there was no step.
    pub final_loss: f32,
    /// What the test batches say.
    pub tested: Tested,
    /// Wall time of the training loop, nanoseconds.
    pub wall_ns: i64,
    /// CPU time of the process meanwhile, nanoseconds.
    pub cpu_ns: i64,
    /// What was lost on the way to disk, in words.
    pub warnings: Vec<String>,
}

/// What the test batches say.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The mean loss.
    pub loss: f64,
    /// The share that is classified rightly, where the model classifies.
    pub accuracy: Option<f64>,
    /// The quality that the task is judged by.
    pub quality: Quality,
}

impl Learned {
    /// As one JSON value. What is no number becomes null.
    pub fn to_json(&self) -> Value {
        let (tested, quality) = (&self.tested, &self.tested.quality);
        json!({
            "steps": self.steps, "n_done": self.n_done, "examples": self.examples,
            "stopped": self.stopped, "continued": self.continued, "final_loss": self.final_loss,
            "loss": tested.loss, "accuracy": tested.accuracy, "wall_ns": self.wall_ns, "cpu_ns": self.cpu_ns,
            "quality": {"name": quality.name, "value": quality.value, "goal": quality.goal, "is_limit": quality.is_limit},
            "warnings": self.warnings,
        })
    }

    /// What [`Learned::to_json`] gave; `None` where the value is nothing of the kind.
    pub fn from_json(value: &Value) -> Option<Learned> {
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let quality = value.get("quality")?;
        let warnings = value["warnings"].as_array()?.iter().map(|text| Some(text.as_str()?.to_owned()));
        Some(Learned {
            steps: value["steps"].as_u64()?,
            n_done: value["n_done"].as_u64()?,
            examples: value["examples"].as_u64()?,
            stopped: value["stopped"].as_bool()?,
            continued: value["continued"].as_bool()?,
            final_loss: number(&value["final_loss"]) as f32,
            tested: Tested {
                loss: number(&value["loss"]),
                accuracy: value["accuracy"].as_f64(),
                quality: Quality {
                    name: quality["name"].as_str()?.to_owned().into(),
                    value: number(&quality["value"]),
                    goal: number(&quality["goal"]),
                    is_limit: quality["is_limit"].as_bool()?,
                },
            },
            wall_ns: value["wall_ns"].as_i64()?,
            cpu_ns: value["cpu_ns"].as_i64()?,
            warnings: warnings.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_over_as_it_was() {
        let quality = Quality { name: "test accuracy".into(), value: 0.9, goal: 0.95, is_limit: false };
        let learned = Learned {
            steps: 7,
            n_done: 3,
            examples: 384,
            stopped: true,
            continued: true,
            final_loss: 0.3,
            tested: Tested { loss: 0.1 + 0.2, accuracy: None, quality },
            wall_ns: 1 << 60,
            cpu_ns: 2,
            warnings: vec!["w".into()],
        };
        let text = learned.to_json().to_string();
        let came = Learned::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(format!("{came:?}"), format!("{learned:?}"));
        let nothing = Learned { final_loss: f32::NAN, ..learned };
        assert!(Learned::from_json(&nothing.to_json()).unwrap().final_loss.is_nan());
        assert!(Learned::from_json(&json!({"steps": 1})).is_none());
    }
}
