//! Tensors as rows of their last dimension: softmax, and the cross entropies of its rows.

use crate::ops::ShapeError;
use crate::shape::Shape;

/// Rows of logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// How many there are.
    pub n_rows: usize,
    /// The elements of each: the classes.
    pub n: usize,
}

impl Rows {
    /// All dimensions but the last count rows.
    ///
    /// # Errors
    /// The shape has no dimensions.
    pub fn new(logits: &Shape) -> Result<Rows, ShapeError> {
        match logits.dims() {
            [outer @ .., n] => Ok(Rows { n_rows: outer.iter().product(), n: *n }),
            [] => Err(ShapeError::new("logits must have at least one dimension")),
        }
    }

    fn matrix(logits: &Shape) -> Result<Rows, ShapeError> {
        match logits.dims() {
            [n_rows, n] => Ok(Rows { n_rows: *n_rows, n: *n }),
            _ => Err(ShapeError(format!("logits must be a matrix, got shape {logits}"))),
        }
    }

    /// A matrix of logits with a probability for each class.
    ///
    /// # Errors
    /// The logits are no matrix, the labels of another shape.
    pub fn with_probabilities(logits: &Shape, labels: &Shape) -> Result<Rows, ShapeError> {
        let rows = Rows::matrix(logits)?;
        if labels != logits {
            return Err(ShapeError(format!("logits {logits} and labels {labels} must have one shape")));
        }
        Ok(rows)
    }

    /// A matrix of logits with one class for each row.
    ///
    /// # Errors
    /// The logits are no matrix, or there are more or fewer labels than rows.
    pub fn with_classes(logits: &Shape, labels: &Shape) -> Result<Rows, ShapeError> {
        let rows = Rows::matrix(logits)?;
        if labels.n_elements() != rows.n_rows {
            return Err(ShapeError(format!("{} labels for {} rows of logits", labels.n_elements(), rows.n_rows)));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_their_labels() {
        let [matrix, cube, vector, none] = [&[2, 3][..], &[4, 2, 3], &[2], &[]].map(Shape::new);
        assert_eq!(Rows::new(&cube).unwrap(), Rows { n_rows: 8, n: 3 });
        assert_eq!(Rows::new(&vector).unwrap(), Rows { n_rows: 1, n: 2 });
        assert!(Rows::new(&none).is_err());
        assert_eq!(Rows::with_probabilities(&matrix, &matrix).unwrap(), Rows { n_rows: 2, n: 3 });
        assert!(Rows::with_probabilities(&cube, &cube).is_err() && Rows::with_probabilities(&matrix, &vector).is_err());
        assert_eq!(Rows::with_classes(&matrix, &vector).unwrap(), Rows { n_rows: 2, n: 3 });
        assert!(Rows::with_classes(&matrix, &none).is_err() && Rows::with_classes(&vector, &vector).is_err());
    }
}
