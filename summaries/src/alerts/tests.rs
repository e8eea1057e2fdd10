//! Rules on points that are written by hand.

use super::*;
use crate::alerts::rule::Span;

fn runs(tag: &str, points: &[(i64, f64)]) -> Runs {
    let mut runs = Runs::default();
    grow(&mut runs, tag, points);
    runs
}

fn grow(runs: &mut Runs, tag: &str, points: &[(i64, f64)]) {
    let run = runs.by_name.get_or_default("run");
    if run.series.get_mut(tag).is_none() {
        run.series.insert(tag.to_owned(), Series::Scalar(Box::default()));
    }
    let Some(Series::Scalar(series)) = run.series.get_mut(tag) else { panic!("a scalar") };
    series.extend(points.iter().map(|&(step, value)| Point { step, wall: step as f64, value }));
}

fn raised(alerts: &mut Alerts, runs: &Runs, now: f64) -> Vec<(String, Option<String>, i64)> {
    alerts.check(runs, now).into_iter().map(|alert| (alert.run, alert.tag, alert.point.step)).collect()
}

fn alerts(rule: &str) -> Alerts {
    Alerts::new(vec![rule.parse().unwrap()])
}

#[test]
fn a_rule_holds_for_its_span_and_is_raised_once_for_each_stretch() {
    let mut rule = alerts("loss > 3 for 100 steps");
    let mut data = runs("loss", &[(0, 9.0), (50, 9.0), (90, 2.0), (100, 4.0), (199, 4.0)]);
    assert_eq!(raised(&mut rule, &data, 0.0), []);
    grow(&mut data, "loss", &[(200, 4.0), (300, 4.0)]);
    assert_eq!(raised(&mut rule, &data, 0.0), [("run".to_owned(), Some("loss".to_owned()), 200)]);
    grow(&mut data, "loss", &[(301, 4.0)]);
    assert_eq!(raised(&mut rule, &data, 0.0), []);
    grow(&mut data, "loss", &[(302, 1.0), (303, 4.0), (500, 4.0)]);
    assert_eq!(raised(&mut rule, &data, 0.0), [("run".to_owned(), Some("loss".to_owned()), 500)]);
}

#[test]
fn a_restarted_run_begins_a_new_stretch() {
    let mut rule = alerts("loss > 3 for 10 steps");
    let data = runs("loss", &[(5, 4.0), (14, 4.0), (0, 4.0), (9, 4.0)]);
    assert_eq!(raised(&mut rule, &data, 0.0), []);
}

#[test]
fn nan_and_infinity_of_any_tag() {
    let data = runs("a/b", &[(1, 0.0), (2, f64::NAN), (3, f64::INFINITY)]);
    assert_eq!(raised(&mut alerts("* is nan"), &data, 0.0), [("run".to_owned(), Some("a/b".to_owned()), 2)]);
    assert_eq!(raised(&mut alerts("a/* is infinite"), &data, 0.0), [("run".to_owned(), Some("a/b".to_owned()), 3)]);
    assert_eq!(raised(&mut alerts("b is nan"), &data, 0.0), []);
    assert_eq!(raised(&mut alerts("* != 0"), &data, 0.0), [("run".to_owned(), Some("a/b".to_owned()), 2)]);
}

#[test]
fn a_run_stalls_once_until_it_goes_on() {
    let mut rule = alerts("run stalled for 2 minutes");
    let mut data = runs("loss", &[(100, 1.0)]);
    assert_eq!(raised(&mut rule, &data, 219.0), []);
    assert_eq!(raised(&mut rule, &data, 220.0), [("run".to_owned(), None, 100)]);
    assert_eq!(raised(&mut rule, &data, 400.0), []);
    grow(&mut data, "loss", &[(410, 1.0)]);
    assert_eq!(raised(&mut rule, &data, 420.0), []);
    assert_eq!(raised(&mut rule, &data, 530.0), [("run".to_owned(), None, 410)]);
}

#[test]
fn what_is_no_rule_says_why() {
    for (text, why) in [
        ("loss", "a comparison is missing"),
        ("> 3", "the tag is missing"),
        ("loss > three", "'three' is no number"),
        ("loss ~ 3", "'~' is no comparison"),
        ("loss > 3 for 5", "'for' is followed by a number and a unit"),
        ("loss > 3 for 5 epochs", "'epochs' is no unit"),
        ("run stalled for 5 steps", "a stall is measured in seconds"),
        ("", "a comparison is missing"),
    ] {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let rule: Rule = "my tag >= -1e3 for 1.5 hours".parse().unwrap();
    assert!(rule.matches("my tag") && !rule.matches("my tags") && rule.span == Span::Seconds(5400.0));
}
