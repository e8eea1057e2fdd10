//! The sidecar `lod.bin`: the pyramids of all lanes, mapped when the trace is opened.
//!
//! Little-endian; every part begins at a multiple of 8.
//!
//! ```text
//! byte 0    magic "STPLOD01"
//!      8    lower nodes: of each complete segment, when it was complete, the lowest two levels
//!           upper nodes: of each lane, segment by segment, the other levels from the lowest to the highest
//!           A node of a segment shorter than 2^32 ns, with rows of sites below 2^17, is 28 bytes, its times from the segment's start:
//!             start u32 | end u32 | busy u32 | wait u32 | longest u32 | top 14 bits, waits 1 bit, site 17 bits | node u32
//!           else 56:  start i64 | end i64 | busy i64 | wait i64 | longest i64 | top u32 | site and mark u32 | node u32 | 0 u32
//!           headers: of each sparse lane all slices, 24 bytes:  start i64 | end i64 | site and mark u32 | node u32
//!           The mark is the site's highest bit: the slice waits. `busy` and `wait` are the sums of the durations of the slices that
//!           work and that wait; `longest` is the duration of `top`, the longest that works, or where none does the longest.
//!           the directory:
//!             groups    24 bytes per row group:  first ts i64 | last end i64 | first args row u32 | rows u32
//!             lanes     72 bytes per lane:       slices u64 | longest i64 | start i64 | end i64 | first segment u64 |
//!                                                first piece u64 | pieces u64 | headers u64 (offset, 0: none) | track u32 | lane u32
//!             segments  40 bytes:                offsets of its lower and upper nodes u64 | u64 | start i64 | end i64 |
//!                                                bytes of a node u32 | 0 u32
//!             pieces    16 bytes:                first ordinal u64 | row group u32 | offset u32
//!      -64  trailer: offset of the directory u64 | groups u64 | lanes u64 | segments u64 | pieces u64 |
//!           length of slices.parquet u64 | CRC-32C of its footer u32 | version u32 | 0 u32 | CRC-32C of all before u32
//! ```
//!
//! A *piece* is what a row group has of a lane; `offset` is its place when the group's rows are ordered by lane. Sparse are
//! the lanes with the fewest slices, as many as together have a sixteenth of all (65,536 at least, two million at most): a
//! lane of steps has one slice in each row group, and a picture of all steps must not read the whole file.
//!
//! Upper nodes lie together because a picture of all of a long trace needs nothing else of it.
//!
//! The file can be made again from `slices.parquet`: it holds nothing else. So one of another version is not read but made again; those
//! before the third did not say waits from work.

use bytemuck::{Pod, Zeroable};
use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use trace_model::SliceHeader;
use trace_model::layout::SEGMENT;
use trace_model::lod::{LEVELS, Narrow, Node, Nodes, level_lens};

/// The sidecar's file.
pub(super) const SIDECAR: &str = "lod.bin";

pub(super) const MAGIC: [u8; 8] = *b"STPLOD01";
pub(super) const VERSION: u32 = 3;
/// Levels from this one on are upper ones.
pub(super) const UPPER: usize = 2;

/// A row group.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct GroupEntry {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) first_args: u32,
    pub(super) rows: u32,
}

/// A lane.
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

/// A segment of a lane.
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

/// What a row group has of a lane.
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

pub(super) const TRAILER: usize = size_of::<Trailer>();
const _: () = assert!(TRAILER == 64);

/// An open sidecar, checked.
#[derive(Debug)]
pub(crate) struct Sidecar {
    bytes: Mmap,
    /// It is no file's: made again, with nowhere to write it.
    is_in_memory: bool,
    directory: usize,
    n_groups: usize,
    n_lanes: usize,
    n_segments: usize,
    n_pieces: usize,
}

/// Why a sidecar is of no use.
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
    /// Opens and checks the whole file: by reading, so that the mapping's pages stay out of memory until a picture needs them.
    pub(super) fn open(path: &Path, slices_len: u64, slices_crc: u32) -> Result<Sidecar, SidecarError> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        if len < (MAGIC.len() + TRAILER) as u64 {
            return Err(SidecarError::Damaged("it is too short"));
        }
        let crc = checksum(&file, len - 4)?;
        // SAFETY: the file is never written in place: it was made under another name and renamed. A stranger who cuts
        // it short while it is mapped can end the process, as with any mapped file.
        let bytes = unsafe { Mmap::map(&file)? };
        Sidecar::check(bytes, false, crc, slices_len, slices_crc)
    }

    /// Takes what was just built.
    pub(super) fn of_bytes(bytes: &[u8], slices_len: u64, slices_crc: u32) -> Result<Sidecar, SidecarError> {
        if bytes.len() < MAGIC.len() + TRAILER {
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
        let all = &bytes[..];
        let trailer: Trailer = bytemuck::pod_read_unaligned(&all[all.len() - TRAILER..]);
        if all[..8] != MAGIC {
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
        let count = |n: u64| usize::try_from(n).ok().filter(|n| *n <= all.len());
        let counts = [trailer.directory, trailer.n_groups, trailer.n_lanes, trailer.n_segments, trailer.n_pieces];
        let [Some(directory), Some(n_groups), Some(n_lanes), Some(n_segments), Some(n_pieces)] = counts.map(count)
        else {
            return Err(SidecarError::Damaged("its directory is longer than the file"));
        };
        let sidecar = Sidecar { directory, n_groups, n_lanes, n_segments, n_pieces, bytes, is_in_memory };
        if sidecar.is_consistent() { Ok(sidecar) } else { Err(SidecarError::Damaged("its directory makes no sense")) }
    }

    /// Whether the entries point into the file and to each other, so that the accessors need not ask.
    fn is_consistent(&self) -> bool {
        let (n_segments, n_pieces) = (self.n_segments as u64, self.n_pieces as u64);
        let end = self.parts()[3].end;
        let is_inside = |from: u64, len: u64| from.checked_add(len).is_some_and(|to| to <= self.directory as u64);
        let lane_is_good = |lane: &LaneEntry| {
            let segments = lane.n.div_ceil(SEGMENT as u64);
            let size = size_of::<SliceHeader>() as u64;
            let has_headers = lane.headers == 0
                || (lane.headers.is_multiple_of(8)
                    && lane.n.checked_mul(size).is_some_and(|len| is_inside(lane.headers, len)));
            lane.n > 0
                && lane.n < u64::from(u32::MAX)
                && lane.first_segment.checked_add(segments).is_some_and(|to| to <= n_segments)
                && lane.n_pieces > 0
                && lane.first_piece.checked_add(lane.n_pieces).is_some_and(|to| to <= n_pieces)
                && has_headers
        };
        self.directory.is_multiple_of(8)
            && end == self.bytes.len() - TRAILER
            && self.lanes().iter().all(lane_is_good)
            && self.all_segments().len() == self.n_segments
            && self.all_segments().iter().all(|s| {
                let offsets = [s.lower, s.upper];
                [size_of::<Node>(), size_of::<Narrow>()].contains(&(s.node_bytes as usize))
                    && offsets.iter().all(|at| at.is_multiple_of(8) && *at <= self.directory as u64)
            })
            && self.all_pieces().iter().all(|p| (p.group as usize) < self.n_groups)
    }

    /// Groups, lanes, segments and pieces in the file.
    fn parts(&self) -> [Range<usize>; 4] {
        let mut at = self.directory;
        [
            (self.n_groups, size_of::<GroupEntry>()),
            (self.n_lanes, size_of::<LaneEntry>()),
            (self.n_segments, size_of::<SegmentEntry>()),
            (self.n_pieces, size_of::<Piece>()),
        ]
        .map(|(n, size)| {
            let part = at..at.saturating_add(n.saturating_mul(size));
            at = part.end;
            part
        })
    }

    fn part<T: Pod>(&self, part: Range<usize>) -> &[T] {
        self.bytes.get(part).and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()).unwrap_or(&[])
    }

    pub(super) fn groups(&self) -> &[GroupEntry] {
        self.part(self.parts()[0].clone())
    }

    pub(super) fn lanes(&self) -> &[LaneEntry] {
        self.part(self.parts()[1].clone())
    }

    fn all_segments(&self) -> &[SegmentEntry] {
        self.part(self.parts()[2].clone())
    }

    fn all_pieces(&self) -> &[Piece] {
        self.part(self.parts()[3].clone())
    }

    pub(super) fn segments(&self, lane: &LaneEntry) -> &[SegmentEntry] {
        let (from, n) = (lane.first_segment as usize, lane.n.div_ceil(SEGMENT as u64) as usize);
        self.all_segments().get(from..from + n).unwrap_or(&[])
    }

    pub(super) fn pieces(&self, lane: &LaneEntry) -> &[Piece] {
        let (from, n) = (lane.first_piece as usize, lane.n_pieces as usize);
        self.all_pieces().get(from..from + n).unwrap_or(&[])
    }

    /// The slices of a sparse lane.
    pub(super) fn headers(&self, lane: &LaneEntry) -> Option<&[SliceHeader]> {
        let (from, len) = (lane.headers as usize, lane.n as usize * size_of::<SliceHeader>());
        (from > 0).then(|| self.part(from..from + len))
    }

    /// The nodes of a segment of `n` slices.
    pub(super) fn levels(&self, segment: &SegmentEntry, n: usize) -> [Nodes<'_>; LEVELS] {
        let (lens, mut at) = (level_lens(n), segment.lower as usize);
        std::array::from_fn(|level| {
            if level == UPPER {
                at = segment.upper as usize;
            }
            let part = at..at + lens[level] * segment.node_bytes as usize;
            at = part.end;
            if segment.node_bytes as usize == size_of::<Node>() {
                Nodes::Wide(self.part(part))
            } else {
                Nodes::Narrow(self.part(part), segment.start)
            }
        })
    }

    /// Bytes that it has in memory, besides what is mapped.
    pub(super) fn memory_bytes(&self) -> usize {
        if self.is_in_memory { self.bytes.len() } else { 0 }
    }
}

/// CRC-32C of the first `len` bytes of a file.
fn checksum(file: &File, len: u64) -> io::Result<u32> {
    let mut left = file.take(len);
    let mut piece = vec![0; 1 << 20];
    let mut crc = 0;
    loop {
        let n = left.read(&mut piece)?;
        if n == 0 {
            return Ok(crc);
        }
        crc = crc32c::crc32c_append(crc, &piece[..n]);
    }
}
