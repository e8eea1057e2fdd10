//! Append-only columns in chunks: appending copies nothing, and no memory is reserved for more than a chunk.
//!
//! A point costs 8 bytes for its wall time, 4 for its value where 32 bits hold it exactly (8 otherwise), 1 for the
//! [pyramid](crate::pyramid), and 8 for its step, or none where steps are evenly spaced.

use std::ops::Range;

use crate::pyramid::{Extent, Pyramid};

/// The rows of a chunk.
const CHUNK_ROWS: usize = 4096;

/// A column of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    chunks: Vec<StepChunk>,
    len: usize,
    last: Option<i64>,
}

#[derive(Debug, Clone)]
enum StepChunk {
    /// `first + i * stride`: in most logs every chunk.
    Even {
        first: i64,
        stride: i64,
    },
    Any(Vec<i64>),
}

impl StepChunk {
    fn get(&self, i: usize) -> i64 {
        match self {
            Self::Even { first, stride } => first.wrapping_add(stride.wrapping_mul(i as i64)),
            Self::Any(steps) => steps[i],
        }
    }
}

impl Steps {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn last(&self) -> Option<i64> {
        self.last
    }

    pub fn get(&self, row: usize) -> i64 {
        assert!(row < self.len, "row {row} of {}", self.len);
        self.chunks[row / CHUNK_ROWS].get(row % CHUNK_ROWS)
    }

    pub fn push(&mut self, step: i64) {
        let i = self.len % CHUNK_ROWS;
        if i == 0 {
            self.chunks.push(StepChunk::Even { first: step, stride: 0 });
        } else if let Some(chunk) = self.chunks.last_mut() {
            match chunk {
                StepChunk::Even { first, stride } if i == 1 => *stride = step.wrapping_sub(*first),
                StepChunk::Even { .. } if chunk.get(i) == step => {}
                StepChunk::Even { .. } => {
                    let mut steps: Vec<i64> = (0..i).map(|i| chunk.get(i)).collect();
                    steps.push(step);
                    *chunk = StepChunk::Any(steps);
                }
                StepChunk::Any(steps) => steps.push(step),
            }
        }
        self.len += 1;
        self.last = Some(step);
    }
}

/// A column of floats without a pyramid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floats {
    chunks: Vec<Vec<f64>>,
    len: usize,
}

impl Floats {
    pub fn get(&self, row: usize) -> f64 {
        self.chunks[row / CHUNK_ROWS][row % CHUNK_ROWS]
    }

    pub fn extend(&mut self, mut values: impl ExactSizeIterator<Item = f64>) {
        while values.len() > 0 {
            if self.len.is_multiple_of(CHUNK_ROWS) {
                self.chunks.push(Vec::new());
            }
            let n = values.len().min(CHUNK_ROWS - self.len % CHUNK_ROWS);
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.extend(values.by_ref().take(n));
            }
            self.len += n;
        }
    }
}

/// Numbers with a pyramid over them, so that the extent of any range is found without looking at every number.
///
/// ```
/// let mut numbers = summaries::Numbers::default();
/// (0..1_000_000).for_each(|i| numbers.push(f64::from(i)));
/// let extent = numbers.extent(10..900_000);
/// assert_eq!((extent.min, extent.max, extent.n_finite), (10.0, 899_999.0, 899_990));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    chunks: Vec<NumberChunk>,
    len: usize,
    pyramid: Pyramid,
}

/// The numbers of a chunk in 32 bits, as long as all of them fit exactly.
#[derive(Debug, Clone)]
enum NumberChunk {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl Numbers {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number at `row`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> f64 {
        match &self.chunks[row / CHUNK_ROWS] {
            NumberChunk::Single(values) => f64::from(values[row % CHUNK_ROWS]),
            NumberChunk::Double(values) => values[row % CHUNK_ROWS],
        }
    }

    /// The newest number.
    pub fn last(&self) -> Option<f64> {
        self.len.checked_sub(1).map(|row| self.get(row))
    }

    /// Iterates over all numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.len).map(|row| self.get(row))
    }

    /// The extent of the numbers in `rows`, in time logarithmic in their count.
    ///
    /// # Panics
    /// When `rows` ends after the last row.
    pub fn extent(&self, rows: Range<usize>) -> Extent {
        assert!(rows.end <= self.len, "rows {rows:?} of {}", self.len);
        self.pyramid.extent(rows, |row| self.get(row))
    }

    /// Adds a number, exactly as it is.
    pub fn push(&mut self, value: f64) {
        if self.len.is_multiple_of(CHUNK_ROWS) {
            self.chunks.push(NumberChunk::Single(Vec::new()));
        }
        let single = value as f32;
        let is_single = f64::from(single).to_bits() == value.to_bits();
        if let Some(chunk) = self.chunks.last_mut() {
            match chunk {
                NumberChunk::Single(values) if is_single => values.push(single),
                NumberChunk::Single(values) => {
                    let mut doubles: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                    doubles.push(value);
                    *chunk = NumberChunk::Double(doubles);
                }
                NumberChunk::Double(values) => values.push(value),
            }
        }
        self.len += 1;
        self.pyramid.push(value);
    }

    /// Adds numbers, chunk by chunk, which is faster than [`push`](Self::push).
    pub(crate) fn append(&mut self, mut values: impl ExactSizeIterator<Item = f64> + Clone) {
        while values.len() > 0 {
            let part = values.clone().take(CHUNK_ROWS - self.len % CHUNK_ROWS);
            let n = part.len();
            let are_single = part.clone().all(|value| f64::from(value as f32).to_bits() == value.to_bits());
            let is_new_chunk = self.len.is_multiple_of(CHUNK_ROWS);
            if is_new_chunk && are_single {
                self.chunks.push(NumberChunk::Single(Vec::new()));
            }
            match self.chunks.last_mut() {
                Some(NumberChunk::Single(chunk)) if are_single => chunk.extend(part.map(|value| value as f32)),
                Some(NumberChunk::Double(chunk)) if !is_new_chunk => chunk.extend(part),
                _ => {
                    // `push` converts the chunk at the first number that needs 64 bits.
                    values.by_ref().take(n).for_each(|value| self.push(value));
                    continue;
                }
            }
            self.len += n;
            values.by_ref().take(n).for_each(|value| self.pyramid.push(value));
        }
    }
}

impl Extend<f64> for Numbers {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl FromIterator<f64> for Numbers {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut numbers = Self::default();
        numbers.extend(values);
        numbers
    }
}

/// Returns the ranges of rows between restarts.
pub(crate) fn pieces(restarts: &[usize], len: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = std::iter::once(0).chain(restarts.iter().copied());
    let ends = restarts.iter().copied().chain(std::iter::once(len));
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn even_steps_cost_nothing() {
        let mut steps = Steps::default();
        (0..3 * CHUNK_ROWS as i64).for_each(|i| steps.push(i * 10));
        assert!(steps.chunks.iter().all(|chunk| matches!(chunk, StepChunk::Even { .. })));
        steps.push(7);
        assert_eq!([steps.get(CHUNK_ROWS + 1), steps.get(3 * CHUNK_ROWS)], [(CHUNK_ROWS as i64 + 1) * 10, 7]);
    }

    #[test]
    fn extreme_steps() {
        let given = [i64::MIN, i64::MAX, 0, i64::MIN, -1];
        let mut steps = Steps::default();
        given.iter().for_each(|step| steps.push(*step));
        assert_eq!((0..given.len()).map(|row| steps.get(row)).collect::<Vec<_>>(), given);
    }

    proptest! {
        #[test]
        fn columns_give_back_what_they_got(
            steps in prop::collection::vec(-3i64..3, 0..60),
            values in prop::collection::vec(prop_oneof![any::<f64>(), any::<f32>().prop_map(f64::from)], 0..60),
        ) {
            // Around the border between two chunks.
            let pad = CHUNK_ROWS - 30;
            let mut column = Steps::default();
            (0..pad).for_each(|_| column.push(5));
            steps.iter().for_each(|step| column.push(*step));
            prop_assert_eq!((pad..column.len()).map(|row| column.get(row)).collect::<Vec<_>>(), steps);
            let mut numbers: Numbers = std::iter::repeat_n(0.5, pad).collect();
            numbers.extend(values.iter().copied());
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let got: Vec<f64> = (pad..numbers.len()).map(|row| numbers.get(row)).collect();
            prop_assert_eq!(bits(&got), bits(&values));
            // All at once is one after the other.
            let mut appended: Numbers = std::iter::repeat_n(0.5, pad).collect();
            appended.append(values.iter().copied());
            let got: Vec<f64> = (pad..appended.len()).map(|row| appended.get(row)).collect();
            prop_assert_eq!(bits(&got), bits(&values));
            let spans = [&numbers, &appended].map(|numbers| format!("{:?}", numbers.extent(0..numbers.len())));
            prop_assert_eq!(&spans[0], &spans[1]);
            let mut walls = Floats::default();
            walls.extend(std::iter::repeat_n(0.5, pad));
            walls.extend(values.iter().copied());
            let got: Vec<f64> = (pad..pad + values.len()).map(|row| walls.get(row)).collect();
            prop_assert_eq!(bits(&got), bits(&values));
        }
    }
}
