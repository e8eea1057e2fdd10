//! The kernel's own trace, from an instance of tracefs that belongs to this recorder alone.
//!
//! Needs root. Each CPU's pages are read as they are (`trace_pipe_raw`), and taken apart by the kernel's own description of its
//! events. The instance is called after its recorder; it is removed at the end, and one whose recorder is gone by the next recorder.

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

const PREFIX: &str = "stepscope-";
/// Ring of a CPU: 100,000 events and more.
const RING_KB: u32 = 4096;
/// Bytes that one poll takes of a CPU, so that its memory is bounded.
const POLL_BYTES: usize = 8 << 20;

/// Where tracefs is.
pub(crate) struct Root {
    path: PathBuf,
    /// A mount of our own, in no folder: it ends with this descriptor.
    _mount: Option<OwnedFd>,
}

impl Root {
    /// tracefs where it is mounted, else a mount that only this process sees.
    ///
    /// # Errors
    /// That it is neither: no root, or a kernel without.
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

    /// The clocks that it offers, as the kernel writes them.
    ///
    /// # Errors
    /// That they cannot be read.
    pub(crate) fn clocks(&self) -> io::Result<String> {
        fs::read_to_string(self.path.join("trace_clock"))
    }

    /// Removes the instances of recorders that are gone. Returns how many.
    pub(crate) fn remove_stale(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.path.join("instances")) else { return 0 };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let stale = names.filter(|name| owner(name).is_some_and(|(pid, born)| events::session::born(pid) != born));
        stale.filter(|name| fs::remove_dir(self.path.join("instances").join(name)).is_ok()).count()
    }
}

/// A mount of tracefs in no folder.
fn mount() -> io::Result<OwnedFd> {
    const CONFIG_CREATE: libc::c_uint = 6;
    let name = CString::new("tracefs").map_err(io::Error::other)?;
    let checked = |status: libc::c_long| if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status as i32) };
    // SAFETY: the name is a C string; the call makes a descriptor.
    let config = checked(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), 1) })?;
    // SAFETY: the call above made the descriptor, and nobody else has it.
    let config = unsafe { OwnedFd::from_raw_fd(config) };
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the command takes no further arguments.
    checked(unsafe { libc::syscall(libc::SYS_fsconfig, config.as_raw_fd(), CONFIG_CREATE, none, none, 0) })?;
    // SAFETY: the descriptor is a configured file system; the call makes a descriptor.
    let mount = checked(unsafe { libc::syscall(libc::SYS_fsmount, config.as_raw_fd(), 1, 0) })?;
    // SAFETY: the call above made the descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

/// The recorder of an instance: process and when it began.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, born) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, born.parse().ok()?))
}

/// An instance that records.
pub(crate) struct Instance {
    path: PathBuf,
    _root: Root,
    clock: ClockSource,
    layout: Layout,
    formats: Formats,
    cpus: Vec<Ring>,
    page: Vec<u8>,
    /// Later than what may still come: kept for the next poll.
    waiting: Vec<SchedEvent>,
    /// When the poll before began.
    polled: u64,
    lost: u64,
}

struct Ring {
    cpu: u32,
    file: File,
}

impl Instance {
    /// Makes an instance and begins to record.
    ///
    /// # Errors
    /// That tracefs is not to be had, or not as expected.
    pub(crate) fn start(root: Root) -> io::Result<Instance> {
        root.remove_stale();
        let pid = std::process::id();
        let path = root.path.join("instances").join(format!("{PREFIX}{pid}-{}", events::session::born(pid)));
        fs::create_dir(&path)?;
        match Instance::configure(&root, &path) {
            Ok((clock, layout, formats, cpus)) => {
                let (page, waiting) = (vec![0; 1 << 16], Vec::new());
                Ok(Instance { path, _root: root, clock, layout, formats, cpus, page, waiting, polled: 0, lost: 0 })
            }
            Err(error) => {
                // The error is the news; what stays is removed by the next recorder.
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
        for event in &formats.enabled {
            set(&format!("events/{event}/enable"), "1")?;
        }
        let mut header = vec![0; 1 << 16];
        // In one piece: the kernel gives this file to the first read only.
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

    /// What its times are ticks of.
    pub(crate) fn clock(&self) -> ClockSource {
        self.clock
    }

    /// Events that the kernel's rings could not keep, as far as it says how many.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The events up to the poll before, in order of time. Those since come with the next poll: another CPU may still have earlier
    /// ones, as one that was stopped by its hypervisor while it wrote. `last`: all there are.
    pub(crate) fn poll(&mut self, last: bool) -> Vec<SchedEvent> {
        let now = match self.clock {
            ClockSource::Counter => clock::now(),
            ClockSource::MonotonicRaw => clock::mono_now().max(0).unsigned_abs(),
        };
        let until = std::mem::replace(&mut self.polled, now);
        let mut events = std::mem::take(&mut self.waiting);
        let mut cut = u64::MAX;
        for ring in &mut self.cpus {
            let mut taken = 0;
            while taken < POLL_BYTES {
                // No more, or (never seen) an error: this CPU's events are missing then, the others are not.
                let n = match ring.file.read(&mut self.page) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => n,
                };
                taken += n;
                let Some(mut page) = Page::new(&self.page[..n], self.layout) else { continue };
                self.lost += if page.lost == u64::MAX { 1 } else { page.lost };
                let cpu = ring.cpu;
                events.extend(page.by_ref().filter_map(|(time, event)| self.formats.event(time, cpu, event)));
            }
            if taken >= POLL_BYTES {
                // It has more, all of them later than its last.
                cut = cut.min(events.last().map_or(0, |e| e.time));
            }
        }
        events.sort_by_key(|e| e.time);
        let until = if last { u64::MAX } else { until.min(cut) };
        self.waiting = events.split_off(events.partition_point(|e| e.time <= until));
        events
    }

    /// Stops recording; what the rings hold can still be polled.
    pub(crate) fn stop(&self) {
        // The instance is removed soon: recording ends then at the latest.
        let _ = fs::write(self.path.join("tracing_on"), "0");
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop();
        self.cpus.clear();
        // It can only be removed when no file of it is open. What stays is removed by the next recorder.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The fields of the events that are used.
struct Formats {
    enabled: Vec<&'static str>,
    common_pid: Field,
    switch: (u16, [Field; 5]),
    waking: (u16, [Field; 2]),
    newtask: Option<(u16, [Field; 3])>,
    exec: Option<(u16, [Field; 1])>,
    exit: Option<(u16, [Field; 1])>,
    issue: Option<(u16, [Field; 4])>,
    complete: Option<(u16, [Field; 2])>,
}

impl Formats {
    /// Scheduling has to be there; the others are used where they are.
    fn read(instance: &Path) -> io::Result<Formats> {
        let format = |event: &str| {
            let text = fs::read_to_string(instance.join("events").join(event).join("format"))?;
            Format::parse(&text).ok_or_else(|| io::Error::other(format!("events/{event}/format is not understood")))
        };
        fn fields<const N: usize>(format: io::Result<Format>, names: [&str; N]) -> io::Result<(u16, [Field; N])> {
            let format = format?;
            let mut found = Vec::new();
            for name in names {
                found.push(format.field(name).ok_or_else(|| io::Error::other(format!("no field {name}")))?);
            }
            found.try_into().map(|fields| (format.id, fields)).map_err(|_| io::Error::other("fields"))
        }
        let (switch, waking) = (format("sched/sched_switch")?, format("sched/sched_waking"));
        let common_pid = switch.field("common_pid").ok_or_else(|| io::Error::other("no field common_pid"))?;
        let mut formats = Formats {
            enabled: vec!["sched/sched_switch", "sched/sched_waking"],
            common_pid,
            switch: fields(Ok(switch), ["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"])?,
            waking: fields(waking, ["pid", "target_cpu"])?,
            newtask: fields(format("task/task_newtask"), ["pid", "comm", "clone_flags"]).ok(),
            exec: fields(format("sched/sched_process_exec"), ["pid"]).ok(),
            exit: fields(format("sched/sched_process_exit"), ["pid"]).ok(),
            issue: fields(format("block/block_rq_issue"), ["dev", "sector", "bytes", "rwbs"]).ok(),
            complete: fields(format("block/block_rq_complete"), ["dev", "sector"]).ok(),
        };
        let optional = [
            (formats.newtask.is_some(), "task/task_newtask"),
            (formats.exec.is_some(), "sched/sched_process_exec"),
            (formats.exit.is_some(), "sched/sched_process_exit"),
            (formats.issue.is_some() && formats.complete.is_some(), "block/block_rq_issue"),
            (formats.issue.is_some() && formats.complete.is_some(), "block/block_rq_complete"),
        ];
        formats.enabled.extend(optional.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)));
        Ok(formats)
    }

    fn event(&self, time: u64, cpu: u32, event: &[u8]) -> Option<SchedEvent> {
        let id = event.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes)?;
        let current = self.common_pid.number(event) as u32;
        let what = if id == self.switch.0 {
            let [prev, prev_name, state, next, next_name] = &self.switch.1;
            SchedKind::Switch {
                prev: prev.number(event) as u32,
                prev_name: Comm::new(prev_name.text(event)),
                left: ThreadState::from_prev_state(state.number(event)),
                next: next.number(event) as u32,
                next_name: Comm::new(next_name.text(event)),
            }
        } else if id == self.waking.0 {
            let [thread, cpu] = &self.waking.1;
            SchedKind::Waking { by: current, thread: thread.number(event) as u32, cpu: cpu.number(event) as u32 }
        } else {
            self.rare(id, current, event)?
        };
        Some(SchedEvent { time, cpu, kind: what })
    }

    fn rare(&self, id: u16, current: u32, event: &[u8]) -> Option<SchedKind> {
        if let Some((_, [pid, name, flags])) = self.newtask.as_ref().filter(|f| f.0 == id) {
            let in_process = flags.number(event) & libc::CLONE_THREAD as u64 != 0;
            let (thread, name) = (pid.number(event) as u32, Comm::new(name.text(event)));
            return Some(SchedKind::Born { parent: current, thread, in_process, name });
        }
        if let Some((_, [pid])) = self.exec.as_ref().filter(|f| f.0 == id) {
            let process = pid.number(event) as u32;
            let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
            return Some(SchedKind::Exec { process, name: Comm::new(name.trim_ascii_end()) });
        }
        if let Some((_, [pid])) = self.exit.as_ref().filter(|f| f.0 == id) {
            return Some(SchedKind::Exit { thread: pid.number(event) as u32 });
        }
        if let Some((_, [device, sector, bytes, kind])) = self.issue.as_ref().filter(|f| f.0 == id) {
            let (device, sector) = (device.number(event) as u32, sector.number(event));
            let is_write = kind.text(event).contains(&b'W');
            let bytes = bytes.number(event) as u32;
            return Some(SchedKind::Disk { device, sector, bytes, by: current, is_write, ends: false });
        }
        let (_, [device, sector]) = self.complete.as_ref().filter(|f| f.0 == id)?;
        let (device, sector) = (device.number(event) as u32, sector.number(event));
        Some(SchedKind::Disk { device, sector, bytes: 0, by: current, is_write: false, ends: true })
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
