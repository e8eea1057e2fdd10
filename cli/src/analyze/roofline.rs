//! Rooflines, as `analyze` prints them.

use serde_json::{Value, json};
use trace_analysis::roofline::{Bound, Roof, Roofline, Work};

use super::figures::merged;
use text::{Table, truncated};

/// The most rows of each device's printed table.
const MAX_ROWS: usize = 10;

fn work_json(work: &Work, roof: &Roof) -> Value {
    json!({
        "flops": work.flops, "bytes": work.bytes, "ns": work.ns, "flops_per_second": work.flops_per_s(),
        "bytes_per_second": work.bytes_per_s(), "flops_per_byte": work.intensity(),
        "bound": roof.bound(work).map(Bound::name), "share_of_limit": roof.share(work),
    })
}

/// The rooflines of all devices.
pub fn to_json(lines: &[Roofline]) -> Vec<Value> {
    let device = |line: &Roofline| {
        let rows = line.rows.iter().map(|row| {
            let about = json!({ "name": row.name, "category": row.category, "count": row.count });
            merged(about, work_json(&row.work, &line.roof))
        });
        json!({
            "device": line.device, "peak_flops_per_second": line.roof.flops_per_s,
            "peak_bytes_per_second": line.roof.bytes_per_s, "ridge_flops_per_byte": line.roof.ridge(),
            "total": work_json(&line.total, &line.roof), "ops": rows.collect::<Vec<_>>(),
        })
    };
    lines.iter().map(device).collect()
}

/// The peak of a device, as text.
pub fn limits(line: &Roofline) -> String {
    let shown = |value: Option<f64>, unit: &str| value.map_or_else(|| format!("? {unit}"), |v| rate(v, unit));
    let device = if line.device.is_empty() { "host" } else { &line.device };
    format!("{device}: at most {}, {}", shown(line.roof.flops_per_s, "FLOP/s"), shown(line.roof.bytes_per_s, "B/s"))
}

/// The ops with the most time, and their total, below a title.
pub fn table(line: &Roofline, title: &str) -> Table {
    let mut table = Table::new([title, "time", "operations", "memory", "FLOP/B", "<bound by", "of its limit"]);
    let mut row = |name: String, work: &Work| {
        table.row([
            name,
            text::duration(work.ns),
            rate(work.flops_per_s(), "FLOP/s"),
            rate(work.bytes_per_s(), "B/s"),
            work.intensity().map_or_else(String::new, |i| format!("{i:.2}")),
            line.roof.bound(work).map_or_else(String::new, |bound| bound.name().to_owned()),
            line.roof.share(work).map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
        ]);
    };
    line.rows.iter().take(MAX_ROWS).for_each(|r| row(truncated(&r.name, 48), &r.work));
    row("all".to_owned(), &line.total);
    table
}

/// `1.23 TFLOP/s`.
pub fn rate(value: f64, unit: &str) -> String {
    let (scale, prefix) = match value {
        v if v < 1e3 => (1.0, ""),
        v if v < 1e6 => (1e3, "k"),
        v if v < 1e9 => (1e6, "M"),
        v if v < 1e12 => (1e9, "G"),
        v if v < 1e15 => (1e12, "T"),
        _ => (1e15, "P"),
    };
    format!("{:.2} {prefix}{unit}", value / scale)
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_take_their_unit() {
        let shown: Vec<String> = [0.0, 999.0, 2.5e3, 1e9, 1.97e14, 3e15].map(|v| rate(v, "FLOP/s")).to_vec();
        assert_eq!(
            shown,
            ["0.00 FLOP/s", "999.00 FLOP/s", "2.50 kFLOP/s", "1.00 GFLOP/s", "197.00 TFLOP/s", "3.00 PFLOP/s"]
        );
    }
}
