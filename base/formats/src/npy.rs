//! NumPy's `.npy` arrays and `.npz` archives of them.
//!
//! ```text
//! 93 "NUMPY" | major u8 | minor u8 | header length u16 (major 1) or u32 (2, 3), little-endian
//! header     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with spaces, ends with a line feed
//! data       the elements, packed
//! ```
//!
//! Source: NumPy's documentation of `numpy.lib.format`. Big-endian and column-major arrays are converted to
//! little-endian and row-major; objects (pickles) and structured types are refused.

use std::io::{self, Cursor, Read, Seek, Write};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The longest header that is read, bytes. Real ones have less than 200.
const MAX_HEADER: usize = 64 << 10;
/// The most axes: NumPy's own limit.
const MAX_RANK: usize = 64;
/// An archive's array may unpack to this many times its packed size: deflate's highest ratio, rounded up.
const MAX_RATIO: u64 = 1100;

/// The kind of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `b1`: one byte, 0 or 1.
    Bool,
    /// `i`.
    Int,
    /// `u`.
    UInt,
    /// `f`.
    Float,
    /// `c`: two floats of half the size.
    Complex,
    /// `S`: bytes, padded with zeros.
    Bytes,
    /// `U`: 4-byte code points, padded with zeros.
    Unicode,
    /// `V`: bytes without a meaning; what NumPy writes for bfloat16 (`V2`).
    Void,
}

/// The type of an array's elements: their kind and size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementType {
    /// The kind.
    pub kind: Kind,
    /// The size of an element, bytes.
    pub size: usize,
}

/// An array: its elements little-endian, packed, the last axis varying fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The type.
    pub element: ElementType,
    /// The lengths of the axes.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<u8>,
}

/// Why an array cannot be read or written. Each message is one line and does not name the file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The file cannot be read or written.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The bytes are in another format.
    #[error("not a NumPy array (.npy)")]
    Magic,
    /// A version that did not exist in 2026.
    #[error("a NumPy array of the unknown format version {0}")]
    Version(u8),
    /// The header is not a valid dictionary.
    #[error("the array's header is damaged: {0}")]
    Header(&'static str),
    /// An element type that cannot be read.
    #[error("element type {0:?} cannot be read: numbers, bool, bytes and text can")]
    Type(String),
    /// The data are shorter or longer than the header says.
    #[error("the header announces {expected} bytes of data, the file has {found}")]
    Length {
        /// The length that shape and type need.
        expected: u64,
        /// The actual length.
        found: u64,
    },
    /// The archive is damaged or of another format.
    #[error("not an archive of arrays (.npz): {0}")]
    Archive(#[from] ZipError),
    /// An array of an archive cannot be read.
    #[error("array {name}: {source}")]
    Member {
        /// The array's name.
        name: String,
        /// The fault.
        source: Box<NpyError>,
    },
}

impl ElementType {
    /// The type of elements of `size` bytes each.
    pub fn new(kind: Kind, size: usize) -> ElementType {
        ElementType { kind, size }
    }

    /// NumPy's text for the type, little-endian: `<f4`.
    pub fn descr(self) -> String {
        let order = if self.size == 1 || matches!(self.kind, Kind::Bytes | Kind::Void) { '|' } else { '<' };
        let (letter, n) = match self.kind {
            Kind::Bool => ('b', self.size),
            Kind::Int => ('i', self.size),
            Kind::UInt => ('u', self.size),
            Kind::Float => ('f', self.size),
            Kind::Complex => ('c', self.size),
            Kind::Bytes => ('S', self.size),
            Kind::Unicode => ('U', self.size / 4),
            Kind::Void => ('V', self.size),
        };
        format!("{order}{letter}{n}")
    }

    /// Parses NumPy's text for a type; returns also whether the elements are big-endian.
    fn parse(descr: &str) -> Result<(ElementType, bool), NpyError> {
        let unknown = || NpyError::Type(descr.chars().take(40).collect());
        let mut chars = descr.chars();
        let is_big_endian = match chars.next() {
            Some('>') => true,
            Some('<' | '|' | '=') => false,
            _ => return Err(unknown()),
        };
        let letter = chars.next().ok_or_else(unknown)?;
        let n: usize = chars.as_str().parse().map_err(|_| unknown())?;
        let (kind, sizes): (Kind, &[usize]) = match letter {
            'b' => (Kind::Bool, &[1]),
            'i' => (Kind::Int, &[1, 2, 4, 8]),
            'u' => (Kind::UInt, &[1, 2, 4, 8]),
            'f' => (Kind::Float, &[2, 4, 8]),
            'c' => (Kind::Complex, &[8, 16]),
            'S' => (Kind::Bytes, &[]),
            'U' => (Kind::Unicode, &[]),
            'V' => (Kind::Void, &[2]),
            _ => return Err(unknown()),
        };
        if !sizes.is_empty() && !sizes.contains(&n) {
            return Err(unknown());
        }
        let size = if kind == Kind::Unicode { n.checked_mul(4).ok_or_else(unknown)? } else { n };
        Ok((ElementType { kind, size }, is_big_endian))
    }

    /// The size of the words whose bytes are reversed between big and little endian.
    fn word_size(self) -> usize {
        match self.kind {
            Kind::Bytes | Kind::Void | Kind::Bool => 1,
            Kind::Complex => self.size / 2,
            Kind::Unicode => 4,
            _ => self.size,
        }
    }
}

impl Array {
    /// Decodes the bytes of a `.npy` file.
    ///
    /// # Errors
    /// The bytes are not exactly one array, or the array's type is not supported.
    pub fn decode(bytes: &[u8]) -> Result<Array, NpyError> {
        let (header, data) = split(bytes)?;
        let header = Header::parse(header)?;
        let (element, is_big_endian) = ElementType::parse(&header.descr)?;
        let n = header.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
        let expected = n.and_then(|n| n.checked_mul(element.size as u64)).unwrap_or(u64::MAX);
        if expected != data.len() as u64 {
            return Err(NpyError::Length { expected, found: data.len() as u64 });
        }
        let mut data = data.to_vec();
        if is_big_endian && element.word_size() > 1 {
            data.chunks_exact_mut(element.word_size()).for_each(<[u8]>::reverse);
        }
        if header.fortran_order && header.shape.len() > 1 {
            data = to_row_major(&data, &header.shape, element.size);
        }
        Ok(Array { element, shape: header.shape, data })
    }

    /// The bytes of a `.npy` file (version 1.0, data aligned to 64 bytes).
    pub fn encode(&self) -> Vec<u8> {
        let dims: String = self.shape.iter().map(|d| format!("{d}, ")).collect();
        let dims = if self.shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
        let descr = self.element.descr();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
        let unpadded = MAGIC.len() + 4 + header.len() + 1;
        header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
        header.push('\n');
        let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + header.len() + self.data.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[1, 0]);
        // Ranks are at most MAX_RANK: the header is far below 64 KiB.
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&self.data);
        bytes
    }
}

/// Splits a file into the header's text and the data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let (&[major, _], rest) = rest.split_first_chunk().ok_or(NpyError::Header("it is cut short"))?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
        2 | 3 => rest.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
        _ => return Err(NpyError::Version(major)),
    }
    .ok_or(NpyError::Header("it is cut short"))?;
    if length > MAX_HEADER {
        return Err(NpyError::Header("it is longer than any array needs"));
    }
    let (header, data) = rest.split_at_checked(length).ok_or(NpyError::Header("it is cut short"))?;
    Ok((std::str::from_utf8(header).map_err(|_| NpyError::Header("it is no text"))?, data))
}

struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses the dictionary, with its keys in any order.
    fn parse(text: &str) -> Result<Header, NpyError> {
        let value = |key: &str| {
            let key_idx = text.find(&format!("'{key}'")).or_else(|| text.find(&format!("\"{key}\"")));
            let rest = &text[key_idx? + key.len() + 2..];
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = value("descr").ok_or(NpyError::Header("it names no type"))?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = match quote {
            Some(quote) => descr[1..].split(quote).next().unwrap_or_default().to_owned(),
            None => return Err(NpyError::Type("structured".to_owned())),
        };
        let order = value("fortran_order").ok_or(NpyError::Header("it names no order"))?;
        let fortran_order = match order {
            order if order.starts_with("True") => true,
            order if order.starts_with("False") => false,
            _ => return Err(NpyError::Header("its order is neither True nor False")),
        };
        let shape = value("shape").and_then(|s| s.strip_prefix('(')).and_then(|s| s.split_once(')'));
        let (shape, _) = shape.ok_or(NpyError::Header("it names no shape"))?;
        let dims = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
        // Python 2 wrote long integers as 3L.
        let shape: Result<Vec<usize>, _> = dims.map(|d| d.trim_end_matches('L').parse()).collect();
        let shape = shape.map_err(|_| NpyError::Header("its shape is not made of sizes"))?;
        if shape.len() > MAX_RANK {
            return Err(NpyError::Header("it has more axes than NumPy allows"));
        }
        Ok(Header { descr, fortran_order, shape })
    }
}

/// Reorders column-major elements to row-major.
fn to_row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = vec![size; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut out = Vec::with_capacity(data.len());
    let mut indices = vec![0usize; shape.len()];
    while out.len() < data.len() {
        let offset: usize = indices.iter().zip(&strides).map(|(i, stride)| i * stride).sum();
        out.extend_from_slice(&data[offset..offset + size]);
        for axis in (0..shape.len()).rev() {
            indices[axis] += 1;
            if indices[axis] < shape[axis] {
                break;
            }
            indices[axis] = 0;
        }
    }
    out
}

/// The arrays of a `.npz` archive, by name and in its order.
///
/// # Errors
/// The source is not such an archive, or one of its arrays is damaged: then no array is returned.
pub fn read_npz(source: impl Read + Seek) -> Result<Vec<(String, Array)>, NpyError> {
    let mut archive = ZipArchive::new(source)?;
    let mut arrays = Vec::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i)?;
        let Some(name) = file.name()?.strip_suffix(".npy").map(str::to_owned) else { continue };
        let limit = file.compressed_size().saturating_mul(MAX_RATIO).max(MAX_HEADER as u64);
        let mut bytes = Vec::new();
        let read = (&mut file).take(limit).read_to_end(&mut bytes).map_err(NpyError::from);
        let array = read.and_then(|_| Array::decode(&bytes));
        let array = array.map_err(|source| NpyError::Member { name: name.clone(), source: Box::new(source) })?;
        arrays.push((name, array));
    }
    Ok(arrays)
}

/// Writes a `.npz` archive, uncompressed as `numpy.savez` does.
///
/// # Errors
/// The archive cannot be written.
pub fn write_npz<'a>(
    to: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> Result<(), NpyError> {
    let mut archive = ZipWriter::new(to);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options)?;
        archive.write_all(&array.encode())?;
    }
    archive.finish()?.flush()?;
    Ok(())
}

/// As [`read_npz`], of bytes in memory.
///
/// # Errors
/// As [`read_npz`].
pub fn decode_npz(bytes: &[u8]) -> Result<Vec<(String, Array)>, NpyError> {
    read_npz(Cursor::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn array(kind: Kind, size: usize, shape: &[usize], data: &[u8]) -> Array {
        Array { element: ElementType::new(kind, size), shape: shape.to_vec(), data: data.to_vec() }
    }

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    /// The bytes of `numpy.save(f, numpy.array([1, 258], '<i2'))`, NumPy 2.4.
    #[test]
    fn as_numpy_writes() {
        let text = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
        let header = format!("{text:117}\n");
        let bytes = file(&header, &[1, 0, 2, 1]);
        let ours = array(Kind::Int, 2, &[2], &[1, 0, 2, 1]);
        assert_eq!(ours.encode(), bytes);
        assert_eq!(Array::decode(&bytes).unwrap(), ours);
    }

    #[test]
    fn orders_are_turned() {
        let columns =
            file("{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}", &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6]);
        let rows = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0];
        assert_eq!(Array::decode(&columns).unwrap(), array(Kind::Int, 2, &[2, 3], &rows));
    }

    #[test]
    fn other_files_get_one_clear_line() {
        let text = |bytes: &[u8]| Array::decode(bytes).unwrap_err().to_string();
        assert_eq!(text(b"PK"), "not a NumPy array (.npy)");
        let objects = file("{'descr': '|O', 'fortran_order': False, 'shape': (), }", &[]);
        assert_eq!(text(&objects), "element type \"|O\" cannot be read: numbers, bool, bytes and text can");
        let structured = file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", &[]);
        assert!(text(&structured).contains("structured"));
        let huge = file("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", &[0; 8]);
        assert_eq!(text(&huge), "the header announces 18446744073709551615 bytes of data, the file has 8");
        let negative = file("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", &[0; 8]);
        assert_eq!(text(&negative), "the array's header is damaged: its shape is not made of sizes");
        assert!(decode_npz(b"no archive").unwrap_err().to_string().starts_with("not an archive"));
    }

    proptest! {
        #[test]
        fn arrays_come_back(shape in prop::collection::vec(0usize..5, 0..4), size in prop::sample::select(vec![1usize, 2, 4, 8])) {
            let n: usize = shape.iter().product::<usize>() * size;
            let data: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let a = array(Kind::UInt, size, &shape, &data);
            prop_assert_eq!(&Array::decode(&a.encode()).unwrap(), &a);
            let mut archive = Cursor::new(Vec::new());
            write_npz(&mut archive, [("x", &a), ("scope/y", &a)]).unwrap();
            let read = decode_npz(archive.get_ref()).unwrap();
            prop_assert_eq!(read, vec![("x".to_owned(), a.clone()), ("scope/y".to_owned(), a)]);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300), header in "[ -~]{0,80}") {
            Array::decode(&bytes).ok();
            Array::decode(&file(&header, &bytes)).ok();
            decode_npz(&bytes).ok();
        }

        #[test]
        fn flipped_bits_do_not_panic(bit in 0usize..1600) {
            let a = array(Kind::Float, 4, &[3, 2], &[7; 24]);
            let mut archive = Cursor::new(Vec::new());
            write_npz(&mut archive, [("x", &a)]).unwrap();
            let mut bytes = archive.into_inner();
            let at = bit / 8 % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
            decode_npz(&bytes).ok();
        }
    }
}
