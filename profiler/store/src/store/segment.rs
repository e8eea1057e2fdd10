//! A segment: neighbouring slices of a lane in columns, with their pyramid.

use std::ops::Range;
use trace_model::lod::{Columns, LEAF, Node, Pyramid, Slices};
use trace_model::{Row, Site};

/// Up to [`SEGMENT`](trace_model::layout::SEGMENT) slices, a structure of arrays.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) start: Vec<i64>,
    pub(super) end: Vec<i64>,
    site: Vec<Site>,
    node: Vec<u32>,
    correlation: Vec<u32>,
    arg: Vec<u64>,
    args: Vec<u32>,
    pub(super) pyramid: Pyramid,
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.start.len()
    }

    pub(super) fn with_capacity(n: usize) -> Segment {
        Segment {
            start: Vec::with_capacity(n),
            end: Vec::with_capacity(n),
            site: Vec::with_capacity(n),
            node: Vec::with_capacity(n),
            correlation: Vec::with_capacity(n),
            arg: Vec::with_capacity(n),
            args: Vec::with_capacity(n),
            pyramid: Pyramid::default(),
        }
    }

    pub(super) fn push(&mut self, row: Row) {
        self.start.push(row.start);
        self.end.push(row.end);
        self.site.push(row.site);
        self.node.push(row.node);
        self.correlation.push(row.correlation);
        self.arg.push(row.arg);
        self.args.push(row.args);
        let n = self.len();
        if n.is_multiple_of(LEAF) {
            let leaf = n - LEAF..n;
            let (start, end) = (&self.start[leaf.clone()], &self.end[leaf.clone()]);
            self.pyramid.push(&Columns { start, end, site: &self.site[leaf.clone()], node: &self.node[leaf] });
        }
    }

    /// Forgets its slices, but not the room.
    pub(super) fn clear(&mut self) {
        let Segment { start, end, site, node, correlation, arg, args, pyramid } = self;
        [start, end].into_iter().for_each(Vec::clear);
        [node, correlation, args].into_iter().for_each(Vec::clear);
        site.clear();
        arg.clear();
        *pyramid = Pyramid::default();
    }

    pub(super) fn row(&self, i: usize) -> Option<Row> {
        Some(Row {
            start: *self.start.get(i)?,
            end: self.end[i],
            site: self.site[i],
            node: self.node[i],
            correlation: self.correlation[i],
            arg: self.arg[i],
            args: self.args[i],
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.start.capacity() * 8
            + self.end.capacity() * 8
            + self.site.capacity() * 4
            + self.node.capacity() * 4
            + self.correlation.capacity() * 4
            + self.arg.capacity() * 8
            + self.args.capacity() * 4
            + self.pyramid.bytes()
    }
}

impl Slices for &Segment {
    fn n_slices(&self) -> usize {
        self.start.len()
    }

    #[inline]
    fn node(&self, level: usize, i: usize) -> Option<Node> {
        self.pyramid.level(level).get(i).copied()
    }

    fn leaf(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        self.side_by_side(range, see)
    }

    fn side_by_side(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        let (start, end) = (&self.start[range.clone()], &self.end[range.clone()]);
        see(Columns { start, end, site: &self.site[range.clone()], node: &self.node[range] });
        true
    }
}
