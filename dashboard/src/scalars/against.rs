//! A series against another tag of its run: the points whose steps both have, in the order of the other's values.

use super::points::Points;
use std::collections::BTreeMap;
use summaries::{Point, ScalarSeries, derive::align};

/// A growing pair is joined anew at most this often, seconds.
const REFRESH_S: f64 = 0.5;

/// See the module's notes.
#[derive(Debug, Default)]
pub struct Against {
    series: ScalarSeries,
    x: Vec<f64>,
    of: (usize, usize),
    at: f64,
    generation: u64,
}

impl Against {
    /// Takes in what is new at time `now` in seconds; the whole is made anew, at most twice a second.
    pub fn update(&mut self, series: &ScalarSeries, other: &ScalarSeries, now: f64) {
        let of = (series.len(), other.len());
        let is_early = self.generation > 0 && now - self.at < REFRESH_S;
        if of == self.of || is_early {
            return;
        }
        let x: BTreeMap<i64, f64> = align::by_step(other);
        let place = |p: Point| Some((*x.get(&p.step)?, p));
        let mut pairs: Vec<(f64, Point)> = series.points().filter_map(place).filter(|(x, _)| x.is_finite()).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.x = pairs.iter().map(|(x, _)| *x).collect();
        self.series = pairs.into_iter().map(|(_, point)| point).collect();
        (self.of, self.at) = (of, now);
        self.generation += 1;
    }

    /// What came out.
    pub fn points(&self) -> Points<'_> {
        Points::at(&self.series, &self.x)
    }

    /// Grows with each change.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::XAxis;

    fn series(points: &[(i64, f64)]) -> ScalarSeries {
        points.iter().map(|&(step, value)| Point { step, wall: 0.0, value }).collect()
    }

    #[test]
    fn common_steps_in_the_order_of_the_other() {
        let loss = series(&[(0, 3.0), (1, 2.0), (2, 1.0), (3, 0.5), (4, 0.1)]);
        let rate = series(&[(0, 0.3), (1, 0.1), (2, 0.2), (4, f64::NAN)]);
        let mut against = Against::default();
        against.update(&loss, &rate, 0.0);
        let points = against.points();
        let got: Vec<(f64, f64)> =
            (0..points.len()).map(|i| (points.x(XAxis::Step, i), points.values().get(i))).collect();
        assert_eq!(got, [(0.1, 2.0), (0.2, 1.0), (0.3, 3.0)]);
        let generation = against.generation();
        against.update(&series(&[(0, 3.0)]), &rate, 0.1);
        assert_eq!(against.generation(), generation, "too early");
        against.update(&series(&[(0, 3.0)]), &rate, 1.0);
        assert_eq!(against.points().len(), 1);
    }
}
