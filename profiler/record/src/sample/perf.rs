//! The kernel's perf events of one command: one ring per CPU, inherited by the command's descendants.
//!
//! A process that runs already has one ring per thread and CPU, inherited by the threads that these start later. The
//! rings of a command are opened on the calling thread, switched off, before that thread starts the command. The
//! command inherits them, and its `exec` switches them on, so that its first event is recorded and none of this
//! process.

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use std::io;

/// The sizes of a ring, bytes; the first size that the system grants is used. The last is the kernel's default limit
/// for unprivileged users.
const RING_BYTES: [usize; 3] = [4 << 20, 1 << 20, 512 << 10];
/// The sizes of a ring where each thread has its own ring, bytes.
const THREAD_RING_BYTES: [usize; 3] = [512 << 10, 256 << 10, 128 << 10];
/// Bytes of the user's stack in a sample, to find callers in code without frame pointers.
const STACK_BYTES: u32 = 16 << 10;
/// The registers of x86-64 that unwinding needs: bits `PERF_REG_X86_BP`, `_SP` and `_IP`, which samples have in this
/// order.
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The events to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerfOptions {
    /// Samples per second and CPU; `None` for no samples.
    pub(crate) sample_hz: Option<u32>,
    /// Whether context switches are recorded.
    pub(crate) has_switches: bool,
}

/// The threads whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObservedThreads<'a> {
    /// The command that this thread starts next.
    NextCommand,
    /// These threads, which run already.
    Threads(&'a [u32]),
}

/// The most rings of threads that run already; further threads are left out and reported.
const MAX_THREAD_RINGS: usize = 512;

/// The open rings of a command or process.
pub(crate) struct Rings {
    pub(crate) samplers: Vec<Sampler>,
    /// The rings of major page faults.
    pub(crate) faults: Vec<Sampler>,
    /// Whether samples have the kernel's part of the call chain.
    pub(crate) has_kernel: bool,
    /// Whether samples have registers and a part of the stack.
    pub(crate) has_stack: bool,
    /// The number of threads without rings.
    pub(crate) n_left_out: usize,
}

/// Opens the rings; those of a command on the thread that will start it.
///
/// # Errors
/// The system grants none; [`remedy`] says what to do.
pub(crate) fn open(options: PerfOptions, observed: ObservedThreads<'_>) -> io::Result<Rings> {
    let has_stack = options.sample_hz.is_some() && cfg!(target_arch = "x86_64");
    let (targets, n_left_out) = targets(observed);
    let targets = || targets.iter().copied();
    let try_all = |has_kernel: bool| -> io::Result<Vec<Sampler>> {
        let mut rings = Vec::new();
        for target in targets() {
            match with_ring(&mut builder(options, target, has_kernel, has_stack), target) {
                Ok(ring) => rings.push(ring),
                // The thread has ended meanwhile.
                Err(e) if target.thread.is_some() && e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => return Err(e),
            }
        }
        if rings.is_empty() { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(rings) }
    };
    let (samplers, has_kernel) = match try_all(true) {
        Ok(samplers) => (samplers, true),
        Err(_) => (try_all(false)?, false),
    };
    let faults = targets().map_while(|target| with_ring(&mut fault_builder(target, has_kernel), target).ok()).collect();
    Ok(Rings { samplers, faults, has_kernel, has_stack, n_left_out })
}

/// The target of one ring: a CPU, and a thread that runs already (`None`: the next command).
#[derive(Clone, Copy)]
pub(crate) struct RingTarget {
    pub(crate) thread: Option<u32>,
    cpu: usize,
}

/// Returns the targets of the rings, and the number of threads that are left out because there are too many.
pub(crate) fn targets(observed: ObservedThreads<'_>) -> (Vec<RingTarget>, usize) {
    let cpus = online_cpus();
    let (threads, n_left_out): (Vec<Option<u32>>, usize) = match observed {
        ObservedThreads::NextCommand => (vec![None], 0),
        ObservedThreads::Threads(all) => {
            let n_threads = (MAX_THREAD_RINGS / cpus.len()).max(1).min(all.len());
            (all[..n_threads].iter().copied().map(Some).collect(), all.len() - n_threads)
        }
    };
    let targets_of_thread = |thread: Option<u32>| cpus.iter().map(move |cpu| RingTarget { thread, cpu: *cpu });
    (threads.into_iter().flat_map(targets_of_thread).collect(), n_left_out)
}

/// Opens an event with the largest ring that the system grants.
pub(crate) fn with_ring(builder: &mut Builder<'_>, target: RingTarget) -> io::Result<Sampler> {
    let mut error = io::Error::from(io::ErrorKind::OutOfMemory);
    let sizes = if target.thread.is_some() { &THREAD_RING_BYTES } else { &RING_BYTES };
    for bytes in *sizes {
        match builder.build()?.sampled(bytes) {
            Ok(sampler) => return Ok(sampler),
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// Sets the options that all events have: target, inheritance, clock and privilege levels.
pub(crate) fn set_common_options(builder: &mut Builder<'_>, target: RingTarget, has_kernel: bool) {
    builder.one_cpu(target.cpu).inherit(true);
    match target.thread {
        Some(thread) => builder.observe_pid(thread.cast_signed()).enabled(true),
        None => builder.observe_self().enabled(false).enable_on_exec(true),
    };
    builder.exclude_kernel(!has_kernel).exclude_hv(true).sample_id_all(true).clockid(Clock::MONOTONIC_RAW);
}

fn builder(options: PerfOptions, target: RingTarget, has_kernel: bool, has_stack: bool) -> Builder<'static> {
    let event = if options.sample_hz.is_some() { Software::CPU_CLOCK } else { Software::DUMMY };
    let mut builder = Builder::new(event);
    set_common_options(&mut builder, target, has_kernel);
    builder.task(true).comm(true).comm_exec(true).context_switch(options.has_switches);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU);
    if let Some(hz) = options.sample_hz {
        builder.sample_frequency(u64::from(hz)).mmap(true).mmap2(true);
        builder.sample(SampleFlag::IP | SampleFlag::CALLCHAIN);
    }
    if has_stack {
        builder.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder.sample_regs_user(REGISTERS).sample_stack_user(STACK_BYTES);
    }
    builder
}

fn fault_builder(target: RingTarget, has_kernel: bool) -> Builder<'static> {
    let mut builder = Builder::new(Software::PAGE_FAULTS_MAJ);
    set_common_options(&mut builder, target, has_kernel);
    builder.sample_period(1).sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::ADDR);
    builder
}

/// Reads the numbers of the online CPUs; returns CPU 0 where they cannot be read.
fn online_cpus() -> Vec<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) {
            cpus.extend(from..=to.min(from + 4096));
        }
    }
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// The counters of a command, summed over all its threads, by their names in the trace.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) counters: Vec<(&'static str, Counter)>,
    /// The counters that this machine lacks, with the errors.
    pub(crate) missing: Vec<(&'static str, io::Error)>,
}

/// Opens the counters, on the thread that will start the command.
pub(crate) fn counters() -> Counters {
    use perf_event::events::Hardware;
    let mut found = Counters { counters: Vec::new(), missing: Vec::new() };
    let mut add = |name, mut builder: Builder<'static>| {
        builder.observe_self().inherit(true).enabled(false).enable_on_exec(true).exclude_hv(true);
        let counter = builder.exclude_kernel(false).build().or_else(|_| builder.exclude_kernel(true).build());
        match counter {
            Ok(counter) => found.counters.push((name, counter)),
            Err(error) => found.missing.push((name, error)),
        }
    };
    add("task clock, ns", Builder::new(Software::TASK_CLOCK));
    add("context switches", Builder::new(Software::CONTEXT_SWITCHES));
    add("CPU migrations", Builder::new(Software::CPU_MIGRATIONS));
    add("minor page faults", Builder::new(Software::PAGE_FAULTS_MIN));
    add("major page faults", Builder::new(Software::PAGE_FAULTS_MAJ));
    add("cycles", Builder::new(Hardware::CPU_CYCLES));
    add("instructions", Builder::new(Hardware::INSTRUCTIONS));
    add("cache misses", Builder::new(Hardware::CACHE_MISSES));
    found
}

/// The remedy where users may not record the kernel's part of their own processes.
pub(crate) const KERNEL_REMEDY: &str = "as root: sysctl kernel.perf_event_paranoid=1, or run with CAP_PERFMON";

/// The remedy for an error of [`open`].
pub(crate) fn remedy(error: &io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    format!("perf_event_open: {error} (kernel.perf_event_paranoid is {}); {KERNEL_REMEDY}", paranoid.trim())
}
