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

/// A run's folder, and the recording and collecting of its trace.
pub(crate) struct Run {
    folder: RunFolder,
    tracing: Option<TraceRecorder>,
    gatherer: Option<Gatherer>,
    ns_per_slice: Option<f64>,
    /// The folder into which this process was being recorded before the run began.
    recorder: Option<PathBuf>,
}

/// A trace that has ended.
pub(crate) struct FinishedTrace {
    /// The folder of the trace.
    pub folder: PathBuf,
    /// The collector's report.
    pub collected: CollectorReport,
}

impl Run {
    /// Creates the folder and begins the trace, into which the traces of a `cluster`'s workers are gathered. A run that
    /// `continues` may use the folder that it wrote before.
    ///
    /// # Errors
    /// `TrainError::Use` when the folder is in use, `TrainError::Work` for everything else.
    pub fn begin(name: &str, options: &TrainOptions, continues: bool, cluster: Option<&Path>) -> Result<Run> {
        // A process that is already being recorded records into that folder, not into the run's.
        let recorder = events::current_trace_dir();
        let trace = match (&recorder, &options.trace) {
            (Some(_), TraceTarget::RunFolder | TraceTarget::Off) => &TraceTarget::Off,
            (Some(other), TraceTarget::Folder(_)) => {
                let other = other.display();
                return Err(TrainError::wrong_use(format_args!(
                    "this process is recorded into {other}: leave --trace away"
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
        let gathered = folder.trace().zip(cluster).filter(|_| sending::collector(None).is_none());
        let gatherer = gathered.map(|(trace, file)| Gatherer::start(trace, file)).transpose()?;
        Ok(Run { folder, tracing, gatherer, ns_per_slice, recorder })
    }

    /// Joins a run whose folder and trace another process manages.
    pub fn join(folder: &Path) -> Run {
        Run { folder: RunFolder::join(folder), tracing: None, gatherer: None, ns_per_slice: None, recorder: None }
    }

    /// The folder into which the processes of this run record, if they do.
    pub fn trace(&self) -> Option<&Path> {
        self.folder.trace().or(self.recorder.as_deref())
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
        let collected = tracing.end(warnings);
        if collected.dropped > 0 {
            warnings.push(format!("{} events were dropped: a thread's ring was full", collected.dropped));
        }
        if collected.write_errors > 0 {
            warnings.push(format!("the trace could not be written {} times", collected.write_errors));
        }
        if collected.limit_reached {
            warnings.push("the trace reached its size limit and ended before the run".to_owned());
        }
        Some(FinishedTrace { folder, collected })
    }
}
