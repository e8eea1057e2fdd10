//! Reference-counted memory of tensors, and the allocator of a device that hands it out.
//!
//! A buffer is one block: a header of 64 bytes, then the data, so 64-byte aligned and without a second allocation:
//!
//! ```text
//! 0        8        16       24       32                48     52       64
//! | refs   | data   | bytes  | class  | owner           | node | (free) | data ...
//! ```
//!
//! `node` is the event node whose kernel took the block in a traced step; the event of its release names that
//! node, whoever frees it.
//! `owner` says where the block goes when the last reference is dropped: back to its allocator's cache of that size
//! class, or to a foreign owner (a `Vec` that a tensor adopted without copying; then `data` points into it).
//! Memory handed out is always initialised: zero when fresh, old contents when reused.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use events::NodeId;
use parking_lot::Mutex;

pub use crate::memory::AllocError;
use crate::memory::{self, Cache, Charge};

const HEADER: usize = 64;
/// Four classes per power of two, from 64 bytes: at most a quarter of a block is wasted.
const N_CLASSES: usize = 4 * 36;
/// Smaller allocations leave no event of their own, but count in the bytes in use that the next event reports. A training
/// step makes thousands of them: with 4 KiB here, memory was most of what tracing an LSTM costs.
const TRACED_BYTES: usize = 64 << 10;

#[repr(C, align(64))]
struct Header {
    refs: AtomicUsize,
    data: *mut u8,
    bytes: usize,
    class: usize,
    owner: Owner,
    node: NodeId,
}

const _: () = assert!(size_of::<Header>() == HEADER);

enum Owner {
    /// A block in an allocator's cache, referenced by nobody.
    Cache,
    Allocator(Allocator),
    Foreign(Box<dyn Any + Send + Sync>),
}

/// Shared, aligned, initialised memory. Clones share it; it goes back to its owner with the last one.
pub struct Buffer {
    header: NonNull<Header>,
}

// SAFETY: the header's count is atomic, its other fields do not change while shared, and the data is only written
// through `as_mut_ptr` of a unique buffer.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Memory that belongs to `vec`, without copying it.
    ///
    /// # Errors
    /// The process has more memory than it may have; `vec` is dropped.
    pub fn adopt<T: crate::dtype::Element>(vec: Vec<T>) -> Result<Buffer, AllocError> {
        let charge = Charge::taken(size_of_val(vec.as_slice()))?;
        Ok(Buffer::foreign(vec, charge))
    }

    /// As [`Buffer::adopt`], even where there is too much already.
    pub(crate) fn adopt_unchecked<T: crate::dtype::Element>(vec: Vec<T>) -> Buffer {
        let charge = Charge::unchecked(size_of_val(vec.as_slice()));
        Buffer::foreign(vec, charge)
    }

    fn foreign<T: crate::dtype::Element>(mut vec: Vec<T>, charge: Charge) -> Buffer {
        let (data, bytes) = (vec.as_mut_ptr().cast::<u8>(), size_of_val(vec.as_slice()));
        let layout = Layout::new::<Header>();
        // SAFETY: the layout is not empty.
        let header = unsafe { alloc_zeroed(layout) }.cast::<Header>();
        let Some(header) = NonNull::new(header) else { handle_alloc_error(layout) };
        let fields = Header {
            refs: AtomicUsize::new(1),
            data,
            bytes,
            class: 0,
            owner: Owner::Foreign(Box::new((vec, charge))),
            node: NodeId::NONE,
        };
        // SAFETY: fresh memory of the header's layout. The vector's data does not move with the vector.
        unsafe { header.write(fields) };
        Buffer { header }
    }

    fn header(&self) -> &Header {
        // SAFETY: the header lives as long as a reference to it, and only `refs` changes while shared.
        unsafe { self.header.as_ref() }
    }

    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.header().bytes
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data, [`Buffer::len`] initialised bytes, aligned to 64 (to the element where adopted).
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.header().data
    }

    /// The data for writing, where nobody else holds this buffer.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Option<*mut u8> {
        self.is_unique().then(|| self.header().data)
    }

    /// Whether nobody else holds this buffer.
    #[inline]
    pub fn is_unique(&self) -> bool {
        // Acquire: what former holders did with the data happened before we write to it.
        self.header().refs.load(Ordering::Acquire) == 1
    }
}

impl Clone for Buffer {
    #[inline]
    fn clone(&self) -> Buffer {
        let refs = self.header().refs.fetch_add(1, Ordering::Relaxed);
        assert!(refs < usize::MAX / 2, "a buffer's reference count overflowed");
        Buffer { header: self.header }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if self.header().refs.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            release(self.header);
        }
    }
}

#[cold]
fn free_block(header: NonNull<Header>, class: usize) {
    Charge::give_back(class_bytes(class));
    // SAFETY: called with blocks that nobody references, once, with the layout they were allocated with.
    unsafe {
        header.drop_in_place();
        dealloc(header.as_ptr().cast(), block_layout(class));
    }
}

fn release(mut header: NonNull<Header>) {
    // SAFETY: the last reference was just dropped.
    let fields = unsafe { header.as_mut() };
    match std::mem::replace(&mut fields.owner, Owner::Cache) {
        Owner::Allocator(allocator) => allocator.take_back(header),
        Owner::Foreign(owner) => {
            drop(owner);
            // SAFETY: allocated in `adopt` with this layout.
            unsafe { dealloc(header.as_ptr().cast(), Layout::new::<Header>()) };
        }
        Owner::Cache => {}
    }
}

/// Bytes of the data of a block of this class.
fn class_bytes(class: usize) -> usize {
    (4 + class % 4) << (4 + class / 4)
}

/// The smallest class that holds `bytes`.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes <= 64 {
        return Some(0);
    }
    let log = (bytes - 1).ilog2() as usize; // 2^log <= bytes - 1
    let quarter = ((bytes - 1) >> (log - 2)) & 3;
    let class = 4 * (log - 6) + quarter + 1;
    (class < N_CLASSES).then_some(class)
}

/// What an allocator charges for so many bytes.
pub fn charged(bytes: usize) -> usize {
    class_of(bytes).map_or(usize::MAX, class_bytes)
}

fn block_layout(class: usize) -> Layout {
    Layout::from_size_align(HEADER + class_bytes(class), 64).expect("a class is far below isize::MAX")
}

/// What an allocator did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocStats {
    /// Bytes handed out now.
    pub in_use: usize,
    /// The most bytes handed out at once.
    pub peak: usize,
    /// Allocations so far.
    pub n_allocs: u64,
    /// Allocations that needed the system's allocator.
    pub n_fresh: u64,
    /// Bytes that wait in the cache.
    pub cached: usize,
}

/// The memory of one device: a bounded cache of blocks by size class over the system's allocator. A cheap handle.
#[derive(Clone)]
pub struct Allocator(Arc<Pool>);

struct Pool {
    device: String,
    /// Call site of its events.
    site: events::SiteId,
    limit: usize,
    cache_limit: usize,
    in_use: AtomicUsize,
    peak: AtomicUsize,
    n_allocs: AtomicU64,
    n_fresh: AtomicU64,
    cached: AtomicUsize,
    free: Vec<Mutex<Vec<Block>>>,
}

struct Block(NonNull<Header>);
// SAFETY: a block in the cache is referenced by nobody else.
unsafe impl Send for Block {}

impl Cache for Pool {
    fn trim(&self) {
        for (class, blocks) in self.free.iter().enumerate() {
            let blocks = std::mem::take(&mut *blocks.lock());
            self.cached.fetch_sub(blocks.len() * class_bytes(class), Ordering::Relaxed);
            blocks.into_iter().for_each(|block| free_block(block.0, class));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.trim();
    }
}

impl Allocator {
    /// Bytes kept for reuse unless said otherwise.
    pub const CACHE_LIMIT: usize = 1 << 30;

    /// An allocator for `device` that hands out at most `limit` bytes at a time.
    pub fn new(device: &str, limit: usize) -> Allocator {
        let pool = Arc::new(Pool {
            device: device.to_owned(),
            site: events::site("alloc", device),
            limit,
            cache_limit: Allocator::CACHE_LIMIT.min(limit),
            in_use: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            n_allocs: AtomicU64::new(0),
            n_fresh: AtomicU64::new(0),
            cached: AtomicUsize::new(0),
            free: (0..N_CLASSES).map(|_| Mutex::default()).collect(),
        });
        memory::register(&pool);
        Allocator(pool)
    }

    /// The allocator for tensors made outside of a session: constants, feeds.
    pub fn host() -> &'static Allocator {
        static HOST: std::sync::OnceLock<Allocator> = std::sync::OnceLock::new();
        HOST.get_or_init(|| Allocator::new("/device:CPU:0", usize::MAX))
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.0.device
    }

    /// A buffer of `bytes` initialised (not necessarily zero) bytes.
    ///
    /// # Errors
    /// The limit, or the machine's memory, does not allow it.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, AllocError> {
        let pool = &*self.0;
        let class = class_of(bytes).ok_or_else(|| self.error(bytes))?;
        let charged = class_bytes(class);
        let in_use = pool.in_use.fetch_add(charged, Ordering::Relaxed) + charged;
        let block = if in_use > pool.limit { None } else { Some(self.block(class)) };
        let mut header = match block {
            Some(Ok(header)) => header,
            failed => {
                pool.in_use.fetch_sub(charged, Ordering::Relaxed);
                let error = failed.and_then(Result::err).unwrap_or_else(|| self.error(bytes));
                return Err(AllocError { requested: bytes, ..error });
            }
        };
        pool.peak.fetch_max(in_use, Ordering::Relaxed);
        pool.n_allocs.fetch_add(1, Ordering::Relaxed);
        // SAFETY: nobody else references the block.
        let fields = unsafe { header.as_mut() };
        *fields.refs.get_mut() = 1;
        fields.bytes = bytes;
        fields.owner = Owner::Allocator(self.clone());
        if bytes >= TRACED_BYTES {
            fields.node = crate::trace::alloc(pool.site, charged, in_use);
        }
        Ok(Buffer { header })
    }

    /// The most bytes that it hands out at a time.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// What was handed out so far.
    pub fn stats(&self) -> AllocStats {
        let pool = &*self.0;
        AllocStats {
            in_use: pool.in_use.load(Ordering::Relaxed),
            peak: pool.peak.load(Ordering::Relaxed),
            n_allocs: pool.n_allocs.load(Ordering::Relaxed),
            n_fresh: pool.n_fresh.load(Ordering::Relaxed),
            cached: pool.cached.load(Ordering::Relaxed),
        }
    }

    fn error(&self, requested: usize) -> AllocError {
        let in_use = self.0.in_use.load(Ordering::Relaxed);
        let limit = self.0.limit.min(memory::limit());
        AllocError { device: self.0.device.as_str().into(), requested, in_use, limit }
    }

    /// A block from the cache, or a fresh one.
    fn block(&self, class: usize) -> Result<NonNull<Header>, AllocError> {
        let pool = &*self.0;
        if let Some(block) = pool.free[class].lock().pop() {
            pool.cached.fetch_sub(class_bytes(class), Ordering::Relaxed);
            return Ok(block.0);
        }
        let charge = Charge::new(class_bytes(class))?;
        pool.n_fresh.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the layout is not empty.
        let fresh = NonNull::new(unsafe { alloc_zeroed(block_layout(class)) });
        let header = fresh.ok_or_else(|| self.error(class_bytes(class)))?.cast::<Header>();
        // The charge ends when the block is freed.
        std::mem::forget(charge);
        // SAFETY: the header is followed by the data in the same block.
        let data = unsafe { header.as_ptr().cast::<u8>().add(HEADER) };
        let fields =
            Header { refs: AtomicUsize::new(0), data, bytes: 0, class, owner: Owner::Cache, node: NodeId::NONE };
        // SAFETY: fresh memory, large and aligned enough.
        unsafe { header.write(fields) };
        Ok(header)
    }

    /// Takes a block that nobody references any more.
    fn take_back(&self, header: NonNull<Header>) {
        let pool = &*self.0;
        // SAFETY: nobody else references the block.
        let (class, bytes, node) = unsafe { (header.as_ref().class, header.as_ref().bytes, header.as_ref().node) };
        let charged = class_bytes(class);
        let in_use = pool.in_use.fetch_sub(charged, Ordering::Relaxed) - charged;
        if bytes >= TRACED_BYTES {
            crate::trace::free(pool.site, node, charged, in_use);
        }
        if pool.cached.fetch_add(charged, Ordering::Relaxed) + charged > pool.cache_limit {
            pool.cached.fetch_sub(charged, Ordering::Relaxed);
            free_block(header, class);
        } else {
            pool.free[class].lock().push(Block(header));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes_and_waste_at_most_a_quarter() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, 10_000_000, 1 << 40]) {
            let class = class_of(bytes).unwrap();
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes}");
        }
        assert_eq!(class_of(usize::MAX / 2), None);
    }

    #[test]
    fn blocks_are_aligned_counted_and_reused() {
        let a = Allocator::new("/device:CPU:0", 10_000);
        let first = a.alloc(1000).unwrap();
        let address = first.as_ptr();
        assert_eq!(address as usize % 64, 0);
        let second = first.clone();
        assert!(!first.is_unique());
        drop(first);
        assert!(second.is_unique());
        assert_eq!(a.stats(), AllocStats { in_use: 1024, peak: 1024, n_allocs: 1, n_fresh: 1, cached: 0 });
        drop(second);
        let third = a.alloc(999).unwrap();
        assert_eq!(third.as_ptr(), address);
        assert_eq!(a.stats(), AllocStats { in_use: 1024, peak: 1024, n_allocs: 2, n_fresh: 1, cached: 0 });
    }

    #[test]
    fn the_limit_is_an_error_that_says_the_numbers() {
        let a = Allocator::new("/device:CPU:0", 10_000);
        let _held = a.alloc(8000).unwrap();
        let err = a.alloc(4000).err().unwrap().to_string();
        assert_eq!(err, "out of memory on /device:CPU:0: 4000 bytes wanted, 8192 in use, limit 10000");
        assert_eq!(a.stats().in_use, 8192);
    }

    #[test]
    fn adopted_vectors_are_not_copied() {
        let v = vec![1.0f32, 2.0];
        let p = v.as_ptr();
        let b = Buffer::adopt(v).unwrap();
        assert_eq!((b.as_ptr(), b.len()), (p.cast(), 8));
    }
}
