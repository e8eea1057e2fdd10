//! A series' values by step, and between two steps.

use std::collections::BTreeMap;

use crate::series::ScalarSeries;

/// Returns the value at each step; where a restart repeats a step, the newest value.
pub fn values_by_step(series: &ScalarSeries) -> BTreeMap<i64, f64> {
    series.points().map(|p| (p.step, p.value)).collect()
}

/// Interpolates the value at `step` linearly between the adjacent points; `None` before the first and after the last.
pub fn interpolate(points: &BTreeMap<i64, f64>, step: i64) -> Option<f64> {
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
    fn between_two_points() {
        let points = values_by_step(&series(&[(0, 1.0), (10, 3.0)]));
        let at = [-1, 0, 5, 10, 11].map(|step| interpolate(&points, step));
        assert_eq!(at, [None, Some(1.0), Some(2.0), Some(3.0), None]);
    }
}
