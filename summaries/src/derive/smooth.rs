//! Smoothing. Values that are not finite stay where they are and take no part.

/// The exponential moving average with the bias of its start taken out (Kingma and Ba 2015, section 3), as TensorBoard
/// smooths: with `weight` w in 0..1, `last = w * last + (1 - w) * y`, and `last / (1 - w^n)` comes out. A constant series
/// is left alone.
pub fn ema(values: &[f64], weight: f64) -> Vec<f64> {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return values.to_vec();
    }
    let (mut last, mut bias) = (0.0, 1.0);
    let smooth = |&y: &f64| {
        if !y.is_finite() {
            return y;
        }
        last = weight * last + (1.0 - weight) * y;
        bias *= weight;
        last / (1.0 - bias)
    };
    values.iter().map(smooth).collect()
}

/// The median of each value with its `n_beside` neighbours on either side, fewer at the ends. Of an even number the mean of
/// the middle two.
pub fn running_median(values: &[f64], n_beside: usize) -> Vec<f64> {
    let mut window = Vec::new();
    (0..values.len())
        .map(|i| {
            if !values[i].is_finite() {
                return values[i];
            }
            let end = i.saturating_add(n_beside).saturating_add(1).min(values.len());
            window.clear();
            window.extend(values[i.saturating_sub(n_beside)..end].iter().copied().filter(|v| v.is_finite()));
            quantile(&mut window, 0.5)
        })
        .collect()
}

/// The mean weighted by a Gaussian of `sigma` points, cut off at 4 sigma; at the ends the weights that are left are
/// scaled to 1.
pub fn gaussian(values: &[f64], sigma: f64) -> Vec<f64> {
    if sigma.is_nan() || sigma <= 0.0 {
        return values.to_vec();
    }
    let reach = (4.0 * sigma).ceil().min(values.len() as f64) as usize;
    let weights: Vec<f64> = (0..=reach).map(|d| (-0.5 * (d as f64 / sigma).powi(2)).exp()).collect();
    (0..values.len())
        .map(|i| {
            if !values[i].is_finite() {
                return values[i];
            }
            let near = i.saturating_sub(reach)..(i + reach + 1).min(values.len());
            let (mut sum, mut total) = (0.0, 0.0);
            for j in near.filter(|j| values[*j].is_finite()) {
                let weight = weights[i.abs_diff(j)];
                sum += weight * values[j];
                total += weight;
            }
            sum / total
        })
        .collect()
}

/// The `q`-quantile (0 to 1) of numbers, interpolated linearly between the two next ones; NaN of none. Reorders `values`.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let place = q.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (_, &mut low, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    if place.fract() == 0.0 { low } else { low + (next - low) * place.fract() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        // w = 0.6: 1; (0.6*0.4 + 0.4*2) / 0.64 = 1.625; (0.6*1.04 + 0.4*4) / 0.784.
        let got = ema(&[1.0, 2.0, 4.0], 0.6);
        assert!(got.iter().zip([1.0, 1.625, 2.224 / 0.784]).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}");
        assert_eq!(ema(&[0.1; 4], 0.9), [0.1; 4]);
        assert_eq!(running_median(&[1.0, 100.0, 2.0, f64::NAN, 4.0][..3], 1), [50.5, 2.0, 51.0]);
        let got = running_median(&[1.0, f64::NAN, 3.0], 5);
        assert!(got[0] == 2.0 && got[1].is_nan() && got[2] == 2.0);
        assert_eq!(gaussian(&[1.0, f64::INFINITY, 1.0], 2.0), [1.0, f64::INFINITY, 1.0]);
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0, 4.0], 0.25), 1.75);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    proptest! {
        #[test]
        fn smoothing_stays_within_what_it_smooths(
            values in prop::collection::vec(-100.0..100.0f64, 1..60),
            weight in 0.0..0.99f64,
            n_beside in 0usize..70,
            sigma in 0.0..50.0f64,
        ) {
            let lo = values.iter().copied().fold(f64::INFINITY, f64::min) - 1e-9;
            let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) + 1e-9;
            for smoothed in [ema(&values, weight), running_median(&values, n_beside), gaussian(&values, sigma)] {
                prop_assert_eq!(smoothed.len(), values.len());
                prop_assert!(smoothed.iter().all(|v| (lo..=hi).contains(v)));
            }
        }

        #[test]
        fn quantiles_are_those_of_the_sorted(mut values in prop::collection::vec(-9.0..9.0f64, 1..40), q in 0.0..=1.0f64) {
            let got = quantile(&mut values.clone(), q);
            values.sort_by(f64::total_cmp);
            let place = q * (values.len() - 1) as f64;
            let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
            prop_assert!((got - (low + (high - low) * place.fract())).abs() < 1e-12);
        }
    }
}
