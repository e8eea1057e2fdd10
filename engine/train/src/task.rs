//! Models by name, and the tasks that train them.

use std::path::PathBuf;
use std::str::FromStr;

use engine::models::Unrolling;
use engine::tasks::{self, Task};

use crate::error::{Result, TrainError};

/// A model that can be trained by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Multi-layer perceptron.
    Mlp,
    /// Convolutional net.
    Convnet,
    /// Inception-style net.
    Inception,
    /// Unrolled LSTM.
    Lstm,
    /// LSTM as a loop.
    LstmWhile,
    /// Word vectors.
    Embeddings,
}

impl Model {
    /// Every model.
    pub const ALL: [Model; 6] =
        [Model::Mlp, Model::Convnet, Model::Inception, Model::Lstm, Model::LstmWhile, Model::Embeddings];

    /// The model's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Mlp => "mlp",
            Model::Convnet => "convnet",
            Model::Inception => "inception",
            Model::Lstm => "lstm",
            Model::LstmWhile => "lstm-while",
            Model::Embeddings => "embeddings",
        }
    }

    /// One line about the model and its goal.
    pub fn description(self) -> &'static str {
        match self {
            Model::Mlp => "Multi-layer perceptron 64-512-512-10 on 8x8 digits; goal: 95 % of the test images",
            Model::Convnet => "LeNet-style convolutional net on digits enlarged to 28x28; goal: 97.5 %",
            Model::Inception => {
                "Inception-style net of 44,000 nodes on digits enlarged to 75x75, on four devices; goal: 90 %"
            }
            Model::Lstm => {
                "Language model of two LSTM layers, unrolled; goal: a loss of at most 1.06 times the text's entropy"
            }
            Model::LstmWhile => "The same, as a loop",
            Model::Embeddings => "Word vectors; goal: the nearest neighbour of 90 % of the words is of the same kind",
        }
    }

    /// Whether the model learns from images of digits.
    pub fn learns_digits(self) -> bool {
        matches!(self, Model::Mlp | Model::Convnet | Model::Inception)
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Model, String> {
        Model::ALL.into_iter().find(|model| model.name() == name).ok_or_else(|| format!("no model {name}"))
    }
}

/// A model with its data.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The model.
    pub model: Model,
    /// A CSV file of digits, instead of the bundled ones.
    pub data: Option<PathBuf>,
    /// Seed of the initial weights and of the batches.
    pub seed: u64,
}

impl TaskSpec {
    /// Loads the data and makes the task.
    ///
    /// # Errors
    /// `TrainError::Usage` when the file cannot be read, or the model takes none.
    pub fn load(&self) -> Result<Task> {
        let (model, seed) = (self.model, self.seed);
        let digits = || match &self.data {
            Some(path) => engine::data::digits_from(path).map_err(TrainError::wrong_use),
            None => Ok(engine::data::digits()),
        };
        if self.data.is_some() && !model.learns_digits() {
            let name = model.name();
            return Err(TrainError::wrong_use(format_args!("{name} generates its own text; --data is for digits")));
        }
        let task = match model {
            Model::Mlp => tasks::mlp(digits()?, seed),
            Model::Convnet => tasks::convnet(&digits()?, seed),
            Model::Inception => tasks::inception(&digits()?, seed),
            Model::Lstm => tasks::language_model(Unrolling::Unrolled, seed),
            Model::LstmWhile => tasks::language_model(Unrolling::While, seed),
            Model::Embeddings => tasks::embeddings(seed),
        };
        task.map_err(|error| TrainError::Work(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_found_by_its_name() {
        for model in Model::ALL {
            assert_eq!(model.name().parse(), Ok(model));
        }
        assert!("MLP".parse::<Model>().is_err());
    }

    #[test]
    fn text_models_take_no_digits() {
        let spec = |model| TaskSpec { model, data: Some("/nonexistent.csv".into()), seed: 1 };
        for model in [Model::Lstm, Model::LstmWhile, Model::Embeddings] {
            let Err(TrainError::Usage(error)) = spec(model).load() else { panic!("{model:?} took digits") };
            assert!(error.to_string().contains("--data is for digits"), "{error}");
        }
        assert!(matches!(spec(Model::Mlp).load(), Err(TrainError::Usage(_))), "there is no such file");
    }
}
