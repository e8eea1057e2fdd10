//! Event files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use formats::histogram::HistogramBuilder;
use formats::proto::{Event, Summary, event::What, summary};
use prost::Message;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use summaries::{Pixels, SummaryWriter, WriterError, WriterOptions};

/// One event file. A thread writes its records within 100 ms.
#[pyclass(frozen, module = "stepscope._native")]
pub struct EventWriter {
    path: PathBuf,
    /// `None` once it is closed. Locked only while the interpreter lock (GIL) is held, so never by another thread at a fork.
    writer: Mutex<Option<Arc<SummaryWriter>>>,
}

#[pymethods]
impl EventWriter {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "as Python's values come")]
    #[pyo3(signature = (logdir, filename_suffix = String::new()))]
    fn new(logdir: PathBuf, filename_suffix: String) -> PyResult<EventWriter> {
        let options = WriterOptions { filename_suffix, ..WriterOptions::default() };
        let writer = SummaryWriter::create(&logdir, options).map_err(|e| os_error(&e))?;
        Ok(EventWriter { path: writer.path().to_owned(), writer: Mutex::new(Some(Arc::new(writer))) })
    }

    #[getter]
    fn path(&self) -> OsString {
        self.path.clone().into_os_string()
    }

    /// Adds a number; `walltime` is in seconds since 1970, now if it is `None`.
    #[pyo3(signature = (tag, value, step, walltime = None))]
    fn add_scalar(&self, py: Python<'_>, tag: &str, value: f64, step: i64, walltime: Option<f64>) -> PyResult<()> {
        self.add_value(py, tag, summary::value::Value::SimpleValue(value as f32), step, walltime)
    }

    /// Adds the distribution of little-endian doubles in TensorFlow's buckets, as PyTorch writes them. Returns the number of NaN and infinities,
    /// which have no bucket.
    #[pyo3(signature = (tag, values, step, walltime = None))]
    fn add_histogram(
        &self,
        py: Python<'_>,
        tag: &str,
        values: &[u8],
        step: i64,
        walltime: Option<f64>,
    ) -> PyResult<u64> {
        let (doubles, []) = values.as_chunks::<8>() else {
            return Err(PyValueError::new_err(format!("{tag}: {} bytes are not whole doubles", values.len())));
        };
        let histogram = py.detach(|| {
            let mut histogram = HistogramBuilder::new();
            histogram.extend(doubles.iter().map(|bytes| f64::from_le_bytes(*bytes)));
            histogram
        });
        self.add_value(py, tag, summary::value::Value::Histo(histogram.to_dense_proto()), step, walltime)?;
        Ok(histogram.n_nonfinite())
    }

    /// Adds a serialised `tensorflow.Summary`.
    #[pyo3(signature = (summary, step, walltime = None))]
    fn add_summary(&self, py: Python<'_>, summary: &[u8], step: i64, walltime: Option<f64>) -> PyResult<()> {
        let walltime = walltime.unwrap_or_else(now);
        self.add(py, summary.len(), |writer| writer.add_summary_bytes(summary, step, walltime))
    }

    /// Adds a serialised `tensorflow.Event` as it is.
    fn add_event(&self, py: Python<'_>, event: &[u8]) -> PyResult<()> {
        self.add(py, event.len(), |writer| writer.add_event_bytes(event))
    }

    /// Waits until the file has all records.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        py.detach(|| writer.flush()).map_err(|e| os_error(&e))
    }

    /// Writes what is left and ends. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(writer) = self.take() else { return Ok(()) };
        // If another thread is flushing it, the file is closed when that ends.
        py.detach(|| Arc::try_unwrap(writer).map_or_else(|writer| writer.flush(), SummaryWriter::close))
            .map_err(|e| os_error(&e))
    }

    /// Gives up the file without writing to it: it is that of the process that this one was forked from.
    fn abandon(&self) {
        std::mem::forget(self.take());
    }
}

impl EventWriter {
    fn writer(&self) -> PyResult<Arc<SummaryWriter>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or_else(|| PyValueError::new_err(format!("the writer of {} is closed", self.path.display())))
    }

    /// Adds a record. Releases the interpreter lock (GIL) if that has to wait for the disk.
    fn add(&self, py: Python<'_>, n_bytes: usize, add: impl FnOnce(&SummaryWriter) + Send) -> PyResult<()> {
        let writer = self.writer()?;
        match writer.has_room(n_bytes) {
            true => add(&writer),
            false => py.detach(|| add(&writer)),
        }
        Ok(())
    }

    fn take(&self) -> Option<Arc<SummaryWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn add_value(
        &self,
        py: Python<'_>,
        tag: &str,
        value: summary::value::Value,
        step: i64,
        walltime: Option<f64>,
    ) -> PyResult<()> {
        let value = summary::Value { tag: tag.to_owned(), value: Some(value), ..summary::Value::default() };
        let what = What::Summary(Summary { value: vec![value] });
        let wall_time = walltime.unwrap_or_else(now);
        let event = Event { wall_time, step, what: Some(what), source_metadata: None };
        self.add_event(py, &event.encode_to_vec())
    }
}

fn now() -> f64 {
    events::clock::wall_now()
}

fn os_error(error: &WriterError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// A PNG file of pixels with 8 bits a channel, row by row from the top: 1 channel is grey, 2 are grey and alpha, 3 RGB,
/// 4 RGBA.
#[pyfunction]
pub fn png<'py>(
    py: Python<'py>,
    pixels: &[u8],
    height: u32,
    width: u32,
    channels: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let n_bytes = u64::from(height) * u64::from(width) * u64::from(channels);
    if n_bytes != pixels.len() as u64 {
        let n = pixels.len();
        return Err(PyValueError::new_err(format!(
            "{n} bytes are not {height} x {width} pixels of {channels} channels"
        )));
    }
    let file = py.detach(|| summaries::encode_png(Pixels { width, height, data: pixels }));
    Ok(PyBytes::new(py, &file.map_err(|e| PyValueError::new_err(e.to_string()))?))
}
