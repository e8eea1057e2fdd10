//! The records of one file: fixed length, TFRecord, lines, the whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use formats::tfrecord::{RecordStream, Scan};

/// A line or record longer than this is damage.
const MAX_RECORD: u64 = 1 << 31;

/// How a file is cut into records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Lines without their ends; the first few are left out.
    Lines {
        /// How many are left out.
        skip: u64,
    },
    /// Length-prefixed, checksummed records.
    TfRecord {
        /// How the file is compressed.
        compression: Compression,
    },
    /// Records of one length between a header and a footer. All lengths in bytes.
    FixedLength {
        /// Length of what comes before the records.
        header: u64,
        /// Length of a record.
        record: u64,
        /// Length of what comes after the records.
        footer: u64,
        /// How far the beginnings of records are apart.
        hop: u64,
        /// How the file is compressed.
        compression: Compression,
    },
    /// The file is one record.
    Whole,
    /// The file's name is the record; nothing is opened.
    Name,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By zlib (RFC 1950).
    Zlib,
    /// By gzip (RFC 1952).
    Gzip,
}

impl Compression {
    /// The compression that TensorFlow calls so.
    pub fn from_name(name: &str) -> Option<Compression> {
        match name {
            "" => Some(Compression::None),
            "ZLIB" => Some(Compression::Zlib),
            "GZIP" => Some(Compression::Gzip),
            _ => None,
        }
    }

    /// What `from` is when it is decompressed.
    pub fn decoded<'a>(self, from: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        match self {
            Compression::None => Box::new(from),
            Compression::Zlib => Box::new(ZlibDecoder::new(from)),
            Compression::Gzip => Box::new(MultiGzDecoder::new(from)),
        }
    }
}

/// A file that is being read.
pub struct Source {
    name: String,
    n_read: u64,
    kind: Kind,
}

enum Kind {
    Lines { from: BufReader<File>, line: u64 },
    TfRecord { from: Box<dyn Read + Send>, records: RecordStream },
    Fixed { from: Box<dyn Read + Send>, window: Vec<u8>, footer: usize, hop: u64, is_first: bool },
    Whole,
    Name,
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

impl Source {
    /// Opens the file and skips the first `n_read` records.
    pub fn open(name: &str, format: &Format, n_read: u64) -> io::Result<Source> {
        let kind = match *format {
            Format::Lines { skip } => {
                let mut from = BufReader::with_capacity(256 << 10, File::open(name)?);
                let mut line = 0;
                while line < skip && read_line(&mut from)?.is_some() {
                    line += 1;
                }
                Kind::Lines { from, line: line.max(skip) }
            }
            Format::TfRecord { compression } => {
                Kind::TfRecord { from: compression.decoded(File::open(name)?), records: RecordStream::new(0) }
            }
            Format::FixedLength { header, record, footer, hop, compression } => {
                let file = File::open(name)?;
                if compression == Compression::None {
                    check_length(name, file.metadata()?.len(), (header, record, footer, hop))?;
                }
                let mut from = compression.decoded(BufReader::with_capacity(256 << 10, file));
                io::copy(&mut from.by_ref().take(header), &mut io::sink())?;
                let window = Vec::new();
                Kind::Fixed {
                    from,
                    window,
                    footer: footer as usize,
                    hop: if hop == 0 { record } else { hop },
                    is_first: true,
                }
            }
            Format::Whole => Kind::Whole,
            Format::Name => Kind::Name,
        };
        let mut source = Source { name: name.to_owned(), n_read: 0, kind };
        for _ in 0..n_read {
            if source.next(format)?.is_none() {
                return Err(invalid(format!("{name} has {} records, {n_read} were read before", source.n_read)));
            }
        }
        Ok(source)
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many records were read.
    pub fn n_read(&self) -> u64 {
        self.n_read
    }

    /// The next record's key and value; `None` at the end.
    pub fn next(&mut self, format: &Format) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let name = &self.name;
        let key = |position: u64| format!("{name}:{position}").into_bytes();
        let found = match &mut self.kind {
            Kind::Name if self.n_read == 0 => Some((name.clone().into_bytes(), name.clone().into_bytes())),
            Kind::Whole if self.n_read == 0 => Some((name.clone().into_bytes(), std::fs::read(name)?)),
            Kind::Name | Kind::Whole => None,
            Kind::Lines { from, line } => read_line(from)?.map(|text| {
                *line += 1;
                (key(*line), text)
            }),
            Kind::TfRecord { from, records } => match records.next(from)? {
                Scan::Record(r) => Some((key(r.offset), r.data.to_vec())),
                Scan::Damage(d) => return Err(invalid(format!("a damaged record at byte {}", d.bytes.start))),
                Scan::More => None,
            },
            Kind::Fixed { from, window, footer, hop, is_first } => {
                let Format::FixedLength { record, .. } = format else { return Ok(None) };
                advance(from, window, *record as usize + *footer, if *is_first { None } else { Some(*hop) })?.map(
                    |()| {
                        *is_first = false;
                        (key(self.n_read), window[..*record as usize].to_vec())
                    },
                )
            }
        };
        if let (None, Kind::TfRecord { records, .. }) = (&found, &self.kind)
            && records.n_waiting() > 0
        {
            return Err(invalid(format!("a record at byte {} is cut short", records.offset())));
        }
        self.n_read += u64::from(found.is_some());
        Ok(found)
    }
}

/// A line without its end; carriage returns are dropped, as TensorFlow does. `None` at the end.
fn read_line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if from.by_ref().take(MAX_RECORD).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 == MAX_RECORD {
        return Err(invalid("a line of more than 2 GiB"));
    }
    line.retain(|b| *b != b'\r');
    Ok(Some(line))
}

/// The body of a file of fixed-length records must be whole records.
fn check_length(name: &str, len: u64, (header, record, footer, hop): (u64, u64, u64, u64)) -> io::Result<()> {
    let body = len.checked_sub(header + footer);
    let fits = body.is_some_and(|body| hop != 0 && hop != record || body.is_multiple_of(record));
    if fits {
        return Ok(());
    }
    let body = body.map_or_else(|| format!("{len} bytes in all"), |body| format!("a body of {body} bytes"));
    let around = format!("besides its header of {header} and footer of {footer}");
    Err(invalid(format!("{name} has {body} {around}, which is not an exact multiple of the record length {record}")))
}

/// Moves the window of `len` bytes (record and footer) on by `hop` (or fills it first); `None` where too little is left.
fn advance(from: &mut dyn Read, window: &mut Vec<u8>, len: usize, hop: Option<u64>) -> io::Result<Option<()>> {
    if let Some(hop) = hop {
        let kept = window.len().saturating_sub(hop as usize);
        window.drain(..window.len() - kept);
        let gap = hop.saturating_sub(len as u64);
        io::copy(&mut from.take(gap), &mut io::sink())?;
    }
    let missing = len - window.len().min(len);
    from.take(missing as u64).read_to_end(window)?;
    Ok((window.len() == len).then_some(()))
}
