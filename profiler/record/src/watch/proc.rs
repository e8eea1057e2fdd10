//! What `/proc` says any user of a command: the last resort where the kernel grants no events.

use crate::collect::Tracks;
use events::Kind;
use rustc_hash::FxHashMap;
use trace_model::scheduling::Comm;
use trace_model::scheduling::derive::Scheduling;

/// Processes and threads that are looked at, at most.
const MAX_PROCESSES: usize = 1024;

/// The counters' last values, by process.
#[derive(Default)]
pub(super) struct Usage {
    before: FxHashMap<u32, [u64; 6]>,
}

const NAMES: [&str; 6] = [
    "CPU time, ns",
    "waited for a CPU, ns",
    "voluntary context switches",
    "involuntary context switches",
    "minor page faults",
    "major page faults",
];

impl Usage {
    /// Reads them for the command and what it started.
    pub(super) fn count(&mut self, command: u32, scheduling: &mut Scheduling<Tracks>, now: u64, tracks: &mut Tracks) {
        for process in descendants(command) {
            let is_new = !self.before.contains_key(&process);
            let before = self.before.entry(process).or_insert([u64::MAX; 6]);
            if is_new && process != command {
                let name = Comm::new(read(process, "comm").trim_end().as_bytes());
                scheduling.adopt(process, process, name);
                tracks.process(process, &name.text());
            }
            let values = usage(process);
            let Some(track) = scheduling.process_track(process, tracks) else { continue };
            for (name, (value, before)) in NAMES.iter().zip(values.into_iter().zip(before)) {
                if value != *before {
                    let site = tracks.site("counter", name);
                    tracks.point(Kind::Counter, track, now, site, 0, (value as f64).to_bits());
                    *before = value;
                }
            }
        }
    }
}

fn read(process: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default()
}

/// A process and those that it and its children started, as far as they live.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        at += 1;
        for thread in threads(process) {
            let children = read(process, &format!("task/{thread}/children"));
            found.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
        if found.len() > MAX_PROCESSES {
            break;
        }
    }
    found
}

pub(super) fn threads(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).take(MAX_PROCESSES).collect()
}

/// A thread's name.
pub(super) fn name(process: u32, thread: u32) -> Comm {
    Comm::new(read(process, &format!("task/{thread}/comm")).trim_end().as_bytes())
}

/// The code that a process has mapped: address, length, offset in the file, path.
pub(super) fn code(process: u32) -> Vec<(u64, u64, u64, String)> {
    let maps = read(process, "maps");
    let parsed = maps.lines().filter_map(|line| {
        let mut fields = line.splitn(6, ' ');
        let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let path = fields.nth(2).unwrap_or("").trim_start();
        let (from, to) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (hex(from)?, hex(to)?);
        rights.contains('x').then_some((from, to.checked_sub(from)?, hex(offset)?, path.to_owned()))
    });
    parsed.collect()
}

fn usage(process: u32) -> [u64; 6] {
    let mut sum = [0u64; 6];
    for thread in threads(process) {
        let schedstat = read(process, &format!("task/{thread}/schedstat"));
        for (value, text) in sum.iter_mut().zip(schedstat.split_whitespace().take(2)) {
            *value += text.parse().unwrap_or(0);
        }
        let status = read(process, &format!("task/{thread}/status"));
        let of = |key: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(key));
            line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        sum[2] += of("voluntary_ctxt_switches:");
        sum[3] += of("nonvoluntary_ctxt_switches:");
    }
    let stat = read(process, "stat");
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let field = |n: usize| fields.get(n).and_then(|f| f.parse().ok()).unwrap_or(0);
    (sum[4], sum[5]) = (field(7), field(9));
    sum
}
