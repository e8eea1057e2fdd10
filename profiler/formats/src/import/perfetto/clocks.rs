//! Converts times of any clock to the trace's clock, by snapshots that read several clocks at once.

use formats::perfetto::ClockSnapshot;
use rustc_hash::FxHashMap;

/// Built-in clocks.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// Clocks from this number to 127 belong to one sequence.
const FIRST_OF_SEQUENCE: u32 = 64;
const LAST_OF_SEQUENCE: u32 = 127;

/// A clock, with the sequence that it belongs to.
type ClockId = (u32, u32);

/// One clock's readings.
#[derive(Default)]
struct Readings {
    /// Its time, the trace's time; both in nanoseconds.
    at: Vec<(i64, i64)>,
    unit_ns: u64,
    /// The last time, if packets have the difference to the previous one.
    incremental: Option<i64>,
}

#[derive(Default)]
pub(super) struct Clocks {
    readings: FxHashMap<ClockId, Readings>,
    primary: Option<u32>,
    wall_offset: Option<i64>,
}

fn id(sequence: u32, clock: u32) -> ClockId {
    if (FIRST_OF_SEQUENCE..=LAST_OF_SEQUENCE).contains(&clock) { (sequence, clock) } else { (0, clock) }
}

impl Clocks {
    pub(super) fn snapshot(&mut self, sequence: u32, snapshot: &ClockSnapshot) {
        let primary = *self.primary.get_or_insert(snapshot.primary_trace_clock.unwrap_or(BOOTTIME));
        let readings = snapshot.clocks.iter().filter_map(|c| {
            let unit = c.unit_multiplier_ns.unwrap_or(1).max(1);
            Some((c, unit, i64::try_from(c.timestamp?.checked_mul(unit)?).ok()?))
        });
        let readings: Vec<_> = readings.collect();
        let of = |clock: u32| readings.iter().find(|(c, ..)| c.clock_id == Some(clock)).map(|(.., ns)| *ns);
        // A snapshot without the trace's clock still ties its clocks together if one of them is tied already.
        let tied = readings.iter().find_map(|(c, _, ns)| {
            let id = id(sequence, c.clock_id?);
            self.convert(id, *ns).map(|trace| trace - ns).map(|offset| ns + offset)
        });
        let Some(trace) = of(primary).or(tied) else { return };
        if let (Some(wall), None) = (of(REALTIME), self.wall_offset) {
            self.wall_offset = wall.checked_sub(trace);
        }
        for (clock, unit, ns) in readings {
            let readings = self.readings.entry(id(sequence, clock.clock_id.unwrap_or(0))).or_default();
            readings.unit_ns = unit;
            if clock.is_incremental == Some(true) {
                readings.incremental = Some(ns);
            }
            let at = readings.at.partition_point(|(own, _)| *own <= ns);
            readings.at.insert(at, (ns, trace));
        }
    }

    /// Converts a packet's time to the trace's clock. Without a snapshot, built-in clocks are taken for the trace's.
    pub(super) fn convert_packet(&mut self, sequence: u32, clock: u32, time: u64) -> Option<i64> {
        let id = id(sequence, clock);
        let Some(readings) = self.readings.get_mut(&id) else {
            let is_builtin = clock < FIRST_OF_SEQUENCE;
            let is_trace = self.primary.map_or(is_builtin, |primary| primary == clock);
            return if is_trace { i64::try_from(time).ok() } else { None };
        };
        let time = i64::try_from(time.checked_mul(readings.unit_ns.max(1))?).ok()?;
        let time = match &mut readings.incremental {
            Some(sum) => {
                *sum = sum.checked_add(time)?;
                *sum
            }
            None => time,
        };
        self.convert(id, time)
    }

    /// Converts a time of a built-in clock to the trace's clock, for the kernel's events.
    pub(super) fn builtin_to_trace(&self, clock: u32, time: u64) -> Option<i64> {
        let time = i64::try_from(time).ok()?;
        self.convert((0, clock), time).or(if self.primary.is_none_or(|p| p == clock) { Some(time) } else { None })
    }

    fn convert(&self, id: ClockId, time: i64) -> Option<i64> {
        let readings = &self.readings.get(&id)?.at;
        let before = readings.partition_point(|(own, _)| *own <= time).saturating_sub(1);
        let (own, trace) = readings.get(before)?;
        trace.checked_add(time.checked_sub(*own)?)
    }

    /// What to add to the trace's times to get ns since 1970.
    pub(super) fn wall_offset(&self) -> Option<i64> {
        self.wall_offset
    }
}
