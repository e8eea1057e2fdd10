//! Arguments of slices and instants: JSON texts, decoded on demand.
//!
//! A text is either in memory or in the file from which it was imported. For a text in a file only its location is
//! stored: twelve bytes per row instead of about a hundred. The arguments of a sealed trace stay in the trace's files.

use crate::pages::PageLoader;
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The row that stands for no arguments.
pub const NO_ARGS: u32 = u32::MAX;

/// Lower bits of a location that are an offset. The upper bits are 0 for a text in memory, else 1 + the file's index.
const OFFSET_BITS: u32 = 56;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The number of files that the upper bits of a location can distinguish.
const MAX_FILES: usize = 255;

/// The first row in a store of a sealed trace that does not belong to the sealed trace's arguments.
const FIRST_RESIDENT: u32 = 1 << 31;

/// Texts by row.
#[derive(Clone, Debug, Default)]
pub struct Args {
    text: String,
    files: Vec<Arc<File>>,
    /// File and offset of each text.
    locations: Vec<u64>,
    lengths: Vec<u32>,
    pager: Option<Arc<dyn PageLoader>>,
}

impl Args {
    /// The arguments of a sealed or remote trace, to which others can be appended.
    pub fn with_pager(pager: Option<Arc<dyn PageLoader>>) -> Args {
        Args { pager, ..Args::default() }
    }

    /// Row of the first text that this value stores itself, after those of the pager.
    fn first_resident_row(&self) -> u32 {
        if self.pager.is_some() { FIRST_RESIDENT } else { 0 }
    }

    /// Appends a text. Returns its row, [`NO_ARGS`] if there are too many.
    pub fn push(&mut self, json: &str) -> u32 {
        let location = self.text.len() as u64;
        let row = self.push_location(location, json.len());
        if row != NO_ARGS {
            self.text.push_str(json);
        }
        row
    }

    /// Appends a text of `length` bytes at `offset` of a file, which must not change any more.
    pub fn push_at(&mut self, file: &Arc<File>, offset: u64, length: usize) -> u32 {
        match self.file_bits(file) {
            Some(bits) if offset >> OFFSET_BITS == 0 => self.push_location(bits | offset, length),
            _ => self.push(&read_at(file, offset, length).unwrap_or_default()),
        }
    }

    /// The text of a row, which may be read from disk. `None` if there is no such row, or its file cannot be read any
    /// more.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<Cow<'_, str>> {
        let Some(row) = row.checked_sub(self.first_resident_row()) else {
            return self.pager.as_ref()?.args(row).map(Cow::Owned);
        };
        let (location, length) = (*self.locations.get(row as usize)?, self.lengths[row as usize] as usize);
        let offset = location & OFFSET_MASK;
        match (location >> OFFSET_BITS) as usize {
            0 => self.text.get(offset as usize..offset as usize + length).map(Cow::Borrowed),
            file => read_at(self.files.get(file - 1)?, offset, length).map(Cow::Owned),
        }
    }

    /// A reader for many texts in succession.
    pub fn reader(&self) -> ArgsReader<'_> {
        ArgsReader { args: self, blocks: vec![Block::default(); MAX_BLOCKS], text: String::new() }
    }

    /// Location and length of a text; `None` for a text of the pager.
    fn location(&self, row: u32) -> Option<(u64, usize)> {
        let row = row.checked_sub(self.first_resident_row())? as usize;
        Some((*self.locations.get(row)?, self.lengths[row] as usize))
    }

    /// Reads the block that begins at a location; the block at the file's end is shorter.
    fn read_block(&self, location: u64) -> Option<Vec<u8>> {
        let file = self.files.get((location >> OFFSET_BITS) as usize - 1)?;
        let (mut bytes, mut n) = (vec![0; BLOCK_BYTES as usize], 0);
        while let read @ 1.. = file.read_at(&mut bytes[n..], (location & OFFSET_MASK) + n as u64).ok()? {
            n += read;
        }
        bytes.truncate(n);
        Some(bytes)
    }

    /// Appends all texts of `other`. Returns the new row of the first one.
    pub fn append(&mut self, other: &Args) -> u32 {
        let first = self.locations.len();
        for row in 0..other.locations.len() as u32 {
            self.push_row(other, row);
        }
        u32::try_from(first).ok().and_then(|first| first.checked_add(self.first_resident_row())).unwrap_or(NO_ARGS)
    }

    /// Appends one text of `other`. Returns the text's new row.
    pub fn push_row(&mut self, other: &Args, row: u32) -> u32 {
        let Some(&location) = other.locations.get(row as usize) else { return NO_ARGS };
        let offset = location & OFFSET_MASK;
        let length = other.lengths[row as usize] as usize;
        match (location >> OFFSET_BITS) as usize {
            0 => self.push(other.text.get(offset as usize..offset as usize + length).unwrap_or_default()),
            file => match other.files.get(file - 1) {
                Some(file) => self.push_at(file, offset, length),
                None => NO_ARGS,
            },
        }
    }

    /// Replaces the text of a row.
    pub fn replace(&mut self, row: u32, json: &str) {
        let (location, length) = (self.text.len() as u64, u32::try_from(json.len()));
        if let (Some(row), Ok(length)) =
            (self.locations.get_mut(row as usize).zip(self.lengths.get_mut(row as usize)), length)
        {
            (*row.0, *row.1) = (location, length);
            self.text.push_str(json);
        }
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.locations.capacity() * 8 + self.lengths.capacity() * 4
    }

    fn push_location(&mut self, location: u64, length: usize) -> u32 {
        let row = self.locations.len();
        let Ok(length) = u32::try_from(length) else { return NO_ARGS };
        if row >= NO_ARGS as usize {
            return NO_ARGS;
        }
        self.locations.push(location);
        self.lengths.push(length);
        row as u32
    }

    /// The upper bits of locations in a file; `None` if there are too many files.
    fn file_bits(&mut self, file: &Arc<File>) -> Option<u64> {
        // Backwards: the last file is nearly always the one that is being read.
        let existing = self.files.iter().rposition(|f| Arc::ptr_eq(f, file));
        let idx = match existing {
            Some(idx) => idx,
            None if self.files.len() < MAX_FILES => {
                self.files.push(file.clone());
                self.files.len() - 1
            }
            None => return None,
        };
        Some((idx as u64 + 1) << OFFSET_BITS)
    }
}

/// A block of a file that an [`ArgsReader`] caches.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Location of the first byte.
    location: Option<u64>,
    /// Empty until a second text of the block is needed.
    bytes: Vec<u8>,
}

/// Bytes of a block.
const BLOCK_BYTES: u64 = 1 << 16;
/// Blocks that an [`ArgsReader`] caches.
const MAX_BLOCKS: usize = 64;

/// Reads many texts. A block of a file from which a second text is needed is read entirely and cached.
pub struct ArgsReader<'a> {
    args: &'a Args,
    blocks: Vec<Block>,
    text: String,
}

impl ArgsReader<'_> {
    /// As [`Args::get`].
    pub fn get(&mut self, row: u32) -> Option<&str> {
        if let Some((location, length)) = self.args.location(row)
            && location >> OFFSET_BITS != 0
            && location % BLOCK_BYTES + length as u64 <= BLOCK_BYTES
        {
            let block = &mut self.blocks[(location / BLOCK_BYTES) as usize % MAX_BLOCKS];
            let begin = location - location % BLOCK_BYTES;
            if block.location != Some(begin) {
                block.bytes.clear();
                block.location = Some(begin);
            } else {
                if block.bytes.is_empty() {
                    block.bytes = self.args.read_block(begin)?;
                }
                let from = (location % BLOCK_BYTES) as usize;
                let bytes = block.bytes.get(from..from + length)?;
                return match std::str::from_utf8(bytes) {
                    Ok(text) => Some(text),
                    Err(_) => {
                        self.text = String::from_utf8_lossy(bytes).into_owned();
                        Some(&self.text)
                    }
                };
            }
        }
        self.text = self.args.get(row)?.into_owned();
        Some(&self.text)
    }
}

fn read_at(file: &File, offset: u64, length: usize) -> Option<String> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn texts(args: &Args) -> Vec<Option<String>> {
        (0..args.locations.len() as u32 + 1).map(|row| args.get(row).map(Cow::into_owned)).collect()
    }

    #[test]
    fn rows_keep_their_texts() {
        let (mut all, mut more) = (Args::default(), Args::default());
        assert_eq!((all.push("{\"a\":1}"), all.push("")), (0, 1));
        assert_eq!(more.push("{}"), 0);
        assert_eq!(all.append(&more), 2);
        all.replace(1, "{\"b\":2}");
        let expected = [Some("{\"a\":1}"), Some("{\"b\":2}"), Some("{}"), None];
        assert_eq!(texts(&all), expected.map(|t| t.map(str::to_owned)));
    }

    #[test]
    fn texts_may_stay_in_their_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"xx{\"b\":2}\xff").unwrap();
        let file = Arc::new(file);
        let (mut all, mut more) = (Args::default(), Args::default());
        all.push("{}");
        more.push_at(&file, 2, 7);
        more.push_at(&file, 8, 2);
        more.push_at(&file, 8, 200);
        all.append(&more);
        let expected = [Some("{}"), Some("{\"b\":2}"), Some("}\u{fffd}"), None, None];
        assert_eq!(texts(&all), expected.map(|t| t.map(str::to_owned)));
        assert_eq!(all.files.len(), 1);
    }

    #[test]
    fn a_reader_gives_what_the_rows_give_in_any_order() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|i| b"abcdefg\xff"[((i * 7_919) >> 5) as usize % 8]).collect();
        file.write_all(&bytes).unwrap();
        let file = Arc::new(file);
        let mut args = Args::default();
        args.push("{}");
        for i in 0..4_000u64 {
            // Of all lengths, across blocks, and beyond the end.
            args.push_at(&file, i * 7_919 % 300_100, (i * i % 700) as usize);
        }
        let mut reader = args.reader();
        for row in (0..4_002).chain((0..4_002).rev().step_by(3)) {
            assert_eq!(reader.get(row), args.get(row).as_deref(), "{row}");
        }
    }
}
