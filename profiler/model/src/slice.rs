//! A slice: its identity, its row in a lane, and the part of it that drawing needs.

use crate::names::SiteInfo;
use crate::site::Site;
use bytemuck::{Pod, Zeroable};

/// Identity of a slice, for as long as the store lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId {
    /// Row of `Store::tracks`.
    pub track: u32,
    /// Index of `Track::lanes`.
    pub lane: u32,
    /// How many slices the lane had before it.
    pub ordinal: u64,
}

/// A slice, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRef {
    /// Its identity.
    pub id: SliceId,
    /// Begin, ns from the trace's origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Row of `Store::sites`.
    pub site: u32,
    /// Row of `Store::nodes`, or `u32::MAX`.
    pub node: u32,
    /// Meaning by category; for `op`: row of the node whose end made it ready, or `u32::MAX`.
    pub correlation: u32,
    /// Meaning by category; for `op`: step id << 32 | queue wait in ns.
    pub arg: u64,
    /// Row of `Store::args`, or `u32::MAX`.
    pub args: u32,
}

impl SliceRef {
    /// The row in its lane; `sites` are those of its store.
    #[must_use]
    pub fn row(&self, sites: &[SiteInfo]) -> Row {
        let SliceRef { start, end, site, node, correlation, arg, args, .. } = *self;
        Row { start, end, site: Site::of(sites, site), node, correlation, arg, args }
    }

    /// How long it lasted.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// What a lane stores of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The site.
    pub site: Site,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Meaning by category.
    pub correlation: u32,
    /// Meaning by category.
    pub arg: u64,
    /// Row of the arguments, or `u32::MAX`.
    pub args: u32,
}

impl Row {
    /// The part that drawing needs.
    #[inline]
    #[must_use]
    pub fn header(&self) -> SliceHeader {
        SliceHeader { start: self.start, end: self.end, site: self.site, node: self.node }
    }
}

/// The part of a slice that drawing needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SliceHeader {
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The site.
    pub site: Site,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
}
