//! A device's memory, cached: the driver is asked for large regions, which are divided and joined again here.
//!
//! The best fit is taken: the smallest free piece that holds what is asked for, at the lowest address. What remains of it
//! stays free, a piece that is freed joins its free neighbours of the region. When the device has no memory left,
//! regions that are free as a whole go back to the driver first.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::Address;

/// Pieces begin at multiples of this: what kernels read widest, and what drivers align to.
pub const ALIGNMENT: usize = 256;
/// The first region; each further one is twice as large as the last, up to [`MAX_GROWTH`].
const FIRST_REGION: usize = 2 << 20;
const MAX_GROWTH: usize = 1 << 30;

/// Where regions come from.
pub trait Source {
    /// Memory of this many bytes, at a multiple of [`ALIGNMENT`]; `None` where there is none.
    fn reserve(&mut self, n_bytes: usize) -> Option<Address>;
    /// Gives a region back.
    fn release(&mut self, region: Address);
}

/// What was handed out so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes handed out now.
    pub in_use: usize,
    /// The most bytes handed out at once.
    pub peak: usize,
    /// Bytes that the driver gave.
    pub reserved: usize,
    /// The most bytes that it gave at once.
    pub peak_reserved: usize,
    /// Pieces handed out so far.
    pub n_allocs: u64,
    /// Regions that the driver was asked for so far.
    pub n_regions: u64,
}

/// Why a piece could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} bytes wanted, {in_use} in use of {reserved} reserved, the largest free piece has {largest_free}, limit {limit}"
)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub wanted: usize,
    /// Bytes handed out.
    pub in_use: usize,
    /// Bytes that the driver gave.
    pub reserved: usize,
    /// Bytes of the largest free piece.
    pub largest_free: usize,
    /// Bytes that may be reserved.
    pub limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    n_bytes: usize,
    region: Address,
    is_free: bool,
}

/// A caching allocator of a device's memory.
pub struct Caching<S> {
    source: S,
    limit: usize,
    /// All pieces, by address: of each region they follow one another without a gap.
    pieces: BTreeMap<Address, Piece>,
    /// The free ones, by size.
    free: BTreeSet<(usize, Address)>,
    /// Sizes of the regions.
    regions: BTreeMap<Address, usize>,
    next_region: usize,
    stats: Stats,
}

fn rounded(n_bytes: usize) -> Option<usize> {
    n_bytes.max(1).checked_next_multiple_of(ALIGNMENT)
}

impl<S: Source> Caching<S> {
    /// An allocator that reserves at most `limit` bytes.
    pub fn new(source: S, limit: usize) -> Caching<S> {
        Caching {
            source,
            limit,
            pieces: BTreeMap::new(),
            free: BTreeSet::new(),
            regions: BTreeMap::new(),
            next_region: FIRST_REGION,
            stats: Stats::default(),
        }
    }

    /// What was handed out so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// A piece of at least `n_bytes`.
    ///
    /// # Errors
    /// Neither the limit nor the device allows it, not even after free regions went back.
    pub fn alloc(&mut self, n_bytes: usize) -> Result<Address, OutOfMemory> {
        let size = rounded(n_bytes).ok_or_else(|| self.error(n_bytes))?;
        let fit = match self.fit(size) {
            Some(fit) => fit,
            None => self.grow(size).ok_or_else(|| self.error(n_bytes))?,
        };
        Ok(self.take(fit, size))
    }

    /// Takes a piece back, whose address [`Caching::alloc`] gave; any other is ignored.
    pub fn free(&mut self, address: Address) {
        let Some(piece) = self.pieces.get(&address).copied().filter(|piece| !piece.is_free) else { return };
        self.stats.in_use -= piece.n_bytes;
        let (mut begin, mut n_bytes) = (address, piece.n_bytes);
        let before = self.pieces.range(..address).next_back().map(|(at, piece)| (*at, *piece));
        if let Some((at, before)) = before.filter(|(_, before)| before.is_free && before.region == piece.region) {
            self.free.remove(&(before.n_bytes, at));
            self.pieces.remove(&address);
            begin = at;
            n_bytes += before.n_bytes;
        }
        let after = address + piece.n_bytes as u64;
        let next = self.pieces.get(&after).copied();
        if let Some(next) = next.filter(|next| next.is_free && next.region == piece.region) {
            self.free.remove(&(next.n_bytes, after));
            self.pieces.remove(&after);
            n_bytes += next.n_bytes;
        }
        self.pieces.insert(begin, Piece { n_bytes, region: piece.region, is_free: true });
        self.free.insert((n_bytes, begin));
    }

    /// Gives all regions back that are free as a whole; how many bytes they have.
    pub fn trim(&mut self) -> usize {
        let is_whole = |(region, size): (&Address, &usize)| {
            let whole = self.pieces.get(region).is_some_and(|piece| piece.is_free && piece.n_bytes == *size);
            whole.then_some((*region, *size))
        };
        let whole: Vec<(Address, usize)> = self.regions.iter().filter_map(is_whole).collect();
        for (region, size) in &whole {
            self.regions.remove(region);
            self.pieces.remove(region);
            self.free.remove(&(*size, *region));
            self.source.release(*region);
            self.stats.reserved -= size;
        }
        whole.iter().map(|(_, size)| size).sum()
    }

    fn error(&self, wanted: usize) -> OutOfMemory {
        let largest_free = self.free.last().map_or(0, |(size, _)| *size);
        let (in_use, reserved) = (self.stats.in_use, self.stats.reserved);
        OutOfMemory { wanted, in_use, reserved, largest_free, limit: self.limit }
    }

    /// The best free piece.
    fn fit(&self, size: usize) -> Option<(usize, Address)> {
        self.free.range((size, 0)..).next().copied()
    }

    /// A free piece of a new region.
    fn grow(&mut self, size: usize) -> Option<(usize, Address)> {
        if let Some(fit) = self.reserve(self.next_region.max(size)) {
            self.next_region = (2 * self.next_region).min(MAX_GROWTH);
            return Some(fit);
        }
        // No more than is needed; then what nobody uses goes back first.
        self.reserve(size).or_else(|| {
            self.trim();
            self.reserve(size)
        })
    }

    fn reserve(&mut self, size: usize) -> Option<(usize, Address)> {
        if size > self.limit.saturating_sub(self.stats.reserved) {
            return None;
        }
        let region = self.source.reserve(size)?;
        self.regions.insert(region, size);
        self.pieces.insert(region, Piece { n_bytes: size, region, is_free: true });
        self.free.insert((size, region));
        self.stats.reserved += size;
        self.stats.peak_reserved = self.stats.peak_reserved.max(self.stats.reserved);
        self.stats.n_regions += 1;
        Some((size, region))
    }

    /// Hands the first `size` bytes of a free piece out.
    fn take(&mut self, (has, address): (usize, Address), size: usize) -> Address {
        self.free.remove(&(has, address));
        let rest = address + size as u64;
        if let Some(piece) = self.pieces.get_mut(&address) {
            piece.is_free = false;
            piece.n_bytes = size;
            let region = piece.region;
            if has > size {
                self.pieces.insert(rest, Piece { n_bytes: has - size, region, is_free: true });
                self.free.insert((has - size, rest));
            }
        }
        self.stats.in_use += size;
        self.stats.peak = self.stats.peak.max(self.stats.in_use);
        self.stats.n_allocs += 1;
        address
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Regions of a made-up address space of `room` bytes, side by side or with gaps.
    struct Ranges {
        room: usize,
        given: BTreeMap<Address, usize>,
        next: Address,
        gap: u64,
    }

    impl Source for Ranges {
        fn reserve(&mut self, n_bytes: usize) -> Option<Address> {
            if n_bytes > self.room {
                return None;
            }
            self.room -= n_bytes;
            let at = self.next;
            self.next += n_bytes as u64 + self.gap;
            self.given.insert(at, n_bytes);
            Some(at)
        }

        fn release(&mut self, region: Address) {
            self.room += self.given.remove(&region).expect("a region that was given");
        }
    }

    fn caching(room: usize, limit: usize, gap: u64) -> Caching<Ranges> {
        Caching::new(Ranges { room, given: BTreeMap::new(), next: 4096, gap }, limit)
    }

    #[test]
    fn what_is_freed_is_one_piece_again() {
        let mut a = caching(1 << 30, usize::MAX, 0);
        let [first, second, third] = [1000, 2000, 3000].map(|n| a.alloc(n).unwrap());
        assert_eq!((second, third), (first + 1024, first + 1024 + 2048));
        a.free(first);
        a.free(third);
        a.free(second);
        assert_eq!(a.alloc(FIRST_REGION).unwrap(), first);
        let stats = a.stats();
        assert_eq!((stats.in_use, stats.reserved, stats.n_regions, stats.n_allocs), (FIRST_REGION, FIRST_REGION, 1, 4));
    }

    #[test]
    fn regions_go_back_before_memory_is_short() {
        let mut a = caching(10 << 20, usize::MAX, 0);
        let held = a.alloc(1000).unwrap();
        let other = a.alloc(FIRST_REGION).unwrap();
        a.free(other);
        assert_eq!(a.stats().reserved, 6 << 20);
        let large = a.alloc(7 << 20).unwrap();
        assert_eq!(a.stats().reserved, 9 << 20);
        let error = a.alloc(3 << 20).unwrap_err();
        assert_eq!((error.wanted, error.reserved, error.largest_free), (3 << 20, 9 << 20, FIRST_REGION - 1024));
        a.free(large);
        a.free(held);
        assert_eq!((a.trim(), a.stats().reserved, a.stats().in_use), (9 << 20, 0, 0));
    }

    #[test]
    fn a_limit_is_kept_and_absurd_sizes_are_errors() {
        let mut a = caching(usize::MAX, 3 << 20, 0);
        assert!(a.alloc(2 << 20).is_ok());
        assert!(a.alloc(2 << 20).is_err());
        assert!(a.alloc(1 << 20).is_ok());
        assert_eq!(a.alloc(usize::MAX).unwrap_err().wanted, usize::MAX);
    }

    proptest! {
        /// Pieces never overlap, lie in regions that were given, and are all free again in the end.
        #[test]
        fn pieces_are_disjoint(
            steps in prop::collection::vec((any::<bool>(), 0usize..3_000_000, any::<prop::sample::Index>()), 1..200),
            gap in prop::sample::select(vec![0u64, 4096]), room in 4usize..40,
        ) {
            let mut a = caching(room << 20, usize::MAX, gap);
            let mut held: BTreeMap<Address, usize> = BTreeMap::new();
            for (is_alloc, size, which) in steps {
                if is_alloc || held.is_empty() {
                    let Ok(at) = a.alloc(size) else {
                        // Only where what is in use and this do not fit.
                        prop_assert!(a.stats().in_use + size > 0);
                        continue;
                    };
                    prop_assert_eq!(at % ALIGNMENT as u64, 0);
                    let before = held.range(..=at).next_back().map_or(0, |(at, n)| at + *n as u64);
                    let after = held.range(at..).next().map_or(u64::MAX, |(at, _)| *at);
                    prop_assert!(before <= at && at + size as u64 <= after);
                    let (region, n) = a.source.given.range(..=at).next_back().map(|(r, n)| (*r, *n)).unwrap();
                    prop_assert!(at + size as u64 <= region + n as u64);
                    held.insert(at, size);
                } else {
                    let at = *which.get(&held.keys().copied().collect::<Vec<_>>());
                    held.remove(&at);
                    a.free(at);
                }
                let charged: usize = held.values().map(|n| rounded(*n).unwrap()).sum();
                prop_assert_eq!(a.stats().in_use, charged);
                prop_assert_eq!(a.stats().reserved, a.source.given.values().sum::<usize>());
                // No two free neighbours of one region.
                let pieces: Vec<_> = a.pieces.iter().collect();
                for pair in pieces.windows(2) {
                    let is_one = pair[0].1.region == pair[1].1.region;
                    prop_assert!(!(is_one && pair[0].1.is_free && pair[1].1.is_free));
                }
            }
            held.keys().for_each(|at| a.free(*at));
            a.trim();
            prop_assert_eq!((a.stats().reserved, a.pieces.len(), a.free.len()), (0, 0, 0));
        }
    }
}
