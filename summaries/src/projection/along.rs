//! Layouts along custom axes, each from the mean of one group of vectors to the mean of another.

use super::{Position, Vectors};

/// The projections of the vectors on two axes, each from the mean of a group of vectors to that of another. An empty
/// group stands for all vectors. The origin is the mean of all vectors, the unit that of the vectors; where the two
/// means are equal, all projections on the axis are 0.
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
        let project = |direction: &[f64]| {
            let parts = row.iter().zip(&middle).zip(direction);
            parts.map(|((x, middle), part)| (f64::from(*x) - middle) * part).sum::<f64>() as f32
        };
        [project(&directions[0]), project(&directions[1]), 0.0]
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
