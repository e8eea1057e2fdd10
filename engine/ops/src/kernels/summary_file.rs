//! Ops that write event files where they run: no value of a summary passes through the client.
//!
//! A writer is an object of a container. Records wait in it until there are more than `max_queue`, or until `flush_millis` after the last
//! were written, which is looked at when one comes; then they are written with one system call. What the disk does not take ends no
//! step: it is counted, and `FlushSummaryWriter` and `CloseSummaryWriter` fail with it.

use std::io;

use events::clock;
use formats::event_file::{self, EventFile};
use formats::proto::event::What;
use formats::proto::{Event, Summary, SummaryMetadata, summary};
use formats::tfrecord::append_record;
use parking_lot::Mutex;
use prost::Message;

use super::checkpoint::text;
use super::resource::{Key, object};
use super::summary::histogram_of;
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::tensor::Tensor;
use engine_core::tensor_proto;

#[linkme::distributed_slice(KERNEL_TABLES)]
static WRITERS: &[KernelDef] = &[
    cpu_any("SummaryWriter", make),
    cpu_any("CreateSummaryFileWriter", |_| kernel(create)),
    cpu_any("FlushSummaryWriter", |_| kernel(|c| writer(c)?.flush())),
    cpu_any("CloseSummaryWriter", |_| kernel(|c| writer(c)?.close())),
    cpu_any("WriteSummary", |_| kernel(write_tensor)),
    cpu_any("WriteRawProtoSummary", |_| kernel(write_summaries)),
    cpu_any("ImportEvent", |_| kernel(import)),
    cpu_any("WriteScalarSummary", |_| kernel(write_scalar)),
    cpu_any("WriteHistogramSummary", |_| kernel(write_histogram)),
    cpu_any("WriteGraphSummary", |_| kernel(write_graph)),
    cpu_any("Timestamp", |_| {
        cheap(|c| {
            c.set(0, Tensor::scalar(clock::wall_now()));
            Ok(())
        })
    }),
];

/// Bytes that wait at most, whatever `max_queue` says.
const MAX_WAITING: usize = 16 << 20;

/// A writer of a container: none of a file before `CreateSummaryFileWriter`, and after `CloseSummaryWriter`.
#[derive(Default)]
struct Writer {
    open: Mutex<Option<Open>>,
}

/// A file that is being written.
struct Open {
    file: EventFile,
    max_queue: u64,
    flush_after_ns: i64,
    /// Framed records that wait.
    waiting: Vec<u8>,
    n_waiting: u64,
    last_flush_ns: i64,
    n_lost: u64,
    first_error: Option<io::Error>,
}

impl Open {
    fn push(&mut self, event: &Event) {
        append_record(&mut self.waiting, &event.encode_to_vec());
        self.n_waiting += 1;
        let is_due = clock::mono_now() - self.last_flush_ns > self.flush_after_ns;
        if is_due || self.n_waiting > self.max_queue || self.waiting.len() > MAX_WAITING {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.last_flush_ns = clock::mono_now();
        if let Err(error) = self.file.write(&self.waiting) {
            self.n_lost += self.n_waiting;
            self.first_error.get_or_insert(error);
        }
        self.waiting.clear();
        self.n_waiting = 0;
    }

    /// What is missing in the file.
    fn result(&self) -> Computed {
        let Some(error) = &self.first_error else { return Ok(()) };
        let text = format!("{} records are missing: {error}", self.n_lost);
        Err(KernelError::File(self.file.path().to_string_lossy().into(), io::Error::new(error.kind(), text)))
    }
}

/// A container that is cleared drops its writers.
impl Drop for Open {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Writer {
    /// Opens a file unless one is open.
    fn create(&self, logdir: &str, suffix: &str, max_queue: i32, flush_millis: i32) -> Computed {
        let mut open = self.open.lock();
        if open.is_some() {
            return Ok(());
        }
        let wall = clock::wall_now();
        let file = EventFile::create(logdir.as_ref(), suffix, wall as u64);
        let file = file.map_err(|(path, error)| KernelError::File(path.to_string_lossy().into(), error))?;
        let mut begun = Open {
            file,
            max_queue: u64::try_from(max_queue).unwrap_or(0),
            flush_after_ns: i64::from(flush_millis.max(0)) * 1_000_000,
            waiting: Vec::new(),
            n_waiting: 0,
            last_flush_ns: clock::mono_now(),
            n_lost: 0,
            first_error: None,
        };
        begun.push(&event_file::version(wall));
        *open = Some(begun);
        Ok(())
    }

    fn with<R>(&self, use_it: impl FnOnce(&mut Open) -> R) -> Result<R, KernelError> {
        let not_open = || KernelError::invalid("the writer has no file: run CreateSummaryFileWriter first");
        self.open.lock().as_mut().map(use_it).ok_or_else(not_open)
    }

    fn flush(&self) -> Computed {
        self.with(|open| {
            open.flush();
            open.result()
        })?
    }

    fn close(&self) -> Computed {
        let taken = self.open.lock().take();
        let Some(mut open) = taken else { return Ok(()) };
        open.flush();
        open.result()
    }

    fn add(&self, step: i64, what: What) -> Computed {
        self.with(|open| {
            open.push(&Event { wall_time: clock::wall_now(), step, what: Some(what), source_metadata: None });
        })
    }
}

fn make(node: &Node) -> Built {
    let key = Key::of(node)?;
    cheap(move |c| {
        let handle = key.object(c, Writer::default)?;
        c.set(0, handle);
        Ok(())
    })
}

fn writer(c: &KernelContext<'_>) -> Result<std::sync::Arc<Writer>, KernelError> {
    object(c.input(0)?)
}

fn create(c: &mut KernelContext<'_>) -> Computed {
    let (logdir, suffix) = (text(c, 1)?, text(c, 4)?);
    if suffix.contains('/') {
        return Err(KernelError::invalid(format!("filename_suffix {suffix:?} is no part of a file's name")));
    }
    writer(c)?.create(&logdir, &suffix, c.item(2)?, c.item(3)?)
}

/// Writes one value under the tag that input 2 is.
fn write_value(c: &KernelContext<'_>, tag: String, value: summary::value::Value) -> Computed {
    let value = summary::Value { tag, value: Some(value), ..summary::Value::default() };
    writer(c)?.add(c.item(1)?, What::Summary(Summary { value: vec![value] }))
}

fn write_scalar(c: &mut KernelContext<'_>) -> Computed {
    let values = c.input(3)?.to_f64()?;
    let [value] = *values else {
        return Err(KernelError::invalid(format!("the value must be a scalar, got {} elements", values.len())));
    };
    write_value(c, text(c, 2)?, summary::value::Value::SimpleValue(value as f32))
}

fn write_histogram(c: &mut KernelContext<'_>) -> Computed {
    let tag = text(c, 2)?;
    let histogram = histogram_of(c.input(3)?, &tag)?;
    write_value(c, tag, summary::value::Value::Histo(histogram))
}

fn write_tensor(c: &mut KernelContext<'_>) -> Computed {
    let [metadata] = c.input(4)?.strings()? else {
        return Err(KernelError::invalid("summary_metadata must be one string"));
    };
    let metadata = (!metadata.is_empty()).then(|| SummaryMetadata::decode(metadata.as_slice())).transpose();
    let metadata =
        metadata.map_err(|e| KernelError::invalid(format!("summary_metadata is no SummaryMetadata: {e}")))?;
    let value = summary::value::Value::Tensor(tensor_proto::to_proto(c.input(2)?));
    let value = summary::Value { tag: text(c, 3)?, metadata, value: Some(value), ..summary::Value::default() };
    writer(c)?.add(c.item(1)?, What::Summary(Summary { value: vec![value] }))
}

/// Writes what ops that give summaries gave.
fn write_summaries(c: &mut KernelContext<'_>) -> Computed {
    let not_one = |e| KernelError::invalid(format!("the tensor holds no Summary: {e}"));
    let decode = |bytes: &Vec<u8>| Summary::decode(bytes.as_slice()).map_err(not_one);
    let all = c.input(2)?.strings()?.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    let (writer, step) = (writer(c)?, c.item(1)?);
    all.into_iter().try_for_each(|summary| writer.add(step, What::Summary(summary)))
}

fn write_graph(c: &mut KernelContext<'_>) -> Computed {
    let [graph] = c.input(2)?.strings()? else { return Err(KernelError::invalid("the graph must be one string")) };
    writer(c)?.add(c.item(1)?, What::GraphDef(graph.clone()))
}

fn import(c: &mut KernelContext<'_>) -> Computed {
    let [event] = c.input(1)?.strings()? else { return Err(KernelError::invalid("the event must be one string")) };
    let event = Event::decode(event.as_slice()).map_err(|e| KernelError::invalid(format!("no Event: {e}")))?;
    writer(c)?.with(|open| open.push(&event))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_full_disk_is_counted_and_reported_when_the_file_is_flushed() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let file = EventFile::from_file(full.into(), File::options().write(true).open(full).unwrap());
        let first_error = None;
        let (max_queue, flush_after_ns, last_flush_ns) = (0, i64::MAX, 0);
        let (waiting, n_waiting, n_lost) = (Vec::new(), 0, 0);
        let open = Open { file, max_queue, flush_after_ns, waiting, n_waiting, last_flush_ns, n_lost, first_error };
        let writer = Writer { open: Mutex::new(Some(open)) };
        let value = || What::Summary(Summary::default());
        writer.add(1, value()).unwrap();
        writer.add(2, value()).unwrap();
        let message = writer.flush().unwrap_err().to_string();
        assert!(message.starts_with("/dev/full: 2 records are missing: No space left"), "{message}");
        assert!(writer.close().is_err());
        assert!(writer.add(3, value()).unwrap_err().to_string().contains("CreateSummaryFileWriter"));
    }
}
