//! The result of a run that is over.

use std::path::PathBuf;

use trace_record::CollectorReport;

use crate::result::TrainingResult;
use crate::run::Run;

/// A run that is over: its result, and the folders of its files.
pub struct FinishedRun {
    /// The training result.
    pub result: TrainingResult,
    /// The run's folder.
    pub logdir: PathBuf,
    /// The trace's folder, unless tracing was off.
    pub trace: Option<PathBuf>,
    /// The collector's report on the trace.
    pub collector_report: Option<CollectorReport>,
    /// The cost of one traced slice in this process, nanoseconds.
    pub ns_per_slice: Option<f64>,
    /// How often the run was continued from a checkpoint, or begun anew.
    pub restarts: u64,
}

impl FinishedRun {
    /// Ends the trace of a run whose processes have ended, and returns the run's result.
    pub(crate) fn finish(mut result: TrainingResult, run: Run, restarts: u64) -> FinishedRun {
        let (logdir, ns_per_slice) = (run.folder().path().to_path_buf(), run.ns_per_slice());
        let (trace, collector_report) =
            run.end(&mut result.warnings).map(|trace| (trace.folder, trace.collector_report)).unzip();
        let restarts = restarts + u64::from(result.continued && restarts == 0);
        FinishedRun { result, logdir, trace, collector_report, ns_per_slice, restarts }
    }

    /// The cost of tracing, as a share of the process's CPU time.
    pub fn tracing_share(&self) -> f64 {
        let emitting =
            self.collector_report.as_ref().map_or(0.0, |c| c.records as f64 * self.ns_per_slice.unwrap_or(0.0));
        let collecting = self.collector_report.as_ref().map_or(0, |c| c.cpu_ns) as f64;
        (emitting + collecting) / self.result.cpu_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::result;

    #[test]
    fn the_cost_of_tracing_is_emitting_and_collecting() {
        let run = |collector_report, ns_per_slice| FinishedRun {
            result: result(),
            logdir: PathBuf::new(),
            trace: None,
            collector_report,
            ns_per_slice,
            restarts: 0,
        };
        let collector_report = CollectorReport { records: 10, cpu_ns: 300, ..CollectorReport::default() };
        assert_eq!(run(Some(collector_report), Some(20.0)).tracing_share(), 0.25);
        assert_eq!(run(Some(collector_report), None).tracing_share(), 0.15);
        assert_eq!(run(None, Some(20.0)).tracing_share(), 0.0);
    }
}
