//! The causes of stalls: one row each, for tables, sentences, findings and the documentation.

/// Declares the causes and their table.
macro_rules! causes {
    ($($cause:ident, $title:literal, $help:literal, $advice:expr;)*) => {
        /// The cause of a stall: why nothing ran.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Cause {
            $(#[doc = $help] $cause,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &[Cause] = &[$(Cause::$cause),*];
            const INFO: &[CauseInfo] = &[$(CauseInfo { title: $title, help: $help, advice: $advice }),*];
        }
    };
}

/// A row of the table of causes.
#[derive(Debug)]
pub struct CauseInfo {
    /// The cause in one or two words: `dependency wait`.
    pub title: &'static str,
    /// The parts of gaps that have this cause.
    pub help: &'static str,
    /// The sentences of a finding; `None` for a cause that is no finding by itself.
    pub advice: Option<Advice>,
}

/// The sentences of a finding.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// The sentence that names the problem.
    pub problem: Problem,
    /// The sentence that names a remedy.
    pub remedy: &'static str,
}

/// The first sentence of a finding.
#[derive(Clone, Copy, Debug)]
pub enum Problem {
    /// The rest of a sentence that begins with `Steps wait` or `The program waits`.
    Waits(&'static str),
    /// A complete sentence.
    Sentence(&'static str),
}

impl Problem {
    pub(crate) fn text(&self, has_steps: bool) -> String {
        match self {
            Problem::Waits(what) if has_steps => format!("Steps wait {what}"),
            Problem::Waits(what) => format!("The program waits {what}"),
            Problem::Sentence(what) => (*what).to_owned(),
        }
    }
}

const fn wait_advice(what: &'static str, remedy: &'static str) -> Option<Advice> {
    Some(Advice { problem: Problem::Waits(what), remedy })
}

const fn sentence_advice(what: &'static str, remedy: &'static str) -> Option<Advice> {
    Some(Advice { problem: Problem::Sentence(what), remedy })
}

causes! {
    InputLate, "dependency wait", "what the next work needed was being computed: an op, a kernel, a loader (`input`). Culprit: that", wait_advice("for host code that left no slices", "Record the host's functions to see which.");
    HostLate, "host-bound", "a device had nothing to do, since its host ran something else before the launch; or a worker, since its process' code between two steps ran", wait_advice("for host code that left no slices", "Record the host's functions to see which.");
    PeerLate, "straggler peer", "another process had not come that far. Culprit: what it did", wait_advice("for another process", "See the stragglers.");
    Network, "network", "a value was on its way between processes, or a collective ran with all its peers", wait_advice("for values on their way between processes", "Fewer or smaller transfers, or sending earlier, helps.");
    Dma, "DMA", "memory was copied, or a value went between devices of one process", wait_advice("for values on their way between devices", "Keep what exchanges values on one device.");
    Synchronisation, "synchronisation", "a host or stream waited for a kernel, or the wait was about to return", wait_advice("for synchronisation calls to return", "Fewer synchronisations (`.item()`, blocking copies) help.");
    ScheduledOut, "scheduled out", "the operating system did not run the thread", sentence_advice("The thread that everything waited for could run, and had no CPU", "Fewer threads than cores, or pinned ones, help.");
    QueueEmpty, "queue empty", "an op waited for a row of a queue; the culprit is the wait, which names the queue", wait_advice("for a queue that is not filled in time", "More threads that fill it, or a larger queue, helps.");
    QueueFull, "queue full", "an op waited for room in a queue; the culprit is the wait. A step that waits for room is ahead of who takes from the queue: nobody waits for it", None;
    OtherStep, "cross-step wait", "an op waited for a lock that another step holds, or for gradients that others bring", wait_advice("for what other steps hold or bring: locks, gradients", "Shorter locked parts help; late gradients point to a slow peer.");
    Launch, "launch overhead", "from the launching call's begin to the work's; what a call that began before took longer than the work that the stream had; or up to 10 us between two pieces of queued work. Calls that give the device no work (`cudaEventRecord`, ...) are host code", sentence_advice("Devices wait between the launch of work and its begin", "Fused kernels or captured graphs launch less.");
    Dispatch, "dispatch", "work was ready, and no worker took it: the executor, or an op before it in the queue (the culprit)", sentence_advice("Ops were ready and not started, since all workers were busy or the executor was", "More workers, or fewer and larger ops, help.");
    Memory, "memory", "memory was allocated or freed (`cudaMalloc`, ...)", None;
    WakeUp, "wake-up", "work was ready while its worker slept", sentence_advice("What was waited for was there, and its thread still slept", "Larger pieces of work, or threads that spin before they sleep, help.");
    NothingReady, "nothing ready", "the step had no more work for this worker while others ran. Culprit: the longest of what ran", None;
    StepBegin, "step begins", "before the first op of the step: feeds, the plan", sentence_advice("Time passes in steps before their first op", "Larger steps, or fewer feeds, help.");
    StepEnd, "step ends", "after the last op of the step: fetches, cleaning up", sentence_advice("Time passes in steps after their last op", "Larger steps, or fewer fetches, help.");
    Unexplained, "unexplained", "the trace does not say", sentence_advice("The trace does not say what was waited for", "Record more: scheduling (`record --sched`), device activity, or the host's functions.");
}

impl Cause {
    /// The cause's row of the table.
    #[must_use]
    pub fn info(self) -> &'static CauseInfo {
        &Cause::INFO[self as usize]
    }

    /// The cause in one or two words, for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().title
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/use/analysis.md");
        let docs = std::fs::read_to_string(path).unwrap();
        for cause in Cause::ALL {
            let line = format!("| {} | {} |", cause.name(), cause.info().help);
            assert!(docs.contains(&line), "docs/use/analysis.md lacks\n{line}");
        }
    }
}
