//! The counters that can be recorded, named as in `perf stat`.

use Event::{Cache, FpArith, Hardware, Software};
use perf_event::Builder;
use perf_event::events::{self, CacheId, CacheOp, CacheResult, Hardware as H, Raw, Software as S};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// The kernel's or the processor's event that a counter counts.
#[derive(Clone, Copy)]
enum Event {
    Software(S),
    Hardware(H),
    Cache(CacheId, CacheResult),
    /// Intel's `FP_ARITH_INST_RETIRED` with this unit mask: one code on all processors since Broadwell.
    FpArith(u8),
}

/// The counters: name, alias (empty for none; an alias of several counters stands for all of them), event.
const COUNTERS: [(&str, &str, Event); 33] = [
    ("task-clock", "", Software(S::TASK_CLOCK)),
    ("cpu-clock", "", Software(S::CPU_CLOCK)),
    ("page-faults", "faults", Software(S::PAGE_FAULTS)),
    ("minor-faults", "", Software(S::PAGE_FAULTS_MIN)),
    ("major-faults", "", Software(S::PAGE_FAULTS_MAJ)),
    ("context-switches", "cs", Software(S::CONTEXT_SWITCHES)),
    ("cpu-migrations", "migrations", Software(S::CPU_MIGRATIONS)),
    ("alignment-faults", "", Software(S::ALIGNMENT_FAULTS)),
    ("emulation-faults", "", Software(S::EMULATION_FAULTS)),
    ("cycles", "cpu-cycles", Hardware(H::CPU_CYCLES)),
    ("instructions", "", Hardware(H::INSTRUCTIONS)),
    ("ref-cycles", "", Hardware(H::REF_CPU_CYCLES)),
    ("cache-references", "", Hardware(H::CACHE_REFERENCES)),
    ("cache-misses", "", Hardware(H::CACHE_MISSES)),
    ("branches", "branch-instructions", Hardware(H::BRANCH_INSTRUCTIONS)),
    ("branch-misses", "", Hardware(H::BRANCH_MISSES)),
    ("bus-cycles", "", Hardware(H::BUS_CYCLES)),
    ("stalled-cycles-frontend", "idle-cycles-frontend", Hardware(H::STALLED_CYCLES_FRONTEND)),
    ("stalled-cycles-backend", "idle-cycles-backend", Hardware(H::STALLED_CYCLES_BACKEND)),
    ("L1-dcache-loads", "", Cache(CacheId::L1D, CacheResult::ACCESS)),
    ("L1-dcache-load-misses", "", Cache(CacheId::L1D, CacheResult::MISS)),
    ("LLC-loads", "", Cache(CacheId::LL, CacheResult::ACCESS)),
    ("LLC-load-misses", "", Cache(CacheId::LL, CacheResult::MISS)),
    ("dTLB-load-misses", "", Cache(CacheId::DTLB, CacheResult::MISS)),
    ("iTLB-load-misses", "", Cache(CacheId::ITLB, CacheResult::MISS)),
    ("fp_arith_inst_retired.scalar_single", "flops", FpArith(0x02)),
    ("fp_arith_inst_retired.128b_packed_single", "flops", FpArith(0x08)),
    ("fp_arith_inst_retired.256b_packed_single", "flops", FpArith(0x20)),
    ("fp_arith_inst_retired.512b_packed_single", "flops", FpArith(0x80)),
    ("fp_arith_inst_retired.scalar_double", "flops-double", FpArith(0x01)),
    ("fp_arith_inst_retired.128b_packed_double", "flops-double", FpArith(0x04)),
    ("fp_arith_inst_retired.256b_packed_double", "flops-double", FpArith(0x10)),
    ("fp_arith_inst_retired.512b_packed_double", "flops-double", FpArith(0x40)),
];

/// The code of [`Event::FpArith`] in Intel's tables.
const FP_ARITH: u64 = 0xc7;

/// Whether the processor has [`FP_ARITH`]: Broadwell, which introduced this code, also introduced the flag `adx`. On
/// other processors the code may mean another event.
static HAS_FP_ARITH: LazyLock<bool> = LazyLock::new(|| {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |key: &str, word: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key));
        line.is_some_and(|line| line.split_whitespace().any(|w| w == word))
    };
    has("vendor_id", "GenuineIntel") && has("flags", "adx")
});

/// The counters to record by default.
pub const DEFAULT_COUNTERS: &str = "task-clock,page-faults,cycles,instructions,cache-misses,branch-misses";

/// A counter, by its row in [`COUNTERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind(u8);

impl Kind {
    pub(crate) const CPU_CLOCK: Kind = Kind(1);
    pub(crate) const CONTEXT_SWITCHES: Kind = Kind(5);

    fn event(self) -> Event {
        COUNTERS[usize::from(self.0)].2
    }

    pub(crate) fn name(self) -> &'static str {
        COUNTERS[usize::from(self.0)].0
    }

    /// Whether the processor counts the event, not the kernel.
    pub(crate) fn is_hardware(self) -> bool {
        !matches!(self.event(), Software(_))
    }

    /// Whether the counter's code means this event on this processor.
    pub(crate) fn is_supported(self) -> bool {
        !matches!(self.event(), FpArith(_)) || *HAS_FP_ARITH
    }

    pub(crate) fn builder(self) -> Builder<'static> {
        match self.event() {
            Software(event) => Builder::new(event),
            Hardware(event) => Builder::new(event),
            Cache(which, result) => Builder::new(events::Cache { which, operation: CacheOp::READ, result }),
            FpArith(unit_mask) => Builder::new(Raw::new(u64::from(unit_mask) << 8 | FP_ARITH)),
        }
    }
}

/// A set of counters, in the order of the table of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSet(u64);

/// The error of a name that no counter has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no counter is called {0:?}; there are {names}; flops and flops-double are four of them each", names = CounterSet::all_names().collect::<Vec<_>>().join(", "))]
pub struct UnknownCounter(pub String);

impl CounterSet {
    /// The empty set.
    pub const NONE: CounterSet = CounterSet(0);

    /// The names of all counters.
    fn all_names() -> impl Iterator<Item = &'static str> {
        COUNTERS.iter().map(|(name, ..)| *name)
    }

    /// The set of [`DEFAULT_COUNTERS`].
    #[must_use]
    pub fn default_counters() -> CounterSet {
        DEFAULT_COUNTERS.parse().expect("the names are those of the table")
    }

    /// Whether the set has no counter.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn from_kinds(kinds: impl Iterator<Item = Kind>) -> CounterSet {
        CounterSet(kinds.fold(0, |set, kind| set | 1 << kind.0))
    }

    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        (0..COUNTERS.len() as u8).filter(move |n| self.0 >> n & 1 == 1).map(Kind)
    }

    /// The names of the set's counters.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.kinds().map(Kind::name)
    }
}

impl FromStr for CounterSet {
    type Err = UnknownCounter;

    /// Parses names or aliases, separated by commas.
    fn from_str(text: &str) -> Result<CounterSet, UnknownCounter> {
        let mut set = CounterSet::default();
        for name in text.split(',').map(str::trim) {
            let has_name =
                |(known, alias, _): &(&str, &str, Event)| *known == name || (!name.is_empty() && *alias == name);
            let named = (0..COUNTERS.len()).filter(|i| has_name(&COUNTERS[*i])).fold(0, |set, i| set | 1 << i);
            if named == 0 {
                return Err(UnknownCounter(name.to_owned()));
            }
            set.0 |= named;
        }
        Ok(set)
    }
}

impl fmt::Display for CounterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf_stat() {
        let set: CounterSet = "instructions, cpu-cycles,faults".parse().unwrap();
        assert_eq!(set.to_string(), "page-faults,cycles,instructions");
        assert_eq!((Kind::CPU_CLOCK.name(), Kind::CONTEXT_SWITCHES.name()), ("cpu-clock", "context-switches"));
        assert_eq!(CounterSet::default_counters().to_string(), DEFAULT_COUNTERS);
        let flops: CounterSet = "flops".parse().unwrap();
        assert_eq!(flops.names().count(), 4);
        assert!(flops.kinds().all(Kind::is_hardware) && flops.names().all(|name| name.ends_with("_single")), "{flops}");
        for wrong in ["", "cycles,", "cycels", "cycles instructions"] {
            let error = wrong.parse::<CounterSet>().unwrap_err().to_string();
            assert!(error.contains("cache-misses"), "{error}");
        }
        let all: CounterSet = CounterSet::all_names().collect::<Vec<_>>().join(",").parse().unwrap();
        assert_eq!(all.kinds().count(), COUNTERS.len());
    }
}
