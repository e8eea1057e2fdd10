//! The summary of a finished run: what it learned, what took the time, what held it up, where the files are.

use std::path::Path;

use anyhow::Context;
use profiler::{Store, StoreOptions, TraceReader};
use serde_json::json;

use crate::human;
use crate::out;
use crate::outcome::Failure;
use crate::progress;
use crate::train::Trained;

/// How many ops and stalls the summary lists.
const TOP: usize = 5;

/// Everything that the summary says.
pub struct Summary {
    run: Trained,
    trace: Option<TraceSummary>,
}

/// What the trace says of the run.
struct TraceSummary {
    slices: u64,
    n_processes: usize,
    dropped: u64,
    ops: Vec<profiler::OpStat>,
    /// How long, and why.
    stalls: Vec<(i64, String)>,
    causes: Vec<profiler::CauseTotal>,
    warnings: Vec<String>,
}

impl Summary {
    /// Reads the run's trace back from disk, as any other program would.
    ///
    /// # Errors
    /// When the trace cannot be opened.
    pub fn of(run: Trained) -> Result<Summary, Failure> {
        progress::doing("reading the trace");
        let trace = run.trace.as_deref().map(|folder| TraceSummary::read(folder, &run)).transpose()?;
        Ok(Summary { run, trace })
    }

    /// What tracing cost, as a share of the CPU time of the run; `None` where other processes took part, whose time is not known.
    fn tracing_share(&self) -> Option<f64> {
        self.trace.as_ref().filter(|trace| trace.n_processes == 1)?;
        let collected = self.run.collected.as_ref();
        let emitting = collected.map_or(0.0, |c| c.records as f64 * self.run.ns_per_slice.unwrap_or(0.0));
        let collecting = collected.map_or(0, |c| c.cpu_ns) as f64;
        Some((emitting + collecting) / self.run.learned.cpu_ns.max(1) as f64)
    }

    fn steps_per_second(&self) -> f64 {
        let learned = &self.run.learned;
        learned.n_done as f64 / (learned.wall_ns.max(1) as f64 / 1e9)
    }

    fn examples_per_second(&self) -> f64 {
        let learned = &self.run.learned;
        learned.examples as f64 / (learned.wall_ns.max(1) as f64 / 1e9)
    }

    /// One JSON object on stdout.
    pub fn print_json(&self) {
        let (run, learned) = (&self.run, &self.run.learned);
        let quality = &learned.tested.quality;
        out::object(
            1,
            json!({
                "steps": learned.steps,
                "restored_steps": learned.steps - learned.n_done,
                "seconds": learned.wall_ns as f64 / 1e9,
                "final_loss": learned.final_loss,
                "test_accuracy": learned.tested.accuracy,
                "test_loss": learned.tested.loss,
                "quality": { "name": quality.name, "value": quality.value, "goal": quality.goal, "reached": quality.is_reached() },
                "examples_per_second": self.examples_per_second(),
                "steps_per_second": self.steps_per_second(),
                "logdir": run.logdir,
                "trace": run.trace,
                "tracing_ns_per_slice": run.ns_per_slice,
                "tracing_share_of_cpu": self.tracing_share(),
                "slices": self.trace.as_ref().map(|trace| trace.slices),
                "dropped_events": self.trace.as_ref().map_or(0, |trace| trace.dropped),
                "restarts": run.restarts,
                "warnings": self.warnings(),
            }),
        );
    }

    fn warnings(&self) -> Vec<&String> {
        self.run.learned.warnings.iter().chain(self.trace.iter().flat_map(|trace| &trace.warnings)).collect()
    }

    /// The summary for a person on stdout, warnings on stderr.
    pub fn print(&self) {
        let run = &self.run.learned;
        let ended = if run.stopped { " (stopped)" } else { "" };
        let took = human::duration(run.wall_ns);
        match run.steps - run.n_done {
            0 => say!("steps          {}{ended} in {took}", human::count(run.steps)),
            restored => {
                let (restored, done) = (human::count(restored), human::count(run.n_done));
                say!(
                    "steps          {}{ended}: {restored} of the checkpoint, {done} in {took}",
                    human::count(run.steps)
                );
            }
        }
        let (steps, examples) = (self.steps_per_second(), self.examples_per_second());
        say!("speed          {steps:.0} steps/s, {} examples/s", human::count(examples as u64));
        say!("final loss     {:.4}", run.final_loss);
        say!("test loss      {:.4}", run.tested.loss);
        if let Some(accuracy) = run.tested.accuracy {
            say!("test accuracy  {:.2} %", accuracy * 100.0);
        }
        let (quality, side) = (&run.tested.quality, if run.tested.quality.is_limit { "at most" } else { "at least" });
        let reached = if quality.is_reached() { "reached" } else { "not reached" };
        say!("goal           {} {side} {}: {:.4}, {reached}", quality.name, quality.goal, quality.value);
        if let Some(trace) = &self.trace {
            trace.print();
            self.print_tracing(trace);
        }
        self.print_files();
        for warning in self.warnings() {
            note!("warning: {warning}");
        }
    }

    fn print_tracing(&self, trace: &TraceSummary) {
        let (slices, ns) = (human::count(trace.slices), self.run.ns_per_slice.unwrap_or(f64::NAN));
        let share = self.tracing_share().map(|share| format!(", {:.2} % of the CPU time", share * 100.0));
        let (share, dropped) = (share.unwrap_or_default(), human::count(trace.dropped));
        say!();
        say!("tracing        {slices} slices, {ns:.1} ns each{share}, {dropped} dropped");
    }

    fn print_files(&self) {
        let logdir = self.run.logdir.display();
        say!("files          {logdir}");
        if let Some(trace) = &self.run.trace {
            say!("trace          {}", trace.display());
        }
        say!();
        say!("Open them:     stepscope view {logdir}");
        say!("TensorBoard:   tensorboard --logdir {logdir}");
    }
}

impl TraceSummary {
    fn read(folder: &Path, run: &Trained) -> anyhow::Result<TraceSummary> {
        let mut store = Store::with_options(StoreOptions::UNBOUNDED);
        let mut reader = TraceReader::open(folder).with_context(|| format!("reading {}", folder.display()))?;
        reader.read_all(&mut store).with_context(|| format!("reading {}", folder.display()))?;
        let range = store.range();
        let mut ops = profiler::op_stats(&store, range.clone());
        ops.retain(|op| op.category == "op");
        ops.truncate(TOP);
        let found = profiler::stalls(&store, range);
        let causes = profiler::by_cause(&found);
        let stalls = found.iter().take(TOP).map(|stall| (stall.dur(), stall.text(&store))).collect();
        let warnings = store.warnings().iter().map(|warning| warning.text.clone()).collect();
        let dropped = run.collected.as_ref().map_or(0, |collected| collected.dropped);
        let (slices, n_processes) = (store.stats().slices, store.processes().len());
        Ok(TraceSummary { slices, n_processes, dropped, ops, stalls, causes, warnings })
    }

    fn print(&self) {
        say!();
        say!("{:<38} {:>9} {:>10} {:>10} {:>7}", "ops by time", "count", "total", "mean", "share");
        for op in &self.ops {
            let f = &op.figures;
            let (total, mean) = (human::duration(f.total_ns), human::duration(f.mean_ns as i64));
            say!("  {:<36} {:>9} {total:>10} {mean:>10} {:>5.1} %", op.op, human::count(f.count), f.share * 100.0);
        }
        say!();
        let total: i64 = self.causes.iter().map(|cause| cause.total_ns).sum();
        say!("{:<38} {:>9} {:>10} {:>10}", "stalls by cause", "count", "total", "share");
        for cause in &self.causes {
            let share = cause.total_ns as f64 * 100.0 / total.max(1) as f64;
            let (name, total) = (cause.cause.to_string(), human::duration(cause.total_ns));
            say!("  {name:<36} {:>9} {total:>10} {share:>8.1} %", human::count(cause.count));
        }
        say!();
        say!("largest stalls");
        if self.stalls.is_empty() {
            say!("  none: the workers were never idle within a step");
        }
        for (ns, text) in &self.stalls {
            say!("  {:>10}  {text}", human::duration(*ns));
        }
    }
}
