//! Counters of a command from `/proc`, which any user may read, where the kernel grants no perf events.

use crate::collect::Tracks;
use crate::proc::{descendants, name, read, threads};
use events::Kind;
use rustc_hash::FxHashMap;
use trace_model::scheduling::derive::Scheduling;

/// The counters of a command's processes.
#[derive(Default)]
pub(super) struct ProcUsage {
    /// The last written values by process.
    last_values: FxHashMap<u32, [u64; 6]>,
}

/// The names of the counters in the trace.
const NAMES: [&str; 6] = [
    "CPU time, ns",
    "waited for a CPU, ns",
    "voluntary context switches",
    "involuntary context switches",
    "minor page faults",
    "major page faults",
];

impl ProcUsage {
    /// Reads the counters of the command and its descendants, and writes those that changed.
    pub(super) fn count(&mut self, command: u32, scheduling: &mut Scheduling<Tracks>, now: u64, tracks: &mut Tracks) {
        for process in descendants(command) {
            let is_new = !self.last_values.contains_key(&process);
            let last_values = self.last_values.entry(process).or_insert([u64::MAX; 6]);
            if is_new && process != command {
                let name = name(process);
                scheduling.follow_thread(process, process, name);
                tracks.name_process(process, &name.text());
            }
            let values = read_usage(process);
            let Some(track) = scheduling.process_track(process, tracks) else { continue };
            for (name, (value, last_value)) in NAMES.iter().zip(values.into_iter().zip(last_values)) {
                if value != *last_value {
                    let site = tracks.site("counter", name);
                    tracks.add_point(Kind::Counter, track, now, site, 0, (value as f64).to_bits());
                    *last_value = value;
                }
            }
        }
    }
}

/// Sums the counters of [`NAMES`] over the threads of a process.
fn read_usage(process: u32) -> [u64; 6] {
    let mut sum = [0u64; 6];
    for thread in threads(process) {
        let schedstat = read(process, &format!("task/{thread}/schedstat"));
        for (value, text) in sum.iter_mut().zip(schedstat.split_whitespace().take(2)) {
            *value += text.parse().unwrap_or(0);
        }
        let status = read(process, &format!("task/{thread}/status"));
        let count_of = |key: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(key));
            line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        sum[2] += count_of("voluntary_ctxt_switches:");
        sum[3] += count_of("nonvoluntary_ctxt_switches:");
    }
    let stat = read(process, "stat");
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let field = |n: usize| fields.get(n).and_then(|f| f.parse().ok()).unwrap_or(0);
    (sum[4], sum[5]) = (field(7), field(9));
    sum
}
