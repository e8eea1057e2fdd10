//! Applies a batch: its names and events become rows of the store.

use super::track::Track;
use super::transfers::Stamp;
use super::{Store, Update};
use trace_model::{
    Category, CounterKey, Event, EventKind, FlowEnd, InstantEvent, MemoryEvent, NO_ARGS, NO_NODE, Name, NodeInfo,
    OpenSlice, Process, SiteInfo, Step, TrackEvents, TrackId, TrackKey, TrackKind, Warning, WarningKind,
};

/// Times beyond this (73 years), ns, are damage. They are clamped, so that no sum of durations overflows.
const MAX_TIME_NS: i64 = 1 << 61;
/// Unit of the bytes in use that an `Alloc` or `Free` event reports: `correlation - 1` units; 0 stands for no report.
const IN_USE_UNIT_BYTES: f64 = 64.0;

impl Store {
    pub(super) fn apply_update(&mut self, update: Update) -> bool {
        let Update { replacement, batch } = update;
        let mut changed = !batch.names.is_empty() || replacement.is_some();
        if let Some(store) = replacement {
            self.replace_contents(*store);
        }
        changed |= self.report_damage();
        for name in batch.names {
            self.register_name(name);
        }
        if self.origin.is_none() {
            let starts = batch.tracks.values().flat_map(|t| t.events.iter().map(|e| e.start));
            self.origin = batch.origin.or_else(|| starts.min());
        }
        if let Some(live) = batch.live {
            changed |= self.is_live != live;
            self.is_live = live;
        }
        self.disk_bytes = self.disk_bytes.max(batch.disk_bytes);
        let first_args = self.args.append(&batch.args);
        // In order of the keys, so that the same files always give the same rows.
        let mut tracks: Vec<(TrackKey, TrackEvents)> = batch.tracks.into_iter().collect();
        tracks.sort_unstable_by_key(|(key, _)| *key);
        for (key, events) in tracks {
            changed |= self.apply_track(key, events, first_args);
        }
        self.merge_late_steps(batch.more);
        for warning in batch.warnings {
            changed |= self.warnings.set(warning);
        }
        changed
    }

    fn register_name(&mut self, name: Name) {
        match name {
            Name::Process { pid, host, name, ns_per_tick } => {
                let row = self.process_row(pid) as usize;
                let clock = self.processes[row].clock;
                self.processes[row] = Process { pid, host, name, clock, ns_per_tick, is_recorder: true };
            }
            Name::Thread { key, name, tid } => {
                let row = self.track_row(key) as usize;
                self.tracks[row].name = name;
                self.tracks[row].tid = tid;
            }
            Name::Track { key, kind, name, tid, device, stream, order } => {
                let row = self.track_row(key) as usize;
                let track = &mut self.tracks[row];
                (track.kind, track.name, track.tid) = (kind, name, tid);
                (track.device, track.stream, track.order) = (device, stream, order);
            }
            Name::Pid { process, pid } => {
                let row = self.process_row(process) as usize;
                self.processes[row].pid = pid;
            }
            Name::Clock { pid, clock } => {
                let row = self.process_row(pid) as usize;
                self.processes[row].clock = clock;
            }
            Name::Other { pid, host, name } => {
                let row = self.process_row(pid) as usize;
                let process = &mut self.processes[row];
                if !process.is_recorder {
                    (process.host, process.name) = (host, name);
                }
            }
            Name::Owner { key, pid } => {
                let (row, process) = (self.track_row(key) as usize, self.process_row(pid));
                self.tracks[row].process = process;
            }
            Name::Frame { pid, id, module, address } => self.stacks.add_frame(pid, id, module, address),
            Name::Function { pid, frame, function } => self.stacks.add_function(pid, frame, function),
            Name::Stack { pid, id, parent, frame } => self.stacks.add_stack(pid, id, parent, frame),
            Name::Site { pid, id, category, name } => {
                let key = format!("{category}\0{name}");
                self.sites.register(pid, id, key, || SiteInfo::new(&category, &name));
            }
            Name::Node { pid, id, name, op, device } => {
                let key = format!("{name}\0{op}\0{device}");
                self.nodes.register(pid, id, key, || NodeInfo { name, op, device });
            }
        }
    }

    /// Returns the row of a process; adds one if the process is new.
    fn process_row(&mut self, pid: u32) -> u32 {
        let processes = &mut self.processes;
        *self.process_rows.entry(pid).or_insert_with(|| {
            let (host, name) = (String::new(), format!("process {pid}"));
            processes.push(Process { pid, host, name, clock: None, ns_per_tick: 1.0, is_recorder: false });
            processes.len() as u32 - 1
        })
    }

    fn track_row(&mut self, key: TrackKey) -> u32 {
        if let Some(row) = self.track_rows.get(&key) {
            return *row;
        }
        let process = self.process_row(key.pid);
        let row = self.tracks.len() as u32;
        self.tracks.push(Track::new(TrackId(row), key, process));
        self.track_rows.insert(key, row);
        row
    }

    fn apply_track(&mut self, key: TrackKey, input: TrackEvents, first_args: u32) -> bool {
        let row = self.track_row(key);
        let mut changed = !input.events.is_empty();
        for event in &input.events {
            let args = if event.args == NO_ARGS { NO_ARGS } else { first_args.saturating_add(event.args) };
            self.apply_event(row, key.pid, &Event { args, ..*event });
        }
        if let Some(open) = input.open {
            let to_rows = |o: OpenSlice| OpenSlice {
                start: self.time(o.start),
                site: self.site_row(key.pid, o.site),
                node: self.node_row(key.pid, o.node),
                ..o
            };
            let open: Vec<OpenSlice> = open.into_iter().map(to_rows).collect();
            let track = &mut self.tracks[row as usize];
            changed |= track.open != open;
            track.open = open;
        }
        if let Some(dropped) = input.dropped
            && dropped > self.tracks[row as usize].dropped
        {
            self.tracks[row as usize].dropped = dropped;
            let source = self.track_title(row);
            let text = format!("{source}: its buffer was full, {dropped} events were not recorded");
            changed |= self.warnings.set(Warning { kind: WarningKind::Dropped, source, count: dropped, text });
        }
        self.enforce_budget(row);
        changed
    }

    fn track_title(&self, row: u32) -> String {
        let track = &self.tracks[row as usize];
        format!("{} ({})", track.name, track.key.pid)
    }

    /// Converts a time of CLOCK_MONOTONIC_RAW to ns from the origin.
    fn time(&self, mono_ns: i64) -> i64 {
        mono_ns.saturating_sub(self.origin_ns()).clamp(-MAX_TIME_NS, MAX_TIME_NS)
    }

    /// Returns the row of a process's site; adds one with a placeholder name if it is not registered.
    fn site_row(&mut self, pid: u32, id: u32) -> u32 {
        if let Some(row) = self.sites.find(pid, id) {
            return row;
        }
        let name = format!("site {id} of process {pid} (its name is missing)");
        self.report_missing(pid, "call site");
        self.sites.register(pid, id, format!("?{pid}\0{id}"), || SiteInfo::new("", &name))
    }

    /// Returns the row of a process's node, as [`Store::site_row`].
    fn node_row(&mut self, pid: u32, id: u32) -> u32 {
        if id == NO_NODE {
            return NO_NODE;
        }
        if let Some(row) = self.nodes.find(pid, id) {
            return row;
        }
        let name = format!("node {id} of process {pid} (its name is missing)");
        self.report_missing(pid, "node");
        self.nodes.register(pid, id, format!("?{pid}\0{id}"), || NodeInfo {
            name,
            op: String::new(),
            device: String::new(),
        })
    }

    fn report_missing(&mut self, pid: u32, kind: &str) {
        let source = format!("process {pid}, {kind}s");
        let count = self.warnings.count(WarningKind::UnknownName, &source) + 1;
        let text = format!("process {pid}: the names of {count} {kind}s are missing");
        self.warnings.set(Warning { kind: WarningKind::UnknownName, source, count, text });
    }

    fn apply_event(&mut self, track: u32, pid: u32, event: &Event) {
        let (start, end) = (self.time(event.start), self.time(event.end.max(event.start)));
        let range = self.range.get_or_insert(start..end);
        range.start = range.start.min(start);
        range.end = range.end.max(end);
        let site = self.site_row(pid, event.site);
        let keep = self.options.events_per_kind;
        if self.sites.rows()[site as usize].category.is_transfer() {
            self.apply_transfer(track, pid, site, event, start);
        }
        let n_evicted = match event.kind {
            EventKind::Slice => {
                self.apply_slice(track, pid, &Event { site, start, end, ..*event });
                0
            }
            EventKind::Instant => {
                let is_sample = self.sites.rows()[site as usize].category == Category::Sample;
                let arg = if is_sample { self.stacks.row(pid, event.arg as u32).into() } else { event.arg };
                self.tracks[track as usize].instants.push(InstantEvent { time: start, site, arg, args: event.args });
                0
            }
            EventKind::Counter => {
                let process = self.tracks[track as usize].process;
                let is_of_thread = self.sites.rows()[site as usize].category == Category::ThreadCounter;
                let key = CounterKey { process, site, track: is_of_thread.then_some(TrackId(track)) };
                self.counters.push(key, start, f64::from_bits(event.arg), keep)
            }
            EventKind::FlowOut | EventKind::FlowIn => {
                let end = FlowEnd { track: TrackId(track), time: start };
                let joins_processes = self.sites.rows()[site as usize].category.joins_processes();
                let scope = if joins_processes { u32::MAX } else { self.tracks[track as usize].process };
                let key = (scope, site, event.correlation);
                self.flows.push(key, end, event.kind == EventKind::FlowOut, keep)
            }
            EventKind::Alloc | EventKind::Free => {
                let bytes = i64::try_from(event.arg).unwrap_or(i64::MAX);
                let bytes = if event.kind == EventKind::Alloc { bytes } else { -bytes };
                let node = self.node_row(pid, event.node);
                let key = CounterKey { process: self.tracks[track as usize].process, site, track: None };
                let in_use = event.correlation.checked_sub(1).map(|n| f64::from(n) * IN_USE_UNIT_BYTES);
                let n_points = in_use.map_or(0, |in_use| self.counters.push(key, start, in_use, keep));
                self.memory.push_back(MemoryEvent { time: start, track: TrackId(track), site, node, bytes });
                let evicted = if self.memory.len() > keep { self.memory.pop_front() } else { None };
                n_points + u64::from(evicted.is_some())
            }
        };
        self.count_evicted("counters, flows and memory events", n_evicted);
    }

    fn apply_transfer(&mut self, track: u32, pid: u32, site: u32, event: &Event, time: i64) {
        let node = self.node_row(pid, event.node);
        let is_remote = self.sites.rows()[site as usize].category.joins_processes();
        let stamp = Stamp {
            scope: if is_remote { u32::MAX } else { self.tracks[track as usize].process },
            track: TrackId(track),
            kind: event.kind,
            name: &self.sites.rows()[site as usize].name,
            node,
            number: event.correlation,
            arg: event.arg,
            time,
        };
        let n_evicted = self.transfers.push(&stamp, self.options.events_per_kind);
        self.count_evicted("transfers", n_evicted);
    }

    /// Returns the row of the track of a process's waits that block no thread. Its ring, `u32::MAX`, is of no thread.
    fn parked_row(&mut self, pid: u32) -> u32 {
        let row = self.track_row(TrackKey { pid, ring: u32::MAX });
        let track = &mut self.tracks[row as usize];
        if track.kind != TrackKind::Async {
            (track.kind, track.name, track.order) = (TrackKind::Async, "waits".to_owned(), i32::MAX);
        }
        row
    }

    /// Adds a slice whose times are relative to the origin, and whose site is a row of the store.
    fn apply_slice(&mut self, track: u32, pid: u32, event: &Event) {
        let mut slice = Event { node: self.node_row(pid, event.node), ..*event };
        let category = self.sites.rows()[slice.site as usize].category;
        if category == Category::Op {
            slice.correlation = self.node_row(pid, event.correlation);
            let process = self.tracks[track as usize].process;
            let wait_ns = f64::from(event.arg as u32) * self.processes[process as usize].ns_per_tick;
            slice.arg = event.arg >> 32 << 32 | u64::from(wait_ns as u32);
        }
        if matches!(category, Category::Op | Category::Shard) && self.tracks[track as usize].kind == TrackKind::Thread {
            self.tracks[track as usize].kind = TrackKind::Worker;
        }
        let track = if category == Category::Parked {
            slice.depth = 0;
            self.parked_row(pid)
        } else {
            track
        };
        let id = self.tracks[track as usize].push(slice, self.sites.rows());
        self.slices_total += 1;
        if category == Category::Step {
            let Event { correlation, arg, site, start, end, .. } = slice;
            let step = Step { id: correlation, summary_step: arg as i64, site, start, end, slice: id };
            let is_in_order =
                self.late_steps.is_empty() && self.steps.last().is_none_or(|last| last.start <= step.start);
            if is_in_order { self.steps.push(step) } else { self.late_steps.push(step) }
        }
    }

    /// Merges steps that arrived out of order into the others. While `more` batches follow, late steps are merged only
    /// once they are a quarter of the others, so that each step is moved a few times only.
    fn merge_late_steps(&mut self, more: bool) {
        if self.late_steps.is_empty() || (more && self.late_steps.len() < self.steps.len() / 4) {
            return;
        }
        let mut late = std::mem::take(&mut self.late_steps);
        late.sort_by_key(|step| step.start);
        let first = self.steps.partition_point(|step| step.start <= late[0].start);
        let mut later = self.steps.split_off(first).into_iter().peekable();
        for step in late {
            while let Some(earlier) = later.next_if(|next| next.start <= step.start) {
                self.steps.push(earlier);
            }
            self.steps.push(step);
        }
        self.steps.extend(later);
    }

    /// Sets the warning about damage that the pager has found. Returns whether it changed.
    fn report_damage(&mut self) -> bool {
        let damage = self.pager.as_ref().and_then(|pager| pager.damage());
        damage.is_some_and(|damage| self.warnings.set(damage))
    }

    /// Evicts the oldest counter points, flows, transfers and memory events over the budget, after the contents were
    /// replaced.
    pub(super) fn enforce_side_budget(&mut self) {
        let keep = self.options.events_per_kind;
        let n_over = self.memory.len().saturating_sub(keep);
        self.memory.drain(..n_over);
        let n = n_over as u64 + self.counters.keep_last(keep) + self.flows.keep_last(keep);
        let n = n + self.transfers.drain(keep).len() as u64;
        self.count_evicted("counters, flows, transfers and memory events", n);
    }

    /// Evicts the oldest slices and instants of a track, and the oldest steps, over the budget, and sets the warnings
    /// about evicted and clipped rows.
    pub(super) fn enforce_budget(&mut self, track: u32) {
        let options = self.options;
        let title = self.track_title(track);
        let track = &mut self.tracks[track as usize];
        let slices: u64 = track.lanes.iter_mut().map(|l| l.keep_last(options.slices_per_lane)).sum();
        let instants = evict_oldest(&mut track.instants, options.events_per_kind);
        let clipped = track.clipped;
        let steps = evict_oldest(&mut self.steps, options.steps);
        self.count_evicted(&title, slices);
        self.count_evicted("instants and steps", instants + steps);
        if clipped > 0 {
            let text =
                format!("{title}: {clipped} slices overlap more others than there are lanes and are shown shortened");
            self.warnings.set(Warning { kind: WarningKind::Clipped, source: title, count: clipped, text });
        }
    }

    fn count_evicted(&mut self, source: &str, count: u64) {
        if count == 0 {
            return;
        }
        self.evicted += count;
        let count = self.warnings.count(WarningKind::Evicted, source) + count;
        let text =
            format!("{source}: the oldest {count} are no longer shown, to bound memory (they are in the trace files)");
        self.warnings.set(Warning { kind: WarningKind::Evicted, source: source.to_owned(), count, text });
    }
}

/// Evicts all but the last `keep` rows once there are twice as many, so that the cost per row is constant. Returns the
/// number of evicted rows.
fn evict_oldest<T>(rows: &mut Vec<T>, keep: usize) -> u64 {
    if rows.len() / 2 < keep.max(1) {
        return 0;
    }
    let n = rows.len() - keep;
    rows.drain(..n);
    n as u64
}
