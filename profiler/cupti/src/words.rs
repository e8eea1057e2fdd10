//! Names for CUPTI's enums and CUDA's functions, as PyTorch's profiler writes them.

/// Directions by `CUpti_ActivityMemcpyKind`, from 1 on.
const DIRECTIONS: &[&str] = &["HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"];

/// Memories by `CUpti_ActivityMemoryKind`, from 1 on.
const MEMORIES: &[&str] = &["Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"];

/// Waits by `CUpti_ActivitySynchronizationType`, from 1 on.
const SYNCHRONIZATIONS: &[&str] = &["Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"];

/// Returns the name of an enum's value; values count from 1.
fn enum_name(words: &[&'static str], number: u32) -> Option<&'static str> {
    words.get((number as usize).checked_sub(1)?).copied()
}

pub(crate) fn direction(number: u8) -> &'static str {
    enum_name(DIRECTIONS, number.into()).unwrap_or("of an unknown kind")
}

pub(crate) fn memory(number: u16) -> &'static str {
    enum_name(MEMORIES, number.into()).unwrap_or("Unknown")
}

/// Returns the name of a kind of wait; `None` for an unknown kind.
pub(crate) fn synchronization(number: u32) -> Option<&'static str> {
    enum_name(SYNCHRONIZATIONS, number)
}

/// Overheads by the upper 16 bits of `CUpti_ActivityOverheadKind`, from 1 on.
const OVERHEADS: &[&str] = &[
    "Buffer Flush",
    "Instrumentation",
    "Resource",
    "Runtime Triggered Module Loading",
    "Lazy Function Loading",
    "Command Buffer Full",
    "Activity Buffer Request",
    "UVM Activity Init",
];

pub(crate) fn overhead(number: u32) -> &'static str {
    if number == 1 { "Driver Compiler" } else { enum_name(OVERHEADS, number >> 16).unwrap_or("Overhead") }
}

pub(crate) fn kernel_category(name: &str) -> &'static str {
    let is_collective = ["nccl", "rccl"].iter().any(|prefix| name.starts_with(prefix));
    if is_collective { "collective" } else { "kernel" }
}

pub(crate) fn call_category(name: &str) -> &'static str {
    let is_wait = ["Synchronize", "StreamWaitEvent", "EventQuery"].iter().any(|part| name.contains(part));
    if is_wait { "sync" } else { "launch" }
}

/// Returns a call's name without its interface version (`cudaLaunchKernel_v7000`).
pub(crate) fn strip_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((name, version)) if !version.is_empty() && version.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Demangles a C++ name; returns any other name unchanged.
pub(crate) fn demangle(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

/// Returns the number in `ProfilerStep#12`, the name of a step in PyTorch's profiler.
pub(crate) fn step_number(name: &str) -> Option<u32> {
    name.strip_prefix("ProfilerStep#")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_names() {
        assert_eq!(strip_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(strip_version("cuMemcpyHtoD_v2"), "cuMemcpyHtoD");
        assert_eq!(strip_version("cudaMemcpyAsync"), "cudaMemcpyAsync");
        assert_eq!((call_category("cudaDeviceSynchronize"), call_category("cudaLaunchKernel")), ("sync", "launch"));
        assert_eq!(demangle("_Z3addPfS_i"), "add(float*, float*, int)");
        assert_eq!(demangle("volta_sgemm_128x64_nn"), "volta_sgemm_128x64_nn");
        assert_eq!(step_number("ProfilerStep#12"), Some(12));
    }
}
