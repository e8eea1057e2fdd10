//! Writing an event file from a training program.
//!
//! A call frames its record and puts it into a queue; a thread writes the queue to the file every
//! [`flush_every`](WriterOptions::flush_every), with one system call, so that
//!
//! - a step never waits for the disk, unless the queue is full: then for at most [`max_wait`](WriterOptions::max_wait),
//!   after which the record is dropped and counted;
//! - a reader sees a point within the flush interval and the time of one write;
//! - a program that is killed leaves everything older than the flush interval, and at most one torn record at the end.
//!
//! A full disk does not end the training: the file is cut back to its last complete record, lost records are counted,
//! later records are written if they can be, and [`SummaryWriter::flush`] and [`SummaryWriter::close`] report the loss.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use events::clock;
use formats::{
    event_file::{self, EventFile},
    histogram::HistogramBuilder,
    proto::{Event, GraphDef, Summary, event::What, summary},
};
use prost::Message;

pub use embedding::read_config as read_projector_config;
pub use encode::{Pixels, ValueError, png as encode_png};
pub use hparam::HParam;
pub use kinds::Mesh;
use queue::Queue;
pub use queue::WriterOptions;

mod embedding;
mod encode;
mod hparam;
mod kinds;
mod queue;
pub(crate) mod values;

/// The field number of `Event.summary`.
const SUMMARY_FIELD: u32 = 5;

/// Why an event file is incomplete.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriterError {
    /// The folder or the file cannot be created.
    #[error("cannot create the event file {}: {source}", path.display())]
    Create {
        /// The folder or the file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// Records are missing, because the disk did not take them or the queue was full.
    #[error("{n_lost} records are missing in {}: {source}", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// The number of missing records.
        n_lost: u64,
        /// The first reason.
        source: Arc<io::Error>,
    },
}

/// Writes summaries into a new event file of a logdir: scalars, histograms, images, sounds, texts, tensors,
/// precision-recall curves, hyperparameters, chart layouts, embeddings, meshes, graphs and profiles. May be
/// shared between threads; the records of a thread are written in their order.
///
/// ```
/// use summaries::{SummaryWriter, WriterOptions};
///
/// let logdir = tempfile::tempdir()?;
/// let writer = SummaryWriter::create(logdir.path(), WriterOptions::default())?;
/// for step in 0..100 {
///     writer.add_scalar("loss", 1.0 / (1.0 + step as f32), step);
/// }
/// writer.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SummaryWriter {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl SummaryWriter {
    /// Creates `logdir` if it does not exist, and in it a file `events.out.tfevents.SECONDS.HOST.PID.N`.
    ///
    /// # Errors
    /// When the folder, the file or the thread cannot be made.
    pub fn create(logdir: &Path, options: WriterOptions) -> Result<Self, WriterError> {
        let create_error = |(path, source)| WriterError::Create { path, source: Arc::new(source) };
        let file =
            EventFile::create(logdir, &options.filename_suffix, clock::wall_now() as u64).map_err(create_error)?;
        let path = file.path().to_owned();
        let queue = Arc::new(Queue::new(options));
        let thread_queue = queue.clone();
        let thread = std::thread::Builder::new().name("event-writer".into()).spawn(move || thread_queue.write_to(file));
        let thread = thread.map_err(|e| create_error((path.clone(), e)))?;
        let writer = Self { path, queue, thread: Some(thread) };
        writer.add_event(&event_file::version(clock::wall_now()));
        Ok(writer)
    }

    /// The event file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an event as it is.
    pub fn add_event(&self, event: &Event) {
        self.add_event_bytes(&event.encode_to_vec());
    }

    /// Whether a record of so many bytes is added without a wait for the disk.
    pub fn has_room(&self, n_bytes: usize) -> bool {
        self.queue.has_room(n_bytes)
    }

    /// Adds a serialised `Event` as it is.
    pub fn add_event_bytes(&self, event: &[u8]) {
        self.queue.push(event);
    }

    /// Adds a serialised `Summary`, such as the output of a summary op, without decoding it. `wall` is in Unix seconds.
    pub fn add_summary_bytes(&self, summary: &[u8], step: i64, wall: f64) {
        let mut event = Event { wall_time: wall, step, what: None, source_metadata: None }.encode_to_vec();
        prost::encoding::encode_key(SUMMARY_FIELD, prost::encoding::WireType::LengthDelimited, &mut event);
        prost::encoding::encode_varint(summary.len() as u64, &mut event);
        event.extend_from_slice(summary);
        self.queue.push(&event);
    }

    /// Adds one number under a tag, stamped with the time of the call.
    pub fn add_scalar(&self, tag: &str, value: f32, step: i64) {
        self.add_value(tag, summary::value::Value::SimpleValue(value), step);
    }

    /// Adds the distribution of `values` in TensorFlow's buckets. Returns the number of NaN and infinities, which have
    /// no bucket.
    pub fn add_histogram<T: Into<f64>>(&self, tag: &str, values: impl IntoIterator<Item = T>, step: i64) -> u64 {
        let mut histogram = HistogramBuilder::new();
        histogram.extend(values);
        self.add_value(tag, summary::value::Value::Histo(histogram.to_proto()), step);
        histogram.n_nonfinite()
    }

    fn add_value(&self, tag: &str, value: summary::value::Value, step: i64) {
        let value = summary::Value { tag: tag.to_owned(), value: Some(value), ..summary::Value::default() };
        let what = What::Summary(Summary { value: vec![value] });
        self.add_event(&Event { wall_time: clock::wall_now(), step, what: Some(what), source_metadata: None });
    }

    /// Adds the graph that the run executes.
    pub fn add_graph(&self, graph: &GraphDef) {
        let what = What::GraphDef(graph.encode_to_vec());
        self.add_event(&Event { wall_time: clock::wall_now(), step: 0, what: Some(what), source_metadata: None });
    }

    /// Waits until the operating system has all records that were added: they then survive the death of this process.
    ///
    /// # Errors
    /// When records are missing in the file.
    pub fn flush(&self) -> Result<(), WriterError> {
        self.queue.flush();
        self.result()
    }

    /// The number of records that are missing in the file so far.
    pub fn n_lost(&self) -> u64 {
        self.queue.lost().map_or(0, |(n_lost, _)| n_lost)
    }

    /// Writes the queued records and ends. Dropping a writer does the same, but reports no error.
    ///
    /// # Errors
    /// When records are missing in the file.
    pub fn close(mut self) -> Result<(), WriterError> {
        self.finish();
        self.result()
    }

    fn finish(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread; flush and close report lost records.
            let _ = thread.join();
        }
    }

    fn result(&self) -> Result<(), WriterError> {
        match self.queue.lost() {
            None => Ok(()),
            Some((n_lost, source)) => Err(WriterError::Lost { path: self.path.clone(), n_lost, source }),
        }
    }
}

impl Drop for SummaryWriter {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests;
