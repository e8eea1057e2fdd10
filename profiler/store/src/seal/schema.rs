//! The tables of a sealed trace.

use super::columns::TableError;
use super::names::Names;
use super::table::{Cell, Column, Id, Kind, NodeName, SiteCategory, SiteName, StoredRow, Table, table};
use arrow_array::{ArrayRef, RecordBatch};

/// The name of the format in `meta`, before the version.
pub(super) const FORMAT: &str = "stepscope trace";
/// The version that is written. Version 1 has no call stacks, and no arguments of instants.
pub(super) const VERSION: u32 = 2;

/// Written and read by code of its own (`part`, `group`), for speed.
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

table!(TrackRow<'a>, "tracks", "a row of the timeline: a thread, a stream, a CPU", since 1, {
    track_id: u32 = "number of the row",
    host: &'a str = "host of the process",
    process: &'a str = "name of the process",
    thread: Option<&'a str> = "name of the thread",
    device: Option<&'a str> = "device",
    stream: Option<u64> = "number of the stream on the device",
    kind: &'a str = "thread, worker, cpu, stream, copy, network, async",
    name: &'a str = "title",
    process_id: u32 = "row of `processes`",
    pid: u32 = "id of the process in the recording",
    ring: u32 = "number of the track in the process",
    tid: u32 = "the kernel's thread id, 0 where unknown",
    position: i32 = "smaller comes first among the tracks of a process",
    dropped: u64 = "events that were not recorded",
    overlapped: u64 = "slices that overlapped their lane and took another",
    clipped: u64 = "slices that were clipped because all lanes were taken",
});

table!(ProcessRow<'a>, "processes", "a process", since 1, {
    process_id: u32 = "number of the row",
    pid: u32 = "the system's id",
    host: &'a str = "host",
    name: &'a str = "command",
    ns_per_tick: f64 = "length of a tick of its clock; ns",
    clock_offset_ns: Option<i64> = "of a trace of several hosts: added to its latest times; ns",
    clock_drift_ppb: Option<f64> = "how much faster its clock runs than the collector's; parts per billion",
    clock_bound_ns: Option<u64> = "no time of it is further from its place; ns",
});

table!(SiteRow<'a>, "sites", "a name of slices, counters and instants", since 1, {
    site_id: u32 = "number of the row",
    category: &'a str = "category",
    name: &'a str = "op type, label or name",
});

table!(NodeRow<'a>, "nodes", "a node of the graph, on a device", since 1, {
    node_id: u32 = "number of the row",
    name: &'a str = "full name",
    op: &'a str = "op type",
    device: &'a str = "device",
});

table!(StepRow, "steps", "an execution of the graph", since 1, {
    step: u32 = "id of the execution",
    summary_step: i64 = "step on the axis of summaries",
    name: SiteName = "the caller's label",
    ts_ns: i64 = "begin; ns from the trace's origin",
    dur_ns: i64 = "duration; ns",
    site_id: u32 = "row of `sites`",
    track_id: u32 = "row of `tracks`",
    lane: u32 = "lane of its slice",
    ordinal: u64 = "how many slices the lane had before its slice",
});

table!(FlowRow, "flows", "an arrow between two tracks; an end that did not come is null", since 1, {
    category: SiteCategory = "category",
    name: SiteName = "name",
    correlation: u32 = "pairs the two ends",
    process_id: Id = "row of `processes` in which `correlation` is unique, null where it is in the whole trace",
    from_track_id: Id = "track of the tail",
    from_ts_ns: Option<i64> = "time of the tail; ns from the trace's origin",
    to_track_id: Id = "track of the head",
    to_ts_ns: Option<i64> = "time of the head; ns from the trace's origin",
    site_id: u32 = "row of `sites`",
});

table!(CounterRow, "counters", "a value from a time on", since 1, {
    process_id: u32 = "row of `processes`",
    category: SiteCategory = "category",
    name: SiteName = "name",
    ts_ns: i64 = "time; ns from the trace's origin",
    value: f64 = "the value",
    site_id: u32 = "row of `sites`",
    track_id: Id = "of a counter of one thread: its track",
});

table!(InstantRow<'a>, "instants", "something at one time: a log message, a sample", since 1, {
    track_id: u32 = "row of `tracks`",
    ts_ns: i64 = "time; ns from the trace's origin",
    category: SiteCategory = "category",
    name: SiteName = "name",
    arg: u64 = "by category: of a sample its `stack_id`",
    site_id: u32 = "row of `sites`",
    args: Option<&'a str> = "arguments: a JSON object",
});

table!(MemoryRow, "memory", "bytes allocated or (negative) freed", since 1, {
    ts_ns: i64 = "time; ns from the trace's origin",
    track_id: u32 = "row of `tracks`: the thread that did it",
    category: SiteCategory = "category",
    name: SiteName = "the device",
    node: NodeName = "name of the node",
    bytes: i64 = "bytes; bytes",
    site_id: u32 = "row of `sites`",
    node_id: Id = "row of `nodes`",
});

table!(TransferRow, "transfers", "a value sent from device to device, with its five stamps", since 1, {
    process_id: Id = "row of `processes`, null where it went to another process",
    number: u32 = "joins its events",
    step: u32 = "id of the step",
    bytes: u32 = "bytes that travelled; bytes",
    sender_node_id: Id = "row of `nodes`: the `_Send`",
    receiver_node_id: Id = "row of `nodes`: the `_Recv`",
    from_track_id: Id = "track on which it left",
    to_track_id: Id = "track on which its consumers were unblocked",
    enqueued_ns: Option<i64> = "it was ready to be sent; ns from the trace's origin",
    sent_ns: Option<i64> = "the send began; ns from the trace's origin",
    left_ns: Option<i64> = "it left; ns from the trace's origin",
    arrived_ns: Option<i64> = "it came to the receiver; ns from the trace's origin",
    unblocked_ns: Option<i64> = "its consumers were unblocked; ns from the trace's origin",
});

table!(OpenRow, "open_slices", "a slice that had begun and not ended", since 1, {
    track_id: u32 = "row of `tracks`",
    ts_ns: i64 = "begin; ns from the trace's origin",
    depth: u32 = "nesting depth",
    category: SiteCategory = "category",
    name: SiteName = "name",
    node: NodeName = "name of the node",
    site_id: u32 = "row of `sites`",
    node_id: Id = "row of `nodes`",
});

table!(StackRow, "stacks", "a call stack: its caller's and one more frame; a sample's arg is its stack_id", since 2, {
    stack_id: u32 = "number of the row",
    parent_id: Id = "row of the caller's stack",
    frame_id: u32 = "row of `frames`",
});

table!(FrameRow<'a>, "frames", "a location in code", since 2, {
    frame_id: u32 = "number of the row",
    module: &'a str = "file of code, `[kernel]`, or empty",
    address: u64 = "address in it",
});

table!(FunctionRow<'a>, "functions", "a function of a frame; of those inlined into each other the outer one first", since 2, {
    frame_id: u32 = "row of `frames`",
    name: &'a str = "demangled name",
    file: &'a str = "source file, empty where unknown",
    line: u32 = "line, 0 where unknown",
});

table!(WarningRow<'a>, "warnings", "what the user has to know of a trace", since 1, {
    kind: &'a str = "kind",
    source: &'a str = "file or thread",
    count: u64 = "how often",
    text: &'a str = "the sentence",
});

table!(RingRow, "rings", "how far a ring of the folder is in the sealed trace: what lies next to it is newer", since 1, {
    pid: u32 = "process",
    ring: u32 = "number of the ring",
    made: u64 = "distinguishes rings of one number",
    next: u64 = "number of the next record",
    dropped: u64 = "records that it could not take",
});

table!(MetaRow<'a>, "meta", "a trace's origin, range, format and hosts, as text", since 1, {
    key: &'a str = "`format`, `clock`, `origin_ns`, `first_ns`, `last_ns`, `slices`, `hosts`",
    value: &'a str = "the value",
});

/// All tables but `rings`, which is of use to this program only, in the order in which they are listed.
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
            let columns: Vec<String> = table.columns.iter().map(|c| format!("`{}` {}", c.name, c.about())).collect();
            let line = format!("| `{}` | {} | {} |", table.name, table.about, columns.join("; "));
            assert!(docs.contains(&line), "docs/formats/trace-format.md lacks\n{line}");
        }
    }
}
