//! Encodes a column of few distinct values as Parquet's dictionary and data pages. The value of each row is a small
//! number, which is the same for equal values: a row of a table of names, a track, a lane.
//!
//! The `parquet` crate's writer hashes every value to find its dictionary key, and compares it with the minimum and
//! maximum so far. For the nine such columns of slices this was most of the cost of writing. Here a value costs one
//! look-up in an array.
//!
//! ```text
//! dictionary page   the distinct values in the order in which they first occur, PLAIN
//! data page         [if nullable: length u32, definition levels as runs]  bits of a key u8, keys as runs
//! ```
//!
//! All pages are compressed with zstd. A column that is entirely null has no dictionary page and data pages without
//! keys.

use super::runs;
use arrow_array::StringArray;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// The number of a row that is null, and also its key.
pub(super) const NULL: u32 = u32::MAX;
/// Rows of a data page: as many as the `parquet` crate writes, so that a range of rows is one page of each column.
const PAGE_ROWS: usize = 20_000;
/// Maximum number of bytes of a text in statistics; longer texts are cut.
const STATISTICS_BYTES: usize = 64;
/// Compression level of zstd.
const ZSTD_LEVEL: i32 = 1;

/// The values that the numbers of a column stand for.
#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    /// The numbers themselves.
    Numbers,
    /// The texts in these rows.
    Texts(&'a StringArray),
}

/// An encoded column of a row group, ready to be appended to a file.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Encodes columns one after another, and reuses its buffers.
pub(super) struct DictionaryEncoder {
    zstd: zstd::bulk::Compressor<'static>,
    /// Dictionary key of each number, or [`NULL`].
    key_by_number: Vec<u32>,
    /// The dictionary: the number of each key.
    distinct: Vec<u32>,
    /// Dictionary key of each row.
    keys: Vec<u32>,
    /// Definition levels of a page (0 for null, else 1), then its keys without nulls.
    levels: Vec<u32>,
    /// A page before compression.
    uncompressed: Vec<u8>,
}

impl DictionaryEncoder {
    pub(super) fn new() -> Result<DictionaryEncoder> {
        Ok(DictionaryEncoder {
            zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            key_by_number: Vec::new(),
            distinct: Vec::new(),
            keys: Vec::new(),
            levels: Vec::new(),
            uncompressed: Vec::new(),
        })
    }

    /// Encodes a column from the numbers of its rows, which may be [`NULL`] in a nullable column. Memory grows with the
    /// largest number.
    pub(super) fn encode(
        &mut self,
        descr: &ColumnDescPtr,
        numbers: impl Iterator<Item = u32>,
        values: Values<'_>,
    ) -> Result<Chunk> {
        self.assign_keys(numbers);
        let mut out = TrackedWrite::new(Vec::new());
        let mut page_writer = SerializedPageWriter::new(&mut out);
        let mut pages = PagesWriter {
            out: &mut page_writer,
            index: OffsetIndexBuilder::new(),
            compressed: 0,
            uncompressed: 0,
            stats: Vec::new(),
            data_offset: 0,
        };
        if !self.distinct.is_empty() {
            self.dictionary_page(values, &mut pages)?;
        }
        let keys = std::mem::take(&mut self.keys);
        for part in keys.chunks(PAGE_ROWS) {
            self.data_page(part, descr.max_def_level() > 0, &mut pages)?;
        }
        let n_nulls = keys.iter().filter(|key| **key == NULL).count();
        let rows_written = keys.len() as u64;
        self.keys = keys;
        let PagesWriter { index, compressed, uncompressed, stats, data_offset, .. } = pages;
        let metadata = ColumnChunkMetaData::builder(descr.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(uncompressed)
            .set_num_values(rows_written as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset((!self.distinct.is_empty()).then_some(0))
            .set_statistics(self.statistics(values, n_nulls as u64))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        Ok(Chunk { bytes: out.into_inner()?.into(), close })
    }

    /// Builds the dictionary, and finds the key of each row.
    fn assign_keys(&mut self, numbers: impl Iterator<Item = u32>) {
        for number in self.distinct.drain(..) {
            self.key_by_number[number as usize] = NULL;
        }
        self.keys.clear();
        for number in numbers {
            if number == NULL {
                self.keys.push(NULL);
                continue;
            }
            if self.key_by_number.len() <= number as usize {
                self.key_by_number.resize(number as usize + 1, NULL);
            }
            let key = &mut self.key_by_number[number as usize];
            if *key == NULL {
                *key = self.distinct.len() as u32;
                self.distinct.push(number);
            }
            self.keys.push(*key);
        }
    }

    fn dictionary_page(&mut self, values: Values<'_>, pages: &mut PagesWriter<'_, '_>) -> Result<()> {
        self.uncompressed.clear();
        for number in &self.distinct {
            match values {
                Values::Numbers => self.uncompressed.extend_from_slice(&number.to_le_bytes()),
                Values::Texts(texts) => {
                    let text = texts.value(*number as usize);
                    self.uncompressed.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    self.uncompressed.extend_from_slice(text.as_bytes());
                }
            }
        }
        let buf = self.zstd.compress(&self.uncompressed)?.into();
        let (num_values, encoding) = (self.distinct.len() as u32, Encoding::PLAIN);
        pages.write(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false }, self.uncompressed.len(), 0)
    }

    fn data_page(&mut self, keys: &[u32], may_be_null: bool, pages: &mut PagesWriter<'_, '_>) -> Result<()> {
        self.uncompressed.clear();
        let encoding = if self.distinct.is_empty() { Encoding::PLAIN } else { Encoding::RLE_DICTIONARY };
        if may_be_null {
            self.levels.clear();
            self.levels.extend(keys.iter().map(|key| u32::from(*key != NULL)));
            self.uncompressed.extend_from_slice(&[0; 4]);
            runs::encode(&self.levels, 1, &mut self.uncompressed);
            let len = self.uncompressed.len() as u32 - 4;
            self.uncompressed[..4].copy_from_slice(&len.to_le_bytes());
        }
        if !self.distinct.is_empty() {
            let width = runs::width(self.distinct.len());
            self.uncompressed.push(width as u8);
            if keys.contains(&NULL) {
                self.levels.clear();
                self.levels.extend(keys.iter().filter(|key| **key != NULL));
                runs::encode(&self.levels, width, &mut self.uncompressed);
            } else {
                runs::encode(keys, width, &mut self.uncompressed);
            }
        }
        let page = Page::DataPage {
            buf: self.zstd.compress(&self.uncompressed)?.into(),
            num_values: keys.len() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        pages.write(page, self.uncompressed.len(), keys.len())
    }

    /// Statistics for the footer: minimum, maximum and the number of nulls.
    fn statistics(&self, values: Values<'_>, n_nulls: u64) -> Statistics {
        match values {
            Values::Numbers => {
                let [min, max] =
                    [self.distinct.iter().min(), self.distinct.iter().max()].map(|n| n.map(|n| n.cast_signed()));
                Statistics::int32(min, max, None, Some(n_nulls), false)
            }
            Values::Texts(texts) => {
                let used_texts = || self.distinct.iter().map(|number| texts.value(*number as usize));
                let (min, max) = (used_texts().min().unwrap_or_default(), used_texts().max().unwrap_or_default());
                let min_prefix = &min[..min.floor_char_boundary(STATISTICS_BYTES)];
                let has_values = !self.distinct.is_empty();
                let bytes = |text: &str| ByteArray::from(text);
                // A prefix of the minimum is still a lower bound; no prefix of the maximum is an upper bound.
                let max_or_none = Some(bytes(max)).filter(|_| has_values && max.len() <= STATISTICS_BYTES);
                let min_or_none = has_values.then(|| bytes(min_prefix));
                let statistics = ValueStatistics::new(min_or_none, max_or_none, None, Some(n_nulls), false);
                Statistics::ByteArray(statistics.with_min_is_exact(has_values && min_prefix.len() == min.len()))
            }
        }
    }
}

/// The pages of a column as they are written, and their sizes and offsets for the footer.
struct PagesWriter<'a, 'w> {
    out: &'a mut SerializedPageWriter<'w, Vec<u8>>,
    index: OffsetIndexBuilder,
    compressed: i64,
    uncompressed: i64,
    stats: Vec<PageEncodingStats>,
    /// Offset of the first data page.
    data_offset: i64,
}

impl PagesWriter<'_, '_> {
    fn write(&mut self, page: Page, uncompressed: usize, n_rows: usize) -> Result<()> {
        let (page_type, encoding) = (page.page_type(), page.encoding());
        let spec = self.out.write_page(CompressedPage::new(page, uncompressed))?;
        if page_type == PageType::DICTIONARY_PAGE {
            self.data_offset = spec.bytes_written as i64;
        } else {
            self.index.append_row_count(n_rows as i64);
            self.index.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
        }
        match self.stats.last_mut() {
            Some(last) if last.page_type == page_type => last.count += 1,
            _ => self.stats.push(PageEncodingStats { page_type, encoding, count: 1 }),
        }
        self.compressed += spec.compressed_size as i64;
        self.uncompressed += spec.uncompressed_size as i64;
        Ok(())
    }
}
