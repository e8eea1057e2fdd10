//! The tables of a sealed trace: their columns, and the store's rows that they are made from.

use super::columns::TableError;
use super::names::Names;
use super::table::{Cell, Column, Id, Kind, NodeName, SiteCategory, SiteName, StoredRow, Table, table};
use crate::store::{PlacedInstant, Track};
use arrow_array::{ArrayRef, RecordBatch};
use trace_model::{
    Flow, Frame, Function, MemoryEvent, NodeInfo, OpenSlice, Point, Process, RingPosition, SiteInfo, Stack, Step,
    TrackId, Transfer, Warning,
};

/// The name of the format in the table `meta`, before the version.
pub(super) const FORMAT: &str = "stepscope trace";
/// The version of the format that is written. Version 1 has no call stacks, and no arguments of instants.
pub(super) const VERSION: u32 = 2;

/// Returns the version in the `format` of `meta`, if this program can read that version.
pub(super) fn version_of(format: &str) -> Option<u32> {
    let version = format.strip_prefix(FORMAT)?.trim().parse().ok()?;
    (1..=VERSION).contains(&version).then_some(version)
}

/// The slices. `row_group` writes and reads them, faster than the code that the macro makes for the other tables.
pub(super) const SLICES: Table = Table {
    name: "slices",
    about: "work with a begin and an end",
    since: 1,
    columns: &[
        Column::new("ts_ns", Kind::I64, false, "begin; ns from the trace's origin"),
        Column::new("dur_ns", Kind::I64, false, "duration; ns"),
        Column::new("track_id", Kind::U32, false, "row of `tracks`"),
        Column::new("lane", Kind::U32, false, "lane of the track"),
        Column::new("name", Kind::Text, false, "op type, label or name"),
        Column::new("category", Kind::Text, false, "category: what the numbers mean"),
        Column::new("op", Kind::Text, true, "op type of the node"),
        Column::new("node", Kind::Text, true, "name of the node"),
        Column::new("device", Kind::Text, true, "device of the node"),
        Column::new("step", Kind::U32, true, "id of the step"),
        Column::new("correlation", Kind::U32, false, "by category: of an op the `node_id` whose end made it ready"),
        Column::new("depth", Kind::U32, false, "nesting depth: the lane"),
        Column::new("arg", Kind::U64, false, "by category: of an op its queue wait, ns"),
        Column::new("args", Kind::LongText, true, "arguments: a JSON object"),
    ],
};

table!(TrackRow<'a>, (&'a Track, Option<&'a Process>) as (track, process),
    "tracks", "a row of the timeline: a thread, a stream, a CPU", since 1, {
    track_id: u32 = track.id.0, "number of the row";
    host: &'a str = process.map_or("", |p| &p.host), "host of the process";
    process: &'a str = process.map_or("", |p| &p.name), "name of the process";
    thread: Option<&'a str> = track.kind.is_thread().then_some(&track.name), "name of the thread";
    device: Option<&'a str> = Some(track.device.as_str()).filter(|device| !device.is_empty()), "device";
    stream: Option<u64> = track.stream, "number of the stream on the device";
    kind: &'a str = track.kind.name(), "thread, worker, cpu, stream, copy, network, async";
    name: &'a str = &track.name, "title";
    process_id: u32 = track.process, "row of `processes`";
    pid: u32 = track.key.pid, "id of the process in the recording";
    ring: u32 = track.key.ring, "number of the track in the process";
    tid: u32 = track.tid, "the kernel's thread id, 0 where unknown";
    position: i32 = track.order, "smaller comes first among the tracks of a process";
    dropped: u64 = track.dropped, "events that were not recorded";
    overlapped: u64 = track.overlapped, "slices that overlapped their lane and took another";
    clipped: u64 = track.clipped, "slices that were clipped because all lanes were taken";
});

table!(ProcessRow<'a>, (u32, &'a Process) as (row, process), "processes", "a process", since 1, {
    process_id: u32 = row, "number of the row";
    pid: u32 = process.pid, "the system's id";
    host: &'a str = &process.host, "host";
    name: &'a str = &process.name, "command";
    ns_per_tick: f64 = process.ns_per_tick, "length of a tick of its clock; ns";
    clock_offset_ns: Option<i64> = process.clock.map(|c| c.offset_ns), "of a trace of several hosts: added to its latest times; ns";
    clock_drift_ppb: Option<f64> = process.clock.map(|c| c.drift_ppb),
        "how much faster its clock runs than the collector's; parts per billion";
    clock_bound_ns: Option<u64> = process.clock.map(|c| c.bound_ns), "no time of it is further from its place; ns";
});

table!(SiteRow<'a>, (u32, &'a SiteInfo) as (row, site), "sites", "a name of slices, counters and instants", since 1, {
    site_id: u32 = row, "number of the row";
    category: &'a str = &site.category_name, "category";
    name: &'a str = &site.name, "op type, label or name";
});

table!(NodeRow<'a>, (u32, &'a NodeInfo) as (row, node), "nodes", "a node of the graph, on a device", since 1, {
    node_id: u32 = row, "number of the row";
    name: &'a str = &node.name, "full name";
    op: &'a str = &node.op, "op type";
    device: &'a str = &node.device, "device";
});

table!(StepRow, &'a Step as step, "steps", "an execution of the graph", since 1, {
    step: u32 = step.id, "id of the execution";
    summary_step: i64 = step.summary_step, "step on the axis of summaries";
    name: SiteName = SiteName(step.site), "the caller's label";
    ts_ns: i64 = step.start, "begin; ns from the trace's origin";
    dur_ns: i64 = step.end - step.start, "duration; ns";
    site_id: u32 = step.site, "row of `sites`";
    track_id: u32 = step.slice.track, "row of `tracks`";
    lane: u32 = step.slice.lane, "lane of its slice";
    ordinal: u64 = step.slice.ordinal, "how many slices the lane had before its slice";
});

table!(FlowRow, &'a Flow as flow, "flows", "an arrow between two tracks; an end that did not come is null", since 1, {
    category: SiteCategory = SiteCategory(flow.site), "category";
    name: SiteName = SiteName(flow.site), "name";
    correlation: u32 = flow.correlation, "pairs the two ends";
    process_id: Id = Id(flow.scope), "row of `processes` in which `correlation` is unique, null where it is in the whole trace";
    from_track_id: Id = flow.from.map(|end| end.track).into(), "track of the tail";
    from_ts_ns: Option<i64> = flow.from.map(|end| end.time), "time of the tail; ns from the trace's origin";
    to_track_id: Id = flow.to.map(|end| end.track).into(), "track of the head";
    to_ts_ns: Option<i64> = flow.to.map(|end| end.time), "time of the head; ns from the trace's origin";
    site_id: u32 = flow.site, "row of `sites`";
});

table!(CounterRow, &'a Point as point, "counters", "a value from a time on", since 1, {
    process_id: u32 = point.key.process, "row of `processes`";
    category: SiteCategory = SiteCategory(point.key.site), "category";
    name: SiteName = SiteName(point.key.site), "name";
    ts_ns: i64 = point.time, "time; ns from the trace's origin";
    value: f64 = point.value, "the value";
    site_id: u32 = point.key.site, "row of `sites`";
    track_id: Id = point.key.track.into(), "of a counter of one thread: its track";
});

table!(InstantRow<'a>, &'a PlacedInstant as instant,
    "instants", "something at one time: a log message, a sample", since 1, {
    track_id: u32 = instant.track.0, "row of `tracks`";
    ts_ns: i64 = instant.event.time, "time; ns from the trace's origin";
    category: SiteCategory = SiteCategory(instant.event.site), "category";
    name: SiteName = SiteName(instant.event.site), "name";
    arg: u64 = instant.event.arg, "by category: of a sample its `stack_id`";
    site_id: u32 = instant.event.site, "row of `sites`";
    args: Option<&'a str> = instant.args.as_deref(), "arguments: a JSON object";
});

table!(MemoryRow, &'a MemoryEvent as event, "memory", "bytes allocated or (negative) freed", since 1, {
    ts_ns: i64 = event.time, "time; ns from the trace's origin";
    track_id: u32 = event.track.0, "row of `tracks`: the thread that did it";
    category: SiteCategory = SiteCategory(event.site), "category";
    name: SiteName = SiteName(event.site), "the device";
    node: NodeName = NodeName(event.node), "name of the node";
    bytes: i64 = event.bytes, "bytes; bytes";
    site_id: u32 = event.site, "row of `sites`";
    node_id: Id = Id(event.node), "row of `nodes`";
});

table!(TransferRow, &'a Transfer as transfer,
    "transfers", "a value sent from device to device, with its five stamps", since 1, {
    process_id: Id = Id(transfer.scope), "row of `processes`, null where it went to another process";
    number: u32 = transfer.number, "joins its events";
    step: u32 = transfer.step_id, "id of the step";
    bytes: u32 = transfer.bytes, "bytes that travelled; bytes";
    sender_node_id: Id = Id(transfer.sender), "row of `nodes`: the `_Send`";
    receiver_node_id: Id = Id(transfer.receiver), "row of `nodes`: the `_Recv`";
    from_track_id: Id = transfer.from.into(), "track on which it left";
    to_track_id: Id = transfer.to.into(), "track on which its consumers were unblocked";
    enqueued_ns: Option<i64> = transfer.enqueued, "it was ready to be sent; ns from the trace's origin";
    sent_ns: Option<i64> = transfer.sent, "the send began; ns from the trace's origin";
    left_ns: Option<i64> = transfer.left, "it left; ns from the trace's origin";
    arrived_ns: Option<i64> = transfer.arrived, "it came to the receiver; ns from the trace's origin";
    unblocked_ns: Option<i64> = transfer.unblocked, "its consumers were unblocked; ns from the trace's origin";
});

table!(OpenRow, (TrackId, &'a OpenSlice) as (track, open),
    "open_slices", "a slice that had begun and not ended", since 1, {
    track_id: u32 = track.0, "row of `tracks`";
    ts_ns: i64 = open.start, "begin; ns from the trace's origin";
    depth: u32 = open.depth.into(), "nesting depth";
    category: SiteCategory = SiteCategory(open.site), "category";
    name: SiteName = SiteName(open.site), "name";
    node: NodeName = NodeName(open.node), "name of the node";
    site_id: u32 = open.site, "row of `sites`";
    node_id: Id = Id(open.node), "row of `nodes`";
});

table!(StackRow, (u32, &'a Stack) as (row, stack),
    "stacks", "a call stack: its caller's and one more frame; a sample's arg is its stack_id", since 2, {
    stack_id: u32 = row, "number of the row";
    parent_id: Id = Id(stack.parent), "row of the caller's stack";
    frame_id: u32 = stack.frame, "row of `frames`";
});

table!(FrameRow<'a>, (u32, &'a Frame) as (row, frame), "frames", "a location in code", since 2, {
    frame_id: u32 = row, "number of the row";
    module: &'a str = &frame.module, "file of code, `[kernel]`, or empty";
    address: u64 = frame.address, "address in it";
});

table!(FunctionRow<'a>, (u32, &'a Function) as (frame, function),
    "functions", "a function of a frame; of those inlined into each other the outer one first", since 2, {
    frame_id: u32 = frame, "row of `frames`";
    name: &'a str = &function.name, "demangled name";
    file: &'a str = &function.file, "source file, empty where unknown";
    line: u32 = function.line, "line, 0 where unknown";
});

table!(WarningRow<'a>, &'a Warning as warning, "warnings", "what the user has to know of a trace", since 1, {
    kind: &'a str = warning.kind.name(), "kind";
    source: &'a str = &warning.source, "file or thread";
    count: u64 = warning.count, "how often";
    text: &'a str = &warning.text, "the sentence";
});

table!(RingRow, &'a RingPosition as position,
    "rings", "how far a ring of the folder is in the sealed trace: what lies next to it is newer", since 1, {
    pid: u32 = position.pid, "process";
    ring: u32 = position.ring, "number of the ring";
    made: u64 = position.made, "distinguishes rings of one number";
    next: u64 = position.next, "number of the next record";
    dropped: u64 = position.dropped, "records that it could not take";
});

table!(MetaRow<'a>, &'a (String, String) as (key, value),
    "meta", "a trace's origin, range, format and hosts, as text", since 1, {
    key: &'a str = key, "`format`, `clock`, `origin_ns`, `first_ns`, `last_ns`, `slices`, `hosts`";
    value: &'a str = value, "the value";
});

/// The side tables, in the order of writing. A writer appends their rows as they arrive, and need not store them.
pub(super) const SIDES: [Table; 5] =
    [InstantRow::TABLE, CounterRow::TABLE, FlowRow::TABLE, MemoryRow::TABLE, TransferRow::TABLE];

/// All tables in the order of their listing, except `rings`, which only this program reads.
pub(super) const TABLES: [Table; 17] = [
    SLICES,
    TrackRow::TABLE,
    ProcessRow::TABLE,
    StepRow::TABLE,
    NodeRow::TABLE,
    FlowRow::TABLE,
    CounterRow::TABLE,
    InstantRow::TABLE,
    MemoryRow::TABLE,
    TransferRow::TABLE,
    OpenRow::TABLE,
    SiteRow::TABLE,
    StackRow::TABLE,
    FrameRow::TABLE,
    FunctionRow::TABLE,
    WarningRow::TABLE,
    MetaRow::TABLE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_tables() {
        let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/trace-format.md"))
            .unwrap();
        for table in TABLES.iter().chain([&RingRow::TABLE]) {
            let columns: Vec<String> =
                table.columns.iter().map(|c| format!("`{}` {}", c.name, c.description())).collect();
            let line = format!("| `{}` | {} | {} |", table.name, table.about, columns.join("; "));
            assert!(docs.contains(&line), "docs/formats/trace-format.md lacks\n{line}");
        }
    }
}
