//! What the events of a line are: our category by the plane, the line, the statistics and the name.
//!
//! The names of planes and lines are those of XLA's `tsl/profiler/utils/xplane_schema.cc`.

use super::stats::{StatName, Stats};

/// Beginnings of the names and HLO categories of collectives: XLA's instructions, kernels of NCCL and RCCL.
const COLLECTIVES: [&str; 9] = [
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-",
    "nccl",
    "rccl",
    "mscclKernel",
];

/// The owner of a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Host,
    /// `GPU:0`, `TPU:1`, `TPU:0 SparseCore 2`.
    Device(String),
}

impl Owner {
    /// The owner of the plane with a name.
    pub(super) fn of_plane(name: &str) -> Owner {
        let device = name.strip_prefix("/device:").or_else(|| name.strip_prefix("/virtualdevice:"));
        match device {
            Some(device) => Owner::Device(device.to_owned()),
            // What belongs to a TPU's chip, but to none of its cores.
            None if name.starts_with("#Chip") => Owner::Device(name.to_owned()),
            None => Owner::Host,
        }
    }

    /// The number of a TensorCore among those of the host.
    pub(super) fn tensor_core(&self) -> Option<u64> {
        match self {
            Owner::Device(device) => device.strip_prefix("TPU:")?.parse().ok(),
            Owner::Host => None,
        }
    }
}

/// What the events of a line are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    /// Events of a thread.
    Thread,
    /// A device's work, one after the other or nested.
    Work,
    /// A device's steps.
    Steps,
    /// Executions of programs, which enclose the work of a device.
    Modules,
    /// Operations that run while the device goes on: copies and collectives from their start to their end.
    Async,
    /// Values at times.
    Counters,
    /// Anything else about a device: scopes, source lines, synchronisation flags.
    Spans,
}

impl LineContent {
    pub(super) fn of(owner: &Owner, line: &str) -> LineContent {
        match (owner, line) {
            (Owner::Host, _) => LineContent::Thread,
            (_, "XLA Ops" | "Sparse Core Ops") => LineContent::Work,
            (_, "Steps" | "Sparse Core Steps") => LineContent::Steps,
            (_, "XLA Modules" | "Sparse Core Modules") => LineContent::Modules,
            (_, "Async XLA Ops") => LineContent::Async,
            (_, "_counters_") => LineContent::Counters,
            (_, line) if line.starts_with("Stream") => LineContent::Work,
            _ => LineContent::Spans,
        }
    }
}

/// Our category of an event. `module`, `async op` and `device span` stand for no activity: the analyses take the work
/// itself.
pub(super) fn category(content: LineContent, name: &str, stats: Stats<'_>, is_framework_op: bool) -> &'static str {
    match content {
        LineContent::Steps => "step",
        LineContent::Modules => "module",
        LineContent::Async => "async op",
        LineContent::Spans | LineContent::Counters => "device span",
        LineContent::Work => work(name, stats),
        LineContent::Thread => host(name, stats, is_framework_op),
    }
}

fn work(name: &str, stats: Stats<'_>) -> &'static str {
    let is_collective = |text: &str| COLLECTIVES.iter().any(|begin| text.starts_with(begin));
    let is_copy = || stats.has(StatName::MemcpyDetails) || stats.has(StatName::MemsetDetails);
    if is_collective(name) || stats.text(StatName::HloCategory).is_some_and(is_collective) {
        "collective"
    } else if name.starts_with("Memcpy") || name.starts_with("Memset") || is_copy() {
        "copy"
    } else {
        "kernel"
    }
}

fn host(name: &str, stats: Stats<'_>, is_framework_op: bool) -> &'static str {
    let is_launch = || {
        // DoEnqueueProgram and the like: the program's run on one of the host's cores.
        stats.has(StatName::RunId) && stats.has(StatName::QueueId) && stats.has(StatName::DeviceOrdinal)
    };
    if stats.has(StatName::StepNum) {
        "step"
    } else if stats.has(StatName::CorrelationId) || (is_launch() && !is_callback(name)) {
        "launch"
    } else if stats.has(StatName::HloOp) || is_framework_op || has_framework_op(stats) {
        "op"
    } else if name.ends_with("(wait for completion)") || name.ends_with("ThreadPool::Await") {
        "sync"
    } else {
        "host"
    }
}

/// Whether the statistics name a framework's op; some writers say that there is none.
fn has_framework_op(stats: Stats<'_>) -> bool {
    stats.text(StatName::TfOp).is_some_and(|op| !op.is_empty() && op != "(null)")
}

/// Whether a host's event is the end of a program's run rather than its launch.
pub(super) fn is_callback(name: &str) -> bool {
    name == "CompleteCallbacks"
}

/// Name and type of the TensorFlow op that a host's event runs: `layer/MatMul:MatMul`. The rules are those of
/// `ParseTfOpFullname` in XLA's `tsl/profiler/utils/tf_op_utils.cc`.
pub(super) fn framework_op(event: &str) -> Option<(&str, &str)> {
    let (name, op) = event.split_once(':')?;
    let (mut name_bytes, mut op_bytes) = (name.bytes(), op.bytes());
    let is_name = name_bytes.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.')
        && name_bytes.all(|b| b.is_ascii_alphanumeric() || b"_./>-".contains(&b));
    let is_type = op_bytes.next().is_some_and(|b| b.is_ascii_uppercase() || b == b'_')
        && op_bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && is_type).then_some((name, op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_and_lines_of_devices() {
        let device = |name: &str| Owner::Device(name.to_owned());
        assert_eq!(Owner::of_plane("/device:TPU:0 SparseCore 1"), device("TPU:0 SparseCore 1"));
        assert_eq!(Owner::of_plane("#Chip TPU:0"), device("#Chip TPU:0"));
        assert_eq!(Owner::of_plane("/host:CPU"), Owner::Host);
        assert_eq!(device("TPU:3").tensor_core(), Some(3));
        assert_eq!(device("TPU:3 SparseCore 0").tensor_core(), None);
        assert_eq!(device("GPU:3").tensor_core(), None);
        for (line, content) in [
            ("XLA Ops", LineContent::Work),
            ("Sparse Core Ops", LineContent::Work),
            ("Stream #14(Compute)", LineContent::Work),
            ("XLA Modules", LineContent::Modules),
            ("Async XLA Ops", LineContent::Async),
            ("Framework Name Scope", LineContent::Spans),
        ] {
            assert_eq!(LineContent::of(&device("TPU:0"), line), content, "{line}");
            assert_eq!(LineContent::of(&Owner::Host, line), LineContent::Thread);
        }
    }

    #[test]
    fn ops_of_tensorflow() {
        assert_eq!(framework_op("layer/dense_1/MatMul:MatMul"), Some(("layer/dense_1/MatMul", "MatMul")));
        assert_eq!(framework_op("a>b:_Fused"), Some(("a>b", "_Fused")));
        for other in ["Iterator::Prefetch", "jit_train:XLA GPU module", "end: add", "a:b", "MatMul", ":A", "a:"] {
            assert_eq!(framework_op(other), None, "{other}");
        }
    }
}
