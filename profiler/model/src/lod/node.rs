//! Nodes of a pyramid: the totals of several consecutive slices.

use super::span::Span;
use crate::layout::SEGMENT;
use crate::site::Site;
use bytemuck::{Pod, Zeroable};

/// Slices per node of the lowest level.
pub const LEAF: usize = 16;
/// Nodes per node of the level above.
pub(super) const FAN: usize = 4;
/// Number of levels. The highest has one node per segment: 16 * 4^5 = 16,384 slices.
pub const LEVELS: usize = 6;
const _: () = assert!(LEAF * FAN.pow(LEVELS as u32 - 1) == SEGMENT);

/// The rank of a slice. `top` is the slice with the highest rank: the longest, where each that works ranks above all
/// that wait.
#[inline]
pub(super) fn rank(dur: i64, site: Site) -> i64 {
    dur | (site.mask() & i64::MIN)
}

/// Several consecutive slices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Node {
    /// Start of the first slice.
    pub start: i64,
    /// End of the last slice.
    pub end: i64,
    /// Total duration of the slices that work.
    pub(super) busy: i64,
    /// Total duration of the slices that wait.
    pub(super) wait: i64,
    /// Duration of `top`.
    pub(super) longest: i64,
    /// Index in the segment of the slice with the highest [`rank`].
    pub(super) top: u32,
    /// Site and node of `top`.
    pub(super) site: Site,
    pub(super) node: u32,
    pub(super) zero: u32,
}

impl Node {
    /// The node with the slices of a span; `first` is the index from which `top` counts.
    #[inline]
    pub fn from_span(span: &Span, first: u32) -> Node {
        let Span { start, end, busy_ns: busy, wait_ns: wait, top_ns: longest, site, waits, node, .. } = *span;
        Node { start, end, busy, wait, longest, top: span.top - first, site: Site::new(site, waits), node, zero: 0 }
    }

    /// An upper bound of the slices' durations, ns.
    #[inline]
    pub fn longest(&self) -> i64 {
        self.longest.max(self.wait)
    }

    /// Adds the slices of the next node.
    #[inline]
    pub(super) fn join(&mut self, next: &Node) {
        self.end = next.end;
        self.busy += next.busy;
        self.wait += next.wait;
        if rank(next.longest, next.site) > rank(self.longest, self.site) {
            (self.longest, self.top, self.site, self.node) = (next.longest, next.top, next.site, next.node);
        }
    }
}

/// The short form of a node: times are 32 bits and count from the segment's start. A sealed trace uses it for segments
/// that are shorter than 2^32 ns and whose sites have small rows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct NarrowNode {
    start: u32,
    end: u32,
    busy: u32,
    wait: u32,
    longest: u32,
    /// `top` in the lower bits, above them the site's code.
    top_and_site: u32,
    node: u32,
}

/// Bits of a slice's index in its segment.
const TOP_BITS: u32 = SEGMENT.trailing_zeros();

impl NarrowNode {
    /// The short form of a node in a segment that starts at `base`; `None` if a time or the site's row is too large.
    pub fn from_node(node: &Node, base: i64) -> Option<NarrowNode> {
        let time = |ns: i64| u32::try_from(ns).ok();
        let (start, end) = (time(node.start.checked_sub(base)?)?, time(node.end.checked_sub(base)?)?);
        let (busy, wait, longest) = (time(node.busy)?, time(node.wait)?, time(node.longest)?);
        let code = node.site.to_code();
        let fits = node.top >> TOP_BITS == 0 && code.leading_zeros() >= TOP_BITS;
        let top_and_site = fits.then_some(code << TOP_BITS | node.top)?;
        Some(NarrowNode { start, end, busy, wait, longest, top_and_site, node: node.node })
    }

    /// The long form.
    #[inline]
    fn wide(&self, base: i64) -> Node {
        let NarrowNode { start, end, busy, wait, longest, top_and_site, node } = *self;
        let [start, end, busy, wait, longest] = [start, end, busy, wait, longest].map(i64::from);
        // Wrapping: in a damaged file the base may be any number.
        let (start, end) = (base.wrapping_add(start), base.wrapping_add(end));
        let (top, site) = (top_and_site % SEGMENT as u32, Site::from_code(top_and_site >> TOP_BITS));
        Node { start, end, busy, wait, longest, top, site, node, zero: 0 }
    }
}

/// The nodes of a level of a segment, in either form.
#[derive(Clone, Copy, Debug)]
pub enum Nodes<'a> {
    /// Nodes in the long form.
    Wide(&'a [Node]),
    /// Nodes in the short form, and the segment's start.
    Narrow(&'a [NarrowNode], i64),
}

impl Nodes<'_> {
    /// A node by its index.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Node> {
        match self {
            Nodes::Wide(nodes) => nodes.get(i).copied(),
            Nodes::Narrow(nodes, base) => nodes.get(i).map(|node| node.wide(*base)),
        }
    }

    /// From a node's start to its end, ns.
    #[inline]
    pub fn width_ns(&self, i: usize) -> Option<i64> {
        match self {
            Nodes::Wide(nodes) => nodes.get(i).map(|node| node.end - node.start),
            Nodes::Narrow(nodes, _) => nodes.get(i).map(|node| i64::from(node.end) - i64::from(node.start)),
        }
    }

    /// Index of the first node for which `is_before` is false; `is_before` must be true for a prefix of the nodes.
    #[inline]
    pub fn partition_point(&self, is_before: impl Fn(&Node) -> bool) -> usize {
        match self {
            Nodes::Wide(nodes) => nodes.partition_point(is_before),
            Nodes::Narrow(nodes, base) => nodes.partition_point(|node| is_before(&node.wide(*base))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_sealed_trace_are_as_before() {
        let node = |top, row, waits| {
            let site = Site::new(row, waits);
            Node { start: 1_000, end: 5_000, busy: 30, wait: 3_000, longest: 2_900, top, site, node: 7, zero: 0 }
        };
        for good in [node(0, 0, false), node(SEGMENT as u32 - 1, (1 << 17) - 1, true)] {
            assert_eq!(NarrowNode::from_node(&good, 900).unwrap().wide(900), good);
        }
        let long = Node { wait: 1 << 32, ..node(0, 0, false) };
        for bad in [node(SEGMENT as u32, 0, false), node(0, 1 << 17, false), node(0, u32::MAX >> 1, true), long] {
            assert_eq!(NarrowNode::from_node(&bad, 900), None);
        }
        assert_eq!((size_of::<Node>(), size_of::<NarrowNode>()), (56, 28));
    }
}
