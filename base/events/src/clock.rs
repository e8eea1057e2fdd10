//! The only reader of clocks.
//!
//! Event stamps are *ticks*: the CPU's time-stamp counter where it runs at one rate in every power state and on every
//! core (x86-64 with CPUID 8000_0007h EDX bit 8, "invariant TSC"; the generic timer of aarch64), otherwise the
//! nanoseconds of `CLOCK_MONOTONIC_RAW`. A tick costs 7-10 ns natively where `clock_gettime` costs 20-40 ns.
//! `STEPSCOPE_CLOCK=raw` forces the fallback, for machines whose counter lies (some migrated virtual machines).
//!
//! Ticks become nanoseconds only on the reading side: the program writes [`Anchor`]s, simultaneous readings of
//! ticks, monotonic and wall clock, into its meta file, and [`TicksToNs`] interpolates between them.
//!
//! `rdtsc` does not wait for earlier instructions to retire, so a stamp may be early by a few nanoseconds.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use other as system;
use std::sync::atomic::{AtomicU8, Ordering};
#[cfg(unix)]
use unix as system;

/// The meaning of a tick on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A counter of the CPU with a constant, unknown rate: anchors give the rate.
    Counter,
    /// `CLOCK_MONOTONIC_RAW`: a tick is a nanosecond.
    MonotonicRaw,
}

const UNKNOWN: u8 = 0;
const COUNTER: u8 = 1;
const RAW: u8 = 2;
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The current time in ticks; comparable between the threads and processes of one machine that use the same [`source`].
#[inline]
#[must_use]
pub fn now() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == COUNTER { counter() } else { now_slow() }
}

#[cold]
#[inline(never)]
fn now_slow() -> u64 {
    match source() {
        Source::Counter => counter(),
        Source::MonotonicRaw => mono_now().max(0).unsigned_abs(),
    }
}

/// The source that [`now`] reads, which is chosen at the first call and never changes in a process.
#[must_use]
pub fn source() -> Source {
    if SOURCE.load(Ordering::Relaxed) == UNKNOWN {
        let forced_raw = std::env::var_os("STEPSCOPE_CLOCK").is_some_and(|v| v == "raw");
        let chosen = if is_counter_invariant() && !forced_raw { COUNTER } else { RAW };
        SOURCE.store(chosen, Ordering::Relaxed);
    }
    if SOURCE.load(Ordering::Relaxed) == COUNTER { Source::Counter } else { Source::MonotonicRaw }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: rdtsc exists on every x86-64; it has no operands and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn is_counter_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    // The highest extended leaf must reach 8000_0007h; its EDX bit 8 is "invariant TSC".
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: cntvct_el0 is readable from user space on Linux and macOS; reading it has no side effect.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(target_arch = "aarch64")]
fn is_counter_invariant() -> bool {
    true // the architecture's generic timer runs at one rate
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    mono_now().max(0).unsigned_abs()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_counter_invariant() -> bool {
    false
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: intervals and rates outside the hot path. Where the system is not Unix, a
/// monotonic clock that starts from zero in each process.
#[must_use]
pub fn mono_now() -> i64 {
    system::mono_ns()
}

/// The wall clock in Unix nanoseconds.
#[must_use]
pub fn wall_now_ns() -> i64 {
    system::wall_ns()
}

/// The wall clock in Unix seconds, as event files store it (`wall_time`).
#[must_use]
pub fn wall_now() -> f64 {
    wall_now_ns() as f64 / 1e9
}

/// CPU time that all threads of this process have used, nanoseconds; benchmarks compare it. 0 where the system is not
/// Unix.
#[must_use]
pub fn cpu_now() -> i64 {
    system::process_cpu_ns()
}

/// CPU time that this thread has used, nanoseconds. 0 where the system is not Unix.
#[must_use]
pub fn thread_cpu_now() -> i64 {
    system::thread_cpu_ns()
}

/// One instant as read from three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// [`now`]'s ticks.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub mono_ns: i64,
    /// `CLOCK_REALTIME`, Unix nanoseconds.
    pub real_ns: i64,
}

/// Reads the three clocks as close together as possible: the tightest of nine tries, so that an interrupt between two
/// readings does not bend the conversion. Good to about half a `clock_gettime`, 20-50 ns.
#[must_use]
pub fn anchor() -> Anchor {
    let mut best = Anchor::default();
    let mut best_width = u64::MAX;
    for _ in 0..9 {
        let before = now();
        let mono_ns = mono_now();
        let after = now();
        let real_ns = wall_now_ns();
        let width = now().saturating_sub(before);
        if width < best_width {
            best_width = width;
            best = Anchor { ticks: before + after.saturating_sub(before) / 2, mono_ns, real_ns };
        }
    }
    best
}

/// The number of anchors over which the rate beyond the first or last one is measured: over a long distance their
/// reading errors of 50 ns do not matter.
const RATE_BASE: usize = 32;

/// Converts ticks to monotonic nanoseconds, piecewise linear through the anchors, in exact integer arithmetic.
///
/// Before the first and after the last anchor the mean rate of the nearest anchors is extrapolated. The conversion
/// never decreases: `a <= b` gives `ns(a) <= ns(b)`. Results saturate at the ends of `i64`. Without an anchor a tick is
/// a nanosecond from zero, with one anchor it is a nanosecond around the anchor.
#[derive(Clone, Debug, Default)]
pub struct TicksToNs {
    anchors: Vec<Anchor>,
}

impl TicksToNs {
    /// Creates the conversion from anchors in any order. An anchor that contradicts an earlier one (later in ticks but
    /// not in time) is left out: anchors are read from files, which may be damaged.
    #[must_use]
    pub fn from_anchors(anchors: &[Anchor]) -> Self {
        let mut sorted = anchors.to_vec();
        sorted.sort_by_key(|a| a.ticks);
        let mut conversion = Self::default();
        for anchor in sorted {
            conversion.push(anchor);
        }
        conversion
    }

    /// Adds an anchor and returns true if it is later than all others on both clocks; otherwise leaves it out.
    pub fn push(&mut self, anchor: Anchor) -> bool {
        let is_later = self.anchors.last().is_none_or(|a| anchor.ticks > a.ticks && anchor.mono_ns > a.mono_ns);
        if is_later {
            self.anchors.push(anchor);
        }
        is_later
    }

    /// The anchors in use, in order.
    #[must_use]
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// Converts ticks to monotonic nanoseconds.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> i64 {
        let n = self.anchors.len();
        let next = self.anchors.partition_point(|a| a.ticks <= ticks);
        let (from, to, base) = match (n, next) {
            (0, _) => return i64::try_from(ticks).unwrap_or(i64::MAX),
            (1, _) => {
                let only = self.anchors[0];
                return clamp(i128::from(only.mono_ns) + i128::from(ticks) - i128::from(only.ticks));
            }
            (_, 0) => (self.anchors[0], self.anchors[(n - 1).min(RATE_BASE)], self.anchors[0]),
            _ if next == n => (self.anchors[n - 1 - (n - 1).min(RATE_BASE)], self.anchors[n - 1], self.anchors[n - 1]),
            _ => (self.anchors[next - 1], self.anchors[next], self.anchors[next - 1]),
        };
        let distance = i128::from(ticks) - i128::from(base.ticks);
        clamp(i128::from(base.mono_ns).saturating_add(scale(distance, rise(from, to), to.ticks - from.ticks)))
    }

    /// Converts a duration of `ticks` that begins at `begin` to nanoseconds.
    #[must_use]
    pub fn duration_ns(&self, begin: u64, ticks: u64) -> i64 {
        self.ns(begin.saturating_add(ticks)).saturating_sub(self.ns(begin))
    }

    /// Converts a monotonic time to Unix nanoseconds: the wall time of the nearest earlier anchor plus the time since
    /// then.
    #[must_use]
    pub fn real_ns(&self, mono_ns: i64) -> Option<i64> {
        let next = self.anchors.partition_point(|a| a.mono_ns <= mono_ns);
        let base = self.anchors.get(next.saturating_sub(1))?;
        Some(clamp(i128::from(base.real_ns) + i128::from(mono_ns) - i128::from(base.mono_ns)))
    }
}

/// The nanoseconds from one anchor to a later one.
fn rise(from: Anchor, to: Anchor) -> u64 {
    to.mono_ns.abs_diff(from.mono_ns)
}

/// `distance * rise / run`, rounded down, without overflow: `run > 0` because anchors increase strictly.
fn scale(distance: i128, rise: u64, run: u64) -> i128 {
    let (whole, rest) = (distance.div_euclid(i128::from(run)), distance.rem_euclid(i128::from(run)));
    let part = rest.unsigned_abs() * u128::from(rise) / u128::from(run); // both below 2^64, the result below `rise`
    whole.saturating_mul(i128::from(rise)).saturating_add(part.cast_signed())
}

fn clamp(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ticks: u64, mono_ns: i64) -> Anchor {
        Anchor { ticks, mono_ns, real_ns: mono_ns.saturating_add(1_000) }
    }

    #[test]
    fn interpolates_between_and_beyond() {
        let conversion = TicksToNs::from_anchors(&[at(3_000, 1_000), at(0, 0), at(6_000, 3_000)]);
        let got: Vec<i64> = [0, 1_500, 3_000, 4_500, 6_000, 12_000].map(|t| conversion.ns(t)).to_vec();
        // The last is beyond: the mean rate of all anchors, one half, from the last one.
        assert_eq!(got, [0, 500, 1_000, 2_000, 3_000, 6_000]);
        assert_eq!(conversion.real_ns(1_500), Some(2_500));
        assert_eq!(conversion.duration_ns(3_000, 1_500), 1_000);
    }

    #[test]
    fn few_or_bad_anchors() {
        assert_eq!(TicksToNs::from_anchors(&[]).ns(5), 5);
        assert_eq!(TicksToNs::from_anchors(&[]).ns(u64::MAX), i64::MAX);
        assert_eq!(TicksToNs::from_anchors(&[at(10, 100)]).ns(4), 94);
        let bad = TicksToNs::from_anchors(&[at(0, 0), at(10, -5), at(10, 10), at(20, 10), at(u64::MAX, i64::MAX)]);
        assert_eq!(bad.anchors().len(), 3);
    }

    #[test]
    fn ticks_follow_the_raw_clock() {
        let (a, first) = (anchor(), mono_now());
        while mono_now() - first < 2_000_000 {}
        let b = anchor();
        let conversion = TicksToNs::from_anchors(&[a, b]);
        // Several tries: another process may run between the two readings. It catches a wrong unit or a wrong clock.
        let differs = || {
            let (t, ns) = (now(), mono_now());
            (conversion.ns(t) - ns).abs()
        };
        assert!((0..9).any(|_| differs() < 50_000_000), "{}", differs());
    }

    proptest! {
        #[test]
        fn never_decreases(mut anchors in prop::collection::vec((any::<u64>(), any::<i64>()), 0..9),
                           mut ticks in prop::collection::vec(any::<u64>(), 2..40)) {
            anchors.dedup();
            let anchors: Vec<Anchor> = anchors.into_iter().map(|(t, m)| Anchor { ticks: t, mono_ns: m, real_ns: 0 }).collect();
            let conversion = TicksToNs::from_anchors(&anchors);
            let around = |a: &Anchor| [a.ticks.saturating_sub(1), a.ticks, a.ticks.saturating_add(1)];
            ticks.extend(conversion.anchors().iter().flat_map(around));
            ticks.sort_unstable();
            for pair in ticks.windows(2) {
                prop_assert!(conversion.ns(pair[0]) <= conversion.ns(pair[1]));
            }
            for a in conversion.anchors() {
                prop_assert_eq!(conversion.ns(a.ticks), a.mono_ns);
            }
        }
    }
}
