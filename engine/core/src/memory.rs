//! The host's memory that tensors may take: one budget for all devices, sessions and caches of the process.
//!
//! Whatever an allocator takes from the system is charged from before it is taken until it is freed: blocks that wait in
//! a cache count, blocks that come out of one cost nothing. What kernels gather in vectors (strings, lists, results of
//! unknown length) is charged by [`Charge`]. The limit is what the machine had left when it was first looked at, unless
//! [`set_limit`] says otherwise.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Why memory could not be had.
#[derive(Debug, Clone, thiserror::Error)]
#[error("out of memory on {device}: {requested} bytes wanted, {in_use} in use, limit {limit}")]
pub struct AllocError {
    /// The allocator's device.
    pub device: Box<str>,
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes handed out before.
    pub in_use: usize,
    /// Bytes that may be handed out.
    pub limit: usize,
}

/// Smaller vectors are not charged: the tensors that hold them are.
pub const SMALL: usize = 64 << 10;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// The limit that somebody chose; 0: nobody did.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);
/// The limit that the machine had when it was asked last; 0: not asked yet.
static MEASURED: AtomicUsize = AtomicUsize::new(0);
static CACHES: Mutex<Vec<Weak<dyn Cache>>> = Mutex::new(Vec::new());

/// Memory that is kept for reuse and can be returned to the system.
pub(crate) trait Cache: Send + Sync {
    /// Gives back what nobody uses.
    fn trim(&self);
}

/// Lets a cache be trimmed when memory is short.
pub(crate) fn register(cache: &Arc<impl Cache + 'static>) {
    let mut caches = CACHES.lock();
    caches.retain(|cache| cache.strong_count() > 0);
    let cache: Arc<dyn Cache> = Arc::clone(cache) as Arc<dyn Cache>;
    caches.push(Arc::downgrade(&cache));
}

/// Lets tensors take at most so many bytes of the host's memory from now on; `None`: what the machine has left.
pub fn set_limit(bytes: Option<usize>) {
    CHOSEN.store(bytes.map_or(0, |bytes| bytes.max(1)), Ordering::Relaxed);
    MEASURED.store(0, Ordering::Relaxed);
}

/// Bytes that tensors may take.
pub fn limit() -> usize {
    match (CHOSEN.load(Ordering::Relaxed), MEASURED.load(Ordering::Relaxed)) {
        (0, 0) => look(),
        (0, measured) => measured,
        (chosen, _) => chosen,
    }
}

/// Bytes that tensors, and caches of their memory, have taken.
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// The limit, asked of the machine anew unless somebody chose it.
#[cold]
fn look() -> usize {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => {
            let left = machine::available().unwrap_or(usize::MAX);
            let measured = in_use().saturating_add(left).max(1);
            MEASURED.store(measured, Ordering::Relaxed);
            measured
        }
        chosen => chosen,
    }
}

/// Bytes that are charged to the budget until this is dropped.
#[derive(Debug, Default)]
pub struct Charge(usize);

impl Charge {
    /// Charges bytes that are about to be taken.
    ///
    /// # Errors
    /// The limit does not allow it.
    pub fn new(bytes: usize) -> Result<Charge, AllocError> {
        if Charge::fits(bytes, limit()) { Ok(Charge(bytes)) } else { Charge::retry(bytes) }
    }

    /// Charges bytes that were taken already, if they are not few.
    ///
    /// # Errors
    /// The limit does not allow it.
    pub fn taken(bytes: usize) -> Result<Charge, AllocError> {
        if bytes < SMALL { Ok(Charge(0)) } else { Charge::new(bytes) }
    }

    /// Charges what cannot be refused any more.
    pub fn unchecked(bytes: usize) -> Charge {
        let bytes = if bytes < SMALL { 0 } else { bytes };
        IN_USE.fetch_add(bytes, Ordering::Relaxed);
        Charge(bytes)
    }

    /// Ends a charge that was forgotten.
    pub fn give_back(bytes: usize) {
        drop(Charge(bytes));
    }

    /// Adds to what is in use where the limit allows it; what is refused is never seen there.
    fn fits(bytes: usize, limit: usize) -> bool {
        let add = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= limit);
        IN_USE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// What is short may wait in a cache, or the machine may have more by now.
    #[cold]
    fn retry(bytes: usize) -> Result<Charge, AllocError> {
        let caches: Vec<_> = CACHES.lock().iter().filter_map(Weak::upgrade).collect();
        caches.iter().for_each(|cache| cache.trim());
        match Charge::fits(bytes, limit()) || Charge::fits(bytes, look()) {
            true => Ok(Charge(bytes)),
            false => Err(error(bytes)),
        }
    }
}

impl Clone for Charge {
    /// For a copy of what is charged.
    fn clone(&self) -> Charge {
        Charge::unchecked(self.0)
    }
}

fn error(requested: usize) -> AllocError {
    AllocError { device: "the host".into(), requested, in_use: in_use(), limit: limit() }
}

impl Drop for Charge {
    fn drop(&mut self) {
        IN_USE.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Whether so many bytes more could be had, for what is built before it is charged.
///
/// # Errors
/// The limit does not allow it.
pub fn check(bytes: usize) -> Result<(), AllocError> {
    if bytes < SMALL { Ok(()) } else { Charge::new(bytes).map(drop) }
}

/// An empty vector with room for `n` elements, a number that came as a value.
///
/// # Errors
/// The limit, or the machine, does not allow it.
pub fn vec<T>(n: usize) -> Result<Vec<T>, AllocError> {
    let mut vec = Vec::new();
    reserve(&mut vec, n)?;
    Ok(vec)
}

/// Room for `n` elements more in a vector, a number that came as a value.
///
/// # Errors
/// As with [`vec()`].
pub fn reserve<T>(vec: &mut Vec<T>, n: usize) -> Result<(), AllocError> {
    let bytes = n.saturating_mul(size_of::<T>().max(1));
    check(bytes)?;
    vec.try_reserve_exact(n).map_err(|_| error(bytes))
}

/// `n` times a value, a number that came as a value.
///
/// # Errors
/// As with [`vec()`].
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>, AllocError> {
    check(n.saturating_mul(size_of::<T>().max(1)))?;
    Ok(vec![value; n])
}

/// Makes room for `n` elements more in a vector whose room is charged by `charge`.
///
/// # Errors
/// As with [`vec()`].
pub fn grow<T>(vec: &mut Vec<T>, charge: &mut Charge, n: usize) -> Result<(), AllocError> {
    let wanted = vec.len().saturating_add(n);
    if wanted <= vec.capacity() {
        return Ok(());
    }
    let capacity = wanted.max(vec.capacity().saturating_mul(2));
    let larger = Charge::taken(capacity.saturating_mul(size_of::<T>()))?;
    vec.try_reserve_exact(capacity - vec.len()).map_err(|_| error(larger.0))?;
    *charge = larger;
    Ok(())
}

/// What the system says that is left.
mod machine {
    use std::fs;

    /// The least of what the machine and its control groups have left. `None` where nobody says.
    pub fn available() -> Option<usize> {
        let meminfo = fs::read_to_string("/proc/meminfo").ok();
        let machine = meminfo.as_deref().and_then(mem_available);
        let group = fs::read_to_string("/proc/self/cgroup").ok();
        let group = group.as_deref().and_then(group_path).and_then(group_left);
        [machine, group].into_iter().flatten().min()
    }

    /// `MemAvailable:   16316412 kB`.
    pub(super) fn mem_available(meminfo: &str) -> Option<usize> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    }

    /// The path of the group in the unified hierarchy: `0::/user.slice`.
    pub(super) fn group_path(cgroup: &str) -> Option<&str> {
        cgroup.lines().find_map(|line| line.strip_prefix("0::"))
    }

    /// What is left to the group and to those that it is in.
    fn group_left(path: &str) -> Option<usize> {
        let number = |path: &str, file: &str| {
            fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok()?.trim().parse::<usize>().ok()
        };
        let left = |path: &str| Some(number(path, "memory.max")?.saturating_sub(number(path, "memory.current")?));
        let path = path.trim_end_matches('/');
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        ends.filter_map(|end| left(&path[..end])).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let meminfo = "MemTotal:       24689764 kB\nMemFree:        13000000 kB\nMemAvailable:   16316412 kB\n";
        assert_eq!(machine::mem_available(meminfo), Some(16_316_412 << 10));
        assert_eq!(machine::mem_available("MemTotal: 1 kB\n"), None);
        assert_eq!(machine::group_path("1:name=systemd:/x\n0::/user.slice/a\n"), Some("/user.slice/a"));
    }

    #[test]
    fn charges_are_counted_and_given_back() {
        let before = Charge::new(3 << 20).unwrap();
        assert!(in_use() >= 3 << 20);
        let error = Charge::new(usize::MAX / 2).unwrap_err();
        assert_eq!((&*error.device, error.requested), ("the host", usize::MAX / 2));
        assert!(vec::<u64>(1 << 60).is_err());
        assert!(vec::<u64>(100).unwrap().capacity() >= 100);
        drop(before);
    }
}
