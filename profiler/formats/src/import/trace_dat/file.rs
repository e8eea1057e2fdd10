//! The header of a `trace.dat` file, and the locations of its pages.
//!
//! ```text
//! byte 0              3         10      12      13      14
//!      | 17 08 44 hex | tracing | "6\0" | endian| long  | page size u32 | ...
//! ```
//!
//! In version 6 one part follows another, up to a table with the offset of each CPU's pages. Version 7 continues with
//! the name of the compression (`name\0 version\0`) and the offset (u64) of a section of options, which have the
//! offsets of the other sections. A section is: id u16, flags u16 (1: compressed), offset of a text u32, size u64, then
//! its bytes.

use crate::import::problems::{Problem, Problems};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Bytes of pages that are read at a time.
const STEP: u64 = 1 << 20;
/// A compressed part expands at most by this factor, plus a constant.
const MAX_RATIO: u64 = 1_000;
const SLACK: u64 = 1 << 20;
/// Sections of options, and instances with CPUs, at most: a damaged file may point in circles.
const MAX_SECTIONS: usize = 1_000;
const MAX_CPUS: u64 = 65_536;

/// The compression of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Zstd,
}

/// The header of the file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Texts of `header_page` and of the `format` files of events.
    pub(super) header_page: String,
    pub(super) formats: Vec<String>,
    /// `PID NAME` lines.
    pub(super) command_lines: String,
    pub(super) pages: Vec<Pages>,
    /// Multiplier, shift and offset that convert ticks to ns, if times are ticks.
    pub(super) tsc: Option<(u32, u32, u64)>,
    /// Added to all times, ns.
    pub(super) offset: i64,
    /// The clock, by its name in `trace_clock`.
    pub(super) clock: String,
}

/// The pages of one CPU.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) cpu: u32,
    pub(super) page_size: usize,
    at: u64,
    end: u64,
    /// Remaining chunks, if the pages are compressed.
    chunks: Option<(Compression, Option<u32>)>,
}

/// Reads numbers and texts one after another.
struct Cursor<'a> {
    from: Source<'a>,
    length: u64,
    at: u64,
}

enum Source<'a> {
    File(&'a File),
    Memory(Vec<u8>),
}

fn short() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl<'a> Cursor<'a> {
    /// A cursor in a file of this length, from this offset on.
    fn of_file(file: &'a File, length: u64, at: u64) -> Cursor<'a> {
        Cursor { from: Source::File(file), length, at }
    }

    fn of_bytes(bytes: Vec<u8>) -> Cursor<'a> {
        Cursor { length: bytes.len() as u64, from: Source::Memory(bytes), at: 0 }
    }

    fn bytes(&mut self, n: u64) -> io::Result<Vec<u8>> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.length).ok_or_else(short)?;
        let mut out = vec![0; n as usize];
        match &self.from {
            Source::File(file) => file.read_exact_at(&mut out, self.at)?,
            Source::Memory(bytes) => out.copy_from_slice(&bytes[self.at as usize..end as usize]),
        }
        self.at = end;
        Ok(out)
    }

    fn number<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.bytes(N as u64)?.try_into().map_err(|_| short())
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.number().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.number().map(u64::from_le_bytes)
    }

    fn text(&mut self, n: u64) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(n)?).into_owned())
    }

    /// A text up to its zero, at most 4,096 bytes.
    fn string(&mut self) -> io::Result<String> {
        let mut found = Vec::new();
        while found.len() < 4096 {
            match self.number::<1>()?[0] {
                0 => return Ok(String::from_utf8_lossy(&found).into_owned()),
                byte => found.push(byte),
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Bytes whose length is a number before them.
    fn long_text(&mut self) -> io::Result<String> {
        let length = self.u64()?;
        self.text(length)
    }
}

impl Contents {
    /// Reads the header; of a truncated or damaged file as much as possible.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is of an unsupported kind.
    pub(super) fn read(file: &File, length: u64, problems: &mut Problems) -> io::Result<Contents> {
        let mut contents = Contents::default();
        let mut cursor = Cursor::of_file(file, length, 10);
        let read = cursor.string().and_then(|version| {
            let (endian, _long, page_size) = (cursor.number::<1>()?[0], cursor.number::<1>()?[0], cursor.u32()?);
            if endian != 0 {
                return Err(io::Error::other("a trace.dat of a big-endian machine: use trace-cmd report there"));
            }
            match version.as_str() {
                "6" => contents.version_6(&mut cursor, page_size),
                "7" => contents.version_7(&mut cursor, file, problems),
                _ => Err(io::Error::other(format!("trace.dat version {version:?} is not known (6 and 7 are)"))),
            }
        });
        match read {
            Err(e) if matches!(e.kind(), io::ErrorKind::UnexpectedEof) => {
                problems.count_at(Problem::Truncated, cursor.at);
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidData) => problems.count_at(Problem::Damaged, cursor.at),
            other => other?,
        }
        Ok(contents)
    }

    fn version_6(&mut self, cursor: &mut Cursor<'_>, page_size: u32) -> io::Result<()> {
        self.header_info(cursor)?;
        self.ftrace_formats(cursor)?;
        self.event_formats(cursor)?;
        // Skips the kernel's symbols and the formats of `trace_printk`.
        for _ in 0..2 {
            let skipped = cursor.u32()?;
            cursor.at = cursor.at.checked_add(skipped.into()).ok_or_else(short)?;
        }
        self.command_lines = cursor.long_text()?;
        let n_cpus = u64::from(cursor.u32()?);
        let mut tables = Vec::new();
        let mut kind = cursor.text(10)?;
        if kind.starts_with("options") {
            loop {
                let id = cursor.u16()?;
                if id == 0 {
                    break;
                }
                let size = cursor.u32()?;
                let mut option = Cursor::of_bytes(cursor.bytes(size.into())?);
                // An instance, whose table is elsewhere.
                if id == 3 {
                    tables.push(option.u64()?);
                } else {
                    self.option(id, &mut option)?;
                }
            }
            kind = cursor.text(10)?;
        }
        if kind.starts_with("flyrecord") {
            self.table(cursor, n_cpus, page_size)?;
        }
        for at in tables.into_iter().take(MAX_SECTIONS) {
            cursor.at = at;
            if cursor.text(10)?.starts_with("flyrecord") {
                self.table(cursor, n_cpus, page_size)?;
            }
        }
        Ok(())
    }

    /// Version 6: the locations of each CPU's pages.
    fn table(&mut self, cursor: &mut Cursor<'_>, n_cpus: u64, page_size: u32) -> io::Result<()> {
        for cpu in 0..n_cpus.min(MAX_CPUS) {
            let (at, size) = (cursor.u64()?, cursor.u64()?);
            self.cpu(cpu as u32, at, size, page_size, None);
        }
        Ok(())
    }

    fn cpu(&mut self, cpu: u32, at: u64, size: u64, page_size: u32, compression: Option<Compression>) {
        // From the smallest page of any architecture to 64 of the largest.
        let page_size = if (4096..=1 << 22).contains(&page_size) { page_size as usize } else { 4096 };
        if size > 0 {
            let chunks = compression.map(|compression| (compression, None));
            self.pages.push(Pages { cpu, page_size, at, end: at.saturating_add(size), chunks });
        }
    }

    fn version_7(&mut self, cursor: &mut Cursor<'_>, file: &File, problems: &mut Problems) -> io::Result<()> {
        let (name, _version) = (cursor.string()?, cursor.string()?);
        let compression = match name.as_str() {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => return Err(io::Error::other(format!("trace.dat compressed with {name:?} (zlib and zstd are known)"))),
        };
        let mut next = cursor.u64()?;
        for _ in 0..MAX_SECTIONS {
            if next == 0 {
                break;
            }
            let sections = Sections { file, length: cursor.length, compression };
            next = self.options(&mut sections.at(next)?, sections, problems)?;
        }
        Ok(())
    }

    /// Reads options and the sections that they point to; returns the offset of the next options.
    fn options(
        &mut self,
        options: &mut Cursor<'_>,
        sections: Sections<'_>,
        problems: &mut Problems,
    ) -> io::Result<u64> {
        loop {
            let (id, size) = (options.u16()?, options.u32()?);
            let mut option = Cursor::of_bytes(options.bytes(size.into())?);
            if id == 0 {
                return option.u64();
            }
            let read = match id {
                3 => self.buffer(&mut option, sections),
                16..=18 | 21 => option.u64().and_then(|at| {
                    let mut section = sections.at(at)?;
                    match id {
                        16 => self.header_info(&mut section),
                        17 => self.ftrace_formats(&mut section),
                        18 => self.event_formats(&mut section),
                        _ => section.long_text().map(|text| self.command_lines = text),
                    }
                }),
                _ => self.option(id, &mut option),
            };
            // One part less.
            if read.is_err() {
                problems.count_at(Problem::Damaged, options.at);
            }
        }
    }

    /// Version 7: the locations of an instance's pages.
    fn buffer(&mut self, option: &mut Cursor<'_>, sections: Sections<'_>) -> io::Result<()> {
        let at = option.u64()?;
        let (_name, clock) = (option.string()?, option.string()?);
        let (page_size, n_cpus) = (option.u32()?, option.u32()?);
        if self.clock.is_empty() {
            self.clock = clock;
        }
        let mut header = Cursor::of_file(sections.file, sections.length, at);
        let (_id, flags) = (header.u16()?, header.u16()?);
        let compression = (flags & 1 != 0).then_some(sections.compression);
        for _ in 0..u64::from(n_cpus).min(MAX_CPUS) {
            let (cpu, at, size) = (option.u32()?, option.u64()?, option.u64()?);
            self.cpu(cpu, at, size, page_size, compression);
        }
        Ok(())
    }

    /// Reads an option that both versions have.
    fn option(&mut self, id: u16, option: &mut Cursor<'_>) -> io::Result<()> {
        match id {
            4 if self.clock.is_empty() => {
                // The clock in brackets, as in `[local] global counter`.
                let text = option.string()?;
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map_or(text.as_str(), |(name, _)| name).to_owned();
            }
            7 => self.offset = option.string()?.trim().parse().unwrap_or(0),
            14 => self.tsc = Some((option.u32()?, option.u32()?, option.u64()?)),
            _ => {}
        }
        Ok(())
    }

    fn header_info(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        let (_page, text) = (cursor.string()?, cursor.long_text()?);
        self.header_page = text;
        // The layout of an event's first word has been the same since Linux 2.6.30.
        let (_event, _text) = (cursor.string()?, cursor.long_text()?);
        Ok(())
    }

    fn ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        for _ in 0..cursor.u32()? {
            self.formats.push(cursor.long_text()?);
        }
        Ok(())
    }

    fn event_formats(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        for _ in 0..cursor.u32()? {
            let _system = cursor.string()?;
            for _ in 0..cursor.u32()? {
                self.formats.push(cursor.long_text()?);
            }
        }
        Ok(())
    }
}

/// The sections of a file of version 7.
#[derive(Clone, Copy)]
struct Sections<'a> {
    file: &'a File,
    length: u64,
    compression: Compression,
}

impl<'a> Sections<'a> {
    /// The bytes of the section at an offset.
    fn at(self, at: u64) -> io::Result<Cursor<'a>> {
        let mut cursor = Cursor::of_file(self.file, self.length, at);
        let (_id, flags, _text, size) = (cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.u64()?);
        let bytes = if flags & 1 == 0 {
            cursor.bytes(size)?
        } else {
            let (packed, unpacked) = (cursor.u32()?, cursor.u32()?);
            expand(&cursor.bytes(packed.into())?, unpacked, self.compression)?
        };
        Ok(Cursor::of_bytes(bytes))
    }
}

/// Unpacks to `unpacked` bytes, or fewer if the input is truncated.
fn expand(packed: &[u8], unpacked: u32, compression: Compression) -> io::Result<Vec<u8>> {
    let limit = u64::from(unpacked).min((packed.len() as u64).saturating_mul(MAX_RATIO).saturating_add(SLACK));
    let mut out = Vec::new();
    match compression {
        Compression::None => out.extend_from_slice(packed),
        Compression::Zlib => _ = flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut out)?,
        Compression::Zstd => _ = zstd::Decoder::new(packed)?.take(limit).read_to_end(&mut out)?,
    }
    Ok(out)
}

impl Pages {
    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// The next complete pages; `None` if there are no more.
    pub(super) fn next(&mut self, file: &File, length: u64, problems: &mut Problems) -> io::Result<Option<Vec<u8>>> {
        if self.end > length {
            problems.count_at(Problem::Truncated, length);
            self.end = length;
        }
        let Some((compression, left)) = &mut self.chunks else {
            if self.at >= self.end {
                return Ok(None);
            }
            let step = STEP.next_multiple_of(self.page_size as u64).min(self.end - self.at);
            let mut cursor = Cursor::of_file(file, self.end, self.at);
            let bytes = cursor.bytes(step)?;
            self.at = cursor.at;
            return Ok(Some(bytes));
        };
        // The number of chunks says where they end, since the size in the file excludes that number (trace-cmd 3.1.6).
        let mut cursor = Cursor::of_file(file, length, self.at);
        let chunk = Self::chunk(&mut cursor, *compression, left);
        self.at = cursor.at;
        match chunk {
            Ok(found) => Ok(found),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                problems.count_at(Problem::Truncated, self.at);
                *left = Some(0);
                Ok(None)
            }
            Err(_) => {
                // The next chunk follows this one.
                problems.count_at(Problem::BadCompression, self.at);
                Ok(Some(Vec::new()))
            }
        }
    }

    /// Reads the next chunk; before the first one the number of chunks.
    fn chunk(cursor: &mut Cursor<'_>, compression: Compression, left: &mut Option<u32>) -> io::Result<Option<Vec<u8>>> {
        let n = match *left {
            Some(n) => n,
            None => cursor.u32()?,
        };
        let Some(after) = n.checked_sub(1) else { return Ok(None) };
        *left = Some(after);
        let (packed, unpacked) = (cursor.u32()?, cursor.u32()?);
        let packed = cursor.bytes(packed.into())?;
        expand(&packed, unpacked, compression).map(Some)
    }
}
