//! `stepscope analyze`: where a trace's time went, what stalled, and what to change first.

mod communication;
pub mod counters;
pub mod figures;
mod json;
mod objects;
mod page;
pub mod roofline;
mod torch;

use trace_analysis::report::{Analysis, analyse, analyse_step};
use trace_store::Store;

use crate::args::{self, AnalysisFormat};
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::trace_file;
use text::{Table, truncated};

use figures::{clocks, named_parts, path_kinds, path_ns, track_name};
use page::Page;

/// The most rows of each printed table.
const MAX_ROWS: usize = 10;

/// Analyses the trace, or one of its steps.
pub fn run(args: &args::Analyze) -> Outcome {
    let store = trace_file::open(&args.trace)?;
    let mut analysis = match args.step {
        None => analyse(&store, store.range()),
        Some(number) => match find_step(&store, number) {
            Some(step) => analyse_step(&store, step),
            None => return Err(no_step(&store, number)),
        },
    };
    for line in &mut analysis.rooflines {
        line.roof.flops_per_s = args.peak_tflops.map(|t| t * 1e12).or(line.roof.flops_per_s);
        line.roof.bytes_per_s = args.peak_gbs.map(|g| g * 1e9).or(line.roof.bytes_per_s);
    }
    match args.format {
        _ if args.json => out::line(json::to_json(&store, &analysis)),
        AnalysisFormat::Json => out::line(json::to_json(&store, &analysis)),
        AnalysisFormat::Text => print(Page::Text, &store, &analysis),
        AnalysisFormat::Markdown => {
            out::line(format_args!("# {}\n", args.trace.display()));
            print(Page::Markdown, &store, &analysis);
        }
    }
    trace_file::warn(&args.trace, &store);
    Ok(())
}

/// Finds the step with this number on the x axis of summaries, else the step with this id; the longest of several.
fn find_step(store: &Store, number: i64) -> Option<&trace_model::Step> {
    let longest = |is_match: &dyn Fn(&trace_model::Step) -> bool| {
        store.steps().iter().filter(|s| is_match(s)).max_by_key(|s| s.end - s.start)
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

fn percent(part: i64, total: i64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / total.max(1) as f64)
}

/// Prints the analysis as text, with the findings first.
fn print(page: Page, store: &Store, analysis: &Analysis) {
    let stats = store.stats();
    page.text(&format!(
        "{} slices on {} tracks, {} steps, {}",
        text::count(stats.slices),
        store.tracks().len(),
        text::count(store.steps().len() as u64),
        text::duration(analysis.range.end - analysis.range.start)
    ));
    page.heading("findings");
    if analysis.findings.is_empty() {
        let reason = if analysis.paths.is_empty() {
            "nothing was recorded"
        } else {
            "nothing on the critical path that is not work"
        };
        page.text(&format!("  none: {reason}"));
    }
    for finding in analysis.findings.iter().take(MAX_ROWS) {
        page.item(&text::duration(finding.saves_ns), &format!("{}: {}", finding.title, finding.text));
    }
    print_times(page, analysis);
    print_ops(page, analysis);
    counters::table(analysis).iter().for_each(|table| page.table(table));
    if !analysis.kernels.is_empty() {
        page.table(&torch::kernels_table(&analysis.kernels));
    }
    if !analysis.modules.is_empty() {
        page.table(&torch::modules_table(&analysis.modules));
    }
    if !analysis.op_shapes.is_empty() {
        page.table(&torch::shapes_table(&analysis.op_shapes));
    }
    page.table(&communication::collectives_table(&analysis.communication));
    page.table(&communication::ranks_table(store, &analysis.communication));
    for line in &analysis.rooflines {
        page.table(&roofline::table(line, &roofline::limits(line)));
    }
    print_stalls(page, store, analysis);
    print_resources(page, store, analysis);
}

fn print_times(page: Page, analysis: &Analysis) {
    let total = analysis.breakdown.total_ns();
    let mut table = Table::new(["time", "total", "share"]);
    for (name, ns) in named_parts(&analysis.breakdown).into_iter().filter(|(_, ns)| *ns > 0) {
        table.row([name.replace('_', " "), text::duration(ns), percent(ns, total)]);
    }
    page.table(&table);
    let total = path_ns(&analysis.paths);
    let mut table = Table::new(["critical path", "total", "share"]);
    for (kind, ns) in path_kinds(&analysis.paths).into_iter().take(MAX_ROWS) {
        table.row([kind, text::duration(ns), percent(ns, total)]);
    }
    page.table(&table);
}

fn print_ops(page: Page, analysis: &Analysis) {
    let titles = ["ops by self time", "<device", "count", "total", "self", "mean", "p50", "p99", "critical path"];
    let mut table = Table::new(titles);
    for op in analysis.ops.iter().take(MAX_ROWS) {
        let f = op.figures;
        let times = [f.total_ns, f.self_ns, f.mean_ns as i64, f.p50_ns, f.p99_ns].map(text::duration);
        let cells = [truncated(&op.name, 48), truncated(&op.device, 24), text::count(f.count)].into_iter().chain(times);
        table.row(cells.chain([format!("{:.1} %", op.critical_share * 100.0)]));
    }
    page.table(&table);
    let mut table = Table::new(["scopes", "count", "self", "critical path"]);
    for scope in analysis.scopes.iter().take(MAX_ROWS) {
        let times = [scope.self_ns, scope.critical_ns].map(text::duration);
        table.row([truncated(&scope.scope, 48), text::count(scope.count)].into_iter().chain(times));
    }
    page.table(&table);
}

fn print_stalls(page: Page, store: &Store, analysis: &Analysis) {
    let total: i64 = analysis.causes.iter().map(|c| c.total_ns).sum();
    let mut table = Table::new(["stalls by cause", "count", "total", "share"]);
    for cause in &analysis.causes {
        let (count, ns) = (text::count(cause.count), text::duration(cause.total_ns));
        table.row([cause.cause.to_string(), count, ns, percent(cause.total_ns, total)]);
    }
    page.table(&table);
    if !analysis.stalls.is_empty() {
        page.heading("longest stalls");
    }
    for stall in analysis.stalls.iter().take(MAX_ROWS) {
        page.item(&text::duration(stall.dur()), &format!("{}: {}", stall.cause, stall.text(store)));
    }
}

/// Prints the states of threads, from the kernel's scheduler.
fn print_threads(page: Page, store: &Store, analysis: &Analysis) {
    let titles = ["threads", "running", "ready, no CPU", "sleeping", "disk", "other waits", "<mostly woken by"];
    let mut table = Table::new(titles);
    for t in analysis.threads.iter().take(MAX_ROWS) {
        let times = [t.running_ns, t.ready_ns, t.sleeping_ns, t.uninterruptible_ns, t.other_ns].map(text::duration);
        let name = truncated(track_name(store, t.track.0).trim_end_matches(", scheduling"), 48);
        let waker = t.woken_by.map_or_else(String::new, |(thread, _)| waker_name(store, thread));
        table.row([name].into_iter().chain(times).chain([waker]));
    }
    page.table(&table);
    if analysis.threads.len() > MAX_ROWS {
        page.text(&format!("  and {} more threads; --json has all", analysis.threads.len() - MAX_ROWS));
    }
}

fn waker_name(store: &Store, thread: u32) -> String {
    if thread == 0 {
        return "a timer or a device".to_owned();
    }
    let track = store.tracks().iter().find(|t| t.tid == thread);
    track.map_or_else(|| format!("thread {thread}"), |t| truncated(t.name.trim_end_matches(", scheduling"), 32))
}

/// Prints the clock offsets of a trace of several hosts.
fn print_clocks(page: Page, store: &Store) {
    let mut table = Table::new(["clocks", "offset", "drift", "no time is off by more than"]);
    for (process, clock) in clocks(store) {
        let name = truncated(&format!("{} on {}", process.title(), process.host), 48);
        let drift = format!("{:+.3} ppm", clock.drift_ppb / 1e3);
        let bound = text::duration(clock.bound_ns.min(i64::MAX as u64).cast_signed());
        table.row([name, text::duration(clock.offset_ns), drift, bound]);
    }
    page.table(&table);
}

/// Prints threads, clocks, tracks, memory and stragglers.
fn print_resources(page: Page, store: &Store, analysis: &Analysis) {
    print_threads(page, store, analysis);
    print_clocks(page, store);
    let mut table = Table::new(["tracks", "busy", "waiting", "utilisation"]);
    for usage in analysis.track_use.iter().filter(|usage| usage.busy_ns + usage.wait_ns > 0) {
        let times = [usage.busy_ns, usage.wait_ns].map(text::duration);
        let name = truncated(track_name(store, usage.track.0), 48);
        table.row([name].into_iter().chain(times).chain([format!("{:.1} %", usage.utilisation * 100.0)]));
    }
    page.table(&table);
    let mut table = Table::new(["memory", "peak", "<most of it at the peak"]);
    for memory in &analysis.memory {
        let live = memory.live_at_peak.iter().take(3);
        let named = |node: &String| if node.is_empty() { "no node".to_owned() } else { node.clone() };
        let mut live: Vec<String> =
            live.map(|(node, bytes)| format!("{} {}", named(node), text::bytes(bytes.unsigned_abs()))).collect();
        if memory.rest_at_peak > 0 {
            live.push(format!("before the recording, or small {}", text::bytes(memory.rest_at_peak.unsigned_abs())));
        }
        table.row([memory.device.clone(), text::bytes(memory.peak_bytes.unsigned_abs()), live.join(", ")]);
    }
    page.table(&table);
    let mut table = Table::new(["stragglers", "times last", "late", "others waited"]);
    for straggler in &analysis.stragglers.processes {
        let name = store.processes().get(straggler.process as usize);
        let name = name.map_or_else(String::new, trace_model::Process::title);
        let times = [straggler.late_ns, straggler.waited_ns].map(text::duration);
        table.row([name, text::count(straggler.times_last)].into_iter().chain(times));
    }
    page.table(&table);
}
