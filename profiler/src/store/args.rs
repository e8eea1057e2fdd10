//! Arguments of slices and instants: JSON texts, decoded when somebody looks.
//!
//! A text is either kept here or stays in the file it was read from, of which only the place is kept: twelve bytes per
//! row instead of some hundred. Those of a sealed trace stay in its files.

use crate::batch::NO_ARGS;
use crate::seal::Pager;
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bits of a place that are an offset; those above are 0 for the own text, else 1 + the file's index.
const OFFSET_BITS: u32 = 56;
/// Files that the bits above can tell apart.
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
    pager: Option<Arc<Pager>>,
}

impl Args {
    /// Those of a sealed trace; more may follow.
    pub(crate) fn of_pager(pager: Option<Arc<Pager>>) -> Args {
        Args { pager, ..Args::default() }
    }

    /// Row of the first text that is not a sealed trace's.
    fn first(&self) -> u32 {
        if self.pager.is_some() { IN_MEMORY } else { 0 }
    }

    /// Appends a text; gives its row, [`NO_ARGS`] when there are too many.
    pub(crate) fn push(&mut self, json: &str) -> u32 {
        let place = self.text.len() as u64;
        let row = self.push_place(place, json.len());
        if row != NO_ARGS {
            self.text.push_str(json);
        }
        row
    }

    /// Appends a text of `length` bytes that lies at `offset` of a file, which must not change any more.
    pub(crate) fn push_at(&mut self, file: &Arc<File>, offset: u64, length: usize) -> u32 {
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

    /// Takes in all of another; gives the row of its first.
    pub(crate) fn append(&mut self, other: &Args) -> u32 {
        let first = self.places.len();
        for row in 0..other.places.len() as u32 {
            self.push_row(other, row);
        }
        u32::try_from(first).ok().and_then(|first| first.checked_add(self.first())).unwrap_or(NO_ARGS)
    }

    /// Appends one row of another; gives the new row.
    pub(crate) fn push_row(&mut self, other: &Args, row: u32) -> u32 {
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
    pub(crate) fn replace(&mut self, row: u32, json: &str) {
        let (place, length) = (self.text.len() as u64, u32::try_from(json.len()));
        if let (Some(row), Ok(length)) =
            (self.places.get_mut(row as usize).zip(self.lengths.get_mut(row as usize)), length)
        {
            (*row.0, *row.1) = (place, length);
            self.text.push_str(json);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
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
}
