//! Recognises the traces of other tools by a file's first bytes.

use crate::wire::{Fields, Value};

/// Formats of traces that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Chrome's trace events in JSON: PyTorch's Kineto, viztracer and many others.
    ChromeJson,
    /// Perfetto's protobuf.
    Perfetto,
    /// XPlane protobuf, of XLA's profilers (TensorFlow, JAX, PyTorch/XLA).
    XPlane,
    /// TensorFlow's RunMetadata or StepStats.
    StepStats,
    /// The text of the kernel's `trace` file (ftrace), `trace-cmd report` or systrace.
    Ftrace,
    /// The output of `perf script`.
    PerfScript,
    /// The SQLite export of Nsight Systems.
    Nsys,
    /// A `trace.dat` recording of `trace-cmd`.
    TraceDat,
}

/// The number of lines of a text that are examined.
const MAX_LINES: usize = 200;
/// The number of fields of a protobuf file's first message that are examined.
const MAX_FIELDS: usize = 16;

/// Recognises the format of a trace by its beginning; `None` where the bytes begin no trace that can be imported.
pub(super) fn recognise(prefix: &[u8]) -> Option<TraceFormat> {
    if is_chrome_json(prefix) {
        return Some(TraceFormat::ChromeJson);
    }
    if prefix.starts_with(b"SQLite format 3\0") {
        return is_nsys(prefix).then_some(TraceFormat::Nsys);
    }
    if prefix.starts_with(b"\x17\x08\x44tracing") {
        return Some(TraceFormat::TraceDat);
    }
    // The tag of a protobuf message's field 1, which holds a message.
    let may_be_protobuf = prefix.first() == Some(&0x0a);
    if let Some(format) = may_be_protobuf.then(|| recognise_protobuf(prefix)).flatten() {
        return Some(format);
    }
    let text = std::str::from_utf8(prefix).or_else(|e| std::str::from_utf8(&prefix[..e.valid_up_to()])).ok()?;
    let mut lines = text.lines().take(MAX_LINES);
    lines.find_map(|line| {
        if line.starts_with("# tracer:") || is_ftrace_line(line) {
            Some(TraceFormat::Ftrace)
        } else if is_perf_line(line) {
            Some(TraceFormat::PerfScript)
        } else {
            None
        }
    })
}

/// Whether an SQLite file is an export of Nsight Systems: the schema in the first pages names the tables.
fn is_nsys(prefix: &[u8]) -> bool {
    const TABLES: [&[u8]; 6] =
        [b"StringIds", b"CUPTI_ACTIVITY_KIND", b"ENUM_NSYS_", b"ENUM_CUDA_", b"TARGET_INFO_", b"NVTX_EVENTS"];
    TABLES.iter().any(|table| memchr::memmem::find(prefix, table).is_some())
}

/// Whether the bytes are JSON with trace events, or with the keys that Kineto and Chrome write before the events.
fn is_chrome_json(prefix: &[u8]) -> bool {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let keys: &[&[u8]] = match text.iter().find(|c| !c.is_ascii_whitespace()) {
        Some(b'[') => &[b"\"ph\""],
        Some(b'{') => &[b"\"traceEvents\"", b"\"deviceProperties\"", b"\"displayTimeUnit\"", b"\"stackFrames\""],
        _ => return false,
    };
    keys.iter().any(|key| text.windows(key.len()).any(|window| window == *key))
}

/// Whether a line has ftrace's form: `  comm-123   [001] d..2. 12.345678: sched_switch: ...`
fn is_ftrace_line(line: &str) -> bool {
    let Some((task, rest)) = line.split_once('[') else { return false };
    let Some((cpu, rest)) = rest.split_once(']') else { return false };
    let pid = task.trim_end().trim_end_matches(|c: char| c == ')' || c == '(' || c == '-' || c.is_ascii_digit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    is_number(cpu)
        && pid.len() < task.trim_end().len()
        && task.contains('-')
        && rest.split_whitespace().any(|w| w.ends_with(':'))
}

/// Whether a line has the form of `perf script`: `comm 123/124 [001] 12.345678: 250000 cpu-clock:`. Its stacks follow
/// on indented lines.
fn is_perf_line(line: &str) -> bool {
    if line.starts_with(char::is_whitespace) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time = |word: &&str| {
        word.strip_suffix(':').and_then(|t| t.split_once('.')).is_some_and(|(s, f)| {
            !s.is_empty() && f.len() >= 6 && s.bytes().chain(f.bytes()).all(|c| c.is_ascii_digit())
        })
    };
    let Some(time_idx) = words.iter().position(is_time) else { return false };
    // Before the time stand a name, which may have spaces, the ids and the CPU; after it the event's name.
    (2..=12).contains(&time_idx) && words[time_idx + 1..].iter().any(|w| w.ends_with(':'))
}

/// Recognises a protobuf trace. All of them begin with a message in field 1, whose fields identify the format.
fn recognise_protobuf(prefix: &[u8]) -> Option<TraceFormat> {
    let mut messages = Fields::new(prefix);
    // The beginning of the first message may be enough where the prefix ends within it.
    let first = match messages.next()? {
        Ok((1, Value::Bytes(bytes))) => bytes,
        Ok(_) => return None,
        Err(_) => first_field(prefix)?.1,
    };
    let fields: Vec<(u32, Value<'_>)> = Fields::new(first).take(MAX_FIELDS).map_while(Result::ok).collect();
    let packet_fields: Option<Vec<bool>> = fields.iter().map(identifies_packet).collect();
    if is_plane(&fields) {
        Some(TraceFormat::XPlane)
    } else if is_device_stats(first) {
        Some(TraceFormat::StepStats)
    } else if packet_fields.is_some_and(|fields| fields.contains(&true)) {
        Some(TraceFormat::Perfetto)
    } else {
        None
    }
}

/// Whether a field of Perfetto's TracePacket identifies a packet, rather than occurring in other formats' messages,
/// too. `None` where TracePacket has no field with this number and wire type.
fn identifies_packet(field: &(u32, Value<'_>)) -> Option<bool> {
    match field {
        // timestamp, trusted_packet_sequence_id
        (8 | 10, Value::Varint(_)) => Some(true),
        // clock_snapshot, track_event, trace_config, synchronization_marker, compressed_packets, track_descriptor,
        // trace_uuid, zstd_compressed_packets
        (6 | 11 | 33 | 36 | 50 | 60 | 89 | 133, Value::Bytes(_)) => Some(true),
        // trusted_uid, sequence_flags, incremental_state_cleared, previous_packet_dropped, timestamp_clock_id,
        // trusted_pid, first_packet_on_sequence, machine_id
        (3 | 13 | 41 | 42 | 58 | 79 | 87 | 98, Value::Varint(_)) => Some(false),
        // ftrace_events, process_tree, sys_stats, process_stats, interned_data, ftrace_stats, trace_stats,
        // process_descriptor, thread_descriptor, system_info, trigger, trace_packet_defaults, clone_snapshot_trigger
        (1 | 2 | 7 | 9 | 12 | 34 | 35 | 43..=46 | 59 | 124, Value::Bytes(_)) => Some(false),
        _ => None,
    }
}

/// Whether the fields of a message begin an XPlane: an optional id, then a printable name.
fn is_plane(fields: &[(u32, Value<'_>)]) -> bool {
    let name = match fields {
        [(1, Value::Varint(_)), (2, Value::Bytes(name)), ..] | [(2, Value::Bytes(name)), ..] => name,
        _ => return false,
    };
    !name.is_empty() && name.iter().all(|c| c.is_ascii_graphic() || *c == b' ')
}

/// Whether `bytes` begin a StepStats, or a RunMetadata with one: a device's name, one or two messages deep.
fn is_device_stats(bytes: &[u8]) -> bool {
    let is_device = |bytes: &[u8]| {
        first_field(bytes).is_some_and(|(field, name)| field == 1 && name.starts_with(b"/") && is_name(name))
    };
    is_device(bytes) || first_field(bytes).is_some_and(|(field, inner)| field == 1 && is_device(inner))
}

pub(super) fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic)
}

/// The number and content of a leading length-delimited field. The content may be cut off where the input ends.
pub(super) fn first_field(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&tag, mut rest) = bytes.split_first()?;
    if tag & 7 != 2 || tag & 0x80 != 0 {
        return None;
    }
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    let n = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
    Some((u32::from(tag >> 3), &rest[..n]))
}
