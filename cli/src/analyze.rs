//! `stepscope analyze`: where a trace's time went, what held it up, what to change first.

pub mod counters;
pub mod roofline;

use profiler::analysis::breakdown::Breakdown;
use profiler::analysis::critical::{CriticalPath, PathKind};
use profiler::analysis::report::{Analysis, analyse};
use profiler::{SliceId, Stall, Store};
use serde_json::{Value, json};

use crate::args;
use crate::human;
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::table::{Table, cut};
use crate::trace_file;

/// Rows of each table for a person.
const TOP: usize = 10;
/// Stalls that the JSON lists, at most: the longest. Their sums are of all.
const MAX_STALLS: usize = 10_000;

/// Analyses the trace, or one of its steps.
pub fn run(args: &args::Analyze) -> Outcome {
    let store = trace_file::open(&args.trace)?;
    let range = match args.step {
        None => store.range(),
        Some(number) => {
            let Some(step) = find_step(&store, number) else {
                return Err(no_step(&store, number));
            };
            step.start..step.end
        }
    };
    let mut analysis = analyse(&store, range.clone());
    if args.step.is_some() {
        analysis.paths.retain(|path| path.range.start == range.start);
    }
    for line in &mut analysis.rooflines {
        line.roof.flops_per_s = args.peak_tflops.map(|t| t * 1e12).or(line.roof.flops_per_s);
        line.roof.bytes_per_s = args.peak_gbs.map(|g| g * 1e9).or(line.roof.bytes_per_s);
    }
    if args.json {
        out::line(to_json(&store, &analysis));
    } else {
        print(&store, &analysis);
    }
    trace_file::warn(&args.trace, &store);
    Ok(())
}

/// The step with this number on the summaries' axis, else with this id; of several the longest.
fn find_step(store: &Store, number: i64) -> Option<&profiler::Step> {
    let longest = |is_it: &dyn Fn(&profiler::Step) -> bool| {
        store.steps().iter().filter(|s| is_it(s)).max_by_key(|s| s.end - s.start)
    };
    longest(&|s| s.summary_step == number).or_else(|| longest(&|s| i64::from(s.id) == number))
}

fn no_step(store: &Store, number: i64) -> Failure {
    let numbers = || store.steps().iter().map(|s| s.summary_step);
    match (numbers().min(), numbers().max()) {
        (Some(first), Some(last)) => {
            Failure::wrong_use(format_args!("the trace has no step {number}; it has {first} to {last}"))
        }
        _ => Failure::wrong_use("the trace has no steps"),
    }
}

/// Sum of the lengths of critical paths, ns.
pub fn path_ns(paths: &[CriticalPath]) -> i64 {
    paths.iter().map(|p| p.range.end - p.range.start).sum()
}

/// Time on critical paths by kind, the most first.
pub fn path_kinds(paths: &[CriticalPath]) -> Vec<(String, i64)> {
    let mut kinds: Vec<(String, i64)> = Vec::new();
    for segment in paths.iter().flat_map(|p| &p.segments) {
        let name = kind_name(segment.kind);
        match kinds.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, ns)) => *ns += segment.dur(),
            None => kinds.push((name, segment.dur())),
        }
    }
    kinds.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    kinds
}

fn kind_name(kind: PathKind) -> String {
    match kind {
        PathKind::Stall(cause) => format!("stall: {cause}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The parts of a breakdown by name.
pub fn parts(times: &Breakdown) -> [(&'static str, i64); 8] {
    [
        ("compute", times.compute_ns),
        ("communication_exposed", times.communication_exposed_ns),
        ("communication_overlapped", times.communication_overlapped_ns),
        ("copy_exposed", times.copy_exposed_ns),
        ("copy_overlapped", times.copy_overlapped_ns),
        ("input", times.input_ns),
        ("host", times.host_ns),
        ("idle", times.idle_ns),
    ]
}

fn slice_json(store: &Store, id: SliceId) -> Value {
    let slice = store.slice(id);
    json!({
        "track_id": id.track, "lane": id.lane, "ordinal": id.ordinal,
        "name": slice.map(|s| store.slice_name(&s).to_owned()),
        "track": track_name(store, id.track),
        "start_ns": slice.map(|s| s.start), "dur_ns": slice.map(|s| s.dur()),
    })
}

fn track_name(store: &Store, id: u32) -> &str {
    store.tracks().get(id as usize).map_or("?", |t| &t.name)
}

fn stall_json(store: &Store, stall: &Stall) -> Value {
    let culprit = stall.culprit.and_then(|id| store.slice(id));
    json!({
        "cause": stall.cause.name(), "ns": stall.dur(), "start_ns": stall.start, "gap_ns": [stall.gap.start, stall.gap.end],
        "track": track_name(store, stall.track.0), "track_id": stall.track.0, "step": stall.step_id,
        "culprit": culprit.map(|slice| store.slice_name(&slice).to_owned()),
        "culprit_slice": stall.culprit.map(|id| slice_json(store, id)),
        "blocked_slice": stall.blocked.map(|id| slice_json(store, id)),
        "text": stall.text(store),
    })
}

fn breakdown_json(times: &Breakdown) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("total_ns".to_owned(), times.total_ns().into());
    object.extend(parts(times).map(|(name, ns)| (format!("{name}_ns"), ns.into())));
    Value::Object(object)
}

fn to_json(store: &Store, analysis: &Analysis) -> Value {
    let stats = store.stats();
    let ops = analysis.ops.iter().map(|op| {
        let f = op.figures;
        json!({
            "name": op.name, "category": op.category, "device": op.device, "count": f.count, "total_ns": f.total_ns,
            "self_ns": f.self_ns, "mean_ns": f.mean_ns, "p50_ns": f.p50_ns, "p99_ns": f.p99_ns, "share": f.share,
            "critical_ns": op.critical_ns, "critical_share": op.critical_share,
            "counters": counters::values_json(&analysis.counted, &op.counts),
        })
    });
    let scopes = analysis
        .scopes
        .iter()
        .map(|s| json!({ "scope": s.scope, "count": s.count, "self_ns": s.self_ns, "critical_ns": s.critical_ns }));
    let findings = analysis.findings.iter().map(|f| {
        let slices: Vec<Value> = f.slices.iter().map(|id| slice_json(store, *id)).collect();
        json!({ "title": f.title, "text": f.text, "saves_ns": f.saves_ns, "share": f.share,
                "range_ns": [f.range.start, f.range.end], "slices": slices })
    });
    let causes = analysis.causes.iter().map(|c| json!({ "cause": c.cause.name(), "count": c.count, "ns": c.total_ns }));
    let kinds = path_kinds(&analysis.paths).into_iter().map(|(kind, ns)| json!({ "kind": kind, "ns": ns }));
    json!({
        "slices": stats.slices, "tracks": store.tracks().len(), "steps": store.steps().len(), "dropped_events": stats.dropped,
        "range_ns": [analysis.range.start, analysis.range.end],
        "stalls": analysis.stalls.iter().take(MAX_STALLS).map(|s| stall_json(store, s)).collect::<Vec<_>>(),
        "stalls_total": analysis.stalls.len(), "stalls_by_cause": causes.collect::<Vec<_>>(),
        "critical_path_ns": path_ns(&analysis.paths), "critical_path": kinds.collect::<Vec<_>>(),
        "breakdown": breakdown_json(&analysis.breakdown), "devices": devices_json(store, analysis),
        "ops": ops.collect::<Vec<_>>(), "counters": counters::totals_json(&analysis.counted), "scopes": scopes.collect::<Vec<_>>(),
        "rooflines": roofline::to_json(&analysis.rooflines), "memory": memory_json(analysis), "utilisation": utilisation_json(store, analysis),
        "clocks": clocks_json(store), "threads": threads_json(store, analysis), "stragglers": stragglers_json(store, analysis),
        "findings": findings.collect::<Vec<_>>(),
        "warnings": store.warnings().iter().map(|w| &w.text).collect::<Vec<_>>(),
    })
}

fn devices_json(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let device = |d: &profiler::analysis::breakdown::DeviceBreakdown| {
        let streams: Vec<Value> = d
            .streams
            .iter()
            .map(|(track, busy, idle)| json!({ "track": track_name(store, track.0), "busy_ns": busy, "idle_ns": idle }))
            .collect();
        let process = store.processes().get(d.process as usize).map(|p| p.pid);
        json!({ "device": d.device, "pid": process, "breakdown": breakdown_json(&d.times), "streams": streams })
    };
    analysis.devices.iter().map(device).collect()
}

fn memory_json(analysis: &Analysis) -> Vec<Value> {
    let device = |m: &profiler::analysis::memory::DeviceMemory| {
        let live: Vec<Value> =
            m.live_at_peak.iter().take(100).map(|(node, bytes)| json!({ "node": node, "bytes": bytes })).collect();
        json!({ "device": m.device, "peak_bytes": m.peak_bytes, "peak_time_ns": m.peak_time, "live_at_peak": live,
            "rest_at_peak_bytes": m.rest_at_peak })
    };
    analysis.memory.iter().map(device).collect()
}

fn utilisation_json(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let tracks = analysis.track_use.iter().map(|u| {
        json!({ "track": track_name(store, u.track.0), "track_id": u.track.0, "busy_ns": u.busy_ns, "wait_ns": u.wait_ns,
                "utilisation": u.utilisation })
    });
    tracks.collect()
}

fn stragglers_json(store: &Store, analysis: &Analysis) -> Value {
    let pid = |row: u32| store.processes().get(row as usize).map(|p| p.pid);
    let late = |l: &profiler::analysis::stragglers::Late| json!({ "slice": slice_json(store, l.slice), "pid": pid(l.process), "late_ns": l.late_ns, "waited_ns": l.waited_ns });
    let found = &analysis.stragglers;
    let processes = found.processes.iter().map(|p| {
        json!({ "pid": pid(p.process), "times_last": p.times_last, "late_ns": p.late_ns, "waited_ns": p.waited_ns })
    });
    json!({
        "collectives": found.collectives.iter().map(late).collect::<Vec<_>>(),
        "steps": found.steps.iter().map(late).collect::<Vec<_>>(),
        "processes": processes.collect::<Vec<_>>(),
    })
}

fn percent(part: i64, whole: i64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// Everything for a person, what to change first at the top.
fn print(store: &Store, analysis: &Analysis) {
    let stats = store.stats();
    out::line(format!(
        "{} slices on {} tracks, {} steps, {}",
        human::count(stats.slices),
        store.tracks().len(),
        human::count(store.steps().len() as u64),
        human::duration(analysis.range.end - analysis.range.start)
    ));
    out::line("\nfindings");
    if analysis.findings.is_empty() {
        out::line("  none: nothing on the critical path that is not work");
    }
    for finding in analysis.findings.iter().take(TOP) {
        out::line(format!("  {:>10}  {}: {}", human::duration(finding.saves_ns), finding.title, finding.text));
    }
    print_times(analysis);
    print_ops(analysis);
    counters::print(analysis);
    roofline::print(&analysis.rooflines);
    print_stalls(store, analysis);
    print_rest(store, analysis);
}

fn print_times(analysis: &Analysis) {
    let total = analysis.breakdown.total_ns();
    let mut table = Table::new(&["time", "total", "share"]);
    for (name, ns) in parts(&analysis.breakdown).into_iter().filter(|(_, ns)| *ns > 0) {
        table.row([name.replace('_', " "), human::duration(ns), percent(ns, total)]);
    }
    table.print();
    let total = path_ns(&analysis.paths);
    let mut table = Table::new(&["critical path", "total", "share"]);
    for (kind, ns) in path_kinds(&analysis.paths).into_iter().take(TOP) {
        table.row([kind, human::duration(ns), percent(ns, total)]);
    }
    table.print();
}

fn print_ops(analysis: &Analysis) {
    let titles = ["ops by self time", "<device", "count", "total", "self", "mean", "p50", "p99", "critical path"];
    let mut table = Table::new(&titles);
    for op in analysis.ops.iter().take(TOP) {
        let f = op.figures;
        let times = [f.total_ns, f.self_ns, f.mean_ns as i64, f.p50_ns, f.p99_ns].map(human::duration);
        let cells = [cut(&op.name, 48), cut(&op.device, 24), human::count(f.count)].into_iter().chain(times);
        table.row(cells.chain([format!("{:.1} %", op.critical_share * 100.0)]));
    }
    table.print();
    let mut table = Table::new(&["scopes", "count", "self", "critical path"]);
    for scope in analysis.scopes.iter().take(TOP) {
        let times = [scope.self_ns, scope.critical_ns].map(human::duration);
        table.row([cut(&scope.scope, 48), human::count(scope.count)].into_iter().chain(times));
    }
    table.print();
}

fn print_stalls(store: &Store, analysis: &Analysis) {
    let total: i64 = analysis.causes.iter().map(|c| c.total_ns).sum();
    let mut table = Table::new(&["stalls by cause", "count", "total", "share"]);
    for cause in &analysis.causes {
        let (count, ns) = (human::count(cause.count), human::duration(cause.total_ns));
        table.row([cause.cause.to_string(), count, ns, percent(cause.total_ns, total)]);
    }
    table.print();
    if !analysis.stalls.is_empty() {
        out::line("\nlongest stalls");
    }
    for stall in analysis.stalls.iter().take(TOP) {
        out::line(format!("  {:>10}  {}: {}", human::duration(stall.dur()), stall.cause, stall.text(store)));
    }
}

/// What threads did, by the kernel's scheduler.
fn print_threads(store: &Store, analysis: &Analysis) {
    let titles = ["threads", "running", "ready, no CPU", "sleeping", "disk", "other waits", "<mostly woken by"];
    let mut table = Table::new(&titles);
    for t in analysis.threads.iter().take(TOP) {
        let times = [t.running_ns, t.ready_ns, t.sleeping_ns, t.uninterruptible_ns, t.other_ns].map(human::duration);
        let name = cut(track_name(store, t.track.0).trim_end_matches(", scheduling"), 48);
        let waker = t.woken_by.map_or_else(String::new, |(by, _)| waker(store, by));
        table.row([name].into_iter().chain(times).chain([waker]));
    }
    table.print();
    if analysis.threads.len() > TOP {
        out::line(format!("  and {} more threads; --json has all", analysis.threads.len() - TOP));
    }
}

fn waker(store: &Store, thread: u32) -> String {
    if thread == 0 {
        return "a timer or a device".to_owned();
    }
    let track = store.tracks().iter().find(|t| t.tid == thread);
    track.map_or_else(|| format!("thread {thread}"), |t| cut(t.name.trim_end_matches(", scheduling"), 32))
}

fn threads_json(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let threads = analysis.threads.iter().map(|t| {
        json!({ "track": track_name(store, t.track.0), "track_id": t.track.0, "running_ns": t.running_ns, "ready_ns": t.ready_ns,
                "sleeping_ns": t.sleeping_ns, "uninterruptible_ns": t.uninterruptible_ns, "other_ns": t.other_ns,
                "woken_by": t.woken_by.map(|(thread, ns)| json!({ "thread": thread, "ns": ns })) })
    });
    threads.collect()
}

/// How the clocks of a trace of several hosts were laid on one.
fn print_clocks(store: &Store) {
    let mut table = Table::new(&["clocks", "offset", "drift", "no time is off by more than"]);
    for (process, clock) in clocks(store) {
        let name = cut(&format!("{} on {}", process.title(), process.host), 48);
        let drift = format!("{:+.3} ppm", clock.drift_ppb / 1e3);
        let bound = human::duration(clock.bound_ns.min(i64::MAX as u64).cast_signed());
        table.row([name, human::duration(clock.offset_ns), drift, bound]);
    }
    table.print();
}

fn clocks(store: &Store) -> impl Iterator<Item = (&profiler::Process, profiler::ClockOffset)> {
    store.processes().iter().filter_map(|process| Some((process, process.clock?)))
}

fn clocks_json(store: &Store) -> Vec<Value> {
    let row = |(process, clock): (&profiler::Process, profiler::ClockOffset)| {
        json!({ "host": process.host, "pid": process.pid, "process": process.name, "offset_ns": clock.offset_ns,
                "drift_ppb": clock.drift_ppb, "bound_ns": clock.bound_ns })
    };
    clocks(store).map(row).collect()
}

fn print_rest(store: &Store, analysis: &Analysis) {
    print_threads(store, analysis);
    print_clocks(store);
    let mut table = Table::new(&["tracks", "busy", "waiting", "utilisation"]);
    for used in analysis.track_use.iter().filter(|used| used.busy_ns + used.wait_ns > 0) {
        let times = [used.busy_ns, used.wait_ns].map(human::duration);
        let name = cut(track_name(store, used.track.0), 48);
        table.row([name].into_iter().chain(times).chain([format!("{:.1} %", used.utilisation * 100.0)]));
    }
    table.print();
    let mut table = Table::new(&["memory", "peak", "<most of it at the peak"]);
    for memory in &analysis.memory {
        let live = memory.live_at_peak.iter().take(3);
        let named = |node: &String| if node.is_empty() { "no node".to_owned() } else { node.clone() };
        let mut live: Vec<String> =
            live.map(|(node, bytes)| format!("{} {}", named(node), human::bytes(bytes.unsigned_abs()))).collect();
        if memory.rest_at_peak > 0 {
            live.push(format!("before the recording, or small {}", human::bytes(memory.rest_at_peak.unsigned_abs())));
        }
        table.row([memory.device.clone(), human::bytes(memory.peak_bytes.unsigned_abs()), live.join(", ")]);
    }
    table.print();
    let mut table = Table::new(&["stragglers", "times last", "late", "others waited"]);
    for late in &analysis.stragglers.processes {
        let name = store.processes().get(late.process as usize);
        let name = name.map_or_else(String::new, profiler::Process::title);
        let times = [late.late_ns, late.waited_ns].map(human::duration);
        table.row([name, human::count(late.times_last)].into_iter().chain(times));
    }
    table.print();
}
