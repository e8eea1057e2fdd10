//! A run's folder and its trace, begun and ended together.

use std::path::{Path, PathBuf};

use trace_record::CollectorReport;

use crate::devices;
use crate::error::{Result, TrainError};
use crate::gatherer::Gatherer;
use crate::options::{TraceTarget, TrainOptions};
use crate::run_folder::RunFolder;
use crate::sending;
use crate::tracing::{self, TraceRecorder};

/// A run's folder, with the recorder and the gatherer of its trace.
pub(crate) struct Run {
    folder: RunFolder,
    tracing: Option<TraceRecorder>,
    gatherer: Option<Gatherer>,
    ns_per_slice: Option<f64>,
    /// The folder into which this process was being recorded before the run began.
    outer_trace: Option<PathBuf>,
}

/// A trace that has ended.
pub(crate) struct FinishedTrace {
    /// The folder of the trace.
    pub folder: PathBuf,
    /// The collector's report.
    pub collector_report: CollectorReport,
}

impl Run {
    /// Creates the folder and begins the trace, into which the traces of a `cluster`'s workers are gathered. A run that
    /// `continues` may use the folder that it wrote before.
    ///
    /// # Errors
    /// `TrainError::Usage` when the folder is in use, `TrainError::Work` for everything else.
    pub fn begin(name: &str, options: &TrainOptions, continues: bool, cluster: Option<&Path>) -> Result<Run> {
        // A process that is already being recorded records into that folder, not into the run's.
        let outer_trace = events::current_trace_dir();
        let trace = match (&outer_trace, &options.trace) {
            (Some(_), TraceTarget::RunFolder | TraceTarget::Off) => &TraceTarget::Off,
            (Some(outer), TraceTarget::Folder(_)) => {
                let outer = outer.display();
                return Err(TrainError::wrong_use(format_args!(
                    "this process is recorded into {outer}: leave --trace away"
                )));
            }
            (None, target) => target,
        };
        let folder = RunFolder::create(name, options.logdir.as_deref(), trace, continues)?;
        let ns_per_slice = folder.trace().and_then(|_| tracing::ns_per_slice());
        let mut tracing = folder.trace().map(TraceRecorder::start).transpose()?;
        if let Some(tracing) = tracing.as_mut().filter(|_| devices::has_gpu(&options.devices)) {
            tracing.record_cuda();
        }
        // Where `STEPSCOPE_COLLECTOR` is set the workers send their traces to the collector themselves.
        let gathered_trace = folder.trace().zip(cluster).filter(|_| sending::collector_address(None).is_none());
        let gatherer = gathered_trace.map(|(trace, file)| Gatherer::start(trace, file)).transpose()?;
        Ok(Run { folder, tracing, gatherer, ns_per_slice, outer_trace })
    }

    /// Joins a run whose folder and trace another process manages.
    pub fn join(folder: &Path) -> Run {
        Run { folder: RunFolder::join(folder), tracing: None, gatherer: None, ns_per_slice: None, outer_trace: None }
    }

    /// The folder into which the processes of this run record; `None` where nothing is recorded.
    pub fn trace(&self) -> Option<&Path> {
        self.folder.trace().or(self.outer_trace.as_deref())
    }

    /// The folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The cost of one traced slice in this process, nanoseconds.
    pub fn ns_per_slice(&self) -> Option<f64> {
        self.ns_per_slice
    }

    /// Ends the trace. Call it after all processes that write into the trace have ended.
    pub fn end(self, warnings: &mut Vec<String>) -> Option<FinishedTrace> {
        if let Some(gatherer) = self.gatherer {
            gatherer.end(warnings);
        }
        let tracing = self.tracing?;
        let folder = tracing.folder().to_path_buf();
        let collector_report = tracing.end(warnings);
        if collector_report.dropped > 0 {
            warnings.push(format!("{} events were dropped: a thread's ring was full", collector_report.dropped));
        }
        if collector_report.write_errors > 0 {
            warnings.push(format!("the trace could not be written {} times", collector_report.write_errors));
        }
        if collector_report.limit_reached {
            warnings.push("the trace reached its size limit and ended before the run".to_owned());
        }
        Some(FinishedTrace { folder, collector_report })
    }
}
