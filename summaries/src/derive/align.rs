//! Series side by side: by step, by time, or one against the other.

use std::collections::BTreeMap;

use crate::series::ScalarSeries;

/// What goes from left to right.
#[derive(Debug, Clone, Copy)]
pub enum Axis<'a> {
    /// The step.
    Step,
    /// Seconds since the series' first point.
    Relative,
    /// Unix seconds.
    Wall,
    /// The value of another tag at the same step; points without one are left out.
    Tag(&'a ScalarSeries),
}

/// The points of a series on an axis, in the order of their arrival.
pub fn on_axis(series: &ScalarSeries, axis: Axis<'_>) -> Vec<(f64, f64)> {
    let begin = series.points().next().map_or(0.0, |point| point.wall);
    match axis {
        Axis::Step => series.points().map(|p| (p.step as f64, p.value)).collect(),
        Axis::Relative => series.points().map(|p| (p.wall - begin, p.value)).collect(),
        Axis::Wall => series.points().map(|p| (p.wall, p.value)).collect(),
        Axis::Tag(other) => {
            let x = by_step(other);
            series.points().filter_map(|p| Some((*x.get(&p.step)?, p.value))).collect()
        }
    }
}

/// The value at each step; after a restart, the newest.
pub fn by_step(series: &ScalarSeries) -> BTreeMap<i64, f64> {
    series.points().map(|p| (p.step, p.value)).collect()
}

/// Steps that both series have, with both values.
pub fn joined(a: &ScalarSeries, b: &ScalarSeries) -> Vec<(i64, f64, f64)> {
    let (a, b) = (by_step(a), by_step(b));
    a.into_iter().filter_map(|(step, value)| Some((step, value, *b.get(&step)?))).collect()
}

/// `a / b` at the steps that both have.
pub fn ratio(a: &ScalarSeries, b: &ScalarSeries) -> Vec<(i64, f64)> {
    joined(a, b).into_iter().map(|(step, a, b)| (step, a / b)).collect()
}

/// `a - b` at the steps that both have.
pub fn difference(a: &ScalarSeries, b: &ScalarSeries) -> Vec<(i64, f64)> {
    joined(a, b).into_iter().map(|(step, a, b)| (step, a - b)).collect()
}

/// The value at `step`, on the line between the two points about it; `None` before the first and after the last.
pub fn interpolated(points: &BTreeMap<i64, f64>, step: i64) -> Option<f64> {
    let (&x0, &y0) = points.range(..=step).next_back()?;
    let (&x1, &y1) = points.range(step..).next()?;
    if x0 == x1 {
        return Some(y0);
    }
    let share = (step as f64 - x0 as f64) / (x1 as f64 - x0 as f64);
    Some(y0 + (y1 - y0) * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Point;

    fn series(points: &[(i64, f64)]) -> ScalarSeries {
        points.iter().map(|&(step, value)| Point { step, wall: 100.0 + step as f64, value }).collect()
    }

    #[test]
    fn two_series_at_common_steps() {
        // After the restart at step 1, its newer value counts.
        let (a, b) = (series(&[(0, 1.0), (1, 2.0), (2, 3.0), (1, 8.0)]), series(&[(1, 4.0), (2, 0.0), (5, 1.0)]));
        assert_eq!(joined(&a, &b), [(1, 8.0, 4.0), (2, 3.0, 0.0)]);
        assert_eq!(ratio(&a, &b), [(1, 2.0), (2, f64::INFINITY)]);
        assert_eq!(difference(&a, &b), [(1, 4.0), (2, 3.0)]);
    }

    #[test]
    fn axes() {
        let (a, b) = (series(&[(2, 1.0), (4, 2.0)]), series(&[(4, 0.5), (9, 0.1)]));
        assert_eq!(on_axis(&a, Axis::Step), [(2.0, 1.0), (4.0, 2.0)]);
        assert_eq!(on_axis(&a, Axis::Relative), [(0.0, 1.0), (2.0, 2.0)]);
        assert_eq!(on_axis(&a, Axis::Wall), [(102.0, 1.0), (104.0, 2.0)]);
        assert_eq!(on_axis(&a, Axis::Tag(&b)), [(0.5, 2.0)]);
        assert_eq!(on_axis(&ScalarSeries::default(), Axis::Relative), []);
    }

    #[test]
    fn between_two_points() {
        let points = by_step(&series(&[(0, 1.0), (10, 3.0)]));
        let at = [-1, 0, 5, 10, 11].map(|step| interpolated(&points, step));
        assert_eq!(at, [None, Some(1.0), Some(2.0), Some(3.0), None]);
    }
}
