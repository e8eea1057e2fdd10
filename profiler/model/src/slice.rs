//! A slice by value: an event with its identity, and the part of it that drawing needs.

use crate::event::Event;
use crate::names::SiteInfo;
use crate::site::Site;
use bytemuck::{Pod, Zeroable};
use std::ops::Deref;

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

/// A slice of a lane: its event, whose fields it has as its own, and its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRef {
    /// Its identity.
    pub id: SliceId,
    /// Its times, names and numbers; the depth is the lane.
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
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The site.
    pub site: Site,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
}

impl SliceHeader {
    /// That of a slice of a store with these sites.
    #[inline]
    #[must_use]
    pub fn of(slice: &Event, sites: &[SiteInfo]) -> SliceHeader {
        SliceHeader { start: slice.start, end: slice.end, site: Site::of(sites, slice.site), node: slice.node }
    }
}
