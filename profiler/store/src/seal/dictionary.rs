//! A column of few distinct values as Parquet's pages, from numbers that say equal values apart already: rows of a table of
//! names, tracks, lanes.
//!
//! A writer that knows nothing of its values hashes each of them to find its place in the dictionary, and compares it with the
//! least and the greatest so far. Of nine columns of each slice that was most of what writing cost; here it is a look-up in an
//! array.
//!
//! ```text
//! dictionary page   each value that occurs, as it occurs first, PLAIN
//! data page         [where nulls may be: length u32, definition levels as runs]  bits u8, places in the dictionary as runs
//! ```
//!
//! All pages are compressed with zstd. A column of nulls only has pages without values.

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

/// The number of a row without a value.
pub(super) const NULL: u32 = u32::MAX;
/// Rows of a page: as many as the other columns' pages have, so that a reader finds a page of each for a range of rows.
const PAGE_ROWS: usize = 20_000;
/// Longer texts are cut in statistics.
const STATISTICS_BYTES: usize = 64;
const LEVEL: i32 = 1;

/// What the numbers of a column stand for.
#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    /// Themselves.
    Numbers,
    /// Texts by row.
    Texts(&'a StringArray),
}

/// A column of a row group, ready to be put into a file.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Codes columns, one after the other; keeps what it needs for that.
pub(super) struct Coder {
    zstd: zstd::bulk::Compressor<'static>,
    /// By number, its place in the dictionary or [`NULL`].
    place_of: Vec<u32>,
    /// The dictionary: numbers by place.
    used: Vec<u32>,
    /// By row.
    places: Vec<u32>,
    levels: Vec<u32>,
    plain: Vec<u8>,
}

impl Coder {
    pub(super) fn new() -> Result<Coder> {
        Ok(Coder {
            zstd: zstd::bulk::Compressor::new(LEVEL)?,
            place_of: Vec::new(),
            used: Vec::new(),
            places: Vec::new(),
            levels: Vec::new(),
            plain: Vec::new(),
        })
    }

    /// A column by the numbers of its rows, which are small; [`NULL`] only where the column may be null.
    pub(super) fn column(
        &mut self,
        descr: &ColumnDescPtr,
        numbers: impl Iterator<Item = u32>,
        values: Values<'_>,
    ) -> Result<Chunk> {
        self.place(numbers);
        let mut out = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut out);
        let mut pages = Pages {
            out: &mut pages,
            index: OffsetIndexBuilder::new(),
            compressed: 0,
            uncompressed: 0,
            stats: Vec::new(),
            data: 0,
        };
        if !self.used.is_empty() {
            self.dictionary_page(values, &mut pages)?;
        }
        let places = std::mem::take(&mut self.places);
        for part in places.chunks(PAGE_ROWS) {
            self.data_page(part, descr.max_def_level() > 0, &mut pages)?;
        }
        let n_nulls = places.iter().filter(|place| **place == NULL).count();
        let rows_written = places.len() as u64;
        self.places = places;
        let Pages { index, compressed, uncompressed, stats, data, .. } = pages;
        let metadata = ColumnChunkMetaData::builder(descr.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(uncompressed)
            .set_num_values(rows_written as i64)
            .set_data_page_offset(data)
            .set_dictionary_page_offset((!self.used.is_empty()).then_some(0))
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

    /// Finds the place of each row's value in the dictionary.
    fn place(&mut self, numbers: impl Iterator<Item = u32>) {
        for number in self.used.drain(..) {
            self.place_of[number as usize] = NULL;
        }
        self.places.clear();
        for number in numbers {
            if number == NULL {
                self.places.push(NULL);
                continue;
            }
            if self.place_of.len() <= number as usize {
                self.place_of.resize(number as usize + 1, NULL);
            }
            let place = &mut self.place_of[number as usize];
            if *place == NULL {
                *place = self.used.len() as u32;
                self.used.push(number);
            }
            self.places.push(*place);
        }
    }

    fn dictionary_page(&mut self, values: Values<'_>, pages: &mut Pages<'_, '_>) -> Result<()> {
        self.plain.clear();
        for number in &self.used {
            match values {
                Values::Numbers => self.plain.extend_from_slice(&number.to_le_bytes()),
                Values::Texts(texts) => {
                    let text = texts.value(*number as usize);
                    self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    self.plain.extend_from_slice(text.as_bytes());
                }
            }
        }
        let buf = self.zstd.compress(&self.plain)?.into();
        let (num_values, encoding) = (self.used.len() as u32, Encoding::PLAIN);
        pages.write(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false }, self.plain.len(), 0)
    }

    fn data_page(&mut self, places: &[u32], may_be_null: bool, pages: &mut Pages<'_, '_>) -> Result<()> {
        self.plain.clear();
        let encoding = if self.used.is_empty() { Encoding::PLAIN } else { Encoding::RLE_DICTIONARY };
        if may_be_null {
            self.levels.clear();
            self.levels.extend(places.iter().map(|place| u32::from(*place != NULL)));
            self.plain.extend_from_slice(&[0; 4]);
            runs::encode(&self.levels, 1, &mut self.plain);
            let len = self.plain.len() as u32 - 4;
            self.plain[..4].copy_from_slice(&len.to_le_bytes());
        }
        if !self.used.is_empty() {
            let width = runs::width(self.used.len());
            self.plain.push(width as u8);
            if places.contains(&NULL) {
                self.levels.clear();
                self.levels.extend(places.iter().filter(|place| **place != NULL));
                runs::encode(&self.levels, width, &mut self.plain);
            } else {
                runs::encode(places, width, &mut self.plain);
            }
        }
        let page = Page::DataPage {
            buf: self.zstd.compress(&self.plain)?.into(),
            num_values: places.len() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        pages.write(page, self.plain.len(), places.len())
    }

    /// The least and the greatest value, and how many nulls.
    fn statistics(&self, values: Values<'_>, n_nulls: u64) -> Statistics {
        match values {
            Values::Numbers => {
                let [min, max] = [self.used.iter().min(), self.used.iter().max()].map(|n| n.map(|n| n.cast_signed()));
                Statistics::int32(min, max, None, Some(n_nulls), false)
            }
            Values::Texts(texts) => {
                let used = || self.used.iter().map(|number| texts.value(*number as usize));
                let (min, max) = (used().min().unwrap_or_default(), used().max().unwrap_or_default());
                let cut = &min[..min.floor_char_boundary(STATISTICS_BYTES)];
                let has_values = !self.used.is_empty();
                let of = |text: &str| ByteArray::from(text);
                // What a text is cut to comes before it; nothing shorter comes after it for sure.
                let max_or_none = Some(of(max)).filter(|_| has_values && max.len() <= STATISTICS_BYTES);
                let min_or_none = has_values.then(|| of(cut));
                let statistics = ValueStatistics::new(min_or_none, max_or_none, None, Some(n_nulls), false);
                Statistics::ByteArray(statistics.with_min_is_exact(has_values && cut.len() == min.len()))
            }
        }
    }
}

/// The pages of a column as they are written, and what the footer reports them.
struct Pages<'a, 'w> {
    out: &'a mut SerializedPageWriter<'w, Vec<u8>>,
    index: OffsetIndexBuilder,
    compressed: i64,
    uncompressed: i64,
    stats: Vec<PageEncodingStats>,
    /// Where the first page with rows is.
    data: i64,
}

impl Pages<'_, '_> {
    fn write(&mut self, page: Page, uncompressed: usize, n_rows: usize) -> Result<()> {
        let (page_type, encoding) = (page.page_type(), page.encoding());
        let spec = self.out.write_page(CompressedPage::new(page, uncompressed))?;
        if page_type == PageType::DICTIONARY_PAGE {
            self.data = spec.bytes_written as i64;
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
