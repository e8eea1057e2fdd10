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
const MAX_ROWS: usize = 15;

/// Compares the traces.
pub fn run(args: &args::Diff) -> Outcome {
    let (a, b) = (trace_file::open(&args.a)?, trace_file::open(&args.b)?);
    let result = diff(&a, &b);
    if args.json {
        out::line(to_json(&result));
    } else {
        print(&result);
    }
    trace_file::warn(&args.a, &a);
    trace_file::warn(&args.b, &b);
    if let Some(warning) = few_steps_warning(&result) {
        note!("warning: {warning}");
    }
    Ok(())
}

/// A warning where the traces have too few steps for meaningful intervals.
fn few_steps_warning(result: &Diff) -> Option<String> {
    let fewest = result.a_steps.min(result.b_steps);
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

fn to_json(result: &Diff) -> Value {
    let to_array = |changes: &[Change]| changes.iter().map(change_json).collect::<Vec<_>>();
    json!({
        "schema_version": figures::SCHEMA_VERSION, "a_steps": result.a_steps, "b_steps": result.b_steps,
        "step": change_json(&result.step), "ops": to_array(&result.ops), "scopes": to_array(&result.scopes),
        "stalls": to_array(&result.stalls), "warnings": few_steps_warning(result).into_iter().collect::<Vec<_>>(),
    })
}

fn print(result: &Diff) {
    out::line(format!("{} steps in A, {} in B; times are means per step", result.a_steps, result.b_steps));
    let tables =
        [("step", std::slice::from_ref(&result.step)), ("ops", &result.ops[..]), ("scopes", &result.scopes[..])];
    for (title, changes) in tables.into_iter().chain([("stalls", &result.stalls[..])]) {
        let mut table = Table::new([title, "A", "B", "change", "<95 % interval", "<"]);
        for change in changes.iter().take(MAX_ROWS) {
            let time = |ns: f64| text::duration(ns as i64);
            let interval = change.interval_ns.map(|(low, high)| format!("{} to {}", time(low), time(high)));
            let certain = if change.is_certain() { "certain" } else { "" };
            table.row([
                truncated(&change.name, 48),
                time(change.a_ns),
                time(change.b_ns),
                signed_change(change),
                interval.unwrap_or_default(),
                certain.to_owned(),
            ]);
        }
        out::table(&table);
    }
}

/// `+12.3 us (+4.5 %)`.
fn signed_change(change: &Change) -> String {
    let sign = if change.change_ns() < 0.0 { '-' } else { '+' };
    let share = match change.a_ns {
        0.0 => "new".to_owned(),
        a => format!("{:+.1} %", change.change_ns() * 100.0 / a),
    };
    format!("{sign}{} ({share})", text::duration(change.change_ns().abs() as i64))
}
