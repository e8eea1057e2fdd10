//! Builds the sidecar from slices in the order of `slices.parquet`.
//!
//! The lower nodes of a segment are written when the segment is complete. In memory remain the open segment of each
//! lane, the upper nodes (2.4 KB for 16,384 slices), the directory, and all slices of the lanes that are sparse so far.

use super::sidecar::{FIRST_UPPER_LEVEL, GroupEntry, LaneEntry, MAGIC, Piece, SegmentEntry, Trailer, VERSION};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use trace_model::SliceHeader;
use trace_model::layout::SEGMENT;
use trace_model::lod::{LEVELS, Leaf, NarrowNode, Node, Pyramid};

/// A sidecar has the headers of at most one in this many slices (but see `Layout::min_headers`): those of the sparse lanes.
const SLICES_PER_HEADER: usize = 16;
/// Maximum number of headers in a sidecar.
const MAX_HEADERS: usize = 2 << 20;

/// A lane that is being built.
#[derive(Default)]
struct LaneBuilder {
    entry: LaneEntry,
    pyramid: Pyramid,
    leaf: Leaf,
    segment_start: i64,
    /// Complete segments, whose `upper` is an offset in [`LaneBuilder::upper`] until [`SidecarWriter::finish`].
    segments: Vec<SegmentEntry>,
    /// Upper nodes of the complete segments.
    upper: Vec<u8>,
    pieces: Vec<Piece>,
    /// All slices of the lane, as long as it is sparse.
    headers: Option<Vec<SliceHeader>>,
    /// Slices of the lane in the current row group.
    n_in_group: u64,
}

/// Writes a sidecar to `out`.
pub(super) struct SidecarWriter<W> {
    out: W,
    /// Number of bytes that were written.
    offset: u64,
    /// CRC-32C of these bytes.
    crc: u32,
    lanes: Vec<LaneBuilder>,
    /// Row in `lanes` of each (track, lane).
    lane_rows: FxHashMap<(u32, u32), u32>,
    groups: Vec<GroupEntry>,
    /// Rows of the lanes that have slices in the current row group.
    touched_lanes: Vec<u32>,
    /// The current row group.
    group: GroupEntry,
    /// Number of slices with arguments in the current row group.
    n_group_args: u32,
    /// Number of slices with arguments in the earlier row groups.
    n_earlier_args: u32,
    n_slices: usize,
    n_headers: usize,
    min_headers: usize,
    /// A reused buffer for a segment's lower nodes.
    lower: Vec<u8>,
}

/// Appends nodes. Times of narrow nodes are relative to `start`, the start of the segment.
fn append_nodes(nodes: &[Node], start: i64, is_narrow: bool, out: &mut Vec<u8>) {
    if is_narrow {
        for narrow in nodes.iter().filter_map(|node| NarrowNode::from_node(node, start)) {
            out.extend_from_slice(bytemuck::bytes_of(&narrow));
        }
    } else {
        out.extend_from_slice(bytemuck::cast_slice(nodes));
    }
}

/// A row group without slices.
const NO_GROUP: GroupEntry = GroupEntry { start: i64::MAX, end: i64::MIN, first_args: 0, rows: 0 };

impl<W: Write> SidecarWriter<W> {
    pub(super) fn new(out: W, min_headers: usize) -> io::Result<SidecarWriter<W>> {
        let mut writer = SidecarWriter {
            out,
            offset: 0,
            crc: 0,
            lanes: Vec::new(),
            lane_rows: FxHashMap::default(),
            groups: Vec::new(),
            touched_lanes: Vec::new(),
            group: NO_GROUP,
            n_group_args: 0,
            n_earlier_args: 0,
            n_slices: 0,
            n_headers: 0,
            min_headers,
            lower: Vec::new(),
        };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Appends a slice to its lane.
    pub(super) fn push(&mut self, track: u32, lane: u32, slice: SliceHeader, has_args: bool) -> io::Result<()> {
        let n_lanes = self.lanes.len() as u32;
        let row = *self.lane_rows.entry((track, lane)).or_insert(n_lanes);
        if row == n_lanes {
            let entry = LaneEntry { track, lane, start: slice.start, ..LaneEntry::default() };
            self.lanes.push(LaneBuilder { entry, headers: Some(Vec::new()), ..LaneBuilder::default() });
        }
        let lane = &mut self.lanes[row as usize];
        if lane.n_in_group == 0 {
            self.touched_lanes.push(row);
        }
        lane.n_in_group += 1;
        lane.entry.n += 1;
        lane.entry.end = slice.end;
        lane.entry.longest = lane.entry.longest.max(slice.end - slice.start);
        if lane.entry.n % SEGMENT as u64 == 1 {
            lane.segment_start = slice.start;
        }
        if lane.leaf.push(slice) {
            lane.leaf.end(&mut lane.pyramid);
        }
        if let Some(headers) = &mut lane.headers {
            headers.push(slice);
            self.n_headers += 1;
        }
        self.group.start = self.group.start.min(slice.start);
        self.group.end = self.group.end.max(slice.end);
        self.group.rows += 1;
        self.n_group_args += u32::from(has_args);
        self.n_slices += 1;
        if lane.entry.n.is_multiple_of(SEGMENT as u64) {
            self.end_segment(row)?;
        }
        if self.n_headers > self.max_headers() {
            self.drop_dense_headers();
        }
        Ok(())
    }

    fn max_headers(&self) -> usize {
        (self.n_slices / SLICES_PER_HEADER).min(MAX_HEADERS).max(self.min_headers)
    }

    /// Drops the headers of the lanes with the most slices, down to half of the limit, so that it is rarely called.
    fn drop_dense_headers(&mut self) {
        let mut n_free = self.max_headers() / 2;
        let mut sizes: Vec<(u64, usize)> = self.lanes.iter().enumerate().map(|(i, l)| (l.entry.n, i)).collect();
        sizes.sort_unstable();
        self.n_headers = 0;
        for (n, i) in sizes {
            let lane = &mut self.lanes[i];
            match n_free.checked_sub(n as usize) {
                Some(rest) if lane.headers.is_some() => {
                    n_free = rest;
                    self.n_headers += n as usize;
                }
                _ => lane.headers = None,
            }
        }
    }

    fn end_segment(&mut self, row: u32) -> io::Result<()> {
        let lane = &mut self.lanes[row as usize];
        let mut pyramid = std::mem::take(&mut lane.pyramid);
        lane.leaf.end(&mut pyramid);
        pyramid.close();
        let (start, end, upper) = (lane.segment_start, lane.entry.end, lane.upper.len() as u64);
        // The lowest and the highest level decide for all: slices of a lane do not overlap, so no node is longer than
        // the one above it, and the site of a node is a site of the lowest level.
        let ends = [0, LEVELS - 1].map(|level| pyramid.level(level));
        let is_narrow = ends.into_iter().flatten().all(|node| NarrowNode::from_node(node, start).is_some());
        let node_bytes = if is_narrow { size_of::<NarrowNode>() } else { size_of::<Node>() } as u32;
        lane.segments.push(SegmentEntry { lower: self.offset, upper, start, end, node_bytes, zero: 0 });
        let mut upper_bytes = std::mem::take(&mut lane.upper);
        (FIRST_UPPER_LEVEL..LEVELS)
            .for_each(|level| append_nodes(pyramid.level(level), start, is_narrow, &mut upper_bytes));
        upper_bytes.resize(upper_bytes.len().next_multiple_of(8), 0);
        lane.upper = upper_bytes;
        let mut bytes = std::mem::take(&mut self.lower);
        bytes.clear();
        (0..FIRST_UPPER_LEVEL).for_each(|level| append_nodes(pyramid.level(level), start, is_narrow, &mut bytes));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.write(&bytes)?;
        self.lower = bytes;
        Ok(())
    }

    /// Ends the current row group.
    pub(super) fn end_group(&mut self) {
        let mut offset = 0;
        self.touched_lanes.sort_unstable();
        for row in self.touched_lanes.drain(..) {
            let lane = &mut self.lanes[row as usize];
            let (first, group) = (lane.entry.n - lane.n_in_group, self.groups.len() as u32);
            lane.pieces.push(Piece { first, group, offset });
            offset += lane.n_in_group as u32;
            lane.n_in_group = 0;
        }
        self.groups.push(GroupEntry { first_args: self.n_earlier_args, ..self.group });
        self.group = NO_GROUP;
        self.n_earlier_args = self.n_earlier_args.saturating_add(std::mem::take(&mut self.n_group_args));
    }

    /// Writes open segments, upper nodes, headers, directory and trailer; returns the output.
    pub(super) fn finish(mut self, slices_len: u64, slices_crc: u32) -> io::Result<W> {
        for row in 0..self.lanes.len() as u32 {
            if !self.lanes[row as usize].entry.n.is_multiple_of(SEGMENT as u64) {
                self.end_segment(row)?;
            }
        }
        for row in 0..self.lanes.len() {
            let (offset, upper) = (self.offset, std::mem::take(&mut self.lanes[row].upper));
            self.lanes[row].segments.iter_mut().for_each(|segment| segment.upper += offset);
            self.write(&upper)?;
        }
        for row in 0..self.lanes.len() {
            if let Some(headers) = self.lanes[row].headers.take() {
                self.lanes[row].entry.headers = self.offset;
                self.write(bytemuck::cast_slice(&headers))?;
            }
        }
        let directory = self.offset;
        let (groups, lanes) = (std::mem::take(&mut self.groups), std::mem::take(&mut self.lanes));
        self.write(bytemuck::cast_slice(&groups))?;
        let (mut n_segments, mut n_pieces) = (0, 0);
        for lane in &lanes {
            let (first_segment, first_piece) = (n_segments, n_pieces);
            let entry = LaneEntry { first_segment, first_piece, n_pieces: lane.pieces.len() as u64, ..lane.entry };
            n_segments += lane.segments.len() as u64;
            n_pieces += entry.n_pieces;
            self.write(bytemuck::bytes_of(&entry))?;
        }
        for lane in &lanes {
            self.write(bytemuck::cast_slice(&lane.segments))?;
        }
        for lane in &lanes {
            self.write(bytemuck::cast_slice(&lane.pieces))?;
        }
        let (n_groups, n_lanes, version) = (groups.len() as u64, lanes.len() as u64, VERSION);
        let trailer = Trailer {
            directory,
            n_groups,
            n_lanes,
            n_segments,
            n_pieces,
            slices_len,
            slices_crc,
            version,
            zero: 0,
            crc: 0,
        };
        let bytes = bytemuck::bytes_of(&trailer);
        self.write(&bytes[..bytes.len() - size_of_val(&trailer.crc)])?;
        let crc = self.crc;
        self.write(&crc.to_le_bytes())?;
        Ok(self.out)
    }
}
