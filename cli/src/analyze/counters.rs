//! Counters of threads, as `analyze` prints them.

use serde_json::{Map, Value, json};
use trace_analysis::counters::CounterTotals;
use trace_analysis::ops::OpRow;
use trace_analysis::report::Analysis;

use text::{Table, truncated};

/// The most rows of the printed table.
const MAX_ROWS: usize = 10;

/// The values of one row by counter name, with the ratios derived from them.
pub fn values_json(totals: &CounterTotals, values: &[u64]) -> Value {
    let mut object: Map<String, Value> =
        totals.names.iter().zip(values).map(|(name, value)| (name.clone(), json!(value))).collect();
    if let Some(ratio) = totals.per_cycle(values) {
        object.insert("instructions_per_cycle".to_owned(), json!(ratio));
    }
    if let Some(ratio) = totals.misses_per_1000(values) {
        object.insert("cache_misses_per_1000_instructions".to_owned(), json!(ratio));
    }
    Value::Object(object)
}

/// The totals, and the counts outside all ops; null where no counters of threads were recorded.
pub fn totals_json(totals: &CounterTotals) -> Value {
    if totals.is_empty() {
        return Value::Null;
    }
    json!({ "total": values_json(totals, &totals.total), "outside_ops": values_json(totals, &totals.outside) })
}

/// The table of counters, where counters of threads were recorded: a row for each of the ops with the highest first
/// counter, a row for the counts outside all ops, and the total.
pub fn table(analysis: &Analysis) -> Option<Table> {
    let totals = &analysis.counted;
    if totals.is_empty() {
        return None;
    }
    let ratios: [(&str, Ratio); 2] =
        [("per cycle", CounterTotals::per_cycle), ("misses/1,000", CounterTotals::misses_per_1000)];
    let ratios: Vec<(&str, Ratio)> =
        ratios.into_iter().filter(|(_, ratio)| ratio(totals, &totals.total).is_some()).collect();
    let titles = ["counted by op", "<device"].into_iter().chain(totals.names.iter().map(String::as_str));
    let mut table = Table::new(titles.chain(ratios.iter().map(|(title, _)| *title)));
    let mut row = |name: String, device: String, values: &[u64]| {
        let counts = totals.names.iter().zip(values).map(|(name, value)| value_text(name, *value));
        let ratios =
            ratios.iter().map(|(_, ratio)| ratio(totals, values).map_or_else(String::new, |r| format!("{r:.2}")));
        table.row([name, device].into_iter().chain(counts).chain(ratios));
    };
    let mut ops: Vec<&OpRow> = analysis.ops.iter().filter(|op| op.counts.iter().any(|n| *n > 0)).collect();
    ops.sort_by(|a, b| b.counts.cmp(&a.counts));
    for op in ops.into_iter().take(MAX_ROWS) {
        row(truncated(&op.name, 48), truncated(&op.device, 24), &op.counts);
    }
    row("outside ops".to_owned(), String::new(), &totals.outside);
    row("all".to_owned(), String::new(), &totals.total);
    Some(table)
}

type Ratio = fn(&CounterTotals, &[u64]) -> Option<f64>;

/// A value as text: a duration for clocks, which count nanoseconds, else a number.
fn value_text(name: &str, value: u64) -> String {
    match name {
        "task-clock" | "cpu-clock" => text::duration(value.min(i64::MAX as u64).cast_signed()),
        _ => text::count(value),
    }
}
