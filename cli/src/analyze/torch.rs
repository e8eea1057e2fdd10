//! Modules, and ops by the shapes of their inputs, as `analyze` prints them.

use serde_json::{Value, json};
use trace_analysis::kernels::KernelKindRow;
use trace_analysis::torch::{ModuleCost, ModuleRow, OpShapeRow};

use super::roofline::rate;
use text::{Table, truncated};

/// The most rows of each printed table.
const MAX_MODULES: usize = 24;
const MAX_SHAPES: usize = 12;

fn cost_json(cost: &ModuleCost) -> Value {
    json!({
        "host_ns": cost.host_ns, "device_ns": cost.device_ns, "flop": cost.flop,
        "allocated_bytes": cost.allocated_bytes, "net_bytes": cost.net_bytes,
    })
}

pub fn modules_json(rows: &[ModuleRow]) -> Vec<Value> {
    let module = |row: &ModuleRow| {
        json!({
            "name": row.name, "parent": row.parent, "depth": row.depth, "calls": row.calls,
            "forward": cost_json(&row.forward), "backward": cost_json(&row.backward),
            "own_forward": cost_json(&row.own_forward), "own_backward": cost_json(&row.own_backward),
        })
    };
    rows.iter().map(module).collect()
}

pub fn shapes_json(rows: &[OpShapeRow]) -> Vec<Value> {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let row = |row: &OpShapeRow| {
        json!({
            "name": row.name, "dims": parsed(&row.dims), "types": parsed(&row.types), "count": row.count,
            "total_ns": row.total_ns, "self_ns": row.self_ns, "device_ns": row.device_ns,
            "self_device_ns": row.self_device_ns, "flop": row.flop,
        })
    };
    rows.iter().map(row).collect()
}

/// The tree from its roots on, as many levels as there is room for; modules of one level are all in it or none.
pub fn modules_table(rows: &[ModuleRow]) -> Table {
    let n_to = |depth: usize| rows.iter().filter(|row| row.depth <= depth).count();
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    let depth = (0..=deepest).rev().find(|depth| n_to(*depth) <= MAX_MODULES).unwrap_or(0);
    let on_device = rows.iter().any(|row| row.forward.device_ns + row.backward.device_ns > 0);
    let place = if on_device { "device" } else { "host" };
    let titles = ["modules", "calls", "forward", "gradients", "forward", "gradients", "allocated"];
    let titles = titles.map(str::to_owned);
    let mut table = Table::new(titles.into_iter().enumerate().map(|(column, title)| match column {
        2 | 3 => format!("{title}, {place}"),
        4 | 5 => format!("{title}, FLOP"),
        _ => title,
    }));
    for row in rows.iter().filter(|row| row.depth <= depth).take(MAX_MODULES) {
        let ns = |cost: &ModuleCost| text::duration(if on_device { cost.device_ns } else { cost.host_ns });
        let name = if row.name.is_empty() { "(outside modules)" } else { &row.name };
        table.row([
            format!("{}{}", "  ".repeat(row.depth), truncated(name, 48)),
            text::count(row.calls),
            ns(&row.forward),
            ns(&row.backward),
            flop(row.forward.flop),
            flop(row.backward.flop),
            text::bytes(row.forward.allocated_bytes.max(0).cast_unsigned()),
        ]);
    }
    table
}

/// Empty where nothing is counted.
fn flop(value: f64) -> String {
    if value > 0.0 { rate(value, "") } else { String::new() }
}

pub fn shapes_table(rows: &[OpShapeRow]) -> Table {
    let mut table = Table::new(["ops by shapes of inputs", "<shapes", "count", "host, self", "device, self", "FLOP/s"]);
    for row in rows.iter().take(MAX_SHAPES) {
        let ns = if row.device_ns > 0 { row.device_ns } else { row.total_ns };
        let speed = flop(row.flop * 1e9 / ns.max(1) as f64);
        table.row([
            truncated(&row.name, 40),
            truncated(&row.dims, 40),
            text::count(row.count),
            text::duration(row.self_ns),
            text::duration(row.self_device_ns),
            speed,
        ]);
    }
    table
}

pub fn kernels_json(rows: &[KernelKindRow]) -> Vec<Value> {
    rows.iter().map(|row| json!({ "kind": row.kind.name(), "count": row.count, "ns": row.ns })).collect()
}

pub fn kernels_table(rows: &[KernelKindRow]) -> Table {
    let total: i64 = rows.iter().map(|row| row.ns).sum();
    let mut table = Table::new(["kernels by kind", "count", "total", "share"]);
    for row in rows {
        let share = row.ns as f64 * 100.0 / total.max(1) as f64;
        table.row([row.kind.name().into(), text::count(row.count), text::duration(row.ns), format!("{share:.1} %")]);
    }
    table
}
