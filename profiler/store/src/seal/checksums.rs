//! The list `checksums.txt`: checksums over every byte of the Parquet files of a sealed folder.
//!
//! The Parquet writer adds no checksums, so a damaged byte would be read as a wrong number. The list has a line for
//! every part of every file: CRC-32C in hex, offset of the first byte, number of bytes, file name. The parts of
//! `slices.parquet` are its row groups and, last, its page index with the footer; any other file is one part. The last
//! line of the list is the CRC-32C of all lines before it.
//!
//! ```text
//! stepscope checksums 1
//! 8a9136aa 0 41213 slices.parquet
//! 0b2c77d1 41213 3071 slices.parquet
//! ...
//! end 5d1ac0ff
//! ```

use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// File name of the list.
pub(super) const FILE_NAME: &str = "checksums.txt";
const TITLE: &str = "stepscope checksums 1\n";

/// A range of bytes of a file, with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePart {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) crc: u32,
}

/// A file that is being written, and the checksums of its parts. `offset`, `len` and `crc` are of the current part.
#[derive(Debug)]
pub(super) struct ChecksummedFile {
    file: File,
    offset: u64,
    len: u64,
    crc: u32,
    parts: Vec<FilePart>,
}

impl ChecksummedFile {
    pub(super) fn new(file: File) -> ChecksummedFile {
        ChecksummedFile { file, offset: 0, len: 0, crc: 0, parts: Vec::new() }
    }

    /// Ends the current part.
    pub(super) fn end_part(&mut self) {
        let ChecksummedFile { offset, len, crc, .. } = *self;
        self.parts.push(FilePart { offset, len, crc });
        (self.offset, self.len, self.crc) = (offset + len, 0, 0);
    }

    /// Ends the last part, waits until the file is on disk, and returns the parts.
    pub(super) fn finish(mut self) -> io::Result<Vec<FilePart>> {
        if self.len > 0 {
            self.end_part();
        }
        self.file.sync_all()?;
        Ok(self.parts)
    }
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..n]);
        self.len += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Why a part of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its checksum is wrong")]
    Damaged,
    #[error("it has {actual} bytes instead of {expected}")]
    Length { actual: u64, expected: u64 },
    #[error("the list of checksums lacks it")]
    NotListed,
}

/// The checksums of a sealed trace's files, with which ranges that are fetched from remote files can be checked too.
#[derive(Clone, Debug, Default)]
pub struct Checksums {
    files: BTreeMap<String, Vec<FilePart>>,
}

impl Checksums {
    /// File name of the list, in the sealed folder.
    pub const FILE: &str = FILE_NAME;

    pub(super) fn add(&mut self, name: &str, parts: Vec<FilePart>) {
        self.files.insert(name.to_owned(), parts);
    }

    /// Formats the list.
    pub(super) fn text(&self) -> String {
        let mut text = TITLE.to_owned();
        for (name, parts) in &self.files {
            for FilePart { offset, len, crc } in parts {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{crc:08x} {offset} {len} {name}");
            }
        }
        let crc = crc32c::crc32c(text.as_bytes());
        text + &format!("end {crc:08x}\n")
    }

    /// Parses the text of a list; `None` if it is damaged.
    #[must_use]
    pub fn parse(text: &str) -> Option<Checksums> {
        let body = text.strip_suffix('\n')?;
        let (body, end) = body.split_at(body.rfind('\n')? + 1);
        let crc = u32::from_str_radix(end.strip_prefix("end ")?, 16).ok()?;
        if crc32c::crc32c(body.as_bytes()) != crc {
            return None;
        }
        let mut sums = Checksums::default();
        for line in body.strip_prefix(TITLE)?.lines() {
            let [crc, offset, len, name] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().ok()?;
            let crc = u32::from_str_radix(crc, 16).ok()?;
            let part = FilePart { offset: offset.parse().ok()?, len: len.parse().ok()?, crc };
            sums.files.entry(name.to_owned()).or_default().push(part);
        }
        Some(sums)
    }

    /// Total number of bytes of all files.
    pub(super) fn total_bytes(&self) -> u64 {
        self.files.values().flatten().map(|part| part.len).sum()
    }

    /// The parts of a file.
    pub(super) fn file_parts(&self, name: &str) -> Option<&[FilePart]> {
        Some(self.files.get(name)?)
    }

    /// Reads and checks a file that has one part.
    pub(super) fn read(&self, folder: &Path, name: &str) -> Result<Bytes, PartError> {
        let file = File::open(folder.join(name))?;
        let [part] = self.file_parts(name).ok_or(PartError::NotListed)? else { return Err(PartError::NotListed) };
        self.check_len(&file, name)?;
        read_part(&file, *part)
    }

    /// The range of a file's last part, which has the footer: page index and footer of `slices.parquet`, all bytes of
    /// another file. The range ends at the expected length of the file. `None` if the list lacks the file.
    #[must_use]
    pub fn last_part_of(&self, file: &str) -> Option<Range<u64>> {
        let part = self.file_parts(file)?.last()?;
        Some(part.offset..part.offset.checked_add(part.len)?)
    }

    /// Whether `bytes` are the range of [`last_part_of`](Self::last_part_of) a file, by length and checksum.
    #[must_use]
    pub fn is_last_part_of(&self, file: &str, bytes: &[u8]) -> bool {
        let part = self.file_parts(file).and_then(|parts| parts.last());
        part.is_some_and(|part| part.len == bytes.len() as u64 && part.crc == crc32c::crc32c(bytes))
    }

    /// Checks that a file ends where its last part ends.
    pub(super) fn check_len(&self, file: &File, name: &str) -> Result<(), PartError> {
        let last = self.file_parts(name).and_then(|parts| parts.last()).ok_or(PartError::NotListed)?;
        let (actual, expected) = (file.metadata()?.len(), last.offset + last.len);
        if actual == expected { Ok(()) } else { Err(PartError::Length { actual, expected }) }
    }
}

/// Reads and checks a part. The part's length is checked before memory is allocated, since the list may be wrong.
pub(super) fn read_part(file: &File, part: FilePart) -> Result<Bytes, PartError> {
    let actual = file.metadata()?.len();
    let expected = part.offset.checked_add(part.len).ok_or(PartError::Damaged)?;
    if actual < expected {
        return Err(PartError::Length { actual, expected });
    }
    let mut bytes = vec![0; part.len as usize];
    file.read_exact_at(&mut bytes, part.offset)?;
    if crc32c::crc32c(&bytes) == part.crc { Ok(bytes.into()) } else { Err(PartError::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_written_and_no_byte_of_it_may_change() {
        let mut sums = Checksums::default();
        sums.add(
            "a b.parquet",
            vec![FilePart { offset: 0, len: 5, crc: 0xdead_beef }, FilePart { offset: 5, len: 9, crc: 1 }],
        );
        sums.add("lod.bin", vec![FilePart { offset: 0, len: 0, crc: 0 }]);
        let text = sums.text();
        let remote = Checksums::parse(&text).unwrap();
        assert_eq!(remote.files, sums.files);
        assert_eq!((remote.last_part_of("a b.parquet"), remote.last_part_of("c")), (Some(5..14), None));
        assert!(
            remote.is_last_part_of("lod.bin", b"")
                && !remote.is_last_part_of("lod.bin", b"x")
                && !remote.is_last_part_of("c", b"")
        );
        for i in 0..text.len() {
            assert!(Checksums::parse(&text[..i]).is_none());
            let mut bytes = text.clone().into_bytes();
            bytes[i] ^= 1;
            let changed = String::from_utf8_lossy(&bytes);
            assert!(Checksums::parse(&changed).is_none_or(|c| c.files == sums.files), "{changed}");
        }
    }
}
