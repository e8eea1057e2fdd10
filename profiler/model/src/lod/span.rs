//! A span: what a lane shows in one place.

use crate::slice::SliceHeader;

/// What a lane shows in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of its first slice, ns from the origin.
    pub start: i64,
    /// End of its last slice (not included).
    pub end: i64,
    /// Index of its first slice in the lane.
    pub first: u32,
    /// Number of its slices, which follow each other.
    pub count: u32,
    /// Sum of the durations of those that work.
    pub busy_ns: i64,
    /// Sum of the durations of those that wait.
    pub wait_ns: i64,
    /// Duration of `top`.
    pub top_ns: i64,
    /// Index of the longest that works; of the longest, where none works.
    pub top: u32,
    /// Its row of the sites.
    pub site: u32,
    /// Whether it waits: then all of them do.
    pub waits: bool,
    /// Its row of the nodes, or `u32::MAX`.
    pub node: u32,
}

impl Span {
    /// One slice.
    pub fn of(slice: SliceHeader, index: u32) -> Span {
        let SliceHeader { start, end, site, node } = slice;
        let (top_ns, waits) = (end - start, site.waits());
        let (busy_ns, wait_ns) = if waits { (0, top_ns) } else { (top_ns, 0) };
        let (first, count, top, site) = (index, 1, index, site.row());
        Span { start, end, first, count, busy_ns, wait_ns, top_ns, top, site, waits, node }
    }
}
