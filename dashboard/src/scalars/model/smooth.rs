//! Smoothing as in TensorBoard, so that curves look the same: an exponential moving average, corrected for the bias of
//! its start (Kingma and Ba 2015, section 3).
//!
//! With weight w, `last = w * last + (1 - w) * y`, drawn as `last / (1 - w^n)`. A constant series and values that are
//! not finite stay as they are (tensorboard/webapp/widgets/line_chart_v2, `classicSmoothing`).

use summaries::Numbers;

/// The smoothed values of a growing series. New values cost O(new), a change of the weight O(all).
#[derive(Clone, Debug, Default)]
pub struct Smoother {
    weight: f64,
    out: Numbers,
    last: f64,
    n_finite: i32,
    /// Whether `w^n` is negligible compared with 1, as then all later powers are.
    has_no_bias: bool,
    /// The value of all points so far, while these are equal.
    constant: Option<f64>,
}

impl Smoother {
    /// Brings the smoothed values up to date with `values` at `weight` in 0..1 and returns them.
    pub fn update(&mut self, values: &Numbers, weight: f64) -> &Numbers {
        if weight != self.weight || values.len() < self.out.len() {
            *self = Self { weight, ..Self::default() };
        }
        if self.out.is_empty() && !values.is_empty() {
            self.constant = Some(values.get(0));
        }
        if let Some(constant) = self.constant {
            let fresh = values.extent(self.out.len()..values.len());
            let is_constant = fresh.is_finite() && (fresh.n_finite == 0 || [fresh.min, fresh.max] == [constant; 2]);
            if is_constant {
                self.out.extend((self.out.len()..values.len()).map(|i| values.get(i)));
                return &self.out;
            }
            // The series is not constant after all: the points that stayed as they were are smoothed from the start.
            *self = Self { weight, ..Self::default() };
        }
        for i in self.out.len()..values.len() {
            let smoothed = self.next(values.get(i));
            self.out.push(smoothed);
        }
        &self.out
    }

    /// The number of values that are smoothed at this weight.
    pub fn len_at(&self, weight: f64) -> usize {
        if weight == self.weight { self.out.len() } else { 0 }
    }

    /// The smoothed values of the last update.
    pub fn values(&self) -> &Numbers {
        &self.out
    }

    fn next(&mut self, y: f64) -> f64 {
        if !y.is_finite() {
            return y;
        }
        self.last = self.weight * self.last + (1.0 - self.weight) * y;
        if self.has_no_bias {
            return self.last;
        }
        self.n_finite = self.n_finite.saturating_add(1);
        let share = 1.0 - self.weight.powi(self.n_finite);
        self.has_no_bias = share == 1.0;
        self.last / share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn update(smoother: &mut Smoother, values: &[f64], weight: f64) -> Vec<f64> {
        smoother.update(&values.iter().copied().collect(), weight).iter().collect()
    }

    fn smoothed(values: &[f64], weight: f64) -> Vec<f64> {
        update(&mut Smoother::default(), values, weight)
    }

    /// The published formula, term by term: the weighted mean of all values so far with weights w^(n-i).
    fn reference(values: &[f64], weight: f64) -> Vec<f64> {
        (1..=values.len())
            .map(|n| {
                let weights = (0..n).map(|i| weight.powi((n - 1 - i) as i32));
                let total: f64 = weights.clone().sum();
                weights.zip(values).map(|(w, y)| w * y).sum::<f64>() / total
            })
            .collect()
    }

    #[test]
    fn matches_the_formula_by_hand() {
        // w = 0.6: 1; (0.6*0.4*1 + 0.4*2) / (1-0.36) = 1.625; (0.6*1.04 + 0.4*4) / (1-0.216) = 2.836734...
        let got = smoothed(&[1.0, 2.0, 4.0], 0.6);
        for (got, want) in got.iter().zip([1.0, 1.625, 2.224 / 0.784]) {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }

    #[test]
    fn constant_and_non_finite_values_are_left_alone() {
        assert_eq!(smoothed(&[0.1; 5], 0.9), [0.1; 5]);
        let got = smoothed(&[1.0, f64::NAN, f64::INFINITY, 1.0], 0.5);
        assert!(got[1].is_nan() && got[2] == f64::INFINITY && (got[3] - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn growing_equals_whole_and_the_weighted_mean(
            values in prop::collection::vec(-10.0..10.0f64, 2..60),
            cut in 0usize..60,
            weight in 0.0..0.99f64,
        ) {
            let cut = cut.min(values.len());
            let mut growing = Smoother::default();
            update(&mut growing, &values[..cut], weight);
            let whole = smoothed(&values, weight);
            prop_assert_eq!(update(&mut growing, &values, weight), whole.clone());
            for (got, want) in whole.iter().zip(reference(&values, weight)) {
                prop_assert!((got - want).abs() < 1e-9, "{} {}", got, want);
            }
        }

        #[test]
        fn a_constant_start_changes_nothing(n in 1usize..10, weight in 0.0..0.99f64) {
            let mut values = vec![3.0; n];
            let mut growing = Smoother::default();
            update(&mut growing, &values, weight);
            values.push(4.0);
            prop_assert_eq!(update(&mut growing, &values, weight), smoothed(&values, weight));
        }
    }
}
