//! Memory snapshots, compared with what `torch.cuda._memory_viz` says of them (tests/scripts/make_snapshots.py).

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{collections::BTreeMap, fs::File, path::PathBuf};

use serde_json::Value;
use torch_dumps::{
    Action, Block, BlockState, Device, Grouping, History, Segment, Snapshot, StackId, by_stack, by_user_frame,
    difference, lifetimes, live_at, live_blocks, live_bytes, out_of_memory, peak, read_snapshot, usage, usage_by_pool,
};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn snapshot(name: &str) -> Snapshot {
    let snapshot = read_snapshot(File::open(fixture(name)).unwrap()).unwrap();
    assert!(snapshot.warnings.is_empty(), "{name}: {:?}", snapshot.warnings);
    snapshot
}

fn expected(name: &str, key: &str) -> Value {
    let mut all: Value = serde_json::from_reader(File::open(fixture("snapshots.json")).unwrap()).unwrap();
    all[name][key].take()
}

fn expected_text(name: &str, key: &str) -> String {
    expected(name, key).as_str().unwrap().to_owned()
}

/// `_frames_fmt`: the frames that it shows, the outermost first.
fn flame(snapshot: &Snapshot, stack: StackId) -> String {
    let frames = snapshot.stacks.frames(stack).iter().rev().map(|id| snapshot.stacks.frame(*id));
    let shown = |frame: torch_dumps::Frame<'_>| {
        let file = frame.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}:{}", frame.line, frame.function)
    };
    let all: Vec<String> = frames.map(shown).collect();
    if all.is_empty() { "<non-python>".to_owned() } else { all.join(";") }
}

/// `memory` and `segments`: each block with its stack, and what is lost in it.
fn flames(snapshot: &Snapshot, prefix: impl Fn(&Segment) -> String) -> String {
    let mut text = String::new();
    let mut write = |device: &Device, segment: &Segment, block: &Block| {
        let state = match block.state {
            BlockState::Allocated => "active_allocated",
            BlockState::PendingFree => "active_pending_free",
            BlockState::Free => "inactive",
        };
        assert!(device.segments.contains(segment));
        let start = format!("{};{state}", prefix(segment));
        text += &format!("{start};{} {}\n", flame(snapshot, block.stack), block.requested);
        if block.size != block.requested {
            text += &format!("{start};<gaps> {}\n", block.size.cast_signed() - block.requested.cast_signed());
        }
    };
    for device in &snapshot.devices {
        for segment in &device.segments {
            device.blocks[segment.blocks.clone()].iter().for_each(|block| write(device, segment, block));
        }
    }
    text
}

#[test]
fn all_protocols_give_the_same() {
    let [two, four, five] = ["gpu_p2.pickle", "gpu_p4.pickle", "gpu_p5.pickle"].map(snapshot);
    assert_eq!(format!("{:?}", two.devices), format!("{:?}", four.devices));
    assert_eq!(format!("{:?}", four.devices), format!("{:?}", five.devices));
    let settings: Vec<String> = five.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "max_split_size=-1",
        "garbage_collection_threshold=0.5",
        "expandable_segments=true",
        "roundup_power2_divisions.1=0",
        "roundup_power2_divisions.2=4",
    ];
    assert_eq!(settings, expected);
    let notes: Vec<_> =
        five.annotations.iter().map(|one| (five.stacks.text(one.name), five.stacks.text(one.stage))).collect();
    assert_eq!(notes, [("forward", "START"), ("forward", "END")]);
}

#[test]
fn blocks_and_stacks_are_those_of_memory_viz() {
    for name in ["cpu", "gpu", "before"] {
        let snapshot = snapshot(&if name == "gpu" { "gpu_p5.pickle".to_owned() } else { format!("{name}.pickle") });
        assert_eq!(flames(&snapshot, |segment| format!("stream_{}", segment.stream)), expected_text(name, "memory"));
        if name != "cpu" {
            let prefix = |segment: &Segment| format!("stream_{};seg_{}", segment.stream, segment.address);
            assert_eq!(flames(&snapshot, prefix), expected_text(name, "segments"));
        }
    }
}

/// Snapshots of a real allocator on an H200: three steps with a second stream, a pool and a CUDA graph; and one that ran
/// out of memory.
#[test]
fn snapshots_of_a_gpu_are_what_memory_viz_says() {
    let expected: Value = serde_json::from_reader(File::open(fixture("h200.json")).unwrap()).unwrap();
    for name in ["steps", "oom"] {
        let file = format!("{}/../../tests/data/h200/{name}.snapshot.pickle.gz", env!("CARGO_MANIFEST_DIR"));
        let snapshot = read_snapshot(flate2::read::GzDecoder::new(File::open(file).unwrap())).unwrap();
        assert!(snapshot.warnings.is_empty(), "{name}: {:?}", snapshot.warnings);
        let text = |key: &str| expected[name][key].as_str().unwrap();
        assert_eq!(flames(&snapshot, |segment| format!("stream_{}", segment.stream)), text("memory"), "{name}");
        let prefix = |segment: &Segment| format!("stream_{};seg_{}", segment.stream, segment.address);
        assert_eq!(flames(&snapshot, prefix), text("segments"), "{name}");
        let allocations: Vec<_> = snapshot.devices.iter().flat_map(lifetimes).collect();
        let unfreed = allocations.iter().filter(|one| one.begin.is_some() && one.requested.is_none());
        let unfreed: Vec<Value> = unfreed.map(|one| serde_json::json!([one.address, one.size])).collect();
        assert_eq!(Value::from(unfreed), expected[name]["unfreed"], "{name}");
        let of_device = |device| out_of_memory(device, &lifetimes(device)).len();
        let failures: usize = snapshot.devices.iter().map(of_device).sum();
        assert_eq!(failures, usize::from(name == "oom"));
    }
}

/// `_format_size`.
fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["", "Ki", "Mi", "Gi"] {
        if number < 1024.0 {
            return format!("{number:.1}{unit}B");
        }
        number /= 1024.0;
    }
    format!("{number:.1}TiB")
}

#[test]
fn usage_is_that_of_segsum() {
    let snapshot = snapshot("gpu_p4.pickle");
    let device = &snapshot.devices[0];
    let all: Vec<_> = device.segments.iter().map(|segment| usage(device, segment)).collect();
    let sum = |field: fn(&torch_dumps::Usage) -> u64| all.iter().map(field).sum::<u64>();
    let lost = sum(|usage| usage.allocated - usage.requested);
    let free = sum(|usage| usage.free() + usage.pending_free) + lost;
    let lines = [
        format!("segments: {}", all.len()),
        format!("total_reserved: {}", size(sum(|usage| usage.reserved))),
        format!("total_allocated: {}", size(sum(|usage| usage.requested))),
        format!("total_free: {} ({:.1}% internal)", size(free), lost as f64 / free as f64 * 100.0),
    ];
    assert!(expected_text("gpu", "segsum").contains(&lines.join("\n")), "{lines:?}");
    let pools = usage_by_pool(device);
    assert_eq!(pools.iter().map(|pool| pool.usage.n_segments).sum::<u64>(), all.len() as u64);
    assert_eq!(pools.iter().map(|pool| pool.usage.free()).sum::<u64>(), sum(torch_dumps::Usage::free));
    let largest = device.blocks.iter().filter(|block| block.state == BlockState::Free).map(|block| block.size).max();
    assert_eq!(pools.iter().map(|pool| pool.usage.largest_free).max(), largest);
    assert!(all.iter().all(|usage| usage.inactive_split <= usage.free()));
}

/// Names of allocations and segments as `trace` gives them: in order, never again.
#[derive(Default)]
struct Names {
    next: u32,
    segments: Vec<(String, u64, u64)>,
    segment_names: BTreeMap<u64, String>,
    allocations: BTreeMap<u64, String>,
}

impl Names {
    fn new_name(&mut self) -> String {
        let (row, letter) = (self.next / 26, char::from(b'a' + (self.next % 26) as u8));
        self.next += 1;
        if row == 0 { letter.to_string() } else { format!("{letter}{row}") }
    }

    fn line(&mut self, snapshot: &Snapshot, event: &torch_dumps::Event) -> Option<String> {
        let (address, bytes) = (event.address, size(event.size));
        let known = |names: &BTreeMap<u64, String>| names.get(&address).cloned().unwrap_or(address.to_string());
        Some(match event.action {
            Action::Alloc => {
                let name = self.new_name();
                let within = |start: u64, size: u64| address >= start && address < start + size;
                let traced = self.segments.iter().find(|(_, start, size)| within(*start, *size));
                let device = &snapshot.devices[0];
                // It looks into what is allocated of a segment.
                let allocated = |segment: &Segment| within(segment.address, usage(device, segment).allocated);
                let (segment, start) = match traced {
                    Some((name, start, _)) => (name.clone(), *start),
                    None => match device.segments.iter().position(allocated) {
                        Some(at) => (format!("seg_{at}"), device.segments[at].address),
                        None => ("MEM".to_owned(), 0),
                    },
                };
                self.allocations.insert(address, name.clone());
                format!("{name} = {segment}[{}:{bytes}]", address - start)
            }
            Action::FreeRequested => format!("del {} # {bytes}", known(&self.allocations)),
            Action::FreeCompleted => format!("# free completed for {} {bytes}", known(&self.allocations)),
            Action::SegmentAlloc => {
                let name = self.new_name();
                self.segments.push((name.clone(), address, event.size));
                self.segment_names.insert(address, name.clone());
                format!("{name} = cudaMalloc({address}, {bytes})")
            }
            Action::SegmentFree => format!("cudaFree({}) # {bytes}", known(&self.segment_names)),
            Action::OutOfMemory => {
                format!("raise OutOfMemoryError # {bytes} requested, {} free in CUDA", size(address))
            }
            Action::Annotate => {
                format!("# annotate {}: {}", known(&self.allocations), snapshot.stacks.text(event.metadata))
            }
            _ => return None,
        })
    }
}

#[test]
fn events_are_those_of_trace() {
    let snapshot = snapshot("gpu_p2.pickle");
    let mut names = Names::default();
    let lines: Vec<String> =
        snapshot.devices[0].events.iter().filter_map(|event| names.line(&snapshot, event)).collect();
    let text = expected_text("gpu", "trace");
    // The actions that it does not know are printed as Python has them.
    let own = |line: &&str| ["Device", "TOTAL", "{"].iter().all(|start| !line.starts_with(start));
    let mut theirs: Vec<&str> = text.lines().filter(own).collect();
    assert_eq!(theirs.remove(0), format!("{} entries", snapshot.devices[0].events.len()));
    assert_eq!(lines, theirs);
}

#[test]
fn what_is_never_freed_is_what_memory_viz_leaves() {
    for (name, file) in [("cpu", "cpu.pickle"), ("gpu", "gpu_p5.pickle"), ("before", "before.pickle")] {
        let snapshot = snapshot(file);
        let allocations: Vec<_> = snapshot.devices.iter().flat_map(lifetimes).collect();
        let unfreed = allocations.iter().filter(|one| one.begin.is_some() && one.requested.is_none());
        let unfreed: Vec<Value> = unfreed.map(|one| serde_json::json!([one.address, one.size])).collect();
        assert_eq!(Value::from(unfreed), expected(name, "unfreed"), "{name}");
    }
}

#[test]
fn live_bytes_are_what_the_allocator_knew() {
    let snapshot = snapshot("gpu_p4.pickle");
    let device = &snapshot.devices[0];
    let allocations = lifetimes(device);
    let points: Vec<_> = live_bytes(device, &allocations).collect();
    let live: Vec<Value> = points.iter().map(|point| serde_json::json!([point.allocated, point.reserved])).collect();
    assert_eq!(Value::from(live), expected("gpu", "live"));
    let peak = peak(device, &allocations).unwrap();
    // Point 0 is before the first event.
    let at = peak.point.event.map_or(0, |event| u64::from(event) + 1);
    assert_eq!(Value::from(at), expected("gpu", "peak"));
    let sums = by_stack(&peak.live);
    let stacks = &snapshot.stacks;
    let text = |stack: StackId| {
        let frames = stacks.frames(stack).iter().map(|id| stacks.frame(*id));
        frames.map(|frame| format!("{}:{}:{}", frame.file, frame.line, frame.function)).collect::<Vec<_>>().join("|")
    };
    let by_text: BTreeMap<String, u64> = sums.iter().map(|sum| (text(sum.stack), sum.bytes)).collect();
    assert_eq!(serde_json::json!(by_text), expected("gpu", "peak_by_stack"));
    assert_eq!(sums.iter().map(|sum| sum.bytes).sum::<u64>(), peak.point.allocated);
    let by_frame = by_user_frame(stacks, &sums);
    let files: Vec<&str> = by_frame.iter().filter_map(|sum| sum.frame).map(|frame| stacks.frame(frame).file).collect();
    assert!(files.iter().all(|file| file.starts_with("/home/user/") || file.ends_with("engine.cpp")), "{files:?}");
    assert_eq!(by_frame.iter().map(|sum| sum.bytes).sum::<u64>(), peak.point.allocated);
    let last = points.last().unwrap();
    let at_end: Vec<_> = live_at(&allocations, last.event).collect();
    assert!(at_end.iter().all(|one| one.end.is_none()));
    assert_eq!(at_end.iter().map(|one| one.size).sum::<u64>(), last.allocated);
}

#[test]
fn failures_have_what_was_live() {
    let snapshot = snapshot("gpu_p5.pickle");
    let device = &snapshot.devices[0];
    let failed = out_of_memory(device, &lifetimes(device));
    let trace = expected_text("gpu", "trace");
    let theirs: Vec<&str> = trace.lines().filter(|line| line.starts_with("raise")).collect();
    let line = |one: &torch_dumps::OutOfMemory| {
        format!("raise OutOfMemoryError # {} requested, {} free in CUDA", size(one.requested), size(one.device_free))
    };
    assert_eq!(failed.iter().map(line).collect::<Vec<_>>(), theirs);
    let live = expected("gpu", "live");
    for one in failed {
        let at = one.point.event.unwrap() as usize + 1;
        assert_eq!(live[at], serde_json::json!([one.point.allocated, one.point.reserved]));
    }
}

#[test]
fn the_peak_on_a_cpu_is_that_of_the_profiler() {
    let snapshot = snapshot("cpu.pickle");
    let devices = snapshot.devices.iter().filter(|device| !device.events.is_empty());
    let peaks: Vec<u64> =
        devices.filter_map(|device| Some(peak(device, &lifetimes(device))?.point.allocated)).collect();
    assert_eq!(serde_json::json!(peaks), serde_json::json!([expected("cpu", "timeline_peak")]));
}

/// The bytes in use by stack, from the lines of `memory`.
fn active(lines: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for line in lines.lines().filter(|line| line.contains(";active_allocated;") && !line.contains("<gaps>")) {
        let (start, bytes) = line.rsplit_once(' ').unwrap();
        let stack = start.splitn(3, ';').nth(2).unwrap();
        *sums.entry(stack.to_owned()).or_default() += bytes.parse::<i64>().unwrap();
    }
    sums
}

#[test]
fn the_difference_is_that_of_the_sums_of_memory_viz() {
    let (before, after) = (snapshot("before.pickle"), snapshot("gpu_p4.pickle"));
    let mut theirs = active(&expected_text("gpu", "memory"));
    for (stack, bytes) in active(&expected_text("before", "memory")) {
        *theirs.entry(stack).or_default() -= bytes;
    }
    theirs.retain(|_, bytes| *bytes != 0);
    let mut own = BTreeMap::new();
    for change in difference(&before, &after) {
        let of = |snapshot, sum: Option<torch_dumps::StackBytes>| sum.map(|sum| flame(snapshot, sum.stack));
        *own.entry(of(&after, change.after).or_else(|| of(&before, change.before)).unwrap()).or_default() +=
            change.bytes();
    }
    own.retain(|_, bytes| *bytes != 0);
    assert_eq!(own, theirs);
    assert!(difference(&after, &snapshot("gpu_p2.pickle")).is_empty());
    assert_eq!(
        live_blocks(&after).iter().map(|sum| sum.bytes as i64).sum::<i64>(),
        active(&expected_text("gpu", "memory")).values().sum::<i64>()
    );
}

/// Each column has what is live at its highest moment, wherever the reading begins.
#[test]
fn columns_of_a_history_have_what_is_live() {
    for name in ["gpu_p4.pickle", "cpu.pickle"] {
        let snapshot = snapshot(name);
        for device in &snapshot.devices {
            let allocations = lifetimes(device);
            let points: Vec<_> = live_bytes(device, &allocations).collect();
            let history = History::new(device, &allocations);
            let n_events = device.events.len() as u32;
            for (grouping, width) in
                [(Grouping::Frame, 1), (Grouping::Stack, 1), (Grouping::Frame, 7), (Grouping::Stack, 50)]
            {
                let groups = history.groups(&snapshot.stacks, grouping);
                for first in [0, n_events / 3] {
                    let edges: Vec<u32> = (first..n_events).step_by(width).chain([n_events]).collect();
                    let columns = history.columns(&groups, &edges);
                    assert_eq!(columns.len(), edges.len() - 1);
                    for (column, pair) in columns.iter().zip(edges.windows(2)) {
                        // The points begin with the one before the first event.
                        let inside = &points[pair[0] as usize..=pair[1] as usize];
                        let most = inside.iter().map(|point| point.allocated).max();
                        assert_eq!(Some(column.allocated), most, "{name} {pair:?}");
                        assert_eq!(Some(column.reserved), inside.iter().map(|point| point.reserved).max());
                        let mut expected = vec![0; column.by_group.len()];
                        for one in live_at(&allocations, column.event) {
                            expected[groups.of(one.stack)] += one.size;
                        }
                        assert_eq!(column.by_group.to_vec(), expected, "{name} {pair:?}");
                    }
                }
            }
        }
    }
}

/// The groups are the places with the most bytes at once, the largest first.
#[test]
fn groups_of_a_history_are_the_largest_places() {
    let snapshot = snapshot("gpu_p4.pickle");
    let device = &snapshot.devices[0];
    let allocations = lifetimes(device);
    let mut most: BTreeMap<_, u64> = BTreeMap::new();
    for event in std::iter::once(None).chain((0..device.events.len() as u32).map(Some)) {
        for sum in by_user_frame(&snapshot.stacks, &by_stack(live_at(&allocations, event))) {
            let highest = most.entry(sum.frame).or_default();
            *highest = (*highest).max(sum.bytes);
        }
    }
    let mut expected: Vec<u64> = most.values().copied().filter(|bytes| *bytes > 0).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let history = History::new(device, &allocations);
    let groups = history.groups(&snapshot.stacks, Grouping::Frame);
    let found: Vec<u64> = groups.list().iter().map(|group| group.most_bytes).collect();
    assert!(found.len() > 1 && found[..] == expected[..found.len()], "{found:?} {expected:?}");
    assert!(groups.list().iter().all(|group| most.get(&group.frame) == Some(&group.most_bytes)));
    assert!(History::new(&Device::default(), &[]).columns(&groups, &[]).is_empty());
}
