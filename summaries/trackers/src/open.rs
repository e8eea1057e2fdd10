//! Opens the logs.

use crate::{
    csv,
    json_lines::JsonLines,
    log::{Log, LogKind},
    mlflow,
    reader::Reader,
    trackio, trainer_state, wandb,
};

impl Log {
    /// Opens the log. Reads nothing yet.
    pub fn open(&self) -> Box<dyn Reader> {
        match self.kind {
            LogKind::Wandb => wandb::open(&self.path),
            LogKind::Trackio => Box::new(trackio::RunRows::new(&self.path, &self.id)),
            LogKind::MlflowFolder => Box::new(mlflow::run_folder::RunFolder::new(&self.path)),
            LogKind::MlflowDatabase => Box::new(mlflow::database::RunRows::new(&self.path, &self.id)),
            LogKind::Csv => Box::new(csv::Table::new(&self.path)),
            LogKind::JsonLines => Box::new(JsonLines::new(&self.path)),
            LogKind::TrainerState => Box::new(trainer_state::TrainerStates::new(&self.path)),
        }
    }
}
