//! Tracing of a run: recording, collecting, sending and sealing, started and ended together; the cost of one slice.

use std::path::{Path, PathBuf};

use anyhow::Context;
use cupti::Library;
use trace_record::{Collector, CollectorOptions, CollectorReport};

use crate::sending;

/// The recording of this process and the thread that drains it.
pub struct TraceRecorder {
    recording: events::Session,
    collector: Collector,
    /// Records CUDA's work, where there is a GPU.
    cuda: Option<cupti::Recorder>,
    sender: Option<gather::Sender>,
    folder: PathBuf,
}

impl TraceRecorder {
    /// Records this process into `folder`, and sends the trace to the collector that `STEPSCOPE_COLLECTOR` names.
    ///
    /// # Errors
    /// When the folder cannot be written, or the process is recorded already.
    pub fn start(folder: &Path) -> anyhow::Result<TraceRecorder> {
        let recording = events::start(folder, events::Options::default()).context("starting the trace")?;
        let collector = Collector::start(folder, CollectorOptions::default()).context("collecting the trace")?;
        let sender =
            sending::start(folder, sending::collector_address(None).as_deref()).context("sending the trace")?;
        Ok(TraceRecorder { recording, collector, cuda: None, sender, folder: folder.to_path_buf() })
    }

    /// Records CUDA's work in this process too. Where CUPTI is missing, the trace says why.
    pub fn record_cuda(&mut self) {
        self.cuda = cupti::Recorder::find_and_start().ok();
        if let (Some(_), Ok(library)) = (&self.cuda, cupti::CuptiLibrary::find()) {
            // A listener of an earlier trace of this process stays: it uses the same library.
            cuda::attribution::listen(Box::new(Correlation(library)));
        }
    }

    /// The folder of the trace.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops recording, drains the rings, sends the rest to the collector, and seals the trace. Adds a warning where
    /// sealing fails: an unsealed trace can be read too, but is larger and slower.
    pub fn end(self, warnings: &mut Vec<String>) -> CollectorReport {
        // CUPTI is stopped first, because it emits its last records into the recording.
        drop(self.cuda);
        drop(self.recording);
        let report = self.collector.stop();
        warnings.extend(sending::end_and_seal(self.sender, &self.folder));
        report
    }
}

/// Reports to CUPTI which node of the graph launches work on a device.
struct Correlation(cupti::CuptiLibrary);

impl cuda::attribution::Listener for Correlation {
    fn begins(&self, node: u32) {
        // Work whose correlation CUPTI refuses is recorded without a node.
        let _ = self.0.push(u64::from(node));
    }

    fn ends(&self) {
        let _ = self.0.pop();
    }
}

/// The cost of one slice with two time stamps in this process while tracing is on, nanoseconds: the mean of the
/// quickest of many blocks, since a block that was interrupted measures the interruption. The slices go to a
/// folder of their own, which is removed.
pub(crate) fn ns_per_slice() -> Option<f64> {
    const N_BLOCKS: usize = 40;
    const SLICES_PER_BLOCK: i64 = 1_000;
    let scratch = std::env::temp_dir().join(format!("stepscope-cost-{}", std::process::id()));
    let recording = events::start(&scratch, events::Options::default()).ok()?;
    let site = events::site("cost", "slice");
    let block = |_| {
        let start_ns = events::clock::mono_now();
        for _ in 0..SLICES_PER_BLOCK {
            drop(events::slice(site));
        }
        (events::clock::mono_now() - start_ns) as f64 / SLICES_PER_BLOCK as f64
    };
    let best_ns = (0..N_BLOCKS).map(block).fold(f64::INFINITY, f64::min);
    drop(recording);
    // The folder is in the temporary folder; a leftover there harms nobody.
    let _ = std::fs::remove_dir_all(&scratch);
    Some(best_ns)
}
