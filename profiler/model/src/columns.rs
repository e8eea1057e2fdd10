//! Slices in columns: the form of many slices in memory, whether recorded, sealed or remote.

use crate::event::Event;
use crate::site::Site;
use crate::slice::SliceHeader;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// The part of a slice that drawing does not need.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SliceDetails {
    /// Meaning by category.
    pub arg: u64,
    /// Meaning by category.
    pub correlation: u32,
    /// Row of the arguments, or [`NO_ARGS`](crate::NO_ARGS).
    pub args: u32,
}

impl SliceDetails {
    /// The details of a slice.
    #[inline]
    #[must_use]
    pub fn from_event(slice: &Event) -> SliceDetails {
        SliceDetails { arg: slice.arg, correlation: slice.correlation, args: slice.args }
    }
}

/// Slices as a structure of arrays of the same length, because for most slices a query reads only start and end.
#[derive(Clone, Debug, Default)]
pub struct SliceColumns {
    /// Starts, ns from the origin.
    pub start: Vec<i64>,
    /// Ends (not included).
    pub end: Vec<i64>,
    /// Sites.
    pub site: Vec<Site>,
    /// Rows of the nodes, or `u32::MAX`.
    pub node: Vec<u32>,
    /// The other fields.
    pub details: Vec<SliceDetails>,
}

/// The columns that drawing needs, of consecutive slices.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    /// Starts.
    pub start: &'a [i64],
    /// Ends.
    pub end: &'a [i64],
    /// Sites.
    pub site: &'a [Site],
    /// Rows of the nodes.
    pub node: &'a [u32],
}

impl SliceColumns {
    /// Columns without slices and with room for `n`.
    #[must_use]
    pub fn with_capacity(n: usize) -> SliceColumns {
        SliceColumns {
            start: Vec::with_capacity(n),
            end: Vec::with_capacity(n),
            site: Vec::with_capacity(n),
            node: Vec::with_capacity(n),
            details: Vec::with_capacity(n),
        }
    }

    /// `n` slices of zeros, to be [set](SliceColumns::set).
    #[must_use]
    pub fn zeroed(n: usize) -> SliceColumns {
        SliceColumns {
            start: vec![0; n],
            end: vec![0; n],
            site: vec![Site::default(); n],
            node: vec![0; n],
            details: vec![SliceDetails::zeroed(); n],
        }
    }

    /// Number of slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are no slices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Appends a slice.
    #[inline]
    pub fn push(&mut self, header: SliceHeader, details: SliceDetails) {
        self.start.push(header.start);
        self.end.push(header.end);
        self.site.push(header.site);
        self.node.push(header.node);
        self.details.push(details);
    }

    /// Replaces a slice.
    ///
    /// # Panics
    /// Panics if `i` is past the end.
    #[inline]
    pub fn set(&mut self, i: usize, header: SliceHeader, details: SliceDetails) {
        let SliceHeader { start, end, site, node } = header;
        (self.start[i], self.end[i], self.site[i], self.node[i], self.details[i]) = (start, end, site, node, details);
    }

    /// Removes all slices and retains the capacity.
    pub fn clear(&mut self) {
        self.start.clear();
        self.end.clear();
        self.site.clear();
        self.node.clear();
        self.details.clear();
    }

    /// A slice, with depth 0; `None` past the end.
    #[inline]
    #[must_use]
    pub fn slice(&self, i: usize) -> Option<Event> {
        let SliceDetails { arg, correlation, args } = *self.details.get(i)?;
        let slice = Event::slice(self.site[i].row(), self.start[i], self.end[i]);
        Some(Event { node: self.node[i], correlation, arg, args, ..slice })
    }

    /// The header of a slice; `None` past the end.
    #[inline]
    #[must_use]
    pub fn header(&self, i: usize) -> Option<SliceHeader> {
        Some(SliceHeader { start: *self.start.get(i)?, end: self.end[i], site: self.site[i], node: self.node[i] })
    }

    /// The columns of a range of slices; `None` past the end.
    #[inline]
    #[must_use]
    pub fn columns(&self, range: Range<usize>) -> Option<Columns<'_>> {
        Some(Columns {
            start: self.start.get(range.clone())?,
            end: self.end.get(range.clone())?,
            site: self.site.get(range.clone())?,
            node: self.node.get(range)?,
        })
    }

    /// A checksum over the slices.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        let numbers = [bytemuck::cast_slice(&self.start), bytemuck::cast_slice(&self.end)];
        let names = [bytemuck::cast_slice(&self.site), bytemuck::cast_slice(&self.node)];
        let parts = numbers.into_iter().chain(names).chain([bytemuck::cast_slice(&self.details)]);
        parts.fold(0, crc32c::crc32c_append)
    }

    /// Memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.start.capacity() + self.end.capacity()) * size_of::<i64>()
            + (self.site.capacity() + self.node.capacity()) * size_of::<u32>()
            + self.details.capacity() * size_of::<SliceDetails>()
    }
}
