//! A slice by value: an event with its identity, and the part of it that drawing needs.

use crate::event::Event;
use crate::names::SiteInfo;
use crate::site::Site;
use bytemuck::{Pod, Zeroable};
use std::ops::Deref;

/// Identity of a slice, valid as long as the store exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId {
    /// Row of `Store::tracks`.
    pub track: u32,
    /// Index of `Track::lanes`.
    pub lane: u32,
    /// Number of slices that the lane had before this one, evicted ones included.
    pub ordinal: u64,
}

/// A slice of a lane: its event, to which it dereferences, and its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRef {
    /// Identity.
    pub id: SliceId,
    /// Times, names and numbers; the depth is the lane.
    pub event: Event,
}

impl Deref for SliceRef {
    type Target = Event;

    #[inline]
    fn deref(&self) -> &Event {
        &self.event
    }
}

/// The part of a slice that drawing needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SliceHeader {
    /// Start, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The site.
    pub site: Site,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
}

impl SliceHeader {
    /// The header of a slice in a store with these sites.
    #[inline]
    #[must_use]
    pub fn from_event(slice: &Event, sites: &[SiteInfo]) -> SliceHeader {
        SliceHeader { start: slice.start, end: slice.end, site: Site::lookup(sites, slice.site), node: slice.node }
    }
}
