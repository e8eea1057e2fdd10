//! The histograms of one tag in one run.

use std::{io, ops::Range};

use crate::{
    column::pieces,
    histogram::Histogram,
    packed::{Packer, unpack},
    spill::SpillingBytes,
};

/// Distributions by step; rows as in [`ScalarSeries`](crate::ScalarSeries). They are packed bytes in memory, up to a
/// budget of the process (`STEPSCOPE_HISTOGRAM_MIB`, default 256 MiB), and in a temporary file beyond it.
#[derive(Debug, Clone, Default)]
pub struct HistogramSeries {
    /// The x axis: the program's step.
    pub step: Vec<i64>,
    /// Unix seconds at which the value was written.
    pub wall: Vec<f64>,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
    /// The end of each histogram in `bytes`.
    ends: Vec<u64>,
    bytes: SpillingBytes,
    restarts: Vec<usize>,
}

impl HistogramSeries {
    pub(crate) fn for_node(node_name: String) -> Self {
        Self { node_name, ..Self::default() }
    }

    /// The number of histograms.
    pub fn len(&self) -> usize {
        self.step.len()
    }

    /// Whether the series has no histograms.
    pub fn is_empty(&self) -> bool {
        self.step.is_empty()
    }

    /// Reads the distribution at `row`, in under a microsecond from memory, else from the temporary file.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn histogram(&self, row: usize) -> io::Result<Histogram> {
        let end = self.ends[row];
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let histogram = self.bytes.read(begin, (end - begin) as usize, unpack)?;
        histogram.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The number of bytes in the temporary file.
    pub fn n_spilled_bytes(&self) -> u64 {
        self.bytes.n_spilled()
    }

    /// Ranges of rows within which the step does not fall.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        pieces(&self.restarts, self.step.len())
    }

    pub(crate) fn append(&mut self, rows: &PackedRows) {
        let begin = self.bytes.len();
        for &(step, wall, end) in &rows.rows {
            if self.step.last().is_some_and(|last| step < *last) {
                self.restarts.push(self.step.len());
            }
            self.step.push(step);
            self.wall.push(wall);
            self.ends.push(begin + end as u64);
        }
        self.bytes.append(&rows.bytes);
    }
}

/// Packed histograms that will be appended to a series.
#[derive(Debug, Default)]
pub(crate) struct PackedRows {
    /// Step, wall time, and end of the bytes of each histogram.
    rows: Vec<(i64, f64, usize)>,
    bytes: Vec<u8>,
    /// The histogram that is being packed; its memory is reused.
    scratch: Histogram,
    packer: Packer,
}

impl PackedRows {
    /// Appends the histogram that `fill` writes.
    ///
    /// # Errors
    /// The error of `fill`; then nothing is appended.
    pub fn push<E>(
        &mut self,
        step: i64,
        wall: f64,
        fill: impl FnOnce(&mut Histogram) -> Result<(), E>,
    ) -> Result<(), E> {
        fill(&mut self.scratch)?;
        self.packer.pack(&self.scratch, &mut self.bytes);
        self.rows.push((step, wall, self.bytes.len()));
        Ok(())
    }
}
