//! Stores from text and from trace folders, for tests.

use crate::TraceReader;
use crate::store::{Store, StoreOptions};
use std::collections::BTreeMap;
use std::path::Path;
use trace_model::{Batch, Event, EventKind, Function, NO_NODE, Name, SliceRef, TrackKey, TrackKind};

/// A process records into one folder at a time: held by a test that does.
pub static RECORDING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// A store with origin 0 from lines such as
///
/// ```text
/// step 7: 0..100              a step slice on the track `main`, labelled `train`, with summary step 70
/// step 8: on w0 0..100        a step slice labelled `init`, with summary step 0, on another track
/// w0 A 0..10                  an op slice of the node `A` on the track `w0`, in the step above
/// w0 B 12..28 by A queue 2    made ready by `A`, ready 2 ns before it started
/// w1 shard B 13..20
/// w1 idle 0..13
/// w0 parked B 12..28 empty                the node `B` waited without a thread for a row of the queue `q`; `full`, for room
/// gpu7 kernel: gemm 20..30 c 5            a slice of any category, with its correlation, on stream 7
/// gpu7 kernel: dot 20..30 says {"flops":8}   the same with arguments: a JSON object with `~` for spaces
/// gpu7 wait 3..4 for 20 record 11         a record: stream 7 waits for the event that call 11 recorded on stream 20
/// main synced 40..50 for 20 c 9           the host's call 9 that waits for stream 20, with its record
/// flow 1 main 10 -> w0 12                 an arrow
/// transfer 3 a/_Send w0 1 2 3 -> b/_Recv 2.w0 8 9     enqueued, sent, left; arrived, unblocked
/// w0 count page-faults 12 40                          a counter of the thread: its value
/// w0 off-cpu: sleeping 10..20 c 101                   the thread slept until 101 woke it
/// cpu0 runs w0 0..10                                  a CPU ran the thread
/// w0 sample 12 main;work;burn                         the thread's call stack, the outermost function first
/// w0 alloc cpu:0 A 12 1024                memory taken by the node `A`; negative: freed
/// w0 alloc cpu:0 A 12 1024 of 4096        the same, and how much is taken then in all, in steps of 64
/// ```
///
/// A track `2.w0` is of process 2, else of 1; its tid is 100 times the process and the track's number in it. A node's op type is
/// its name's last part without digits. Indented by `>` a slice is nested that deep.
pub fn store(text: &str) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    store.apply(batch(text));
    store
}

/// Everything that a trace folder holds.
pub fn read(folder: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let read = TraceReader::open(folder).map(|mut reader| reader.read_all(&mut store));
    read.expect("a trace folder").expect("its files can be read");
    store
}

/// All slices of a trace, lane by lane.
pub fn slices(store: &Store) -> impl Iterator<Item = SliceRef> + '_ {
    let lanes = store.tracks().iter().flat_map(|track| &track.lanes);
    lanes.flat_map(|lane| (0..lane.len() as u32).filter_map(|i| lane.slice(i)))
}

pub fn batch(text: &str) -> Batch {
    let mut kit = Kit::default();
    kit.batch.set_origin(0);
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        kit.line(line);
    }
    kit.batch
}

#[derive(Default)]
struct Kit {
    batch: Batch,
    tracks: BTreeMap<String, TrackKey>,
    sites: BTreeMap<(u32, String), u32>,
    nodes: BTreeMap<(u32, String), u32>,
    stacks: BTreeMap<(u32, String), u32>,
    step: u32,
}

/// A slice with nothing but its time.
fn slice(range: &str, site: u32) -> Event {
    let (start, end) = range.split_once("..").unwrap();
    Event::slice(site, start.parse().unwrap(), end.parse().unwrap())
}

/// Something at one time.
fn point(kind: EventKind, time: &str, site: u32) -> Event {
    Event::at(kind, site, time.parse().unwrap())
}

impl Kit {
    fn line(&mut self, line: &str) {
        let depth = line.chars().take_while(|c| *c == '>').count() as u8;
        let words: Vec<&str> = line[depth as usize..].split_whitespace().collect();
        let step = u64::from(self.step) << 32;
        match words[..] {
            ["step", id, "on", track, range] => self.step(id, track, range, "init", 0),
            ["step", id, range] => self.step(id, "main", range, "train", 10),
            [track, "idle", range] => {
                let site = self.site(track, "wait", "idle");
                self.push(track, Event { depth, correlation: self.step, ..slice(range, site) });
            }
            [track, "parked", node, range, what] => {
                let awaits = ["value", "empty", "full"].iter().position(|w| *w == what).unwrap();
                let (site, node) = (self.site(track, "parked", &format!("queue q {what}")), self.node(track, node));
                let (correlation, arg) = (self.step, awaits as u64);
                self.push(track, Event { depth, node, correlation, arg, ..slice(range, site) });
            }
            [track, "shard", node, range] => {
                let (site, node) = (self.site(track, "shard", &op_of(node)), self.node(track, node));
                self.push(track, Event { depth, node, arg: step | 1, ..slice(range, site) });
            }
            [track, category, name, range, "says", args] => {
                let site = self.site(track, &category.trim_end_matches(':').replace('-', " "), name);
                let args = self.batch.args(&args.replace('~', " "));
                self.push(track, Event { depth, args, ..slice(range, site) });
            }
            [track, category, name, range, ref rest @ ..] if category.ends_with(':') => {
                let site = self.site(track, &category.trim_end_matches(':').replace('-', " "), name);
                let correlation = rest.get(1).map_or(0, |c| c.parse().unwrap());
                self.push(track, Event { depth, correlation, ..slice(range, site) });
            }
            [track, "wait", range, "for", stream, "record", call] => {
                let args = format!(
                    r#"{{"cuda_sync_kind":"Stream Wait Event","stream":{},"wait_on_stream":{stream},"wait_on_cuda_event_record_corr_id":{call}}}"#,
                    stream_of(track).unwrap()
                );
                let (site, args) = (self.site(track, "sync", "Stream Wait Event"), self.batch.args(&args));
                self.push(track, Event { args, ..slice(range, site) });
            }
            [track, "synced", range, "for", stream, "c", call] => {
                let correlation = call.parse().unwrap();
                let site = self.site(track, "sync", "cudaStreamSynchronize");
                self.push(track, Event { depth, correlation, ..slice(range, site) });
                let args = self.batch.args(&format!(r#"{{"cuda_sync_kind":"Stream Sync","stream":{stream}}}"#));
                let on = format!("{}gpu{stream}", &track[..track.find('.').map_or(0, |at| at + 1)]);
                self.push(&on, Event { args, correlation, ..slice(range, site) });
            }
            [cpu, "runs", thread, range] => self.runs(cpu, thread, range),
            [track, "sample", time, stack] => self.sample(track, time, stack),
            ["flow", id, from, at, "->", to, then] => self.flow(id, (from, at), (to, then)),
            ["transfer", ref words @ ..] => self.transfer(words),
            [track, "count", name, time, value] => self.counter(track, name, time, value),
            [track, "alloc", ref words @ ..] => self.memory(track, words),
            [track, node, range, ref rest @ ..] => {
                let (site, node) = (self.site(track, "op", &op_of(node)), self.node(track, node));
                let mut event = Event { depth, node, correlation: NO_NODE, arg: step, ..slice(range, site) };
                for pair in rest.chunks(2) {
                    match pair {
                        ["by", other] => event.correlation = self.node(track, other),
                        ["queue", ns] => event.arg |= ns.parse::<u64>().unwrap(),
                        _ => panic!("{line}"),
                    }
                }
                self.push(track, event);
            }
            _ => panic!("{line}"),
        }
    }

    fn counter(&mut self, track: &str, name: &str, time: &str, value: &str) {
        let site = self.site(track, "thread counter", name);
        let arg = value.parse::<f64>().unwrap().to_bits();
        self.push(track, Event { arg, ..point(EventKind::Counter, time, site) });
    }

    fn runs(&mut self, cpu: &str, thread: &str, range: &str) {
        let (site, thread) = (self.site(cpu, "running", thread), self.track(thread));
        let (correlation, arg) = (thread.pid * 100 + thread.ring, u64::from(thread.pid));
        self.push(cpu, Event { correlation, arg, ..slice(range, site) });
    }

    fn flow(&mut self, id: &str, from: (&str, &str), to: (&str, &str)) {
        for ((track, time), kind) in [(from, EventKind::FlowOut), (to, EventKind::FlowIn)] {
            let site = self.site(track, "edge", "arrow");
            self.push(track, Event { correlation: id.parse().unwrap(), ..point(kind, time, site) });
        }
    }

    fn sample(&mut self, track: &str, time: &str, stack: &str) {
        let (pid, site) = (self.track(track).pid, self.site(track, "sample", "sample"));
        let mut parent = u32::MAX;
        for (depth, name) in stack.split(';').enumerate() {
            let caller = stack.split(';').take(depth + 1).collect::<Vec<_>>().join(";");
            let (id, is_new) = Kit::id(&mut self.stacks, pid, &caller);
            if is_new {
                self.batch.name(Name::Frame { pid, id, module: "program".into(), address: u64::from(id) });
                let function = Function { name: name.to_owned(), file: String::new(), line: 0 };
                self.batch.name(Name::Function { pid, frame: id, function });
                self.batch.name(Name::Stack { pid, id, parent, frame: id });
            }
            parent = id;
        }
        self.push(track, Event { arg: parent.into(), ..point(EventKind::Instant, time, site) });
    }

    fn memory(&mut self, track: &str, words: &[&str]) {
        let (device, node, time, bytes, in_use) = match *words {
            [device, node, time, bytes] => (device, node, time, bytes, None),
            [device, node, time, bytes, "of", in_use] => (device, node, time, bytes, Some(in_use)),
            _ => panic!("{words:?}"),
        };
        let bytes: i64 = bytes.parse().unwrap();
        // As `events::alloc` packs it.
        let correlation = in_use.map_or(0, |in_use| in_use.parse::<u32>().unwrap() / 64 + 1);
        let kind = if bytes < 0 { EventKind::Free } else { EventKind::Alloc };
        let (site, node) = (self.site(track, "alloc", device), self.node(track, node));
        let arg = bytes.unsigned_abs();
        self.push(track, Event { node, correlation, arg, ..point(kind, time, site) });
    }

    fn transfer(&mut self, words: &[&str]) {
        use EventKind::{FlowIn, FlowOut, Instant};
        let [id, send, from, enqueued, sent, left, "->", receive, to, arrived, unblocked] = *words else {
            panic!("{words:?}")
        };
        let stamps = [
            (from, send, "enqueue", enqueued, Instant),
            (from, send, "send", sent, Instant),
            (from, send, "edge", left, FlowOut),
            (to, receive, "arrive", arrived, Instant),
            (to, receive, "edge", unblocked, FlowIn),
        ];
        let (correlation, arg) = (id.parse().unwrap(), u64::from(self.step) << 32 | 64);
        let category = if self.track(from).pid == self.track(to).pid { "transfer" } else { "remote transfer" };
        for (track, node, name, time, kind) in stamps {
            let (site, node) = (self.site(track, category, name), self.node(track, node));
            self.push(track, Event { node, correlation, arg, ..point(kind, time, site) });
        }
    }

    fn step(&mut self, id: &str, track: &str, range: &str, label: &str, per_step: u64) {
        self.step = id.trim_end_matches(':').parse().unwrap();
        let site = self.site(track, "step", label);
        let arg = u64::from(self.step) * per_step;
        self.push(track, Event { correlation: self.step, arg, ..slice(range, site) });
    }

    fn push(&mut self, track: &str, event: Event) {
        let key = self.track(track);
        self.batch.track(key).events.push(event);
    }

    fn track(&mut self, track: &str) -> TrackKey {
        if let Some(key) = self.tracks.get(track) {
            return *key;
        }
        let (pid, name) = track.split_once('.').map_or((1, track), |(pid, name)| (pid.parse().unwrap(), name));
        let ring = self.tracks.values().filter(|k| k.pid == pid).count() as u32;
        if ring == 0 {
            self.batch.name(Name::Process { pid, host: "h".into(), name: "p".into(), ns_per_tick: 1.0 });
        }
        let key = TrackKey { pid, ring };
        self.tracks.insert(track.to_owned(), key);
        let name = name.to_owned();
        let cpu = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
        self.batch.name(match stream_of(&name) {
            None if cpu.is_some() => {
                let (kind, device, order) = (TrackKind::Cpu, String::new(), cpu.unwrap_or(0));
                Name::Track { key, kind, name, tid: 0, device, stream: None, order }
            }
            None => Name::Thread { key, name, tid: pid * 100 + ring },
            stream => {
                let (kind, device) = (TrackKind::Stream, format!("GPU {pid}"));
                Name::Track { key, kind, name, tid: 0, device, stream, order: 0 }
            }
        });
        key
    }

    /// Ids are unique in a process.
    fn id(names: &mut BTreeMap<(u32, String), u32>, pid: u32, name: &str) -> (u32, bool) {
        let id = names.len() as u32;
        match names.get(&(pid, name.to_owned())) {
            Some(id) => (*id, false),
            None => {
                names.insert((pid, name.to_owned()), id);
                (id, true)
            }
        }
    }

    fn site(&mut self, track: &str, category: &str, name: &str) -> u32 {
        let pid = self.track(track).pid;
        let (id, is_new) = Kit::id(&mut self.sites, pid, &format!("{category} {name}"));
        if is_new {
            self.batch.name(Name::Site { pid, id, category: category.into(), name: name.into() });
        }
        id
    }

    fn node(&mut self, track: &str, name: &str) -> u32 {
        let pid = self.track(track).pid;
        let (id, is_new) = Kit::id(&mut self.nodes, pid, name);
        if is_new {
            self.batch.name(Name::Node { pid, id, name: name.into(), op: op_of(name), device: "cpu:0".into() });
        }
        id
    }
}

/// The stream of a track `gpu7`.
fn stream_of(track: &str) -> Option<u64> {
    track.rsplit('.').next()?.strip_prefix("gpu")?.parse().ok()
}

fn op_of(node: &str) -> String {
    node.rsplit('/').next().unwrap_or(node).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}
