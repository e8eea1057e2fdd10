//! Layouts along axes of one's own: from what some vectors have in common to what others have.

use super::{Position, Vectors};

/// Where the vectors lie along two directions, each from the mean of a group of vectors to that of another; an empty group
/// stands for all vectors. Measured from the mean of all, in the vectors' own units; a direction between equal means has
/// no length, and all vectors lie at 0 along it.
///
/// # Panics
/// When a group names a vector that there is not.
#[must_use]
pub fn along(vectors: &Vectors, axes: [[&[usize]; 2]; 2]) -> Vec<Position> {
    let all: Vec<usize> = (0..vectors.len()).collect();
    let mean = |group: &[usize]| mean_of(vectors, if group.is_empty() { &all } else { group });
    let middle = mean(&[]);
    let directions = axes.map(|[from, to]| {
        let (from, to) = (mean(from), mean(to));
        let direction: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.into_iter().map(|x| if length > 0.0 { x / length } else { 0.0 }).collect::<Vec<f64>>()
    });
    let place = |row: &[f32]| {
        let along = |direction: &[f64]| {
            let parts = row.iter().zip(&middle).zip(direction);
            parts.map(|((x, middle), part)| (f64::from(*x) - middle) * part).sum::<f64>() as f32
        };
        [along(&directions[0]), along(&directions[1]), 0.0]
    };
    vectors.rows().map(place).collect()
}

fn mean_of(vectors: &Vectors, group: &[usize]) -> Vec<f64> {
    let mut sums = vec![0.0; vectors.n_dims()];
    for &i in group {
        sums.iter_mut().zip(vectors.row(i)).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let n = group.len().max(1) as f64;
    sums.into_iter().map(|sum| sum / n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_group_to_another() {
        let vectors = Vectors::new(3, vec![0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 0.0, 4.0, 2.0, 8.0]);
        // Along the first axis; and nowhere.
        let places = along(&vectors, [[&[0], &[2]], [&[1], &[1]]]);
        assert_eq!(places, [[-2.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
        // From the mean of all.
        let vectors = Vectors::new(2, vec![0.0, 0.0, 4.0, 0.0]);
        assert_eq!(along(&vectors, [[&[], &[1]], [&[], &[]]]), [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
        assert!(along(&Vectors::default(), [[&[], &[]], [&[], &[]]]).is_empty());
    }
}
