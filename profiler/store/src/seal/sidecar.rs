//! The sidecar `lod.bin`: the pyramids of all lanes, mapped when the trace is opened.
//!
//! Little-endian; every part begins at a multiple of 8.
//!
//! ```text
//! byte 0    magic "STPLOD01"
//!      8    lower nodes: the lowest two levels of each segment, in the order in which the segments became complete
//!           upper nodes: the other levels, from the lowest to the highest, lane by lane and segment by segment
//!           A node is 28 bytes in a segment shorter than 2^32 ns with rows of sites below 2^17, with times from the
//!           segment's start:
//!             start u32 | end u32 | busy u32 | wait u32 | longest u32 | top 14 bits, waits 1 bit, site 17 bits |
//!             node u32
//!           else 56 bytes:
//!             start i64 | end i64 | busy i64 | wait i64 | longest i64 | top u32 | site and mark u32 |
//!             node u32 | 0 u32
//!           headers: all slices of each sparse lane, 24 bytes:  start i64 | end i64 | site and mark u32 | node u32
//!           The mark is the site's highest bit: the slice waits. `busy` and `wait` are the total durations of the
//!           slices that work and that wait. `top` is the longest slice that works, else the longest slice;
//!           `longest` is the duration of `top`.
//!           the directory:
//!             groups    24 bytes per row group:  first ts i64 | last end i64 | first args row u32 | rows u32
//!             lanes     72 bytes per lane:       slices u64 | longest i64 | start i64 | end i64 | first segment u64 |
//!                                                first piece u64 | pieces u64 | headers u64 (offset, 0: none) |
//!                                                track u32 | lane u32
//!             segments  40 bytes:                offset of lower nodes u64 | offset of upper nodes u64 | start i64 |
//!                                                end i64 | bytes of a node u32 | 0 u32
//!             pieces    16 bytes:                first ordinal u64 | row group u32 | offset u32
//!      -64  trailer: offset of the directory u64 | groups u64 | lanes u64 | segments u64 | pieces u64 |
//!           length of slices.parquet u64 | CRC-32C of its footer u32 | version u32 | 0 u32 | CRC-32C of all before u32
//! ```
//!
//! A *piece* is the slices of a lane in a row group; `offset` is the row of the first slice when the group is ordered
//! by lane. The *sparse* lanes are those with the fewest slices, together a sixteenth of all slices (65,536 at least,
//! two million at most): a lane of steps has one slice in each row group, and a picture of all steps must not read the
//! entire file.
//!
//! Upper nodes lie together because a picture of an entire long trace needs no other nodes.
//!
//! The file is derived from `slices.parquet` alone, so a sidecar of another version is rebuilt, not read. Versions 1
//! and 2 did not distinguish waits from work.

use bytemuck::{Pod, Zeroable};
use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use trace_model::SliceHeader;
use trace_model::layout::SEGMENT;
use trace_model::lod::{LEVELS, NarrowNode, Node, Nodes, level_lens};

/// File name of the sidecar.
pub(super) const SIDECAR: &str = "lod.bin";

/// The first bytes of the file.
pub(super) const MAGIC: [u8; 8] = *b"STPLOD01";
/// The version that is written and read.
pub(super) const VERSION: u32 = 3;
/// The first level of the upper nodes.
pub(super) const FIRST_UPPER_LEVEL: usize = 2;

/// A row group in the directory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct GroupEntry {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) first_args: u32,
    pub(super) rows: u32,
}

/// A lane in the directory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(super) struct LaneEntry {
    pub(super) n: u64,
    pub(super) longest: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) first_segment: u64,
    pub(super) first_piece: u64,
    pub(super) n_pieces: u64,
    pub(super) headers: u64,
    pub(super) track: u32,
    pub(super) lane: u32,
}

/// A segment of a lane in the directory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct SegmentEntry {
    pub(super) lower: u64,
    pub(super) upper: u64,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) node_bytes: u32,
    pub(super) zero: u32,
}

/// The slices of a lane in a row group.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) group: u32,
    pub(super) offset: u32,
}

/// The end of the file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Trailer {
    pub(super) directory: u64,
    pub(super) n_groups: u64,
    pub(super) n_lanes: u64,
    pub(super) n_segments: u64,
    pub(super) n_pieces: u64,
    pub(super) slices_len: u64,
    pub(super) slices_crc: u32,
    pub(super) version: u32,
    pub(super) zero: u32,
    pub(super) crc: u32,
}

/// Length of the trailer, bytes.
pub(super) const TRAILER_BYTES: usize = size_of::<Trailer>();
const _: () = assert!(TRAILER_BYTES == 64);

/// An open sidecar whose checksum and directory were checked.
#[derive(Debug)]
pub(crate) struct Sidecar {
    bytes: Mmap,
    /// Whether the sidecar was rebuilt and could not be written to a file.
    is_in_memory: bool,
    directory: usize,
    n_groups: usize,
    n_lanes: usize,
    n_segments: usize,
    n_pieces: usize,
}

/// Why a sidecar cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SidecarError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is of version {0}")]
    Version(u32),
    #[error("{0}")]
    Damaged(&'static str),
}

impl Sidecar {
    /// Opens and checks a file. The check reads the file instead of the mapping, so that no page of the mapping is
    /// resident before it is needed.
    pub(super) fn open(path: &Path, slices_len: u64, slices_crc: u32) -> Result<Sidecar, SidecarError> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        if len < (MAGIC.len() + TRAILER_BYTES) as u64 {
            return Err(SidecarError::Damaged("it is too short"));
        }
        let crc = checksum(&file, len - 4)?;
        // SAFETY: the file is never written in place: it was made under another name and renamed. Another program
        // that truncates the file while it is mapped can end this process, as with any mapped file.
        let bytes = unsafe { Mmap::map(&file)? };
        Sidecar::check(bytes, false, crc, slices_len, slices_crc)
    }

    /// Returns a sidecar from the bytes that were just built.
    pub(super) fn from_bytes(bytes: &[u8], slices_len: u64, slices_crc: u32) -> Result<Sidecar, SidecarError> {
        if bytes.len() < MAGIC.len() + TRAILER_BYTES {
            return Err(SidecarError::Damaged("it is too short"));
        }
        let mut map = MmapMut::map_anon(bytes.len())?;
        map.copy_from_slice(bytes);
        let crc = crc32c::crc32c(&bytes[..bytes.len() - 4]);
        Sidecar::check(map.make_read_only()?, true, crc, slices_len, slices_crc)
    }

    fn check(
        bytes: Mmap,
        is_in_memory: bool,
        crc: u32,
        slices_len: u64,
        slices_crc: u32,
    ) -> Result<Sidecar, SidecarError> {
        let file = &bytes[..];
        let trailer: Trailer = bytemuck::pod_read_unaligned(&file[file.len() - TRAILER_BYTES..]);
        if file[..8] != MAGIC {
            return Err(SidecarError::Damaged("it is no sidecar"));
        }
        if trailer.crc != crc {
            return Err(SidecarError::Damaged("its checksum is wrong"));
        }
        if trailer.version != VERSION {
            return Err(SidecarError::Version(trailer.version));
        }
        if (trailer.slices_len, trailer.slices_crc) != (slices_len, slices_crc) {
            return Err(SidecarError::Damaged("it belongs to another slices.parquet"));
        }
        let count = |n: u64| usize::try_from(n).ok().filter(|n| *n <= file.len());
        let counts = [trailer.directory, trailer.n_groups, trailer.n_lanes, trailer.n_segments, trailer.n_pieces];
        let [Some(directory), Some(n_groups), Some(n_lanes), Some(n_segments), Some(n_pieces)] = counts.map(count)
        else {
            return Err(SidecarError::Damaged("its directory is longer than the file"));
        };
        let sidecar = Sidecar { directory, n_groups, n_lanes, n_segments, n_pieces, bytes, is_in_memory };
        if sidecar.is_consistent() { Ok(sidecar) } else { Err(SidecarError::Damaged("its directory is inconsistent")) }
    }

    /// Whether all entries point into the file and to existing entries, so that the accessors need not check.
    fn is_consistent(&self) -> bool {
        let (n_segments, n_pieces) = (self.n_segments as u64, self.n_pieces as u64);
        let end = self.directory_ranges()[3].end;
        let is_inside = |from: u64, len: u64| from.checked_add(len).is_some_and(|to| to <= self.directory as u64);
        let is_lane_valid = |lane: &LaneEntry| {
            let segments = lane.n.div_ceil(SEGMENT as u64);
            let size = size_of::<SliceHeader>() as u64;
            let are_headers_valid = lane.headers == 0
                || (lane.headers.is_multiple_of(8)
                    && lane.n.checked_mul(size).is_some_and(|len| is_inside(lane.headers, len)));
            lane.n > 0
                && lane.n < u64::from(u32::MAX)
                && lane.first_segment.checked_add(segments).is_some_and(|to| to <= n_segments)
                && lane.n_pieces > 0
                && lane.first_piece.checked_add(lane.n_pieces).is_some_and(|to| to <= n_pieces)
                && are_headers_valid
        };
        self.directory.is_multiple_of(8)
            && end == self.bytes.len() - TRAILER_BYTES
            && self.lanes().iter().all(is_lane_valid)
            && self.all_segments().len() == self.n_segments
            && self.all_segments().iter().all(|s| {
                let offsets = [s.lower, s.upper];
                [size_of::<Node>(), size_of::<NarrowNode>()].contains(&(s.node_bytes as usize))
                    && offsets.iter().all(|offset| offset.is_multiple_of(8) && *offset <= self.directory as u64)
            })
            && self.all_pieces().iter().all(|p| (p.group as usize) < self.n_groups)
    }

    /// The ranges of groups, lanes, segments and pieces in the file.
    fn directory_ranges(&self) -> [Range<usize>; 4] {
        let mut begin = self.directory;
        [
            (self.n_groups, size_of::<GroupEntry>()),
            (self.n_lanes, size_of::<LaneEntry>()),
            (self.n_segments, size_of::<SegmentEntry>()),
            (self.n_pieces, size_of::<Piece>()),
        ]
        .map(|(n, size)| {
            let part = begin..begin.saturating_add(n.saturating_mul(size));
            begin = part.end;
            part
        })
    }

    fn entries<T: Pod>(&self, range: Range<usize>) -> &[T] {
        self.bytes.get(range).and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()).unwrap_or(&[])
    }

    pub(super) fn groups(&self) -> &[GroupEntry] {
        self.entries(self.directory_ranges()[0].clone())
    }

    pub(super) fn lanes(&self) -> &[LaneEntry] {
        self.entries(self.directory_ranges()[1].clone())
    }

    fn all_segments(&self) -> &[SegmentEntry] {
        self.entries(self.directory_ranges()[2].clone())
    }

    fn all_pieces(&self) -> &[Piece] {
        self.entries(self.directory_ranges()[3].clone())
    }

    pub(super) fn segments(&self, lane: &LaneEntry) -> &[SegmentEntry] {
        let (from, n) = (lane.first_segment as usize, lane.n.div_ceil(SEGMENT as u64) as usize);
        self.all_segments().get(from..from + n).unwrap_or(&[])
    }

    pub(super) fn pieces(&self, lane: &LaneEntry) -> &[Piece] {
        let (from, n) = (lane.first_piece as usize, lane.n_pieces as usize);
        self.all_pieces().get(from..from + n).unwrap_or(&[])
    }

    /// All slices of a sparse lane; `None` for another lane.
    pub(super) fn headers(&self, lane: &LaneEntry) -> Option<&[SliceHeader]> {
        let (from, len) = (lane.headers as usize, lane.n as usize * size_of::<SliceHeader>());
        (from > 0).then(|| self.entries(from..from + len))
    }

    /// The nodes of a segment of `n` slices, by level.
    pub(super) fn levels(&self, segment: &SegmentEntry, n: usize) -> [Nodes<'_>; LEVELS] {
        let (lens, mut begin) = (level_lens(n), segment.lower as usize);
        std::array::from_fn(|level| {
            if level == FIRST_UPPER_LEVEL {
                begin = segment.upper as usize;
            }
            let part = begin..begin + lens[level] * segment.node_bytes as usize;
            begin = part.end;
            if segment.node_bytes as usize == size_of::<Node>() {
                Nodes::Wide(self.entries(part))
            } else {
                Nodes::Narrow(self.entries(part), segment.start)
            }
        })
    }

    /// Bytes in memory, without those of a mapped file.
    pub(super) fn memory_bytes(&self) -> usize {
        if self.is_in_memory { self.bytes.len() } else { 0 }
    }
}

/// Number of bytes that are read at a time for the checksum.
const READ_BYTES: usize = 1 << 20;

/// Computes the CRC-32C of the first `len` bytes of a file.
fn checksum(file: &File, len: u64) -> io::Result<u32> {
    let mut input = file.take(len);
    let mut buffer = vec![0; READ_BYTES];
    let mut crc = 0;
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(crc);
        }
        crc = crc32c::crc32c_append(crc, &buffer[..n]);
    }
}
