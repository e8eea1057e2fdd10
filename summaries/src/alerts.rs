//! Alerts: rules about scalars and runs, such as `loss > 3 for 100 steps`, and where they hold.

use std::{collections::BTreeMap, fmt};

use crate::{
    run::{Run, Runs},
    series::{Point, ScalarSeries, Series},
};
use rule::Comparison;
pub use rule::{Rule, RuleError};

/// An alert that a rule raised.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// The rule, as it was written.
    pub rule: String,
    /// The run.
    pub run: String,
    /// The tag; none for a run that stalled.
    pub tag: Option<String>,
    /// The point that raised it: of a stalled run or series its last one.
    pub point: Point,
    is_stall: bool,
}

impl Alert {
    /// Whether it is about what did not happen: no new point.
    pub fn is_stall(&self) -> bool {
        self.is_stall
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { step, value, .. } = self.point;
        match &self.tag {
            Some(tag) if self.is_stall => {
                write!(f, "{}: no new point of {tag} since step {step} ({})", self.run, self.rule)
            }
            Some(tag) => write!(f, "{}: {tag} = {value} at step {step} ({})", self.run, self.rule),
            None => write!(f, "{}: no new point since step {step} ({})", self.run, self.rule),
        }
    }
}

/// Checks rules against runs that grow. Each rule raises an alert once for each stretch of points for which it holds.
#[derive(Debug)]
pub struct Alerts {
    rules: Vec<Rule>,
    /// By rule, run and tag.
    states: BTreeMap<(usize, String, String), State>,
}

/// How far a series was checked.
#[derive(Debug, Default)]
struct State {
    n_checked: usize,
    /// The first point of the stretch for which the rule holds, and the number of its points.
    stretch: Option<(Point, u64)>,
    is_raised: bool,
}

impl Alerts {
    /// Checks these rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules, states: BTreeMap::new() }
    }

    /// The alerts since the last call. `now` is in Unix seconds: the time against which a stalled run is measured.
    pub fn check(&mut self, runs: &Runs, now: f64) -> Vec<Alert> {
        let mut raised = Vec::new();
        for (idx, rule) in self.rules.iter().enumerate() {
            for (name, run) in &runs.by_name {
                let state = |tag: &str| (idx, name.clone(), tag.to_owned());
                if rule.is_about_runs() {
                    let state = self.states.entry(state("")).or_default();
                    raised.extend(stalled_run(rule, run, state, now).map(|point| alert(rule, name, None, point)));
                    continue;
                }
                for (tag, series) in &run.series {
                    let Series::Scalar(series) = series else { continue };
                    if !rule.matches(tag) {
                        continue;
                    }
                    let state = self.states.entry(state(tag)).or_default();
                    let point = if rule.comparison == Comparison::Stalled {
                        stalled(rule, series.last(), series.len(), state, now)
                    } else {
                        state.advance(rule, series)
                    };
                    raised.extend(point.map(|point| alert(rule, name, Some(tag), point)));
                }
            }
        }
        raised
    }
}

fn alert(rule: &Rule, run: &str, tag: Option<&str>, point: Point) -> Alert {
    Alert {
        rule: rule.to_string(),
        run: run.to_owned(),
        tag: tag.map(str::to_owned),
        point,
        is_stall: rule.comparison == Comparison::Stalled,
    }
}

impl State {
    /// Goes over the new points; returns the last one that raised the alert.
    fn advance(&mut self, rule: &Rule, series: &ScalarSeries) -> Option<Point> {
        let mut raised = None;
        for row in self.n_checked..series.len() {
            let point = series.point(row);
            if !rule.comparison.holds(point.value) {
                (self.stretch, self.is_raised) = (None, false);
                continue;
            }
            // A run that begins anew begins a new stretch.
            let is_earlier = self.stretch.is_some_and(|(first, _)| point.step < first.step);
            let (first, n_before) = self.stretch.filter(|_| !is_earlier).unwrap_or((point, 0));
            self.stretch = Some((first, n_before + 1));
            if !self.is_raised && rule.span.is_reached(&first, &point, n_before + 1) {
                self.is_raised = true;
                raised = Some(point);
            }
        }
        self.n_checked = series.len();
        raised
    }
}

/// The last point of a run without a new point for as long as the rule says.
fn stalled_run(rule: &Rule, run: &Run, state: &mut State, now: f64) -> Option<Point> {
    let scalars = run.series.values().filter_map(|series| match series {
        Series::Scalar(series) => Some(series),
        _ => None,
    });
    let mut n_points = 0;
    let mut newest: Option<Point> = None;
    for series in scalars {
        n_points += series.len();
        newest = newest.into_iter().chain(series.last()).max_by(|a, b| a.wall.total_cmp(&b.wall));
    }
    stalled(rule, newest, n_points, state, now)
}

fn stalled(rule: &Rule, last: Option<Point>, n_points: usize, state: &mut State, now: f64) -> Option<Point> {
    let last = last?;
    if n_points != state.n_checked {
        (state.n_checked, state.is_raised) = (n_points, false);
    }
    if state.is_raised || now - last.wall < rule.span.seconds() {
        return None;
    }
    state.is_raised = true;
    Some(last)
}

mod rule;
#[cfg(test)]
mod tests;
