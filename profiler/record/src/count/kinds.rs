//! What can be counted, by the names that `perf stat` has.

use perf_event::Builder;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

#[derive(Clone, Copy)]
enum Event {
    Software(Software),
    Hardware(Hardware),
    Cache(CacheId, CacheResult),
    /// Intel's `FP_ARITH_INST_RETIRED` with this unit mask: since Broadwell the same code on all that have it.
    FpArith(u8),
}

/// A row of the table of what can be counted.
struct CounterKind {
    name: &'static str,
    /// Those with the same one are counted together.
    alias: &'static str,
    event: Event,
}

const fn software(name: &'static str, alias: &'static str, event: Software) -> CounterKind {
    CounterKind { name, alias, event: Event::Software(event) }
}

const fn hardware(name: &'static str, alias: &'static str, event: Hardware) -> CounterKind {
    CounterKind { name, alias, event: Event::Hardware(event) }
}

const fn cache(name: &'static str, id: CacheId, result: CacheResult) -> CounterKind {
    CounterKind { name, alias: "", event: Event::Cache(id, result) }
}

const fn fp_arith(name: &'static str, alias: &'static str, unit_mask: u8) -> CounterKind {
    CounterKind { name, alias, event: Event::FpArith(unit_mask) }
}

const KNOWN: [CounterKind; 33] = [
    software("task-clock", "", Software::TASK_CLOCK),
    software("cpu-clock", "", Software::CPU_CLOCK),
    software("page-faults", "faults", Software::PAGE_FAULTS),
    software("minor-faults", "", Software::PAGE_FAULTS_MIN),
    software("major-faults", "", Software::PAGE_FAULTS_MAJ),
    software("context-switches", "cs", Software::CONTEXT_SWITCHES),
    software("cpu-migrations", "migrations", Software::CPU_MIGRATIONS),
    software("alignment-faults", "", Software::ALIGNMENT_FAULTS),
    software("emulation-faults", "", Software::EMULATION_FAULTS),
    hardware("cycles", "cpu-cycles", Hardware::CPU_CYCLES),
    hardware("instructions", "", Hardware::INSTRUCTIONS),
    hardware("ref-cycles", "", Hardware::REF_CPU_CYCLES),
    hardware("cache-references", "", Hardware::CACHE_REFERENCES),
    hardware("cache-misses", "", Hardware::CACHE_MISSES),
    hardware("branches", "branch-instructions", Hardware::BRANCH_INSTRUCTIONS),
    hardware("branch-misses", "", Hardware::BRANCH_MISSES),
    hardware("bus-cycles", "", Hardware::BUS_CYCLES),
    hardware("stalled-cycles-frontend", "idle-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    hardware("stalled-cycles-backend", "idle-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
    cache("L1-dcache-loads", CacheId::L1D, CacheResult::ACCESS),
    cache("L1-dcache-load-misses", CacheId::L1D, CacheResult::MISS),
    cache("LLC-loads", CacheId::LL, CacheResult::ACCESS),
    cache("LLC-load-misses", CacheId::LL, CacheResult::MISS),
    cache("dTLB-load-misses", CacheId::DTLB, CacheResult::MISS),
    cache("iTLB-load-misses", CacheId::ITLB, CacheResult::MISS),
    fp_arith("fp_arith_inst_retired.scalar_single", "flops", 0x02),
    fp_arith("fp_arith_inst_retired.128b_packed_single", "flops", 0x08),
    fp_arith("fp_arith_inst_retired.256b_packed_single", "flops", 0x20),
    fp_arith("fp_arith_inst_retired.512b_packed_single", "flops", 0x80),
    fp_arith("fp_arith_inst_retired.scalar_double", "flops-double", 0x01),
    fp_arith("fp_arith_inst_retired.128b_packed_double", "flops-double", 0x04),
    fp_arith("fp_arith_inst_retired.256b_packed_double", "flops-double", 0x10),
    fp_arith("fp_arith_inst_retired.512b_packed_double", "flops-double", 0x40),
];

/// The code of [`Event::FpArith`] in Intel's tables.
const FP_ARITH: u64 = 0xc7;

/// Whether the processor knows [`FP_ARITH`]; on others the code may mean something else. `adx` came with Broadwell, too.
static HAS_FP_ARITH: LazyLock<bool> = LazyLock::new(|| {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |key: &str, word: &str| {
        let line = about.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key));
        line.is_some_and(|line| line.split_whitespace().any(|w| w == word))
    };
    has("vendor_id", "GenuineIntel") && has("flags", "adx")
});

/// What says most of a program.
pub const USUAL: &str = "task-clock,page-faults,cycles,instructions,cache-misses,branch-misses";

/// One thing that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind(u8);

impl Kind {
    pub(crate) const CPU_CLOCK: Kind = Kind(1);
    pub(crate) const CONTEXT_SWITCHES: Kind = Kind(5);

    fn known(self) -> &'static CounterKind {
        &KNOWN[usize::from(self.0)]
    }

    /// As `perf stat` calls it.
    pub(crate) fn name(self) -> &'static str {
        self.known().name
    }

    /// Whether the processor counts it, not the kernel.
    pub(crate) fn is_hardware(self) -> bool {
        !matches!(self.known().event, Event::Software(_))
    }

    /// Whether this processor may be asked for it.
    pub(crate) fn is_of_here(self) -> bool {
        !matches!(self.known().event, Event::FpArith(_)) || *HAS_FP_ARITH
    }

    pub(crate) fn builder(self) -> Builder<'static> {
        match self.known().event {
            Event::Software(event) => Builder::new(event),
            Event::Hardware(event) => Builder::new(event),
            Event::Cache(which, result) => Builder::new(Cache { which, operation: CacheOp::READ, result }),
            Event::FpArith(unit_mask) => Builder::new(Raw::new(u64::from(unit_mask) << 8 | FP_ARITH)),
        }
    }
}

/// What to count: a set of names, in the order of [`CounterSet::known`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSet(u64);

/// A name that is none of a counter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no counter is called {0:?}; there are {names}; flops and flops-double are four of them each", names = CounterSet::known().collect::<Vec<_>>().join(", "))]
pub struct UnknownCounter(pub String);

impl CounterSet {
    /// Nothing.
    pub const NONE: CounterSet = CounterSet(0);

    /// The names that can be counted, those of `perf stat`.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.name)
    }

    /// [`USUAL`].
    #[must_use]
    pub fn usual() -> CounterSet {
        USUAL.parse().expect("the names are those of the table")
    }

    /// Whether nothing is to be counted.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the processor counts any of them, not the kernel.
    #[must_use]
    pub fn has_hardware(self) -> bool {
        self.kinds().any(Kind::is_hardware)
    }

    pub(crate) fn of(kinds: impl Iterator<Item = Kind>) -> CounterSet {
        CounterSet(kinds.fold(0, |set, kind| set | 1 << kind.0))
    }

    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        (0..KNOWN.len() as u8).filter(move |n| self.0 >> n & 1 == 1).map(Kind)
    }

    /// The names of the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.kinds().map(Kind::name)
    }
}

impl FromStr for CounterSet {
    type Err = UnknownCounter;

    /// Names with commas between them; as in `perf stat` some have two.
    fn from_str(text: &str) -> Result<CounterSet, UnknownCounter> {
        let mut set = CounterSet::default();
        for name in text.split(',').map(str::trim) {
            let is_it = |known: &CounterKind| known.name == name || (!name.is_empty() && known.alias == name);
            let named = (0..KNOWN.len()).filter(|at| is_it(&KNOWN[*at])).fold(0, |set, at| set | 1 << at);
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
        assert_eq!(CounterSet::usual().to_string(), USUAL);
        let flops: CounterSet = "flops".parse().unwrap();
        assert_eq!(flops.names().count(), 4);
        assert!(flops.has_hardware() && flops.names().all(|name| name.ends_with("_single")), "{flops}");
        for wrong in ["", "cycles,", "cycels", "cycles instructions"] {
            let error = wrong.parse::<CounterSet>().unwrap_err().to_string();
            assert!(error.contains("cache-misses"), "{error}");
        }
        let all: CounterSet = CounterSet::known().collect::<Vec<_>>().join(",").parse().unwrap();
        assert_eq!(all.kinds().count(), KNOWN.len());
    }
}
