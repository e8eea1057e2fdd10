//! A span: consecutive slices of a lane that are drawn as one.

use crate::slice::SliceHeader;

/// Consecutive slices of a lane that are drawn as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of the first slice, ns from the origin.
    pub start: i64,
    /// End of the last slice (not included).
    pub end: i64,
    /// Index of the first slice in the lane.
    pub first: u32,
    /// Number of slices.
    pub count: u32,
    /// Total duration of the slices that work.
    pub busy_ns: i64,
    /// Total duration of the slices that wait.
    pub wait_ns: i64,
    /// Duration of `top`.
    pub top_ns: i64,
    /// Index of the longest slice that works, or of the longest if none works.
    pub top: u32,
    /// Row of the site of `top`.
    pub site: u32,
    /// Whether `top`, and so every slice, waits.
    pub waits: bool,
    /// Row of the node of `top`, or `u32::MAX`.
    pub node: u32,
}

impl Span {
    /// The span of one slice.
    #[inline]
    pub fn from_slice(slice: SliceHeader, index: u32) -> Span {
        let SliceHeader { start, end, site, node } = slice;
        let (top_ns, waits) = (end - start, site.waits());
        let (busy_ns, wait_ns) = if waits { (0, top_ns) } else { (top_ns, 0) };
        let (first, count, top, site) = (index, 1, index, site.row());
        Span { start, end, first, count, busy_ns, wait_ns, top_ns, top, site, waits, node }
    }
}
