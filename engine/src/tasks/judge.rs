//! What counts as learned, and how near a network came to it.

use std::borrow::Cow;

use engine_core::tensor::Tensor;

/// What counts as learned.
#[derive(Debug, Clone)]
pub enum Judge {
    /// The share of test examples that are classified rightly.
    Accuracy {
        /// At least this, 0 to 1.
        goal: f64,
    },
    /// The test loss, which no model can bring below the entropy of the text.
    Entropy {
        /// The entropy, nats per word.
        nats: f64,
        /// At most this many times the entropy.
        goal: f64,
    },
    /// The share of words whose nearest neighbour is of their kind.
    Neighbours {
        /// The variable with a vector per word.
        vectors: &'static str,
        /// Words of a kind.
        kinds: Vec<Vec<i32>>,
        /// At least this, 0 to 1.
        goal: f64,
    },
}

/// A measured quality and its goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// What it is: `test accuracy`.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: f64,
    /// What was stated beforehand.
    pub goal: f64,
    /// Whether the goal is the most that the value may be, not the least.
    pub is_limit: bool,
}

impl Quality {
    /// Whether the goal is reached.
    pub fn is_reached(&self) -> bool {
        if self.is_limit { self.value <= self.goal } else { self.value >= self.goal }
    }
}

impl Judge {
    /// The quality that a test shows: its mean loss, its accuracy where there is one, and the value of the variable that
    /// [`Judge::wants`].
    pub fn quality(&self, loss: f64, accuracy: Option<f64>, variable: Option<&Tensor>) -> Quality {
        match self {
            Judge::Accuracy { goal } => {
                let value = accuracy.unwrap_or(f64::NAN);
                Quality { name: "test accuracy".into(), value, goal: *goal, is_limit: false }
            }
            Judge::Entropy { nats, goal } => {
                Quality { name: "test loss / entropy".into(), value: loss / nats, goal: *goal, is_limit: true }
            }
            Judge::Neighbours { kinds, goal, .. } => {
                let value = variable.map_or(f64::NAN, |vectors| neighbours_of_kind(vectors, kinds));
                Quality { name: "neighbours of one kind".into(), value, goal: *goal, is_limit: false }
            }
        }
    }

    /// The variable whose value the judgement needs.
    pub fn wants(&self) -> Option<&'static str> {
        match self {
            Judge::Neighbours { vectors, .. } => Some(vectors),
            _ => None,
        }
    }
}

/// The share of the words of `kinds` whose nearest neighbour, by the angle between vectors, is of their kind.
fn neighbours_of_kind(vectors: &Tensor, kinds: &[Vec<i32>]) -> f64 {
    let (Ok(values), [_, size]) = (vectors.slice::<f32>(), vectors.dims()) else { return f64::NAN };
    let vector = |word: i32| &values[word as usize * size..(word as usize + 1) * size];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let cosine = |a: i32, b: i32| {
        let (a, b) = (vector(a), vector(b));
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
    };
    let words: Vec<(usize, i32)> =
        kinds.iter().enumerate().flat_map(|(kind, words)| words.iter().map(move |word| (kind, *word))).collect();
    let is_right = |(kind, word): &&(usize, i32)| {
        let others = words.iter().filter(|(_, other)| other != word);
        let nearest = others.max_by(|a, b| cosine(*word, a.1).total_cmp(&cosine(*word, b.1)));
        nearest.is_some_and(|(nearest, _)| nearest == kind)
    };
    words.iter().filter(is_right).count() as f64 / words.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_counted() {
        let vectors = Tensor::from_vec([4, 2], vec![1f32, 0.0, 2.0, 0.1, 0.0, 1.0, 1.0, 0.2]).unwrap();
        let share = neighbours_of_kind(&vectors, &[vec![0, 1], vec![2, 3]]);
        assert_eq!(share, 0.75, "0 and 1 are each other's nearest, 3 is the nearest of 2, 1 that of 3");
    }
}
