//! The pyramid of a segment, built while slices are appended.

use super::node::{FAN, LEAF, LEVELS, Node, rank};
use crate::columns::Columns;
use crate::site::Site;
use crate::slice::SliceHeader;

/// The levels over the slices of one segment.
#[derive(Debug, Default)]
pub struct Pyramid {
    levels: [Vec<Node>; LEVELS],
}

impl Pyramid {
    /// Appends the next [`LEAF`] slices. Only the last call may have fewer, but at least one.
    pub fn push(&mut self, slices: &Columns<'_>) {
        let mut node = leaf(slices);
        node.top += (self.levels[0].len() * LEAF) as u32;
        self.levels[0].push(node);
        for level in 1..LEVELS {
            let below = &self.levels[level - 1];
            if !below.len().is_multiple_of(FAN) {
                break;
            }
            let node = join_nodes(&below[below.len() - FAN..]);
            self.levels[level].extend(node);
        }
    }

    /// Completes a segment: appends the last node of each level, which covers the remaining nodes below.
    pub fn close(&mut self) {
        for level in 1..LEVELS {
            let rest = &self.levels[level - 1][self.levels[level].len() * FAN..];
            let node = join_nodes(rest);
            self.levels[level].extend(node);
        }
    }

    /// The nodes of a level, the lowest first.
    #[inline]
    pub fn level(&self, level: usize) -> &[Node] {
        &self.levels[level]
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|l| l.capacity() * size_of::<Node>()).sum()
    }
}

/// The node that covers several nodes; `None` for an empty slice.
fn join_nodes(nodes: &[Node]) -> Option<Node> {
    let (first, rest) = nodes.split_first()?;
    let mut node = *first;
    rest.iter().for_each(|next| node.join(next));
    Some(node)
}

/// The number of nodes of each level of a closed segment of `n` slices.
pub fn level_lens(n: usize) -> [usize; LEVELS] {
    let mut lens = [n.div_ceil(LEAF); LEVELS];
    for level in 1..LEVELS {
        lens[level] = lens[level - 1].div_ceil(FAN);
    }
    lens
}

/// The columns of one leaf's slices, where the slices are stored in no other columns.
#[derive(Clone, Debug, Default)]
pub struct Leaf {
    start: [i64; LEAF],
    end: [i64; LEAF],
    site: [Site; LEAF],
    node: [u32; LEAF],
    n: usize,
}

impl Leaf {
    /// A leaf of at most [`LEAF`] slices; `None` if one of them is `None`.
    pub fn from_slices(slices: impl Iterator<Item = Option<SliceHeader>>) -> Option<Leaf> {
        let mut leaf = Leaf::default();
        for slice in slices.take(LEAF) {
            leaf.push(slice?);
        }
        Some(leaf)
    }

    /// Appends a slice to a leaf that is not full. Returns whether it is full now.
    #[inline]
    pub fn push(&mut self, slice: SliceHeader) -> bool {
        let (i, SliceHeader { start, end, site, node }) = (self.n, slice);
        (self.start[i], self.end[i], self.site[i], self.node[i]) = (start, end, site, node);
        self.n += 1;
        self.n == LEAF
    }

    /// Appends the slices to a pyramid, if there are any, and removes them.
    pub fn end(&mut self, pyramid: &mut Pyramid) {
        if self.n > 0 {
            pyramid.push(&self.columns());
            self.n = 0;
        }
    }

    /// The slices as columns.
    #[inline]
    pub fn columns(&self) -> Columns<'_> {
        let n = self.n;
        Columns { start: &self.start[..n], end: &self.end[..n], site: &self.site[..n], node: &self.node[..n] }
    }
}

/// The node of one to [`LEAF`] slices; its `top` counts from the first.
fn leaf(slices: &Columns<'_>) -> Node {
    let Columns { start, end, site, node } = *slices;
    let (mut total, mut wait, mut highest, mut top) = (0, 0, i64::MIN, 0);
    for (i, ((start, end), site)) in start.iter().zip(end).zip(site).enumerate() {
        let dur = end - start;
        total += dur;
        wait += dur & site.mask();
        let rank = rank(dur, *site);
        (highest, top) = if rank > highest { (rank, i) } else { (highest, top) };
    }
    let (start, end, longest) = (start[0], end[end.len() - 1], end[top] - start[top]);
    Node { start, end, busy: total - wait, wait, longest, top: top as u32, site: site[top], node: node[top], zero: 0 }
}
