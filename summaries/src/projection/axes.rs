//! Layouts along custom axes, each from the mean of one group of vectors to the mean of another.

use super::{Position, Vectors};

/// Projects the vectors on two axes, each from the mean of one group of vectors to the mean of another. An empty group
/// stands for all vectors. The origin is the mean of all vectors, and the unit of the axes that of the vectors. Where
/// the two means of an axis are equal, all projections on the axis are 0.
///
/// # Panics
/// When a group has an index that is not below the number of vectors.
#[must_use]
pub fn project_on_axes(vectors: &Vectors, axes: [[&[usize]; 2]; 2]) -> Vec<Position> {
    let all: Vec<usize> = (0..vectors.len()).collect();
    let mean = |group: &[usize]| group_mean(vectors, if group.is_empty() { &all } else { group });
    let centroid = mean(&[]);
    let directions = axes.map(|[from, to]| {
        let (from, to) = (mean(from), mean(to));
        let direction: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.into_iter().map(|x| if length > 0.0 { x / length } else { 0.0 }).collect::<Vec<f64>>()
    });
    let project_row = |row: &[f32]| {
        let project = |direction: &[f64]| {
            let parts = row.iter().zip(&centroid).zip(direction);
            parts.map(|((x, centroid), part)| (f64::from(*x) - centroid) * part).sum::<f64>() as f32
        };
        [project(&directions[0]), project(&directions[1]), 0.0]
    };
    vectors.rows().map(project_row).collect()
}

fn group_mean(vectors: &Vectors, group: &[usize]) -> Vec<f64> {
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
        let places = project_on_axes(&vectors, [[&[0], &[2]], [&[1], &[1]]]);
        assert_eq!(places, [[-2.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
        // From the mean of all.
        let vectors = Vectors::new(2, vec![0.0, 0.0, 4.0, 0.0]);
        assert_eq!(project_on_axes(&vectors, [[&[], &[1]], [&[], &[]]]), [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
        assert!(project_on_axes(&Vectors::default(), [[&[], &[]], [&[], &[]]]).is_empty());
    }
}
