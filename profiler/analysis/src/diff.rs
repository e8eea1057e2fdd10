//! Changes between two traces: step time, ops, scopes and stalls, per step, with a confidence interval.
//!
//! Each step is one observation. A change is reported with Welch's 95 % interval for the difference of the means (the
//! two traces may vary differently). A change is certain if the interval does not include zero. One comparison in
//! twenty of equal traces is certain by chance. With fewer than two steps in a trace there is no interval.

use super::activity::Activities;
use crate::nesting::self_times;
use crate::stalls::stalls;
use rustc_hash::FxHashMap;
use trace_store::Store;

/// The change of one op, scope, cause or the step between two traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The name of the op, scope or cause.
    pub name: String,
    /// Mean per step in the first trace, ns.
    pub a_ns: f64,
    /// Mean per step in the second trace, ns.
    pub b_ns: f64,
    /// The 95 % interval of `b_ns - a_ns`; `None` if a trace has fewer than two steps.
    pub interval_ns: Option<(f64, f64)>,
}

impl Change {
    /// The difference of the means, ns.
    #[must_use]
    pub fn change_ns(&self) -> f64 {
        self.b_ns - self.a_ns
    }

    /// Whether the interval excludes zero.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.interval_ns.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The changes between two traces. Each list begins with the largest change.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// Steps in the first trace.
    pub a_steps: usize,
    /// Steps in the second trace.
    pub b_steps: usize,
    /// The duration of steps, or of a trace without steps.
    pub step: Change,
    /// Self time by op, kernel, copy or call.
    pub ops: Vec<Change>,
    /// Self time by name scope.
    pub scopes: Vec<Change>,
    /// Stalls by cause, over all tracks.
    pub stalls: Vec<Change>,
}

/// Compares two traces.
#[must_use]
pub fn diff(a: &Store, b: &Store) -> Diff {
    let (a, b) = (StepTimes::new(a), StepTimes::new(b));
    let step = change("step".to_owned(), &a.durations, &b.durations);
    let changes_of = |pick: fn(&StepTimes) -> &ValuesByName| {
        let (a_rows, b_rows) = (pick(&a), pick(&b));
        let mut names: Vec<&String> = a_rows.keys().chain(b_rows.keys().filter(|n| !a_rows.contains_key(*n))).collect();
        names.sort();
        let values =
            |rows: &ValuesByName, name: &String, n: usize| rows.get(name).cloned().unwrap_or_else(|| vec![0.0; n]);
        let mut changes: Vec<Change> = names
            .into_iter()
            .map(|name| {
                let (a, b) = (values(a_rows, name, a.durations.len()), values(b_rows, name, b.durations.len()));
                change(name.clone(), &a, &b)
            })
            .collect();
        changes.sort_by(|x, y| y.change_ns().abs().total_cmp(&x.change_ns().abs()));
        changes
    };
    Diff {
        a_steps: a.n_steps,
        b_steps: b.n_steps,
        step,
        ops: changes_of(|o| &o.ops),
        scopes: changes_of(|o| &o.scopes),
        stalls: changes_of(|o| &o.stalls),
    }
}

/// A value per step, by name.
type ValuesByName = FxHashMap<String, Vec<f64>>;

/// The times of a trace, step by step.
struct StepTimes {
    n_steps: usize,
    durations: Vec<f64>,
    ops: ValuesByName,
    scopes: ValuesByName,
    stalls: ValuesByName,
}

impl StepTimes {
    fn new(store: &Store) -> StepTimes {
        let range = store.range();
        let starts: Vec<i64> = store.steps().iter().map(|s| s.start).collect();
        let n = starts.len().max(1);
        // The time of a step lasts until the next step starts, since devices run work of the step after its end.
        let step_at = |time: i64| match starts.len() {
            0 => Some(0),
            _ => starts.partition_point(|s| *s <= time).checked_sub(1),
        };
        let durations = match store.steps() {
            [] => vec![(range.end - range.start) as f64],
            steps => steps.iter().map(|s| (s.end - s.start) as f64).collect(),
        };
        let mut times = StepTimes {
            n_steps: starts.len(),
            durations,
            ops: ValuesByName::default(),
            scopes: ValuesByName::default(),
            stalls: ValuesByName::default(),
        };
        times.observe_slices(store, n, step_at);
        for stall in stalls(store, range) {
            if let Some(step) = step_at(stall.start) {
                let row = times.stalls.entry(stall.cause.name().to_owned()).or_insert_with(|| vec![0.0; n]);
                row[step] += stall.dur() as f64;
            }
        }
        times
    }

    fn observe_slices(&mut self, store: &Store, n: usize, step_at: impl Fn(i64) -> Option<usize>) {
        let activities = Activities::new(store);
        // The times are summed by row of the sites and of the nodes first, so that each name is looked up once.
        let mut sites: FxHashMap<u32, Vec<f64>> = FxHashMap::default();
        let mut nodes: FxHashMap<u32, Vec<f64>> = FxHashMap::default();
        for track in store.tracks() {
            self_times(track, &store.range(), |slice, self_ns| {
                let Some(step) = step_at(slice.start).filter(|_| activities.get(slice).is_work()) else { return };
                sites.entry(slice.site).or_insert_with(|| vec![0.0; n])[step] += self_ns as f64;
                if store.node_of(slice).is_some() {
                    nodes.entry(slice.node).or_insert_with(|| vec![0.0; n])[step] += self_ns as f64;
                }
            });
        }
        let add = |rows: &mut ValuesByName, name: String, values: &[f64]| {
            let row = rows.entry(name).or_insert_with(|| vec![0.0; n]);
            row.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        };
        for (site, values) in &sites {
            if let Some(site) = store.sites().get(*site as usize) {
                add(&mut self.ops, site.name.clone(), values);
            }
        }
        for (node, values) in &nodes {
            let Some(node) = store.nodes().get(*node as usize) else { continue };
            for (end, _) in node.name.match_indices('/').filter(|(end, _)| *end > 0) {
                add(&mut self.scopes, node.name[..end].to_owned(), values);
            }
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn change(name: String, a: &[f64], b: &[f64]) -> Change {
    let (a_ns, b_ns) = (mean(a), mean(b));
    Change { name, a_ns, b_ns, interval_ns: welch_interval(a, b) }
}

/// The 95 % interval of the difference of two means whose variances may differ.
fn welch_interval(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let mean_variance_and_freedom = |values: &[f64]| {
        let (n, mean) = (values.len() as f64, mean(values));
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (variance / n, n - 1.0)
    };
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let ((a_variance, a_freedom), (b_variance, b_freedom)) =
        (mean_variance_and_freedom(a), mean_variance_and_freedom(b));
    let (change, sum) = (mean(b) - mean(a), a_variance + b_variance);
    let freedom = match a_variance * a_variance / a_freedom + b_variance * b_variance / b_freedom {
        divisor if sum > 0.0 => sum * sum / divisor,
        _ => f64::INFINITY,
    };
    let half_width = student_quantile(freedom) * sum.sqrt();
    Some((change - half_width, change + half_width))
}

/// Returns the 97.5 % quantile of Student's t for these degrees of freedom: the usual table, interpolated linearly in
/// the inverse of the degrees (to 0.003 from 3 degrees on).
fn student_quantile(freedom: f64) -> f64 {
    const FREEDOM: [f64; 17] =
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0, f64::INFINITY];
    const QUANTILE: [f64; 17] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.179, 2.131, 2.086, 2.042, 2.000,
        1.980, 1.960,
    ];
    let above = FREEDOM.iter().position(|row| *row >= freedom).unwrap_or(FREEDOM.len() - 1).max(1);
    let (low, high, at_low, at_high) = (FREEDOM[above - 1], FREEDOM[above], QUANTILE[above - 1], QUANTILE[above]);
    let fraction = (1.0 / low - 1.0 / freedom.max(1.0)) / (1.0 / low - 1.0 / high);
    at_low + (at_high - at_low) * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_between_the_rows() {
        // From published tables.
        for (freedom, want) in [(1.0, 12.706), (11.0, 2.201), (17.0, 2.110), (25.0, 2.060), (40.0, 2.021), (1e9, 1.960)]
        {
            assert!((student_quantile(freedom) - want).abs() < 0.003, "{freedom}: {}", student_quantile(freedom));
        }
    }

    #[test]
    fn welch_as_in_the_textbooks() {
        // scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(): the values below.
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 25.6];
        let (low, high) = welch_interval(&a, &b).unwrap();
        assert!((low - WANT.0).abs() < 0.01 && (high - WANT.1).abs() < 0.01, "{low} {high}");
        assert_eq!(welch_interval(&a[..1], &b), None);
    }

    const WANT: (f64, f64) = (0.8635, 4.9632);
}
