//! A slice's site as the columns keep it: the row of `Store::sites`, marked where the slice waits.
//!
//! The level of detail asks of every slice of a pixel whether it works or waits: a bit of what it reads anyway, and no table.

use crate::names::SiteInfo;
use bytemuck::{Pod, Zeroable};

/// The highest bit is the mark, the others are the row.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Site(u32);

const MARK: u32 = 1 << 31;

impl Site {
    /// A row, and whether its slices wait. Of the row 31 bits are kept: no table is as long.
    pub fn new(row: u32, waits: bool) -> Site {
        Site(row & !MARK | if waits { MARK } else { 0 })
    }

    /// A row of a table; one that it does not have is taken for work.
    pub fn of(sites: &[SiteInfo], row: u32) -> Site {
        Site::new(row, sites.get(row as usize).is_some_and(SiteInfo::waits))
    }

    /// The row.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 & !MARK
    }

    /// Whether its slices wait.
    #[inline]
    pub fn waits(self) -> bool {
        self.0 & MARK != 0
    }

    /// All ones where it waits, else 0: to choose without a jump.
    #[inline]
    pub fn mask(self) -> i64 {
        i64::from(self.0.cast_signed() >> 31)
    }

    /// As one number that is small where the row is: 2 * row, and 1 more where it waits.
    pub fn to_code(self) -> u32 {
        self.0.rotate_left(1)
    }

    /// The inverse of [`Site::to_code`].
    pub fn of_code(code: u32) -> Site {
        Site(code.rotate_right(1))
    }
}
