//! Arguments of slices and instants: JSON texts, decoded when somebody looks.
//!
//! A text is either kept here or stays in the file it was read from, of which only the place is kept: twelve bytes per
//! row instead of some hundred. Those of a sealed trace stay in its files.

use crate::pages::Pages;
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// "No arguments".
pub const NO_ARGS: u32 = u32::MAX;

/// Bits of a place that are an offset; those above are 0 for the own text, else 1 + the file's index.
const OFFSET_BITS: u32 = 56;
/// Files that the bits above can say apart.
const MAX_FILES: usize = 255;

/// Rows of a sealed trace's arguments come before all others.
const IN_MEMORY: u32 = 1 << 31;

/// Texts by row.
#[derive(Clone, Debug, Default)]
pub struct Args {
    text: String,
    files: Vec<Arc<File>>,
    places: Vec<u64>,
    lengths: Vec<u32>,
    pager: Option<Arc<dyn Pages>>,
}

impl Args {
    /// Those of a sealed trace; more may follow.
    pub fn of_pager(pager: Option<Arc<dyn Pages>>) -> Args {
        Args { pager, ..Args::default() }
    }

    /// Row of the first text that is not a sealed trace's.
    fn first(&self) -> u32 {
        if self.pager.is_some() { IN_MEMORY } else { 0 }
    }

    /// Appends a text; gives its row, [`NO_ARGS`] when there are too many.
    pub fn push(&mut self, json: &str) -> u32 {
        let place = self.text.len() as u64;
        let row = self.push_place(place, json.len());
        if row != NO_ARGS {
            self.text.push_str(json);
        }
        row
    }

    /// Appends a text of `length` bytes that lies at `offset` of a file, which must not change any more.
    pub fn push_at(&mut self, file: &Arc<File>, offset: u64, length: usize) -> u32 {
        match self.file_bits(file) {
            Some(bits) if offset >> OFFSET_BITS == 0 => self.push_place(bits | offset, length),
            _ => self.push(&read_at(file, offset, length).unwrap_or_default()),
        }
    }

    /// The text of a row; one on disk is read. `None` for no row, and where its file cannot be read any more.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<Cow<'_, str>> {
        let Some(row) = row.checked_sub(self.first()) else {
            return self.pager.as_ref()?.args(row).map(Cow::Owned);
        };
        let (place, length) = (*self.places.get(row as usize)?, self.lengths[row as usize] as usize);
        let offset = place & ((1 << OFFSET_BITS) - 1);
        match (place >> OFFSET_BITS) as usize {
            0 => self.text.get(offset as usize..offset as usize + length).map(Cow::Borrowed),
            file => read_at(self.files.get(file - 1)?, offset, length).map(Cow::Owned),
        }
    }

    /// Who asks for many texts.
    pub fn reader(&self) -> ArgsReader<'_> {
        ArgsReader { args: self, blocks: vec![Block::default(); BLOCKS], text: String::new() }
    }

    /// Where a text is that no sealed trace has, and its length.
    fn place(&self, row: u32) -> Option<(u64, usize)> {
        let row = row.checked_sub(self.first())? as usize;
        Some((*self.places.get(row)?, self.lengths[row] as usize))
    }

    /// The block that begins at a place; shorter at the file's end.
    fn block(&self, place: u64) -> Option<Vec<u8>> {
        let file = self.files.get((place >> OFFSET_BITS) as usize - 1)?;
        let (mut bytes, mut n) = (vec![0; BLOCK as usize], 0);
        while let read @ 1.. = file.read_at(&mut bytes[n..], (place & ((1 << OFFSET_BITS) - 1)) + n as u64).ok()? {
            n += read;
        }
        bytes.truncate(n);
        Some(bytes)
    }

    /// Takes in all of another; gives the row of its first.
    pub fn append(&mut self, other: &Args) -> u32 {
        let first = self.places.len();
        for row in 0..other.places.len() as u32 {
            self.push_row(other, row);
        }
        u32::try_from(first).ok().and_then(|first| first.checked_add(self.first())).unwrap_or(NO_ARGS)
    }

    /// Appends one row of another; gives the new row.
    pub fn push_row(&mut self, other: &Args, row: u32) -> u32 {
        let Some(&place) = other.places.get(row as usize) else { return NO_ARGS };
        let offset = place & ((1 << OFFSET_BITS) - 1);
        let length = other.lengths[row as usize] as usize;
        match (place >> OFFSET_BITS) as usize {
            0 => self.push(other.text.get(offset as usize..offset as usize + length).unwrap_or_default()),
            file => match other.files.get(file - 1) {
                Some(file) => self.push_at(file, offset, length),
                None => NO_ARGS,
            },
        }
    }

    /// Gives a row another text.
    pub fn replace(&mut self, row: u32, json: &str) {
        let (place, length) = (self.text.len() as u64, u32::try_from(json.len()));
        if let (Some(row), Ok(length)) =
            (self.places.get_mut(row as usize).zip(self.lengths.get_mut(row as usize)), length)
        {
            (*row.0, *row.1) = (place, length);
            self.text.push_str(json);
        }
    }

    /// Bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.places.capacity() * 8 + self.lengths.capacity() * 4
    }

    fn push_place(&mut self, place: u64, length: usize) -> u32 {
        let row = self.places.len();
        let Ok(length) = u32::try_from(length) else { return NO_ARGS };
        if row >= NO_ARGS as usize {
            return NO_ARGS;
        }
        self.places.push(place);
        self.lengths.push(length);
        row as u32
    }

    fn file_bits(&mut self, file: &Arc<File>) -> Option<u64> {
        // The last file is the one that is being read.
        let known = self.files.iter().rposition(|f| Arc::ptr_eq(f, file));
        let idx = match known {
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

/// A block of a file, and which.
#[derive(Clone, Debug, Default)]
struct Block {
    /// As [`Args::places`]; the first byte's.
    place: Option<u64>,
    /// Empty as long as it was asked for once only.
    bytes: Vec<u8>,
}

/// Bytes of a block, and how many blocks are kept.
const BLOCK: u64 = 1 << 16;
const BLOCKS: usize = 64;

/// Reads many texts one after the other: a block of a file from which a second text is asked for is read as a whole.
pub struct ArgsReader<'a> {
    args: &'a Args,
    blocks: Vec<Block>,
    text: String,
}

impl ArgsReader<'_> {
    /// As [`Args::get`].
    pub fn get(&mut self, row: u32) -> Option<&str> {
        if let Some((place, length)) = self.args.place(row)
            && place >> OFFSET_BITS != 0
            && place % BLOCK + length as u64 <= BLOCK
        {
            let block = &mut self.blocks[(place / BLOCK) as usize % BLOCKS];
            let begin = place - place % BLOCK;
            if block.place != Some(begin) {
                block.bytes.clear();
                block.place = Some(begin);
            } else {
                if block.bytes.is_empty() {
                    block.bytes = self.args.block(begin)?;
                }
                let from = (place % BLOCK) as usize;
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
        (0..args.places.len() as u32 + 1).map(|row| args.get(row).map(Cow::into_owned)).collect()
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
