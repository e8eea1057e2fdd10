//! Maps the categories of PyTorch's profiler (Kineto) to ours.

use super::json::{elements, members, text};
use trace_model::Category;

/// Our category for a category and name of Kineto; another category is returned unchanged.
pub(in crate::import) fn category<'a>(category: &'a str, name: &str) -> &'a str {
    match category {
        "cpu_op" => "op",
        "kernel" if is_collective(name) => "collective",
        "kernel" => "kernel",
        "gpu_memcpy" | "gpu_memset" | "Memcpy" | "Memset" => "copy",
        "cuda_runtime" | "cuda_driver" | "hip_runtime" | "xpu_runtime" | "Runtime" if is_wait(name) => "sync",
        "cuda_runtime" | "cuda_driver" | "hip_runtime" | "xpu_runtime" | "Runtime" => "launch",
        "cuda_sync" => "sync",
        "python_function" => "python",
        "user_annotation" if step_number(name).is_some() => "step",
        other => other,
    }
}

/// Whether a kernel is a collective of NCCL or RCCL, which waits for other devices.
fn is_collective(name: &str) -> bool {
    ["nccl", "rccl"].iter().any(|prefix| name.starts_with(prefix))
}

/// Calls that wait for the device.
fn is_wait(name: &str) -> bool {
    name.contains("Synchronize") || name.contains("StreamWaitEvent") || name.contains("EventQuery")
}

/// The number in `ProfilerStep#12`.
pub(in crate::import) fn step_number(name: &str) -> Option<u32> {
    name.strip_prefix("ProfilerStep#")?.split_whitespace().next()?.parse().ok()
}

/// Whether flows of a category have numbers that are unique in a process only: a call and its work, an op and its
/// gradient.
pub(super) fn is_of_process(category: &[u8]) -> bool {
    matches!(category, b"ac2g" | b"async_cpu_to_gpu" | b"async_gpu" | b"fwdbwd" | b"forward_backward")
}

/// Whether slices of a category have numbers among their arguments that are imported.
pub(super) fn has_numbers(category: Category) -> bool {
    use Category as C;
    matches!(category, C::Launch | C::Kernel | C::Copy | C::Collective | C::Sync | C::Step | C::Running | C::OffCpu)
}

/// Whether slices of a category are work of a device.
pub(super) fn is_of_device(category: Category) -> bool {
    matches!(category, Category::Kernel | Category::Copy | Category::Collective)
}

/// Numbers among the arguments of a device's work and its launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KinetoArgs {
    pub(super) correlation: Option<u32>,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) bytes: Option<u64>,
    /// Id of a step and its step on the axis of summaries, as our exporter writes them.
    pub(super) step: (Option<u32>, Option<u64>),
    /// Of what ran on a CPU, or why not.
    pub(super) thread: Option<u32>,
}

impl KinetoArgs {
    pub(super) fn parse(args: &[u8]) -> KinetoArgs {
        let mut numbers = KinetoArgs::default();
        for (key, value) in members(args) {
            match key {
                b"correlation" => numbers.correlation = integer(value).map(|n| n as u32),
                b"device" => numbers.device = integer(value),
                b"stream" => numbers.stream = integer(value),
                b"bytes" | b"Bytes" => numbers.bytes = integer(value).and_then(|n| u64::try_from(n).ok()),
                b"step id" => numbers.step.0 = integer(value).map(|n| n as u32),
                b"step" => numbers.step.1 = integer(value).map(|n| n as u64),
                b"thread" => numbers.thread = integer(value).map(|n| n as u32),
                _ => {}
            }
        }
        numbers
    }
}

/// `[memory]` of PyTorch: bytes (negative when freed) and the device they are on.
pub(super) fn memory(args: &[u8]) -> Option<(i64, String)> {
    let (mut bytes, mut kind, mut device) = (None, None, -1);
    for (key, value) in members(args) {
        match key {
            // The keys that our exporter writes.
            b"device" => return Some((bytes?, text(value))),
            b"Bytes" => bytes = integer(value),
            b"Device Type" => kind = integer(value),
            b"Device Id" => device = integer(value).unwrap_or(-1),
            _ => {}
        }
    }
    // The numbers of c10::DeviceType.
    let kind = match kind? {
        0 => "cpu",
        1 => "cuda",
        6 => "fpga",
        9 => "xla",
        12 => "xpu",
        13 => "mps",
        20 => "privateuseone",
        _ => "device",
    };
    Some((bytes?, if device < 0 { kind.to_owned() } else { format!("{kind}:{device}") }))
}

/// Whether a process with this label is a device.
pub(super) fn is_device(label: &str) -> bool {
    label.strip_prefix("GPU ").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

/// The rank in `distributedInfo`.
pub(super) fn rank(info: &[u8]) -> Option<u32> {
    members(info).find(|(key, _)| *key == b"rank").and_then(|(_, v)| integer(v)?.try_into().ok())
}

/// The devices' names by their numbers, from `deviceProperties`.
pub(super) fn devices(properties: &[u8]) -> Vec<(i64, String)> {
    let device = |object: &[u8]| {
        let field = |name: &[u8]| members(object).find(|(key, _)| *key == name).map(|(_, v)| v);
        Some((integer(field(b"id")?)?, text(field(b"name")?)))
    };
    elements(properties).filter_map(device).collect()
}

/// An integer, with or without quotes, decimal or `0x`.
pub(super) fn integer(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?.trim_matches('"');
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => text.parse().ok().or_else(|| text.parse::<f64>().ok().filter(|n| n.fract() == 0.0).map(|n| n as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_become_ours() {
        for (theirs, name, ours) in [
            ("cpu_op", "aten::mm", "op"),
            ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "collective"),
            ("kernel", "void gemm<4>", "kernel"),
            ("gpu_memset", "Memset (Device)", "copy"),
            ("cuda_runtime", "cudaLaunchKernel", "launch"),
            ("cuda_driver", "cuLaunchKernelEx", "launch"),
            ("cuda_runtime", "cudaDeviceSynchronize", "sync"),
            ("user_annotation", "ProfilerStep#7", "step"),
            ("user_annotation", "forward", "user_annotation"),
            ("gpu_user_annotation", "ProfilerStep#7", "gpu_user_annotation"),
            ("python_function", "f", "python"),
            ("mine", "ProfilerStep#7", "mine"),
        ] {
            assert_eq!(category(theirs, name), ours, "{theirs} {name}");
        }
    }

    #[test]
    fn numbers_of_arguments() {
        let args = br#"{"device": 1, "stream": "20", "correlation": 57541, "bytes": 4e3, "grid": [1, {"device": 9}]}"#;
        let (correlation, device, stream, bytes) = (Some(57_541), Some(1), Some(20), Some(4_000));
        let expected = KinetoArgs { correlation, device, stream, bytes, ..KinetoArgs::default() };
        assert_eq!(KinetoArgs::parse(args), expected);
        let args = br#"{"Total Allocated": 5, "Bytes": -512, "Device Id": 0, "Device Type": 1}"#;
        assert_eq!(memory(args), Some((-512, "cuda:0".to_owned())));
        assert_eq!(integer(b"\"0xff\""), Some(255));
        assert_eq!(rank(br#"{"backend": "nccl", "rank": 3}"#), Some(3));
        assert_eq!(
            devices(br#"[{"id": 0, "name": "A"}, {"id": 1, "name": "B"},]"#),
            [(0, "A".into()), (1, "B".into())]
        );
    }
}
