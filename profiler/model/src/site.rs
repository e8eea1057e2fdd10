//! A slice's site in a column: the row of `Store::sites`, with a bit that says whether the slice waits.
//!
//! The level of detail needs this bit of every slice; storing it with the row saves a look-up in a table.

use crate::names::SiteInfo;
use bytemuck::{Pod, Zeroable};

/// A site: the highest bit is set if the slices wait, the other bits are the row.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Site(u32);

/// Set if the slices wait.
const WAITS_BIT: u32 = 1 << 31;

impl Site {
    /// A site with a row, whose lower 31 bits are used: no table is longer.
    #[inline]
    pub fn new(row: u32, waits: bool) -> Site {
        Site(row & !WAITS_BIT | if waits { WAITS_BIT } else { 0 })
    }

    /// The site of a row of `sites`; a site that the table lacks counts as working.
    #[inline]
    pub fn lookup(sites: &[SiteInfo], row: u32) -> Site {
        Site::new(row, sites.get(row as usize).is_some_and(SiteInfo::waits))
    }

    /// The row.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 & !WAITS_BIT
    }

    /// Whether the site's slices wait.
    #[inline]
    pub fn waits(self) -> bool {
        self.0 & WAITS_BIT != 0
    }

    /// All bits set if the slices wait, else 0: for branchless code.
    #[inline]
    pub fn mask(self) -> i64 {
        i64::from(self.0.cast_signed() >> 31)
    }

    /// A number that is small for small rows: 2 * row, plus 1 if the slices wait.
    #[inline]
    pub fn to_code(self) -> u32 {
        self.0.rotate_left(1)
    }

    /// The inverse of [`Site::to_code`].
    #[inline]
    pub fn from_code(code: u32) -> Site {
        Site(code.rotate_right(1))
    }
}
