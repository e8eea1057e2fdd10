//! The state of one writer: names by number, defaults, and whether they are valid.

use formats::perfetto::{InternedData, TracePacket, TracePacketDefaults, TrackEvent, TrackEventDefaults};
use rustc_hash::FxHashMap;

/// Bits of `sequence_flags`.
const INCREMENTAL_STATE_CLEARED: u32 = 1;
const NEEDS_INCREMENTAL_STATE: u32 = 2;
/// The clock of packets without one: BOOTTIME.
pub(super) const BOOTTIME_CLOCK: u32 = 6;

/// Texts by their number.
#[derive(Default)]
pub(super) struct Interned(FxHashMap<u64, String>);

impl Interned {
    pub(super) fn get(&self, iid: u64) -> Option<&str> {
        self.0.get(&iid).map(String::as_str)
    }
}

#[derive(Default)]
pub(super) struct Sequence {
    is_valid: bool,
    pub(super) names: Interned,
    pub(super) categories: Interned,
    pub(super) annotations: Interned,
    pub(super) texts: Interned,
    defaults: TracePacketDefaults,
    /// Current values of counters whose packets have differences.
    pub(super) counted: FxHashMap<u64, i64>,
    last_timestamp_us: i64,
}

impl Sequence {
    /// Applies the state in a packet; returns false if the packet needs a state that was lost.
    pub(super) fn begin(&mut self, packet: &TracePacket, lost: bool) -> bool {
        let flags = packet.sequence_flags.unwrap_or(0);
        if lost {
            self.is_valid = false;
        }
        if flags & INCREMENTAL_STATE_CLEARED != 0 || packet.incremental_state_cleared == Some(true) {
            *self = Sequence { is_valid: true, ..Sequence::default() };
        }
        if flags & NEEDS_INCREMENTAL_STATE != 0 && !self.is_valid {
            return false;
        }
        if let Some(defaults) = &packet.trace_packet_defaults {
            self.defaults.clone_from(defaults);
        }
        if let Some(data) = &packet.interned_data {
            self.intern(data);
        }
        true
    }

    fn intern(&mut self, data: &InternedData) {
        let tables = [
            (&mut self.names, &data.event_names),
            (&mut self.categories, &data.event_categories),
            (&mut self.annotations, &data.debug_annotation_names),
        ];
        for (table, entries) in tables {
            table.0.extend(entries.iter().map(|e| (e.iid.unwrap_or(0), e.name.clone().unwrap_or_default())));
        }
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let entries = data.debug_annotation_string_values.iter();
        self.texts.0.extend(entries.map(|e| (e.iid.unwrap_or(0), text(&e.str))));
    }

    /// Clock and time of a track event.
    pub(super) fn time(&mut self, packet: &TracePacket, event: &TrackEvent) -> Option<(u32, u64)> {
        if let Some(us) = event.timestamp_absolute_us {
            return Some((BOOTTIME_CLOCK, u64::try_from(us.checked_mul(1_000)?).ok()?));
        }
        if let Some(delta) = event.timestamp_delta_us {
            self.last_timestamp_us = self.last_timestamp_us.wrapping_add(delta);
            return Some((BOOTTIME_CLOCK, u64::try_from(self.last_timestamp_us.checked_mul(1_000)?).ok()?));
        }
        let clock = packet.timestamp_clock_id.or(self.defaults.timestamp_clock_id).unwrap_or(BOOTTIME_CLOCK);
        Some((clock, packet.timestamp?))
    }

    pub(super) fn event_defaults(&self) -> Option<&TrackEventDefaults> {
        self.defaults.track_event_defaults.as_ref()
    }
}
