//! How a network is trained.

use super::input::InputMode;
use crate::optimizer::Optimizer;

/// How several towers share their variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parallelism {
    /// Gradients are averaged over all towers.
    #[default]
    Synchronous,
    /// The same, with variables at each tower.
    AllReduce,
    /// Gradients are averaged over those towers that have theirs first: all but `spare`. At least one counts.
    Backup {
        /// How many towers no step waits for.
        spare: usize,
    },
    /// Each tower applies its own.
    Asynchronous,
}

/// How a network is trained.
#[derive(Debug, Clone)]
pub struct TrainingOptions {
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Its rate.
    pub learning_rate: f32,
    /// Seed of the initial weights.
    pub seed: i64,
    /// Towers, one for each CPU device from the first on.
    pub towers: usize,
    /// Where the towers are instead, by name, as `/job:worker/task:1/device:CPU:0`; the variables are with the first one.
    pub devices: Vec<String>,
    /// How they work together.
    pub parallelism: Parallelism,
    /// Where batches come from.
    pub input: InputMode,
    /// Largest norm of all gradients together; longer ones are shortened to it.
    pub clip_norm: Option<f32>,
}

impl Default for TrainingOptions {
    fn default() -> TrainingOptions {
        TrainingOptions {
            optimizer: Optimizer::Momentum { momentum: 0.9 },
            learning_rate: 0.02,
            seed: 1,
            towers: 1,
            devices: Vec::new(),
            parallelism: Parallelism::Synchronous,
            input: InputMode::Fed,
            clip_norm: None,
        }
    }
}
