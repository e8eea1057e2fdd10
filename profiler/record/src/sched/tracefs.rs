//! Reads scheduling events from an instance of tracefs that belongs to this recorder alone.
//!
//! Needs root. Each CPU's binary pages (`trace_pipe_raw`) are parsed by the kernel's own description of its events. The
//! instance is named after its recorder, which removes it at the end; the instance of a killed recorder is removed by
//! the next recorder.

use crate::proc;
use events::clock::{self, Source as ClockSource};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use trace_model::ThreadState;
use trace_model::scheduling::format::{Field, Format};
use trace_model::scheduling::page::{Layout, Page};
use trace_model::scheduling::{Comm, SchedEvent, SchedKind};

/// The beginning of the names of this program's instances.
const NAME_PREFIX: &str = "stepscope-";
/// The size of a CPU's ring, KiB: 100,000 events and more.
const RING_KB: u32 = 4096;
/// The bytes after which one poll stops reading a CPU's ring, which bounds the memory.
const POLL_BYTES: usize = 8 << 20;

/// The root folder of tracefs.
pub(crate) struct Root {
    path: PathBuf,
    /// A mount that is attached to no folder, and ends with this descriptor.
    _mount: Option<OwnedFd>,
}

impl Root {
    /// Finds tracefs where it is mounted, else mounts it for this process alone.
    pub(crate) fn find() -> io::Result<Root> {
        for folder in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            let path = PathBuf::from(folder);
            if path.join("instances").is_dir() {
                return Ok(Root { path, _mount: None });
            }
        }
        let mount = mount()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Root { path, _mount: Some(mount) })
    }

    /// Reads the clocks that tracefs offers, as the kernel writes them.
    pub(crate) fn clocks(&self) -> io::Result<String> {
        fs::read_to_string(self.path.join("trace_clock"))
    }

    /// Removes the instances of recorders that have ended; returns their number.
    pub(crate) fn remove_stale_instances(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.path.join("instances")) else { return 0 };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let stale = names.filter(|name| owner(name).is_some_and(|(pid, born)| events::session::born(pid) != born));
        stale.filter(|name| fs::remove_dir(self.path.join("instances").join(name)).is_ok()).count()
    }
}

/// Mounts tracefs without attaching it to a folder.
fn mount() -> io::Result<OwnedFd> {
    // linux/mount.h
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    let name = CString::new("tracefs").map_err(io::Error::other)?;
    let checked = |status: libc::c_long| if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status as i32) };
    // SAFETY: the name is a C string; the call makes a descriptor.
    let config = checked(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), FSOPEN_CLOEXEC) })?;
    // SAFETY: the call above made the descriptor, and nobody else has it.
    let config = unsafe { OwnedFd::from_raw_fd(config) };
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the command takes no further arguments.
    checked(unsafe { libc::syscall(libc::SYS_fsconfig, config.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) })?;
    // SAFETY: the descriptor is a configured file system; the call makes a descriptor.
    let mount = checked(unsafe { libc::syscall(libc::SYS_fsmount, config.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })?;
    // SAFETY: the call above made the descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

/// Parses an instance's name into the process id and start time of its recorder; `None` for an instance of another
/// program.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, born) = name.strip_prefix(NAME_PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, born.parse().ok()?))
}

/// A tracefs instance that records scheduling events.
pub(crate) struct Instance {
    path: PathBuf,
    _root: Root,
    clock: ClockSource,
    layout: Layout,
    formats: Formats,
    cpus: Vec<Ring>,
    page: Vec<u8>,
    /// Events for the next poll, since earlier ones of other CPUs may still come.
    pending: Vec<SchedEvent>,
    /// The time at which the previous poll began.
    last_poll: u64,
    lost: u64,
}

/// The kernel's ring of one CPU.
struct Ring {
    cpu: u32,
    file: File,
}

impl Instance {
    /// Creates an instance and starts its recording.
    pub(crate) fn start(root: Root) -> io::Result<Instance> {
        root.remove_stale_instances();
        let pid = std::process::id();
        let path = root.path.join("instances").join(format!("{NAME_PREFIX}{pid}-{}", events::session::born(pid)));
        fs::create_dir(&path)?;
        match Instance::configure(&root, &path) {
            Ok((clock, layout, formats, cpus)) => {
                let (page, pending) = (vec![0; 1 << 16], Vec::new());
                Ok(Instance { path, _root: root, clock, layout, formats, cpus, page, pending, last_poll: 0, lost: 0 })
            }
            Err(error) => {
                // The first error is returned; an instance that cannot be removed is removed by the next recorder.
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    fn configure(root: &Root, path: &Path) -> io::Result<(ClockSource, Layout, Formats, Vec<Ring>)> {
        let set = |file: &str, value: &str| fs::write(path.join(file), value);
        set("tracing_on", "0")?;
        let clocks = fs::read_to_string(path.join("trace_clock"))?;
        let wants_ticks = clock::source() == ClockSource::Counter && clocks.contains("x86-tsc");
        let (name, clock) =
            if wants_ticks { ("x86-tsc", ClockSource::Counter) } else { ("mono_raw", ClockSource::MonotonicRaw) };
        set("trace_clock", name)?;
        set("buffer_size_kb", &RING_KB.to_string()).or_else(|_| set("buffer_size_kb", "512"))?;
        let formats = Formats::read(path)?;
        for (_, folder, ..) in &formats.events {
            set(&format!("events/{folder}/enable"), "1")?;
        }
        let mut header = vec![0; 1 << 16];
        // One read: the kernel returns this file's content to the first read only.
        let len = File::open(root.path.join("events/header_page"))?.read(&mut header)?;
        let layout = Layout::parse(&String::from_utf8_lossy(&header[..len]))
            .ok_or_else(|| io::Error::other("events/header_page is not understood"))?;
        let mut cpus = Vec::new();
        for entry in fs::read_dir(path.join("per_cpu"))?.flatten() {
            let cpu = entry.file_name().to_str().and_then(|n| n.strip_prefix("cpu")?.parse().ok());
            let Some(cpu) = cpu else { continue };
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(entry.path().join("trace_pipe_raw"))?;
            cpus.push(Ring { cpu, file });
        }
        set("tracing_on", "1")?;
        Ok((clock, layout, formats, cpus))
    }

    /// The clock of the events' times.
    pub(crate) fn clock(&self) -> ClockSource {
        self.clock
    }

    /// The number of events that the kernel's rings lost; a loss of unknown size counts as one.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Reads events and returns those up to the begin of the previous poll, in order of time; with `is_last` all
    /// events. Later events come with the next poll: a CPU that its hypervisor stopped meanwhile may still write
    /// earlier ones.
    pub(crate) fn poll(&mut self, is_last: bool) -> Vec<SchedEvent> {
        let now = match self.clock {
            ClockSource::Counter => clock::now(),
            ClockSource::MonotonicRaw => clock::mono_now().max(0).unsigned_abs(),
        };
        let until = std::mem::replace(&mut self.last_poll, now);
        let mut events = std::mem::take(&mut self.pending);
        let mut complete_until = u64::MAX;
        for ring in &mut self.cpus {
            let mut n_read = 0;
            while n_read < POLL_BYTES {
                // The ring is empty, or an error (never seen) loses the events of this CPU only.
                let n = match ring.file.read(&mut self.page) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => n,
                };
                n_read += n;
                let Some(mut page) = Page::new(&self.page[..n], self.layout) else { continue };
                self.lost += if page.lost == u64::MAX { 1 } else { page.lost };
                let cpu = ring.cpu;
                events.extend(page.by_ref().filter_map(|(time, event)| self.formats.event(time, cpu, event)));
            }
            if n_read >= POLL_BYTES {
                // The rest of this ring is later than the last event that was read, so later events must not be
                // returned yet.
                complete_until = complete_until.min(events.last().map_or(0, |e| e.time));
            }
        }
        events.sort_by_key(|e| e.time);
        let until = if is_last { u64::MAX } else { until.min(complete_until) };
        self.pending = events.split_off(events.partition_point(|e| e.time <= until));
        events
    }

    /// Stops recording; the events in the rings can still be polled.
    pub(crate) fn stop(&self) {
        // An error is ignored: recording ends with the instance, which is removed soon.
        let _ = fs::write(self.path.join("tracing_on"), "0");
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop();
        self.cpus.clear();
        // An instance can be removed only while none of its files is open. The next recorder removes one that stays.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The kernel's events that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Switch,
    Waking,
    NewTask,
    Exec,
    Exit,
    DiskIssue,
    DiskComplete,
}

/// The recorded events, with their folders and fields. Switches and wake-ups are required; the others are recorded
/// where the kernel has them.
const EVENTS: [(EventKind, &str, &[&str]); 7] = [
    (EventKind::Switch, "sched/sched_switch", &["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"]),
    (EventKind::Waking, "sched/sched_waking", &["pid", "target_cpu"]),
    (EventKind::NewTask, "task/task_newtask", &["pid", "comm", "clone_flags"]),
    (EventKind::Exec, "sched/sched_process_exec", &["pid"]),
    (EventKind::Exit, "sched/sched_process_exit", &["pid"]),
    (EventKind::DiskIssue, "block/block_rq_issue", &["dev", "sector", "bytes", "rwbs"]),
    (EventKind::DiskComplete, "block/block_rq_complete", &["dev", "sector"]),
];

/// The layouts of the events that this kernel has.
struct Formats {
    common_pid: Field,
    /// Kind, folder, number, and the fields in the order of [`EVENTS`].
    events: Vec<(EventKind, &'static str, u16, Vec<Field>)>,
}

impl Formats {
    fn read(instance: &Path) -> io::Result<Formats> {
        let lacks_field = |name: &str| io::Error::other(format!("no field {name}"));
        let read = |folder: &str| {
            let text = fs::read_to_string(instance.join("events").join(folder).join("format"))?;
            Format::parse(&text).ok_or_else(|| io::Error::other(format!("events/{folder}/format is not understood")))
        };
        let switch = read("sched/sched_switch")?;
        let common_pid = switch.field("common_pid").ok_or_else(|| lacks_field("common_pid"))?;
        let mut formats = Formats { common_pid, events: Vec::new() };
        for (kind, folder, names) in EVENTS {
            let fields = |format: Format| {
                let field = |name: &&str| format.field(name).ok_or_else(|| lacks_field(name));
                Ok((kind, folder, format.id, names.iter().map(field).collect::<io::Result<_>>()?))
            };
            match read(folder).and_then(fields) {
                Ok(event) => formats.events.push(event),
                Err(error) if matches!(kind, EventKind::Switch | EventKind::Waking) => return Err(error),
                Err(_) => {}
            }
        }
        let is_disk = |kind| matches!(kind, EventKind::DiskIssue | EventKind::DiskComplete);
        if formats.events.iter().filter(|(kind, ..)| is_disk(*kind)).count() == 1 {
            formats.events.retain(|(kind, ..)| !is_disk(*kind));
        }
        Ok(formats)
    }

    fn event(&self, time: u64, cpu: u32, event: &[u8]) -> Option<SchedEvent> {
        let id = event.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes)?;
        let (kind, _, _, fields) = self.events.iter().find(|(_, _, format_id, _)| *format_id == id)?;
        let current = self.common_pid.number(event) as u32;
        let number = |n: usize| fields[n].number(event);
        let (id_of, name_of) = (|n| number(n) as u32, |n: usize| Comm::new(fields[n].text(event)));
        let kind = match kind {
            EventKind::Switch => SchedKind::Switch {
                prev: id_of(0),
                prev_name: name_of(1),
                left: ThreadState::from_prev_state(number(2)),
                next: id_of(3),
                next_name: name_of(4),
            },
            EventKind::Waking => SchedKind::Waking { by: current, thread: id_of(0), cpu: id_of(1) },
            EventKind::NewTask => {
                let in_process = number(2) & libc::CLONE_THREAD as u64 != 0;
                SchedKind::Fork { parent: current, thread: id_of(0), in_process, name: name_of(1) }
            }
            EventKind::Exec => SchedKind::Exec { process: id_of(0), name: proc::name(id_of(0)) },
            EventKind::Exit => SchedKind::Exit { thread: id_of(0) },
            EventKind::DiskIssue | EventKind::DiskComplete => {
                let ends = *kind == EventKind::DiskComplete;
                let bytes = if ends { 0 } else { id_of(2) };
                let is_write = !ends && fields[3].text(event).contains(&b'W');
                SchedKind::Disk { device: id_of(0), sector: number(1), bytes, by: current, is_write, ends }
            }
        };
        Some(SchedEvent { time, cpu, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_name_their_recorder() {
        assert_eq!(owner("stepscope-17-9000"), Some((17, 9000)));
        assert_eq!(owner("stepscope-17"), None);
        assert_eq!(owner("perfetto"), None);
    }
}
