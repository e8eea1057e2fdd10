//! Tags whose values are not numbers: stores the position of each value in the files, and decodes a value on demand.
//!
//! A point costs 48 bytes however large its image is.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use flate2::bufread::MultiGzDecoder;
use formats::{
    proto::SummaryMetadata,
    tfrecord::{RecordStream, Scan},
};
use prost::Message;

use crate::{
    event::{EventKind, EventView, values},
    sample::{Sample, decode},
};

/// The first bytes of a gzipped file.
pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The position of a value in the event files.
#[derive(Debug, Clone)]
pub struct RecordPosition {
    /// The event file.
    pub file: Arc<Path>,
    /// The offset of its record, in bytes from the file's beginning (of a gzipped file: from its content's beginning).
    pub offset: u64,
    /// The index of the value in the record.
    pub value_idx: u32,
}

/// Why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file does not exist any more or cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: Arc<Path>,
        /// Why.
        source: io::Error,
    },
    /// The record has changed since it was found: the file was overwritten.
    #[error("{}: the record at byte {offset} has changed since it was found", path.display())]
    Changed {
        /// The file.
        path: Arc<Path>,
        /// The record's offset, bytes.
        offset: u64,
    },
    /// The value is not of its tag's kind.
    #[error("not a readable value of {kind}: {reason}")]
    Undecodable {
        /// The tag's kind.
        kind: String,
        /// The fault.
        reason: String,
    },
}

/// One value of a [`MediaSeries`].
#[derive(Debug, Clone)]
pub struct MediaRow {
    /// The x axis: the program's step.
    pub step: i64,
    /// Unix seconds at which the value was written.
    pub wall: f64,
    /// The position of the value.
    pub place: RecordPosition,
}

/// The values of a tag that are not numbers, in the order of arrival.
#[derive(Debug, Clone, Default)]
pub struct MediaSeries {
    kind: String,
    rows: Vec<MediaRow>,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
    /// The tag's metadata: display name, description, and the plugin's data (see [`formats::plugins`]).
    pub metadata: Arc<SummaryMetadata>,
}

impl MediaSeries {
    pub(crate) fn new(kind: String, node_name: String, metadata: Arc<SummaryMetadata>) -> Self {
        Self { kind, rows: Vec::new(), node_name, metadata }
    }

    /// The plugin that shows the values, as the file names it: `images`, `audio`, `text`, `pr_curves`, `hparams`,
    /// `custom_scalars`, `mesh`, `tensor` for a tensor that no plugin claims, ...
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the series has no values.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The steps, times and positions of the values.
    pub fn rows(&self) -> &[MediaRow] {
        &self.rows
    }

    /// Step and wall time of the newest value.
    pub fn last(&self) -> Option<(i64, f64)> {
        self.rows.last().map(|row| (row.step, row.wall))
    }

    /// Reads and decodes the value at `row`: a few system calls and one pass over its record.
    ///
    /// # Errors
    /// When the file is gone or was written over, or the value is not of the tag's kind.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn read(&self, row: usize) -> Result<Sample, MediaError> {
        self.rows[row].place.read(&self.kind, &self.metadata)
    }

    pub(crate) fn append(&mut self, rows: &mut Vec<MediaRow>) {
        self.rows.append(rows);
    }
}

impl RecordPosition {
    /// Reads and decodes the value of a tag of `kind` with `metadata`, as [`MediaSeries::read`] does, without
    /// the series.
    ///
    /// # Errors
    /// As [`MediaSeries::read`].
    pub fn read(&self, kind: &str, metadata: &SummaryMetadata) -> Result<Sample, MediaError> {
        let record = self.record()?;
        let changed = || MediaError::Changed { path: self.file.clone(), offset: self.offset };
        let event = EventView::parse(&record).map_err(|_| changed())?;
        let EventKind::Summary(summary) = event.kind else { return Err(changed()) };
        let value = values(summary).nth(self.value_idx as usize).ok_or_else(changed)?.map_err(|_| changed())?;
        decode(kind, metadata, &value).map_err(|reason| MediaError::Undecodable { kind: kind.to_owned(), reason })
    }

    /// Reads the event's record and verifies its checksums.
    pub(crate) fn record(&self) -> Result<Vec<u8>, MediaError> {
        let error = |source| MediaError::File { path: self.file.clone(), source };
        let mut file = File::open(&self.file).map_err(error)?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic).map_err(error)?;
        let found = if magic == GZIP_MAGIC {
            file.seek(SeekFrom::Start(0)).map_err(error)?;
            let mut content = MultiGzDecoder::new(BufReader::new(file));
            io::copy(&mut (&mut content).take(self.offset), &mut io::sink()).map_err(error)?;
            first_record(&mut content, self.offset)
        } else {
            file.seek(SeekFrom::Start(self.offset)).map_err(error)?;
            first_record(&mut file, self.offset)
        };
        found.map_err(error)?.ok_or_else(|| MediaError::Changed { path: self.file.clone(), offset: self.offset })
    }
}

/// Reads the record at the current position of `source`, which is `offset` bytes into the file.
fn first_record(source: &mut impl Read, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let mut stream = RecordStream::new(offset);
    Ok(match stream.next(source)? {
        Scan::Record(record) if record.offset == offset => Some(record.data.to_vec()),
        _ => None,
    })
}

/// Decodes the metadata of a tag; the default where they are missing or cannot be decoded.
pub(crate) fn parse_metadata(bytes: Option<&[u8]>) -> Arc<SummaryMetadata> {
    Arc::new(bytes.and_then(|bytes| SummaryMetadata::decode(bytes).ok()).unwrap_or_default())
}
