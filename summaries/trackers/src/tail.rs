//! The lines that are appended to a text file.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use crate::file::identity;
use crate::{
    file,
    reader::{Batch, Problem},
};

/// The longest line that is read.
const MAX_LINE: u64 = 16 << 20;
/// The most bytes that a call reads, whatever it is allowed.
const MAX_READ: u64 = 16 << 20;
/// A last line without its end counts once the file was left alone for so long: a program may keep the rest of a line in a
/// buffer for minutes, and half a number is a wrong number.
const FINISHED: Duration = Duration::from_secs(60 * 60);

/// A text file that is read line by line from where the last call ended.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    offset: u64,
    identity: Option<u64>,
    /// Whether `offset` is within a line that is too long.
    is_in_long_line: bool,
}

/// A line without its end, and its range in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub text: String,
    pub bytes: Range<u64>,
}

/// What one call read.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub lines: Vec<Line>,
    /// Whether the file was shortened or replaced: the lines are those from its beginning.
    pub is_restarted: bool,
    /// Unix seconds of the file's last change.
    pub modified: f64,
}

impl Tail {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, identity: None, is_in_long_line: false }
    }

    /// Reads from the file's beginning again.
    pub fn restart(&mut self) {
        (self.offset, self.is_in_long_line) = (0, false);
    }

    /// Reads about `allowance` bytes of complete lines; what is no UTF-8 is replaced.
    pub fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<Lines> {
        let metadata = fs::metadata(&self.path)?;
        let identity = identity(&metadata);
        let is_restarted = metadata.len() < self.offset || self.identity.is_some_and(|known| known != identity);
        if is_restarted {
            self.restart();
        }
        self.identity = Some(identity);
        let mut lines = Lines { lines: Vec::new(), is_restarted, modified: file::seconds(metadata.modified().ok()) };
        let len = metadata.len();
        if self.offset >= len {
            return Ok(lines);
        }
        let bytes = self.block(allowance)?;
        let n_bytes = bytes.len() as u64;
        let skipped = if self.is_in_long_line { line_end(&bytes) } else { Some(0) };
        self.is_in_long_line = skipped.is_none();
        let begin = skipped.unwrap_or(bytes.len());
        let is_finished = self.offset + n_bytes >= len && file::is_older(&metadata, FINISHED);
        let end = if is_finished { bytes.len() } else { last_line_end(&bytes).unwrap_or(begin) };
        if end == 0 && n_bytes > MAX_LINE {
            let range = self.offset..self.offset + n_bytes;
            batch.problems.push(Problem { what: "a line of more than 16 MiB", bytes: range });
            self.is_in_long_line = true;
            self.advance(n_bytes, len, batch);
            return Ok(lines);
        }
        let mut at = self.offset + begin as u64;
        for line in bytes.get(begin..end).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            let range = at..at + line.len() as u64;
            at = range.end;
            lines.lines.push(Line { text: text(line), bytes: range });
        }
        self.advance(end.max(begin) as u64, len, batch);
        Ok(lines)
    }

    /// The next bytes: at least one line, if that is not too long.
    fn block(&self, allowance: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.by_ref().take(allowance.clamp(1, MAX_READ)).read_to_end(&mut bytes)?;
        while !bytes.contains(&b'\n') && bytes.len() as u64 <= MAX_LINE {
            if file.by_ref().take(1 << 16).read_to_end(&mut bytes)? == 0 {
                break;
            }
        }
        Ok(bytes)
    }

    fn advance(&mut self, n_bytes: u64, len: u64, batch: &mut Batch) {
        self.offset += n_bytes;
        batch.n_bytes += n_bytes;
        batch.has_more = n_bytes > 0 && self.offset < len;
    }
}

/// The first line of a file, if it is complete and of at most `max` bytes.
pub(crate) fn first_line(path: &Path, max: u64) -> io::Result<Option<String>> {
    let mut file = File::open(path)?.take(max);
    let mut bytes = Vec::new();
    loop {
        let begin = bytes.len();
        if file.by_ref().take(1 << 12).read_to_end(&mut bytes)? == 0 {
            return Ok(None);
        }
        if let Some(end) = bytes.get(begin..).and_then(line_end) {
            bytes.truncate(begin + end);
            return Ok(Some(text(&bytes)));
        }
    }
}

/// Where the first line ends, its end included.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
}

fn last_line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1)
}

/// A line without its end.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    /// All lines that repeated calls give.
    fn read_all(tail: &mut Tail, allowance: u64) -> (Vec<String>, Vec<Problem>) {
        let (mut texts, mut problems) = (Vec::new(), Vec::new());
        loop {
            let mut batch = Batch::default();
            let lines = tail.read(allowance, &mut batch).unwrap();
            texts.extend(lines.lines.into_iter().map(|line| line.text));
            problems.extend(batch.problems);
            if !batch.has_more {
                return (texts, problems);
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_one_problem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        let long = vec![b'x'; (MAX_LINE as usize) * 5 / 2];
        for part in [b"a\n", long.as_slice(), b"\nb\nc"] {
            file.write_all(part).unwrap();
        }
        for allowance in [1 << 10, u64::MAX] {
            let (texts, problems) = read_all(&mut Tail::new(&path), allowance);
            assert_eq!(texts, ["a", "b"]);
            assert_eq!(problems.len(), 1);
        }
    }

    #[test]
    fn a_last_line_without_an_end_counts_when_the_file_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "one\r\ntwo").unwrap();
        let mut tail = Tail::new(&path);
        assert_eq!(read_all(&mut tail, 100).0, ["one"]);
        let hours_ago = fs::metadata(&path).unwrap().modified().unwrap() - 2 * FINISHED;
        File::options().write(true).open(&path).unwrap().set_modified(hours_ago).unwrap();
        assert_eq!(read_all(&mut tail, 100).0, ["two"]);
        assert_eq!(read_all(&mut tail, 100).0, [""; 0]);
    }

    #[test]
    fn the_first_line_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let long = "y".repeat(5000);
        fs::write(&path, format!("{long}\r\nrest")).unwrap();
        assert_eq!(first_line(&path, 1 << 20).unwrap(), Some(long));
        assert_eq!(first_line(&path, 100).unwrap(), None);
        fs::write(&path, "no end").unwrap();
        assert_eq!(first_line(&path, 1 << 20).unwrap(), None);
    }
}
