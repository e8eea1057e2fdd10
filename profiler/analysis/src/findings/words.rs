//! What each kind of segment on a critical path is called, what waits there, and what helps.

use crate::critical::PathKind;
use crate::stalls::cause::{self, Advice};

/// Title and sentences of a finding about a kind.
pub(super) struct Words {
    pub title: &'static str,
    pub advice: Advice,
}

fn waits(title: &'static str, what: &'static str, remedy: &'static str) -> Option<Words> {
    cause::waits(what, remedy).map(|advice| Words { title, advice })
}

/// `None` for what is no finding by itself: ops and kernels are reported one by one, a thread's functions by its samples, and the
/// profiler's own work is nobody's to change.
pub(super) fn of_kind(kind: PathKind) -> Option<Words> {
    match kind {
        PathKind::Op | PathKind::Kernel | PathKind::Running | PathKind::Profiler => None,
        PathKind::Copy => waits(
            "copies",
            "for memory to be copied",
            "Pinned host memory, copies on a stream of their own, or data that stays on the device help.",
        ),
        PathKind::Collective => waits(
            "exposed communication",
            "for collectives that no compute hides",
            "Larger buckets that start earlier, or fewer bytes, help.",
        ),
        PathKind::Launch => waits(
            "launches",
            "for the host to launch work",
            "Fused kernels, captured graphs or larger batches launch less.",
        ),
        PathKind::Input => waits(
            "input",
            "for their input",
            "More loader workers, or loading ahead while the step before runs, helps.",
        ),
        PathKind::Host => {
            waits("host code", "for code on the host", "Move it off the step's thread, or make it cheaper.")
        }
        PathKind::Stall(cause) => cause.info().advice.map(|advice| Words { title: cause.name(), advice }),
        PathKind::Memory => waits(
            "memory",
            "for memory to be allocated or freed",
            "A caching allocator, or buffers that are reused, avoids it.",
        ),
    }
}
