//! Which tool's trace a file is, by its first bytes.

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
    /// The kernel's `trace` file (ftrace, `trace-cmd report`, systrace), as text.
    Ftrace,
    /// What `perf script` prints.
    PerfScript,
    /// What Nsight Systems exports as SQLite.
    Nsys,
    /// `trace.dat`, what `trace-cmd` records.
    TraceDat,
}

/// Lines of a text that are looked at.
const MAX_LINES: usize = 200;

/// The format, where the bytes are the begin of a trace that can be imported.
pub(super) fn format(prefix: &[u8]) -> Option<TraceFormat> {
    if is_chrome_json(prefix) {
        return Some(TraceFormat::ChromeJson);
    }
    if prefix.starts_with(b"SQLite format 3\0") {
        return is_nsys(prefix).then_some(TraceFormat::Nsys);
    }
    if prefix.starts_with(b"\x17\x08\x44tracing") {
        return Some(TraceFormat::TraceDat);
    }
    if prefix.first() == Some(&0x0a) {
        return protobuf(prefix);
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

/// The names of its tables stand in the first pages.
fn is_nsys(prefix: &[u8]) -> bool {
    const TABLES: [&[u8]; 6] =
        [b"StringIds", b"CUPTI_ACTIVITY_KIND", b"ENUM_NSYS_", b"ENUM_CUDA_", b"TARGET_INFO_", b"NVTX_EVENTS"];
    TABLES.iter().any(|table| memchr::memmem::find(prefix, table).is_some())
}

/// JSON with trace events in it, or with what Kineto and Chrome write before them.
fn is_chrome_json(prefix: &[u8]) -> bool {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let keys: &[&[u8]] = match text.iter().find(|c| !c.is_ascii_whitespace()) {
        Some(b'[') => &[b"\"ph\""],
        Some(b'{') => &[b"\"traceEvents\"", b"\"deviceProperties\"", b"\"displayTimeUnit\"", b"\"stackFrames\""],
        _ => return false,
    };
    keys.iter().any(|key| text.windows(key.len()).any(|window| window == *key))
}

/// `  comm-123   [001] d..2. 12.345678: sched_switch: ...`
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

/// `comm 123/124 [001] 12.345678: 250000 cpu-clock:`; stacks follow on indented lines.
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
    let Some(at) = words.iter().position(is_time) else { return false };
    (2..=12).contains(&at) && words[at + 1..].iter().any(|w| w.ends_with(':'))
}

/// All protobuf traces begin with field 1, a message; its fields identify the format.
fn protobuf(prefix: &[u8]) -> Option<TraceFormat> {
    let mut messages = Fields::new(prefix);
    // The first message may be enough even where the prefix cuts it.
    let first = match messages.next()? {
        Ok((1, Value::Bytes(bytes))) => bytes,
        Ok(_) => return None,
        Err(_) => first_field(prefix)?.1,
    };
    let fields: Vec<(u32, Value<'_>)> = Fields::new(first).take(16).map_while(Result::ok).collect();
    let known = |field: &(u32, Value<'_>)| {
        matches!(
            field,
            (3 | 8 | 10 | 13 | 41 | 42 | 58 | 79 | 87 | 98, Value::Varint(_))
                | (1 | 2 | 6 | 7 | 9 | 11 | 12 | 33..=36 | 43..=46 | 50 | 59 | 60 | 89 | 124 | 133, Value::Bytes(_))
        )
    };
    let has_packet = fields.iter().any(|f| matches!(f, (6 | 8 | 10 | 11 | 33 | 36 | 50 | 60 | 89 | 133, _)));
    if is_plane(&fields, first) {
        Some(TraceFormat::XPlane)
    } else if is_device_stats(first) {
        Some(TraceFormat::StepStats)
    } else if !fields.is_empty() && has_packet && fields.iter().all(known) {
        Some(TraceFormat::Perfetto)
    } else {
        None
    }
}

/// A plane has perhaps a number, and then a name that can be read.
fn is_plane(fields: &[(u32, Value<'_>)], bytes: &[u8]) -> bool {
    // Its lines may not all be in the part that is looked at.
    let cut;
    let fields = if fields.is_empty() {
        cut = Fields::new(bytes).map_while(Result::ok).collect::<Vec<_>>();
        &cut
    } else {
        fields
    };
    let name = match fields {
        [(1, Value::Varint(_)), (2, Value::Bytes(name)), ..] | [(2, Value::Bytes(name)), ..] => name,
        _ => return false,
    };
    !name.is_empty() && name.iter().all(|c| c.is_ascii_graphic() || *c == b' ')
}

/// StepStats in RunMetadata, or alone: a device's name within one or two messages.
fn is_device_stats(bytes: &[u8]) -> bool {
    let is_device = |bytes: &[u8]| {
        first_field(bytes).is_some_and(|(field, name)| field == 1 && name.starts_with(b"/") && is_name(name))
    };
    is_device(bytes) || first_field(bytes).is_some_and(|(field, inner)| field == 1 && is_device(inner))
}

pub(super) fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic)
}

/// The number and the content (cut where the input ends) of a leading length-delimited field.
pub(super) fn first_field(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&tag, mut rest) = bytes.split_first()?;
    if tag & 7 != 2 || tag & 0x80 != 0 {
        return None;
    }
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    let n = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
    Some((u32::from(tag >> 3), &rest[..n]))
}
