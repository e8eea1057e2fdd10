//! `stepscope diff`: what changed between two traces.

use serde_json::{Value, json};
use trace_analysis::diff::{Change, Diff, diff};

use crate::analyze::figures;
use crate::args;
use crate::out;
use crate::outcome::Outcome;
use crate::trace_file;
use text::{Table, truncated};

/// The most rows of each printed table.
const TOP: usize = 15;

/// Compares the traces.
pub fn run(args: &args::Diff) -> Outcome {
    let (a, b) = (trace_file::open(&args.a)?, trace_file::open(&args.b)?);
    let found = diff(&a, &b);
    if args.json {
        out::line(to_json(&found));
    } else {
        print(&found);
    }
    trace_file::warn(&args.a, &a);
    trace_file::warn(&args.b, &b);
    if let Some(few) = few_steps(&found) {
        note!("warning: {few}");
    }
    Ok(())
}

/// A warning where the traces have too few steps for meaningful intervals.
fn few_steps(found: &Diff) -> Option<String> {
    let fewest = found.a_steps.min(found.b_steps);
    match fewest {
        0 => Some("a trace has no steps: its totals are compared, and chance cannot be ruled out".to_owned()),
        1 => Some("a trace has one step: chance cannot be ruled out".to_owned()),
        2..10 => Some(format!("a trace has {fewest} steps only: the intervals are wide")),
        _ => None,
    }
}

fn change_json(change: &Change) -> Value {
    json!({
        "name": change.name, "a_ns": change.a_ns, "b_ns": change.b_ns, "change_ns": change.change_ns(),
        "interval_ns": change.interval_ns.map(|(low, high)| [low, high]), "certain": change.is_certain(),
    })
}

fn to_json(found: &Diff) -> Value {
    let all = |changes: &[Change]| changes.iter().map(change_json).collect::<Vec<_>>();
    json!({
        "schema_version": figures::SCHEMA_VERSION, "a_steps": found.a_steps, "b_steps": found.b_steps, "step": change_json(&found.step), "ops": all(&found.ops),
        "scopes": all(&found.scopes), "stalls": all(&found.stalls), "warnings": few_steps(found).into_iter().collect::<Vec<_>>(),
    })
}

fn print(found: &Diff) {
    out::line(format!("{} steps in A, {} in B; times are means per step", found.a_steps, found.b_steps));
    let tables = [("step", std::slice::from_ref(&found.step)), ("ops", &found.ops[..]), ("scopes", &found.scopes[..])];
    for (title, changes) in tables.into_iter().chain([("stalls", &found.stalls[..])]) {
        let mut table = Table::new([title, "A", "B", "change", "<95 % interval", "<"]);
        for change in changes.iter().take(TOP) {
            let time = |ns: f64| text::duration(ns as i64);
            let interval = change.interval_ns.map(|(low, high)| format!("{} to {}", time(low), time(high)));
            let certain = if change.is_certain() { "certain" } else { "" };
            table.row([
                truncated(&change.name, 48),
                time(change.a_ns),
                time(change.b_ns),
                signed(change),
                interval.unwrap_or_default(),
                certain.to_owned(),
            ]);
        }
        out::table(&table);
    }
}

/// `+12.3 us (+4.5 %)`.
fn signed(change: &Change) -> String {
    let sign = if change.change_ns() < 0.0 { '-' } else { '+' };
    let share = match change.a_ns {
        0.0 => "new".to_owned(),
        a => format!("{:+.1} %", change.change_ns() * 100.0 / a),
    };
    format!("{sign}{} ({share})", text::duration(change.change_ns().abs() as i64))
}
