//! The texts of findings about the critical path: for each kind of segment the title, the problem and the remedy.

use crate::critical::PathKind;
use crate::stalls::cause::Problem::{Sentence, Waits};
use crate::stalls::cause::{Advice, Cause};

/// Groups of segments of one kind that need different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SegmentGroup {
    /// Segments with the usual remedy of their kind.
    Usual,
    /// A launching call that took long, because the call itself waited.
    LongCall,
    /// Work that began long after its launch.
    LateWork,
    /// A thread that waited for a timer, a device or another program, not for a CPU.
    Asleep,
}

/// Returns title and sentences for a group of segments. `None` for ops and kernels, which are reported one by one, for
/// threads whose scheduling alone is known, since samples report their functions, and for the profiler's own work.
pub(super) fn texts_of(
    kind: PathKind,
    group: SegmentGroup,
    has_steps: bool,
    has_scheduling: bool,
) -> Option<(&'static str, Advice)> {
    let (title, problem, remedy) = match (group, kind) {
        (SegmentGroup::LongCall, _) => (
            "long launch calls",
            Waits("for calls that took long to launch work"),
            "Such a call waits itself: for room in the device's queue, for a module that is loaded, for a lock. Launching less does not \
             help.",
        ),
        (SegmentGroup::LateWork, _) => (
            "work that began late",
            Sentence("Work began more than a millisecond after its launch, with nothing before it on its stream"),
            "That is no cost of launching: look for another process on the device, a module that was loaded, or streams that were not \
             recorded.",
        ),
        (SegmentGroup::Asleep, _) => (
            "asleep",
            Sentence("The thread that everything waited for slept, until a timer, a device or another program woke it"),
            "Look at what it called there: a sleep, a read, a socket.",
        ),
        (_, PathKind::Op | PathKind::Kernel | PathKind::Running | PathKind::Profiler) => return None,
        (_, PathKind::Copy) => (
            "copies",
            Waits("for memory to be copied"),
            "Pinned host memory, copies on a stream of their own, or data that stays on the device help.",
        ),
        (_, PathKind::Collective) => (
            "exposed communication",
            Waits("for collectives that no compute hides"),
            "Larger buckets that start earlier, or fewer bytes, help.",
        ),
        (_, PathKind::Launch) => (
            "launches",
            Waits("for the host to launch work"),
            "Fused kernels, captured graphs or larger batches launch less.",
        ),
        (_, PathKind::Input) if has_steps => (
            "input",
            Waits("for their input"),
            "More loader workers, or loading ahead while the step before runs, helps.",
        ),
        (_, PathKind::Input) => ("input", Waits("for its input"), "More loader workers, or loading ahead, helps."),
        (_, PathKind::Host) => (
            "host code",
            Waits("for code on the host"),
            if has_steps {
                "Move it off the step's thread, or make it cheaper."
            } else {
                "Make it cheaper, or let other threads do it meanwhile."
            },
        ),
        (_, PathKind::Stall(Cause::Unexplained)) if has_scheduling => (
            "unexplained",
            Sentence("The trace does not say what was waited for"),
            "Scheduling shows when threads waited and who woke them; for what, slices of the program's own would show (`tracing`, or \
             the `events` crate).",
        ),
        (_, PathKind::Stall(cause)) => return cause.info().advice.map(|advice| (cause.name(), advice)),
        (_, PathKind::Memory) => (
            "memory",
            Waits("for memory to be allocated or freed"),
            "A caching allocator, or buffers that are reused, avoids it.",
        ),
    };
    Some((title, Advice { problem, remedy }))
}
