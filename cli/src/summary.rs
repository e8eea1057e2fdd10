//! The summary of a finished run: its quality, the ops that took most time, its stalls, and its files.

use std::path::Path;

use anyhow::Context;
use serde_json::json;
use trace_store::{Store, StoreOptions, TraceReader};
use train::FinishedRun;

use crate::out;
use crate::outcome::Failure;
use crate::progress;

/// The number of ops and stalls that the summary lists.
const MAX_ROWS: usize = 5;

/// The contents of the summary.
pub struct Summary {
    run: FinishedRun,
    trace: Option<TraceSummary>,
}

/// The figures of the run that come from its trace.
struct TraceSummary {
    slices: u64,
    n_processes: usize,
    dropped: u64,
    ops: Vec<trace_analysis::stats::OpStat>,
    /// The duration and the cause of each stall.
    stalls: Vec<(i64, String)>,
    causes: Vec<trace_analysis::stalls::CauseTotal>,
    warnings: Vec<String>,
}

impl Summary {
    /// Reads the run's trace from disk.
    ///
    /// # Errors
    /// When the trace cannot be opened.
    pub fn read(run: FinishedRun) -> Result<Summary, Failure> {
        progress::set_activity("reading the trace");
        let trace = run.trace.as_deref().map(|folder| TraceSummary::read(folder, &run)).transpose()?;
        Ok(Summary { run, trace })
    }

    /// The cost of tracing, as a share of the CPU time of the run; `None` where other processes took part, whose time
    /// is not known.
    fn tracing_share(&self) -> Option<f64> {
        self.trace.as_ref().filter(|trace| trace.n_processes == 1)?;
        Some(self.run.tracing_share())
    }

    /// Prints the summary as a JSON object on stdout.
    pub fn print_json(&self) {
        let (run, result) = (&self.run, &self.run.result);
        let quality = &result.test.quality;
        out::object(
            1,
            json!({
                "steps": result.steps,
                "restored_steps": result.restored_steps(),
                "seconds": result.wall_ns as f64 / 1e9,
                "final_loss": result.final_loss,
                "test_accuracy": result.test.accuracy,
                "test_loss": result.test.loss,
                "quality": { "name": quality.name, "value": quality.value, "goal": quality.goal, "reached": quality.is_reached() },
                "examples_per_second": result.examples_per_second(),
                "steps_per_second": result.steps_per_second(),
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
        self.run.result.warnings.iter().chain(self.trace.iter().flat_map(|trace| &trace.warnings)).collect()
    }

    /// Prints the summary as text on stdout, and warnings on stderr.
    pub fn print(&self) {
        let run = &self.run.result;
        let ended = if run.stopped { " (stopped)" } else { "" };
        let took = text::duration(run.wall_ns);
        match run.restored_steps() {
            0 => say!("steps          {}{ended} in {took}", text::count(run.steps)),
            restored => {
                let (restored, done) = (text::count(restored), text::count(run.n_done));
                say!(
                    "steps          {}{ended}: {restored} of the checkpoint, {done} in {took}",
                    text::count(run.steps)
                );
            }
        }
        let (steps, examples) = (run.steps_per_second(), run.examples_per_second());
        say!("speed          {steps:.0} steps/s, {} examples/s", text::count(examples as u64));
        say!("final loss     {:.4}", run.final_loss);
        say!("test loss      {:.4}", run.test.loss);
        if let Some(accuracy) = run.test.accuracy {
            say!("test accuracy  {:.2} %", accuracy * 100.0);
        }
        let (quality, side) = (&run.test.quality, if run.test.quality.is_limit { "at most" } else { "at least" });
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
        let (slices, ns) = (text::count(trace.slices), self.run.ns_per_slice.unwrap_or(f64::NAN));
        let share = self.tracing_share().map(|share| format!(", {:.2} % of the CPU time", share * 100.0));
        let (share, dropped) = (share.unwrap_or_default(), text::count(trace.dropped));
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
    fn read(folder: &Path, run: &FinishedRun) -> anyhow::Result<TraceSummary> {
        let mut store = Store::with_options(StoreOptions::UNBOUNDED);
        let mut reader = TraceReader::open(folder).with_context(|| format!("reading {}", folder.display()))?;
        reader.read_all(&mut store).with_context(|| format!("reading {}", folder.display()))?;
        let range = store.range();
        let mut ops = trace_analysis::stats::op_stats(&store, range.clone());
        ops.retain(|op| op.category == "op");
        ops.truncate(MAX_ROWS);
        let found = trace_analysis::stalls(&store, range);
        let causes = trace_analysis::stalls::by_cause(&found);
        let stalls = found.iter().take(MAX_ROWS).map(|stall| (stall.dur(), stall.text(&store))).collect();
        let warnings = store.warnings().iter().map(|warning| warning.text.clone()).collect();
        let dropped = run.collector_report.as_ref().map_or(0, |collector_report| collector_report.dropped);
        let (slices, n_processes) = (store.stats().slices, store.processes().len());
        Ok(TraceSummary { slices, n_processes, dropped, ops, stalls, causes, warnings })
    }

    fn print(&self) {
        say!();
        say!("{:<38} {:>9} {:>10} {:>10} {:>7}", "ops by time", "count", "total", "mean", "share");
        for op in &self.ops {
            let f = &op.figures;
            let (total, mean) = (text::duration(f.total_ns), text::duration(f.mean_ns as i64));
            say!("  {:<36} {:>9} {total:>10} {mean:>10} {:>5.1} %", op.op, text::count(f.count), f.share * 100.0);
        }
        say!();
        let total: i64 = self.causes.iter().map(|cause| cause.total_ns).sum();
        say!("{:<38} {:>9} {:>10} {:>10}", "stalls by cause", "count", "total", "share");
        for cause in &self.causes {
            let share = cause.total_ns as f64 * 100.0 / total.max(1) as f64;
            let (name, total) = (cause.cause.to_string(), text::duration(cause.total_ns));
            say!("  {name:<36} {:>9} {total:>10} {share:>8.1} %", text::count(cause.count));
        }
        say!();
        say!("largest stalls");
        if self.stalls.is_empty() {
            say!("  none: the workers were never idle within a step");
        }
        for (ns, text) in &self.stalls {
            say!("  {:>10}  {text}", text::duration(*ns));
        }
    }
}
