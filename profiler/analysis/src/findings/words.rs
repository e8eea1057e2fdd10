//! What each kind of segment on a critical path is called, what waits there, and what helps.

use crate::critical::PathKind;
use crate::stalls::Cause;

/// What a finding about a kind says.
pub(super) struct Words {
    pub title: &'static str,
    pub what: What,
    pub remedy: &'static str,
}

/// The first half of its sentence.
pub(super) enum What {
    /// Begins with who waits: `Steps wait`, or `The program waits`.
    Waits(&'static str),
    /// Is whole.
    Is(&'static str),
}

impl What {
    pub(super) fn text(&self, has_steps: bool) -> String {
        match self {
            What::Waits(what) if has_steps => format!("Steps wait {what}"),
            What::Waits(what) => format!("The program waits {what}"),
            What::Is(what) => (*what).to_owned(),
        }
    }
}

fn waits(title: &'static str, what: &'static str, remedy: &'static str) -> Option<Words> {
    Some(Words { title, what: What::Waits(what), remedy })
}

fn is(title: &'static str, what: &'static str, remedy: &'static str) -> Option<Words> {
    Some(Words { title, what: What::Is(what), remedy })
}

/// `None` for what is no finding by itself: ops and kernels are told one by one, a thread's functions by its samples, and the
/// profiler's own work is nobody's to change.
pub(super) fn words(kind: PathKind) -> Option<Words> {
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
        PathKind::Stall(cause) => of_stall(cause),
        PathKind::Memory => waits(
            "memory",
            "for memory to be taken or given back",
            "A caching allocator, or buffers that are reused, avoids it.",
        ),
    }
}

fn of_stall(cause: Cause) -> Option<Words> {
    match cause {
        Cause::HostLate | Cause::InputLate => {
            waits("host late", "for host code that left no slices", "Record the host's functions to see which.")
        }
        Cause::PeerLate => waits("peer late", "for another process", "See the stragglers."),
        Cause::Network => waits(
            "network",
            "for values on their way between processes",
            "Fewer or smaller transfers, or sending earlier, helps.",
        ),
        Cause::Dma => waits(
            "transfers between devices",
            "for values on their way between devices",
            "Keep what exchanges values on one device.",
        ),
        Cause::Synchronisation => waits(
            "synchronisation",
            "for synchronisation calls to return",
            "Fewer synchronisations (`.item()`, blocking copies) help.",
        ),
        Cause::ScheduledOut => is(
            "scheduled out",
            "The thread that everything waited for could run, and had no CPU",
            "Fewer threads than cores, or pinned ones, help.",
        ),
        Cause::QueueEmpty => waits(
            "queue empty",
            "for a queue that is not filled in time",
            "More threads that fill it, or a larger queue, helps.",
        ),
        Cause::OtherStep => waits(
            "other steps",
            "for what other steps hold or bring: locks, gradients",
            "Shorter locked parts help; late gradients point to a slow peer.",
        ),
        Cause::Launch => is(
            "launch overhead",
            "Devices wait between the launch of work and its begin",
            "Fused kernels or captured graphs launch less.",
        ),
        Cause::Dispatch => is(
            "dispatch",
            "Ops were ready and not started, since all workers were busy or the executor was",
            "More workers, or fewer and larger ops, help.",
        ),
        Cause::WakeUp => is(
            "wake-ups",
            "What was waited for was there, and its thread still slept",
            "Larger pieces of work, or threads that spin before they sleep, help.",
        ),
        Cause::StepBegin => {
            is("begin of steps", "Time passes in steps before their first op", "Larger steps, or fewer feeds, help.")
        }
        Cause::StepEnd => {
            is("end of steps", "Time passes in steps after their last op", "Larger steps, or fewer fetches, help.")
        }
        Cause::Unexplained => is(
            "unexplained",
            "The trace does not say what was waited for",
            "Record more: scheduling (`record --sched`), device activity, or the host's functions.",
        ),
        // A step that waits for room is ahead of who takes from the queue: nobody waits for it.
        Cause::QueueFull | Cause::Memory | Cause::NothingReady => None,
    }
}
