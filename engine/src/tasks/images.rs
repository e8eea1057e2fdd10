//! Recognition of digits: by a perceptron, a convolutional net, an Inception-style net.

use super::{Judge, Task};
use crate::data::{Batches, Digits, enlarged};
use crate::models::{Convnet, Inception, MlpOptions, Network};
use crate::optimizer::Optimizer;
use crate::training::{InputMode, TrainingOptions};
use engine_core::shape::Shape;
use engine_core::tensor::{Tensor, TensorError};

/// Pixels along an edge of the data set's images.
const EDGE: usize = 8;

/// The perceptron of the demo: 64-512-512-10, batches of 128. Goal: 95 % of the test images.
///
/// # Errors
/// There is no memory.
pub fn mlp(digits: Digits, seed: u64) -> Result<Task, TensorError> {
    let network = MlpOptions { seed: seed as i64, ..MlpOptions::default() };
    let training = TrainingOptions {
        optimizer: network.optimizer,
        learning_rate: network.learning_rate,
        seed: seed as i64,
        ..TrainingOptions::default()
    };
    task(Box::new(network), training, digits, &Sizes { steps: 10_000, batch: 128, goal: 0.95, seed })
}

/// A LeNet-style net on digits enlarged to 28x28, batches of 64. Goal: 97.5 % of the test images.
///
/// # Errors
/// There is no memory.
pub fn convnet(digits: &Digits, seed: u64) -> Result<Task, TensorError> {
    let network = Convnet { seed: seed as i64, ..Convnet::default() };
    let training = TrainingOptions {
        optimizer: Optimizer::Momentum { momentum: 0.9 },
        learning_rate: 0.02,
        seed: seed as i64,
        input: InputMode::Queue { capacity: 8 },
        ..TrainingOptions::default()
    };
    let digits = scaled(digits, network.edge)?;
    task(Box::new(network), training, digits, &Sizes { steps: 1_200, batch: 64, goal: 0.975, seed })
}

/// An Inception-style net on digits enlarged to 75x75, four towers with batches of 16. Goal: 90 % of the test images.
///
/// # Errors
/// There is no memory.
pub fn inception(digits: &Digits, seed: u64) -> Result<Task, TensorError> {
    let network = Inception::default();
    let training = TrainingOptions {
        optimizer: Optimizer::RMS_PROP,
        learning_rate: 0.02,
        seed: seed as i64,
        towers: 4,
        input: InputMode::Queue { capacity: 8 },
        ..TrainingOptions::default()
    };
    let digits = scaled(digits, network.edge)?;
    task(Box::new(network), training, digits, &Sizes { steps: 500, batch: 16, goal: 0.90, seed })
}

fn scaled(digits: &Digits, edge: usize) -> Result<Digits, TensorError> {
    Ok(Digits {
        train_x: enlarged(&digits.train_x, EDGE, edge)?,
        train_y: digits.train_y.clone(),
        test_x: enlarged(&digits.test_x, EDGE, edge)?,
        test_y: digits.test_y.clone(),
    })
}

struct Sizes {
    steps: u64,
    batch: usize,
    goal: f64,
    seed: u64,
}

fn task(
    network: Box<dyn Network>,
    training: TrainingOptions,
    digits: Digits,
    sizes: &Sizes,
) -> Result<Task, TensorError> {
    /// Images of a test batch: large ones need memory at every layer.
    const TEST: usize = 512;
    let test_rows: Vec<usize> = (0..digits.test_y.len()).collect();
    let test = test_rows.chunks(TEST).map(|rows| batch(&digits.test_x, &digits.test_y, rows));
    let test = test.collect::<Result<Vec<_>, _>>()?;
    let (x, y) = (digits.train_x, digits.train_y);
    // Whether the tensors can be cut into batches shows here, before any thread depends on it.
    batch(&x, &y, &[0])?;
    let mut batches = Batches::new(y.len(), sizes.batch, sizes.seed);
    let next_batch = move || batch(&x, &y, batches.draw()).unwrap_or_default();
    Ok(Task {
        network,
        training,
        steps: sizes.steps,
        batch_size: sizes.batch,
        next_batch: Box::new(next_batch),
        test,
        judge: Judge::Accuracy { goal: sizes.goal },
    })
}

/// The images and labels of these rows.
fn batch(images: &Tensor, labels: &Tensor, rows: &[usize]) -> Result<Vec<Tensor>, TensorError> {
    let (values, all) = (images.slice::<f32>()?, labels.slice::<i64>()?);
    let n = values.len() / all.len().max(1);
    let x = rows.iter().flat_map(|&row| &values[row * n..(row + 1) * n]).copied().collect();
    let y = rows.iter().map(|&row| all[row]).collect();
    let dims: Vec<usize> = [rows.len()].into_iter().chain(images.dims()[1..].iter().copied()).collect();
    Ok(vec![Tensor::from_vec(Shape::new(&dims), x)?, Tensor::from_vec([rows.len()], y)?])
}
