//! The minimum, maximum and sum of any range of a growing column, without reading every number of the range.
//!
//! Level 0 has a node for every 32 numbers, each further level a node for every 32 nodes below. A query reads at most
//! 31 numbers or nodes at either end of each level. Only full groups have a node, so nodes never change. NaN and
//! infinities enter neither minimum, maximum nor sum: a flag for each of the three kinds says whether the range has
//! any.

use std::ops::Range;

/// Numbers per node of level 0, and nodes per node of the level above.
const FANOUT: usize = 32;

/// The extent of a range of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// The smallest finite number; infinity when there is none.
    pub min: f64,
    /// The largest finite number; minus infinity when there is none.
    pub max: f64,
    /// The sum of the finite numbers.
    pub sum: f64,
    /// The number of finite numbers.
    pub n_finite: u64,
    /// Whether there is a NaN.
    pub has_nan: bool,
    /// Whether there is a plus infinity.
    pub has_inf: bool,
    /// Whether there is a minus infinity.
    pub has_neg_inf: bool,
}

impl Extent {
    /// The extent of no numbers.
    pub const EMPTY: Self = Self {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        sum: 0.0,
        n_finite: 0,
        has_nan: false,
        has_inf: false,
        has_neg_inf: false,
    };

    /// Extends the extent by one number.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.sum += value;
            self.n_finite += 1;
        } else {
            self.has_nan |= value.is_nan();
            self.has_inf |= value == f64::INFINITY;
            self.has_neg_inf |= value == f64::NEG_INFINITY;
        }
    }

    /// Extends the extent by that of another range.
    pub fn merge(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.n_finite += other.n_finite;
        self.has_nan |= other.has_nan;
        self.has_inf |= other.has_inf;
        self.has_neg_inf |= other.has_neg_inf;
    }

    /// The mean of the finite numbers; NaN when there is none.
    pub fn mean(&self) -> f64 {
        self.sum / self.n_finite as f64
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        !(self.has_nan || self.has_inf || self.has_neg_inf)
    }
}

/// An [`Extent`] in 32 bytes.
#[derive(Debug, Clone, Copy)]
struct Node {
    min: f64,
    max: f64,
    sum: f64,
    /// `n_finite << 3`, with `has_nan`, `has_inf` and `has_neg_inf` in the lowest three bits.
    packed_count: u64,
}

impl From<Extent> for Node {
    fn from(e: Extent) -> Self {
        let flags = u64::from(e.has_nan) | u64::from(e.has_inf) << 1 | u64::from(e.has_neg_inf) << 2;
        Self { min: e.min, max: e.max, sum: e.sum, packed_count: e.n_finite << 3 | flags }
    }
}

impl From<&Node> for Extent {
    fn from(node: &Node) -> Self {
        let bits = node.packed_count;
        Self {
            min: node.min,
            max: node.max,
            sum: node.sum,
            n_finite: bits >> 3,
            has_nan: bits & 1 != 0,
            has_inf: bits & 2 != 0,
            has_neg_inf: bits & 4 != 0,
        }
    }
}

/// The nodes of all levels over a growing column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pyramid {
    levels: Vec<Vec<Node>>,
    /// The group of numbers after the last node of level 0, not full yet.
    open_group: OpenGroup,
}

#[derive(Debug, Clone)]
struct OpenGroup {
    extent: Extent,
    n: usize,
}

impl Default for OpenGroup {
    fn default() -> Self {
        Self { extent: Extent::EMPTY, n: 0 }
    }
}

impl Pyramid {
    pub fn push(&mut self, value: f64) {
        self.open_group.extent.add(value);
        self.open_group.n += 1;
        if self.open_group.n == FANOUT {
            let node = std::mem::take(&mut self.open_group).extent.into();
            self.push_node(0, node);
        }
    }

    fn push_node(&mut self, level: usize, node: Node) {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        let nodes = &mut self.levels[level];
        nodes.push(node);
        if nodes.len().is_multiple_of(FANOUT) {
            let mut extent = Extent::EMPTY;
            nodes[nodes.len() - FANOUT..].iter().for_each(|node| extent.merge(&node.into()));
            self.push_node(level + 1, extent.into());
        }
    }

    /// The extent of the numbers in `rows`; `value_at` returns the number of a row.
    pub fn extent(&self, rows: Range<usize>, value_at: impl Fn(usize) -> f64) -> Extent {
        let mut extent = Extent::EMPTY;
        let Range { start: mut lo, end: mut hi } = rows;
        while lo < hi && !lo.is_multiple_of(FANOUT) {
            extent.add(value_at(lo));
            lo += 1;
        }
        while lo < hi && !hi.is_multiple_of(FANOUT) {
            hi -= 1;
            extent.add(value_at(hi));
        }
        for nodes in &self.levels {
            (lo, hi) = (lo / FANOUT, hi / FANOUT);
            while lo < hi && !lo.is_multiple_of(FANOUT) {
                extent.merge(&(&nodes[lo]).into());
                lo += 1;
            }
            while lo < hi && !hi.is_multiple_of(FANOUT) {
                hi -= 1;
                extent.merge(&(&nodes[hi]).into());
            }
        }
        extent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_range_is_what_a_scan_finds(
            seed in prop::collection::vec(prop_oneof![9 => -50i32..50, 1 => Just(1000)], 1..200),
            n in 1usize..5000,
            ends in (0usize..5000, 0usize..5000),
        ) {
            let value = |row: usize| match seed[row % seed.len()] {
                1000 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][row % 3],
                v => f64::from(v) + (row % 7) as f64,
            };
            let mut pyramid = Pyramid::default();
            (0..n).for_each(|row| pyramid.push(value(row)));
            let (a, b) = (ends.0.min(n), ends.1.min(n));
            let rows = a.min(b)..a.max(b);
            let mut expected = Extent::EMPTY;
            rows.clone().for_each(|row| expected.add(value(row)));
            prop_assert_eq!(pyramid.extent(rows, value), expected);
        }
    }
}
