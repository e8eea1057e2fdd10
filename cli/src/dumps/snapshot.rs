//! Memory snapshots: what is in use, what the peak consisted of, what failed, what changed between two.

use serde_json::{Value, json};
use text::{Table, truncated};
use torch_dumps::{
    Allocation, Device, LivePoint, Snapshot, StackBytes, StackId, Stacks, Usage, by_stack, by_user_frame, difference,
    lifetimes, live_at, live_blocks, out_of_memory, peak, usage_by_pool,
};

use crate::out;

const SCHEMA_VERSION: u32 = 1;
/// The most rows of each printed table, and of each list in JSON.
const MAX_ROWS: usize = 12;
const MAX_JSON_ROWS: usize = 1000;

/// Prints what a snapshot says.
pub fn explain(snapshot: &Snapshot, is_json: bool) {
    let devices = snapshot.devices.iter().enumerate().filter(|(_, device)| !is_empty(device));
    if is_json {
        let live = by_frame_json(snapshot, &live_blocks(snapshot));
        let settings = snapshot.settings.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let devices: Vec<Value> = devices.map(|(number, device)| device_json(snapshot, number, device)).collect();
        let settings: serde_json::Map<String, Value> = settings.collect();
        out::object(SCHEMA_VERSION, json!({ "devices": devices, "allocated_now": live, "settings": settings }));
        return;
    }
    let mut is_any = false;
    for (number, device) in devices {
        is_any = true;
        print_device(snapshot, number, device);
    }
    if !is_any {
        say!("the snapshot is empty: no segments, and no events");
        return;
    }
    print_by_frame(snapshot, "allocated now, by frame", &live_blocks(snapshot));
}

fn is_empty(device: &Device) -> bool {
    device.segments.is_empty() && device.events.is_empty()
}

/// The sum over all pools.
fn total(device: &Device) -> Usage {
    let mut sum = Usage::default();
    for pool in usage_by_pool(device) {
        let usage = pool.usage;
        sum.reserved = sum.reserved.saturating_add(usage.reserved);
        sum.allocated = sum.allocated.saturating_add(usage.allocated);
        sum.requested = sum.requested.saturating_add(usage.requested);
        sum.pending_free = sum.pending_free.saturating_add(usage.pending_free);
        sum.inactive_split = sum.inactive_split.saturating_add(usage.inactive_split);
        sum.largest_free = sum.largest_free.max(usage.largest_free);
        sum.n_segments += usage.n_segments;
    }
    sum
}

fn print_device(snapshot: &Snapshot, number: usize, device: &Device) {
    let (usage, allocations) = (total(device), lifetimes(device));
    say!(
        "device {number}: {} reserved in {}, {} allocated, {} free, of which {} in split segments; largest free block {}",
        text::bytes(usage.reserved),
        text::count_of(usage.n_segments, "segment"),
        text::bytes(usage.allocated),
        text::bytes(usage.free()),
        text::bytes(usage.inactive_split),
        text::bytes(usage.largest_free),
    );
    print_pools(device);
    let begin = device.events.first().map_or(0, |event| event.time_us);
    if let Some(peak) = peak(device, &allocations).filter(|_| !device.events.is_empty()) {
        say!("");
        say!(
            "peak: {} allocated, {} reserved, {} after the first of {}",
            text::bytes(peak.point.allocated),
            text::bytes(peak.point.reserved),
            text::duration(peak.point.time_us.saturating_sub(begin).saturating_mul(1000)),
            text::count_of(device.events.len() as u64, "event"),
        );
        print_by_frame(snapshot, "allocated at the peak, by frame", &by_stack(&peak.live));
    }
    for failure in out_of_memory(device, &allocations) {
        say!("");
        say!(
            "out of memory {} after the first event: asked for {}, {} allocated, {} reserved, {} free on the device; at {}",
            text::duration(failure.point.time_us.saturating_sub(begin).saturating_mul(1000)),
            text::bytes(failure.requested),
            text::bytes(failure.point.allocated),
            text::bytes(failure.point.reserved),
            text::bytes(failure.device_free),
            place(&snapshot.stacks, failure.stack),
        );
        print_by_frame(snapshot, "allocated then, by frame", &live_then(&allocations, failure.point));
    }
}

fn live_then(allocations: &[Allocation], point: LivePoint) -> Vec<StackBytes> {
    by_stack(live_at(allocations, point.event))
}

fn print_pools(device: &Device) {
    let pools = usage_by_pool(device);
    if pools.len() < 2 {
        return;
    }
    let mut table = Table::new(["pool", "stream", "<blocks", "segments", "reserved", "allocated", "largest free"]);
    for pool in pools.iter().take(MAX_ROWS) {
        let usage = pool.usage;
        let bytes = [usage.reserved, usage.allocated, usage.largest_free].map(text::bytes);
        let name = format!("{}, {}", pool.pool.0, pool.pool.1);
        let size = if pool.is_large { "large" } else { "small" };
        let cells = [name, pool.stream.to_string(), size.to_owned(), text::count(usage.n_segments)];
        table.row(cells.into_iter().chain(bytes));
    }
    out::table(&table);
}

fn print_by_frame(snapshot: &Snapshot, title: &str, sums: &[StackBytes]) {
    let mut table = Table::new([title, "bytes", "allocations"]);
    for row in by_user_frame(&snapshot.stacks, sums).into_iter().take(MAX_ROWS) {
        let place = row.frame.map_or_else(|| "(no stack)".to_owned(), |frame| frame_text(&snapshot.stacks, frame));
        table.row([truncated(&place, 80), text::bytes(row.bytes), text::count(row.count)]);
    }
    out::table(&table);
}

fn frame_text(stacks: &Stacks, frame: torch_dumps::FrameId) -> String {
    let frame = stacks.frame(frame);
    format!("{} ({}:{})", frame.function, frame.file, frame.line)
}

/// The innermost frame that is the user's.
pub fn place(stacks: &Stacks, stack: StackId) -> String {
    stacks.user_frame(stack).map_or_else(|| "an unknown place".to_owned(), |frame| frame_text(stacks, frame))
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "reserved_bytes": usage.reserved, "allocated_bytes": usage.allocated, "requested_bytes": usage.requested,
        "pending_free_bytes": usage.pending_free, "inactive_split_bytes": usage.inactive_split,
        "largest_free_bytes": usage.largest_free, "segments": usage.n_segments,
    })
}

fn point_json(point: &LivePoint) -> Value {
    json!({
        "event": point.event, "time_us": point.time_us, "allocated_bytes": point.allocated,
        "reserved_bytes": point.reserved,
    })
}

fn by_frame_json(snapshot: &Snapshot, sums: &[StackBytes]) -> Vec<Value> {
    let rows = by_user_frame(&snapshot.stacks, sums).into_iter().take(MAX_JSON_ROWS);
    let row = |row: torch_dumps::FrameBytes| {
        let frame = row.frame.map(|frame| snapshot.stacks.frame(frame));
        json!({
            "function": frame.map(|frame| frame.function), "file": frame.map(|frame| frame.file),
            "line": frame.map(|frame| frame.line), "bytes": row.bytes, "count": row.count,
        })
    };
    rows.map(row).collect()
}

fn device_json(snapshot: &Snapshot, number: usize, device: &Device) -> Value {
    let allocations = lifetimes(device);
    let pools = usage_by_pool(device);
    let pools = pools.iter().map(|pool| {
        json!({
            "pool": [pool.pool.0, pool.pool.1], "stream": pool.stream, "large": pool.is_large,
            "usage": usage_json(&pool.usage),
        })
    });
    let peak = peak(device, &allocations).map(
        |peak| json!({ "at": point_json(&peak.point), "by_frame": by_frame_json(snapshot, &by_stack(&peak.live)) }),
    );
    let failures = out_of_memory(device, &allocations).into_iter().map(|failure| {
        json!({
            "at": point_json(&failure.point), "requested_bytes": failure.requested,
            "device_free_bytes": failure.device_free, "frame": place(&snapshot.stacks, failure.stack),
            "by_frame": by_frame_json(snapshot, &live_then(&allocations, failure.point)),
        })
    });
    json!({
        "device": number, "events": device.events.len(), "usage": usage_json(&total(device)),
        "pools": pools.collect::<Vec<_>>(), "peak": peak, "out_of_memory": failures.collect::<Vec<_>>(),
    })
}

/// Prints what changed, by stack.
pub fn compare(before: &Snapshot, after: &Snapshot, is_json: bool) {
    let changes = difference(before, after);
    let of = |change: &torch_dumps::StackChange| match (change.after, change.before) {
        (Some(sum), _) => place(&after.stacks, sum.stack),
        (None, Some(sum)) => place(&before.stacks, sum.stack),
        (None, None) => String::new(),
    };
    let bytes = |sum: Option<StackBytes>| sum.map_or(0, |sum| sum.bytes);
    if is_json {
        let rows = changes.iter().take(MAX_JSON_ROWS).map(|change| {
            json!({
                "frame": of(change), "change_bytes": change.bytes(), "before_bytes": bytes(change.before),
                "after_bytes": bytes(change.after),
            })
        });
        return out::object(SCHEMA_VERSION, json!({ "changes": rows.collect::<Vec<_>>() }));
    }
    let total: i64 = changes.iter().map(torch_dumps::StackChange::bytes).fold(0, i64::saturating_add);
    say!("{} allocated now than before", more(total));
    let mut table = Table::new(["change by stack", "change", "before", "after"]);
    for change in changes.iter().filter(|change| change.bytes() != 0).take(MAX_ROWS) {
        let sums = [change.before, change.after].map(|sum| text::bytes(bytes(sum)));
        table.row([truncated(&of(change), 80), more(change.bytes())].into_iter().chain(sums));
    }
    out::table(&table);
}

fn more(bytes: i64) -> String {
    let word = if bytes < 0 { "less" } else { "more" };
    format!("{} {word}", text::bytes(bytes.unsigned_abs()))
}
