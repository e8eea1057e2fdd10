//! The kernel's counters of a command: one group with one ring on each CPU, inherited by the command's descendants.
//!
//! A group's leader is the CPU clock, which writes the values of the entire group into the ring at a fixed rate of the
//! thread's CPU time. Where the kernel's part may be counted, the group's counter of context switches does the same
//! whenever a thread leaves the CPU.

use super::kinds::{CounterSet, Kind};
use crate::sample::perf;
use crate::sample::perf::{ObservedThreads, RingTarget};
use perf_event::{Builder, Counter, ReadFormat, SampleFlag, Sampler};
use rustc_hash::FxHashMap;
use std::io;
use std::os::fd::AsRawFd;

/// Readings per second of a thread's CPU time.
const READINGS_HZ: u64 = 1_000;

/// The open counters of a command or process.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) rings: Vec<Sampler>,
    pub(crate) kinds: Vec<Kind>,
    /// The row in [`Groups::kinds`] of each counter id.
    pub(crate) row_by_counter: FxHashMap<u64, usize>,
    pub(crate) has_hardware: bool,
    /// Whether the kernel's part is counted, and readings are written when a thread leaves a CPU.
    pub(crate) has_kernel: bool,
    /// The counters that this machine lacks, with the errors.
    pub(crate) missing: Vec<(Kind, io::Error)>,
    /// The number of threads that are not counted.
    pub(crate) n_left_out: usize,
    /// The counters other than the leaders, which count as long as they are open.
    _members: Vec<Counter>,
}

/// Opens the counters; those of a command on the thread that will start it.
///
/// # Errors
/// The system grants none of them; [`remedy`] says what to do.
pub(crate) fn open(requested: CounterSet, observed: ObservedThreads<'_>) -> io::Result<Groups> {
    open_all(requested, observed, true).or_else(|_| open_all(requested, observed, false))
}

fn open_all(requested: CounterSet, observed: ObservedThreads<'_>, has_kernel: bool) -> io::Result<Groups> {
    let (targets, n_left_out) = perf::targets(observed);
    let mut groups = Groups { has_kernel, n_left_out, ..Groups::default() };
    let mut kinds = Vec::new();
    for kind in requested.kinds() {
        match probe(kind, has_kernel) {
            Ok(()) => kinds.push(kind),
            Err(error) => groups.missing.push((kind, error)),
        }
    }
    let mut error = io::Error::from_raw_os_error(libc::ESRCH);
    for target in targets {
        match groups.add(&mut kinds, target) {
            Ok(()) => {}
            // The thread has ended meanwhile.
            Err(e) if target.thread.is_some() && e.raw_os_error() == Some(libc::ESRCH) => {}
            // The limit of open files is reached: the threads so far are counted.
            Err(e) if target.thread.is_some() && !groups.rings.is_empty() => {
                groups.n_left_out += 1;
                error = e;
            }
            Err(e) => return Err(e),
        }
    }
    if groups.rings.is_empty() {
        return Err(error);
    }
    groups.has_hardware = kinds.iter().any(|kind| kind.is_hardware());
    groups.kinds = kinds;
    Ok(groups)
}

/// Checks whether this machine has the counter.
fn probe(kind: Kind, has_kernel: bool) -> io::Result<()> {
    if !kind.is_supported() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    kind.builder().observe_self().enabled(false).exclude_kernel(!has_kernel).exclude_hv(true).build().map(drop)
}

/// Returns the counters of a set that this machine has, and the names of the missing ones with their remedies.
///
/// # Errors
/// No counter can be opened; the text is the remedy.
pub fn available(requested: CounterSet) -> Result<(CounterSet, Vec<(String, String)>), String> {
    let groups = open(requested, ObservedThreads::NextCommand).map_err(|error| remedy(&error))?;
    Ok((CounterSet::from_kinds(groups.kinds.iter().copied()), groups.remedies()))
}

impl Groups {
    /// Returns the remedies of the missing counters, each with the names of its counters.
    pub(crate) fn remedies(&self) -> Vec<(String, String)> {
        let mut by_remedy: Vec<(String, String)> = Vec::new();
        for (kind, error) in &self.missing {
            let remedy = remedy_for(error);
            match by_remedy.iter_mut().find(|(_, known)| *known == remedy) {
                Some((names, _)) => *names += &format!(", {}", kind.name()),
                None => by_remedy.push((kind.name().to_owned(), remedy)),
            }
        }
        by_remedy
    }

    /// Adds the group of one target. A hardware counter for which the first group has no room is left out of all
    /// groups.
    fn add(&mut self, kinds: &mut Vec<Kind>, target: RingTarget) -> io::Result<()> {
        let builder = |mut builder: Builder<'static>| {
            perf::set_common_options(&mut builder, target, self.has_kernel);
            builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::READ).inherit_stat(true);
            builder.read_format(ReadFormat::GROUP | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
            builder
        };
        let mut leader = builder(Kind::CPU_CLOCK.builder());
        leader.sample_frequency(READINGS_HZ).task(true).comm(true).comm_exec(true).context_switch(true);
        let mut ring = perf::with_ring(&mut leader, target)?;
        let mut ids = vec![(Kind::CPU_CLOCK, ring.as_counter().id())];
        let mut members = Vec::new();
        let mut join = |kind: Kind| -> io::Result<()> {
            let mut member = builder(kind.builder());
            // Members count while their leader does.
            member.enabled(true).enable_on_exec(false);
            if kind == Kind::CONTEXT_SWITCHES {
                member.sample_period(1);
            }
            let member = member.build_with_group(ring.as_counter_mut())?;
            write_into(&member, ring.as_counter())?;
            ids.push((kind, member.id()));
            members.push(member);
            Ok(())
        };
        join(Kind::CONTEXT_SWITCHES)?;
        let is_first = self.rings.is_empty();
        let mut fatal_error = None;
        kinds.retain(|kind| {
            if fatal_error.is_some() || matches!(*kind, Kind::CPU_CLOCK | Kind::CONTEXT_SWITCHES) {
                return true;
            }
            match join(*kind) {
                Ok(()) => true,
                Err(error) if is_first && kind.is_hardware() => {
                    self.missing.push((*kind, error));
                    false
                }
                Err(error) => {
                    fatal_error = Some(error);
                    true
                }
            }
        });
        if let Some(error) = fatal_error {
            return Err(error);
        }
        let row = |kind: Kind| kinds.iter().position(|k| *k == kind);
        self.row_by_counter.extend(ids.into_iter().filter_map(|(kind, id)| Some((id, row(kind)?))));
        self.rings.push(ring);
        self._members.extend(members);
        Ok(())
    }
}

/// Makes a counter write into another counter's ring.
fn write_into(counter: &Counter, other: &Counter) -> io::Result<()> {
    // PERF_EVENT_IOC_SET_OUTPUT of linux/perf_event.h.
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: both files are open; the call takes two numbers and no memory.
    match unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT as _, other.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The remedy for an error of [`open`].
pub(crate) fn remedy(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => {
            format!("perf_event_open: {error}; Linux 6.13 or newer distinguishes counters of inherited threads")
        }
        Some(libc::EMFILE) => format!("perf_event_open: {error}; raise the limit of open files (ulimit -n)"),
        _ => perf::remedy(error),
    }
}

/// The remedy for a missing counter.
fn remedy_for(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => {
            format!(
                "perf_event_open: {error}; the processor has no room for it next to the others: record fewer at once"
            )
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => format!(
            "perf_event_open: {error}; this processor does not count it, or a virtual machine hides it: run on the host, or give the guest \
             a PMU"
        ),
        _ => perf::remedy(error),
    }
}
