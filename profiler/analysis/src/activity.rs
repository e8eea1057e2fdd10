//! The activity of a thread or a device in a slice, as far as the analyses distinguish it.

use super::spans::{self, Meaning};
use trace_model::{Category, NO_NODE, NO_STEP, SiteInfo, SliceRef, ThreadState, has_word};
use trace_store::Store;

/// What a thread or a device does in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Activity {
    /// Runs a graph node's kernel.
    Op,
    /// Runs a part of a graph node's kernel.
    Shard,
    /// Runs a framework's op that belongs to no recorded graph.
    HostOp,
    /// A device computes.
    Kernel,
    /// A device copies or sets memory.
    Copy,
    /// A device exchanges data with its peers.
    Collective,
    /// A host launches a device's work.
    Launch,
    /// A host calls a device's runtime without launching work: queries, event records, stream creation.
    Call,
    /// Memory is allocated or freed.
    Memory,
    /// The step's input is made.
    Input,
    /// A host runs other code.
    Host,
    /// A host runs code of which only a slice that encloses much other work is recorded.
    Enclosing,
    /// A thread whose scheduling alone is recorded has a CPU.
    Running,
    /// The profiler's own work.
    Profiler,
    /// A host or a stream waits for a device.
    Sync,
    /// A worker waits for work.
    Idle,
    /// The operating system does not run the thread, which waits for something.
    Asleep,
    /// The operating system does not run the thread, which could run.
    Runnable,
    /// A step or an annotation, which says nothing about activity.
    Frame,
}

/// Categories of spans that enclose or accompany work without being any: Kineto's span of the entire recording, and
/// what it draws around a device's work for an annotation of the host; a device's programs, asynchronous operations and
/// other spans in XPlane traces.
const FRAMES: [&str; 5] = ["Trace", "gpu_user_annotation", "module", "async op", "device span"];

impl Activity {
    /// Whether the activity is work, the profiler's included.
    pub(crate) fn is_work(self) -> bool {
        !self.is_wait() && self != Activity::Frame
    }

    /// Whether the activity is a wait.
    pub(crate) fn is_wait(self) -> bool {
        matches!(self, Activity::Sync | Activity::Idle | Activity::Asleep | Activity::Runnable)
    }

    /// Whether the activity is a device's.
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Activity::Kernel | Activity::Copy | Activity::Collective)
    }

    fn from_site(site: &SiteInfo) -> Activity {
        match site.category {
            _ if spans::meaning(site) == Some(Meaning::Profiler) => Activity::Profiler,
            Category::Op => Activity::Op,
            Category::Shard => Activity::Shard,
            Category::Kernel | Category::Python | Category::Other if spans::meaning(site) == Some(Meaning::Input) => {
                Activity::Input
            }
            Category::Kernel => Activity::Kernel,
            Category::Copy => Activity::Copy,
            Category::Collective => Activity::Collective,
            Category::Launch if has_word(&site.name, &["malloc", "free", "memalloc", "memcreate"]) => Activity::Memory,
            Category::Launch if site.waits() => Activity::Sync,
            Category::Launch if is_call_without_work(&site.name) => Activity::Call,
            Category::Launch => Activity::Launch,
            Category::Alloc => Activity::Memory,
            Category::Input => Activity::Input,
            Category::Sync if !site.waits() => Activity::Call,
            Category::Sync => Activity::Sync,
            Category::Wait => Activity::Idle,
            // `Activities::get` distinguishes this from `Runnable` by the slice's thread state.
            Category::OffCpu => Activity::Asleep,
            Category::Other if FRAMES.contains(&&*site.category_name) => Activity::Frame,
            Category::Python | Category::Other => Activity::Host,
            // Steps, parked ops, stamps, samples, counters.
            _ => Activity::Frame,
        }
    }
}

/// Whether a call of CUDA or HIP enqueues no work on the device.
fn is_call_without_work(name: &str) -> bool {
    (["cuda", "cu", "hip"].iter().any(|prefix| name.starts_with(prefix)))
        && !has_word(name, &["launch", "memcpy", "memset", "memprefetch"])
}

/// The activities of slices.
pub(crate) struct Activities<'a> {
    store: &'a Store,
    /// By row of the sites.
    sites: Vec<SiteActivity>,
}

#[derive(Clone, Copy)]
struct SiteActivity {
    activity: Activity,
    /// The activity of a slice without a graph node.
    without_node: Activity,
    is_label: bool,
}

impl SiteActivity {
    fn new(site: &SiteInfo) -> SiteActivity {
        let activity = Activity::from_site(site);
        let without_node = match activity {
            Activity::Op if spans::meaning(site) == Some(Meaning::Input) => Activity::Input,
            Activity::Op => Activity::HostOp,
            activity => activity,
        };
        SiteActivity { activity, without_node, is_label: spans::is_label(site) }
    }
}

impl<'a> Activities<'a> {
    pub(crate) fn new(store: &'a Store) -> Activities<'a> {
        Activities { store, sites: store.sites().iter().map(SiteActivity::new).collect() }
    }

    /// Returns the activity of a slice.
    pub(crate) fn get(&self, slice: &SliceRef) -> Activity {
        match self.sites.get(slice.site as usize) {
            Some(SiteActivity { activity: Activity::Asleep, .. })
                if self.store.thread_state(slice).is_some_and(ThreadState::is_ready) =>
            {
                Activity::Runnable
            }
            // Nothing is known of what such an op waited for.
            Some(site) if slice.node == NO_NODE || slice.arg >> 32 == u64::from(NO_STEP) => site.without_node,
            Some(site) => site.activity,
            None => Activity::Frame,
        }
    }

    /// Whether the slice is the user's label of a part of the program.
    pub(crate) fn is_label(&self, slice: &SliceRef) -> bool {
        self.sites.get(slice.site as usize).is_some_and(|site| site.is_label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_around_a_recording_are_nobodys_work() {
        let activity = |category: &str, name: &str| Activity::from_site(&SiteInfo::new(category, name));
        assert!(!activity("Trace", "PyTorch Profiler (0)").is_work());
        assert!(activity("app", "load").is_work() && activity("user_annotation", "## backward ##").is_work());
    }
}
