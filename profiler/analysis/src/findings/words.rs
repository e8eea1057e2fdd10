//! The words of findings about the critical path: for each kind of segment its title, what waits there, and what helps.

use crate::critical::PathKind;
use crate::stalls::cause::{Advice, Cause, sentence, waits};

/// Groups of segments of one kind, where they ask for different changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SegmentGroup {
    Usual,
    /// A call took long to launch something: it waited itself.
    LongCall,
    /// Work began long after its launch.
    LateWork,
    /// A thread waited for a timer, a device or what the trace does not have, and not for a CPU.
    Asleep,
}

/// Title and sentences; `None` for what is no finding by itself: ops and kernels are reported one by one, a thread's functions by its samples, and the
/// profiler's own work is nobody's to change.
pub(super) fn words_of(
    kind: PathKind,
    group: SegmentGroup,
    has_steps: bool,
    has_scheduling: bool,
) -> Option<(&'static str, Advice)> {
    let (title, advice) = of_group(group).or_else(|| of_kind(kind, has_steps, has_scheduling))?;
    Some((title, advice?))
}

fn of_group(group: SegmentGroup) -> Option<(&'static str, Option<Advice>)> {
    Some(match group {
        SegmentGroup::Usual => return None,
        SegmentGroup::LongCall => (
            "long launch calls",
            waits(
                "for calls that took long to launch work",
                "Such a call waits itself: for room in the device's queue, for a module that is loaded, for a lock. Launching less \
                 does not help.",
            ),
        ),
        SegmentGroup::LateWork => (
            "work that began late",
            sentence(
                "Work began more than a millisecond after its launch, with nothing before it on its stream",
                "That is no cost of launching: look for another process on the device, a module that was loaded, or streams \
                 that were not recorded.",
            ),
        ),
        SegmentGroup::Asleep => (
            "asleep",
            sentence(
                "The thread that everything waited for slept, until a timer, a device or another program woke it",
                "Look at what it called there: a sleep, a read, a socket.",
            ),
        ),
    })
}

fn of_kind(kind: PathKind, has_steps: bool, has_scheduling: bool) -> Option<(&'static str, Option<Advice>)> {
    Some(match kind {
        PathKind::Op | PathKind::Kernel | PathKind::Running | PathKind::Profiler => return None,
        PathKind::Copy => (
            "copies",
            waits(
                "for memory to be copied",
                "Pinned host memory, copies on a stream of their own, or data that stays on the device help.",
            ),
        ),
        PathKind::Collective => (
            "exposed communication",
            waits("for collectives that no compute hides", "Larger buckets that start earlier, or fewer bytes, help."),
        ),
        PathKind::Launch => (
            "launches",
            waits("for the host to launch work", "Fused kernels, captured graphs or larger batches launch less."),
        ),
        PathKind::Input if has_steps => (
            "input",
            waits("for their input", "More loader workers, or loading ahead while the step before runs, helps."),
        ),
        PathKind::Input => ("input", waits("for its input", "More loader workers, or loading ahead, helps.")),
        PathKind::Host if has_steps => {
            ("host code", waits("for code on the host", "Move it off the step's thread, or make it cheaper."))
        }
        PathKind::Host => {
            ("host code", waits("for code on the host", "Make it cheaper, or let other threads do it meanwhile."))
        }
        PathKind::Stall(Cause::Unexplained) if has_scheduling => (
            "unexplained",
            sentence(
                "The trace does not say what was waited for",
                "Scheduling shows when threads waited and who woke them; for what, slices of the program's own would show \
                 (`tracing`, or the `events` crate).",
            ),
        ),
        PathKind::Stall(cause) => (cause.name(), cause.info().advice),
        PathKind::Memory => (
            "memory",
            waits("for memory to be allocated or freed", "A caching allocator, or buffers that are reused, avoids it."),
        ),
    })
}
