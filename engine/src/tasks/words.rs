//! Text to be learned: a language model, and vectors for words.

use super::{Judge, Task};
use crate::data::{Draws, Grammar};
use crate::models::{LanguageModel, SkipGram, Unrolling, VECTORS};
use crate::optimizer::Optimizer;
use crate::training::{InputMode, TrainingOptions};
use engine_core::tensor::{Tensor, TensorError};

/// Seed of the text that models are judged by; training texts have other ones.
const TEST_SEED: u64 = 0x7e57;

/// A language model of two layers of 128 units, 20 words of 32 texts at a time. Goal: a loss of at most 1.06 times the
/// entropy of the text.
///
/// # Errors
/// There is no memory.
pub fn language_model(unrolling: Unrolling, seed: u64) -> Result<Task, TensorError> {
    const TRAIN_WORDS: usize = 20_000;
    const TEST_WORDS: usize = 400;
    let grammar = Grammar::new();
    let network =
        LanguageModel { n_words: grammar.words().len(), units: 128, layers: 2, time: 20, batch: 32, unrolling };
    let (time, n) = (network.time, network.batch);
    let texts = |words: usize, seed: u64| -> Vec<Vec<i32>> {
        (0..n as u64).map(|i| grammar.text(words + 1, seed.wrapping_mul(1_000).wrapping_add(i))).collect()
    };
    let test_texts = texts(TEST_WORDS, TEST_SEED);
    let test = (0..TEST_WORDS / time).map(|i| window(&test_texts, i * time, time)).collect::<Result<Vec<_>, _>>()?;
    let train_texts = texts(TRAIN_WORDS, seed);
    let mut at = 0;
    let next_batch = move || {
        let batch = window(&train_texts, at, time).unwrap_or_default();
        at = (at + time) % (TRAIN_WORDS / time * time);
        batch
    };
    let training = TrainingOptions {
        optimizer: Optimizer::ADAM,
        learning_rate: 0.003,
        seed: seed as i64,
        input: InputMode::Queue { capacity: 8 },
        clip_norm: Some(1.0),
        ..TrainingOptions::default()
    };
    Ok(Task {
        network: Box::new(network),
        training,
        steps: 1_500,
        batch_size: n * time,
        next_batch: Box::new(next_batch),
        test,
        judge: Judge::Entropy { nats: grammar.entropy_per_word(), goal: 1.06 },
    })
}

/// Words `at..at + time` of each text, and the words after each.
fn window(texts: &[Vec<i32>], at: usize, time: usize) -> Result<Vec<Tensor>, TensorError> {
    let part = |from: usize| {
        let words = texts.iter().flat_map(|text| text[from..from + time].iter().copied()).collect();
        Tensor::from_vec([texts.len(), time], words)
    };
    Ok(vec![part(at)?, part(at + 1)?])
}

/// Vectors of 32 numbers for the grammar's words, from 256 pairs of words at a time. Goal: of 90 % of the words, the
/// nearest neighbour is of their kind.
///
/// # Errors
/// There is no memory.
pub fn embeddings(seed: u64) -> Result<Task, TensorError> {
    const PAIRS: usize = 256;
    const NEGATIVES: usize = 16;
    /// How far a neighbour may be.
    const WINDOW: usize = 2;
    let grammar = Grammar::new();
    let network = SkipGram { n_words: grammar.words().len(), size: 32, negatives: NEGATIVES };
    let text = grammar.text(200_000, seed);
    let mut draws = Draws::new(seed);
    let pairs = move |draws: &mut Draws| -> Result<Vec<Tensor>, TensorError> {
        let (mut words, mut neighbours) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
        while words.len() < PAIRS {
            let at = WINDOW + draws.below(text.len() - 2 * WINDOW);
            let away = 1 + draws.below(WINDOW);
            let other = if draws.below(2) == 0 { at - away } else { at + away };
            words.push(text[at]);
            neighbours.push(text[other]);
        }
        // Drawn from the text itself: as often as they occur.
        let negatives = (0..NEGATIVES).map(|_| text[draws.below(text.len())]).collect();
        Ok(vec![
            Tensor::from_vec([PAIRS], words)?,
            Tensor::from_vec([PAIRS], neighbours)?,
            Tensor::from_vec([NEGATIVES], negatives)?,
        ])
    };
    let test = vec![pairs(&mut Draws::new(TEST_SEED))?];
    let training = TrainingOptions {
        optimizer: Optimizer::Adagrad { initial: 0.1 },
        learning_rate: 0.3,
        seed: seed as i64,
        input: InputMode::Queue { capacity: 16 },
        ..TrainingOptions::default()
    };
    Ok(Task {
        network: Box::new(network),
        training,
        steps: 5_000,
        batch_size: PAIRS,
        next_batch: Box::new(move || pairs(&mut draws).unwrap_or_default()),
        test,
        judge: Judge::Neighbours { vectors: VECTORS, kinds: grammar.kinds(), goal: 0.9 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_on_from_batch_to_batch() {
        let mut task = language_model(Unrolling::Unrolled, 1).unwrap();
        let (first, second) = ((task.next_batch)(), (task.next_batch)());
        let row = |t: &Tensor, i: usize| t.slice::<i32>().unwrap()[i * 20..(i + 1) * 20].to_vec();
        for i in 0..32 {
            assert_eq!(row(&first[0], i)[1..], row(&first[1], i)[..19]);
            assert_eq!(row(&first[1], i)[19], row(&second[0], i)[0]);
        }
    }
}
