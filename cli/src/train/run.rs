//! What a run writes besides its summaries: its folder, and its trace.

use std::path::{Path, PathBuf};

use profiler::CollectorReport;

use super::gathering::Gathering;
use super::tracing::{self, Tracing};
use crate::args::Training;
use crate::devices;
use crate::outcome::Failure;
use crate::run_folder::RunFolder;
use crate::sending;

/// A run's folder, and the recording and collecting of its trace.
pub(super) struct Run {
    folder: RunFolder,
    tracing: Option<Tracing>,
    gathering: Option<Gathering>,
    ns_per_slice: Option<f64>,
    /// Where somebody else records this process.
    recorder: Option<PathBuf>,
}

/// What is known of a trace that ended.
pub(super) struct Traced {
    /// Its folder.
    pub folder: PathBuf,
    /// What the collector says of it.
    pub collected: CollectorReport,
}

impl Run {
    /// Makes the folder and begins the trace, into which come those of the workers of a `cluster`. A run that `continues` may write beside
    /// what it wrote before.
    ///
    /// # Errors
    /// `Failure::Use` when the folder is somebody's, `Failure::Work` for everything else.
    pub fn begin(name: &str, training: &Training, continues: bool, cluster: Option<&Path>) -> Result<Run, Failure> {
        // What `stepscope record` or STEPSCOPE_TRACE records already has its trace there.
        let (recorder, off) = (events::recording_into(), Path::new("off"));
        let wanted = training.trace.as_deref();
        if let (Some(other), Some(_)) = (&recorder, wanted.filter(|wanted| *wanted != off)) {
            let other = other.display();
            return Err(Failure::wrong_use(format_args!("this process is recorded into {other}: leave --trace away")));
        }
        let trace = if recorder.is_some() { Some(off) } else { wanted };
        let folder = RunFolder::create(name, training.logdir.as_deref(), trace, continues)?;
        let ns_per_slice = folder.trace().and_then(|_| tracing::ns_per_slice());
        let mut tracing = folder.trace().map(Tracing::start).transpose()?;
        if let Some(tracing) = tracing.as_mut().filter(|_| devices::has_gpu(&training.device)) {
            tracing.record_cuda();
        }
        // Who sends traces to a collector has those of workers sent there, too.
        let gathered = folder.trace().zip(cluster).filter(|_| sending::wanted(None).is_none());
        let gathering = gathered.map(|(trace, file)| Gathering::start(trace, file)).transpose()?;
        Ok(Run { folder, tracing, gathering, ns_per_slice, recorder })
    }

    /// Takes part in a run whose folder and trace another process keeps.
    pub fn join(folder: &Path) -> Run {
        Run { folder: RunFolder::join(folder), tracing: None, gathering: None, ns_per_slice: None, recorder: None }
    }

    /// Where the processes of this run record, if they do.
    pub fn trace(&self) -> Option<&Path> {
        self.folder.trace().or(self.recorder.as_deref())
    }

    /// The folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// What one traced slice costs here, nanoseconds.
    pub fn ns_per_slice(&self) -> Option<f64> {
        self.ns_per_slice
    }

    /// Ends the trace. Processes that write into it have ended before.
    pub fn end(self, warnings: &mut Vec<String>) -> Option<Traced> {
        if let Some(gathering) = self.gathering {
            gathering.end(warnings);
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
        Some(Traced { folder, collected })
    }
}
