//! The statistics of an event and of its description, found by name.

use formats::profile::{XEventMetadata, XPlane, XStat, x_stat};
use std::fmt::Write;

/// The longest text of a statistic, in characters, that is added to the arguments of a slice.
const MAX_TEXT: usize = 256;

/// A statistic that the importer itself uses. Names: `GetStatTypeMap` in XLA's `tsl/profiler/utils/xplane_schema.cc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatName {
    StepNum,
    GroupId,
    CorrelationId,
    ProducerType,
    ProducerId,
    ConsumerType,
    ConsumerId,
    TfOp,
    HloOp,
    HloCategory,
    ProgramId,
    RunId,
    QueueId,
    DeviceOrdinal,
    CoreType,
    MemcpyDetails,
    MemsetDetails,
    AllocationBytes,
    AllocatorName,
    CounterValue,
}

impl StatName {
    const ALL: [(StatName, &'static str); 20] = [
        (StatName::StepNum, "step_num"),
        (StatName::GroupId, "group_id"),
        (StatName::CorrelationId, "correlation_id"),
        (StatName::ProducerType, "_pt"),
        (StatName::ProducerId, "_p"),
        (StatName::ConsumerType, "_ct"),
        (StatName::ConsumerId, "_c"),
        (StatName::TfOp, "tf_op"),
        (StatName::HloOp, "hlo_op"),
        (StatName::HloCategory, "hlo_category"),
        (StatName::ProgramId, "program_id"),
        (StatName::RunId, "run_id"),
        (StatName::QueueId, "queue_id"),
        (StatName::DeviceOrdinal, "device_ordinal"),
        (StatName::CoreType, "core_type"),
        (StatName::MemcpyDetails, "memcpy_details"),
        (StatName::MemsetDetails, "memset_details"),
        (StatName::AllocationBytes, "allocation_bytes"),
        (StatName::AllocatorName, "allocator_name"),
        (StatName::CounterValue, "counter_value"),
    ];
}

/// The ids that a plane gives to the [`StatName`]s.
pub(super) struct StatIds([Option<i64>; StatName::ALL.len()]);

impl StatIds {
    pub(super) fn new(plane: &XPlane) -> StatIds {
        let mut ids = [None; StatName::ALL.len()];
        for (id, metadata) in &plane.stat_metadata {
            let name = metadata.name.as_str();
            if let Some((stat, _)) = StatName::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)) {
                ids[*stat as usize] = Some(*id);
            }
        }
        StatIds(ids)
    }
}

/// The statistics of an event, then those of its description.
#[derive(Clone, Copy)]
pub(super) struct Stats<'a> {
    plane: &'a XPlane,
    ids: &'a StatIds,
    of_event: &'a [XStat],
    of_kind: &'a [XStat],
}

impl<'a> Stats<'a> {
    pub(super) fn new(
        plane: &'a XPlane,
        ids: &'a StatIds,
        of_event: &'a [XStat],
        kind: Option<&'a XEventMetadata>,
    ) -> Stats<'a> {
        Stats { plane, ids, of_event, of_kind: kind.map_or(&[], |kind| &kind.stats) }
    }

    fn all(self) -> impl Iterator<Item = &'a XStat> {
        self.of_event.iter().chain(self.of_kind)
    }

    fn name_of(self, stat: &XStat) -> &'a str {
        self.plane.stat_metadata.get(&stat.metadata_id).map_or("?", |metadata| &metadata.name)
    }

    /// Names and values.
    pub(super) fn named(self) -> impl Iterator<Item = (&'a str, &'a XStat)> {
        self.all().map(move |stat| (self.name_of(stat), stat))
    }

    fn find(self, name: StatName) -> Option<&'a XStat> {
        let id = self.ids.0[name as usize]?;
        self.all().find(|stat| stat.metadata_id == id)
    }

    pub(super) fn has(self, name: StatName) -> bool {
        self.find(name).is_some()
    }

    /// An integer.
    pub(super) fn integer(self, name: StatName) -> Option<u64> {
        match self.find(name)?.value {
            Some(x_stat::Value::Uint64Value(n)) => Some(n),
            Some(x_stat::Value::Int64Value(n)) => Some(n as u64),
            _ => None,
        }
    }

    /// A text.
    pub(super) fn text(self, name: StatName) -> Option<&'a str> {
        match self.find(name)?.value.as_ref()? {
            x_stat::Value::StrValue(text) => Some(text),
            x_stat::Value::RefValue(id) => Some(&self.plane.stat_metadata.get(&(*id as i64))?.name),
            _ => None,
        }
    }

    /// A number of any kind.
    pub(super) fn number(self, name: StatName) -> Option<f64> {
        number(self.find(name)?)
    }

    /// Appends the statistics to a JSON object's members. Of equal names the first counts, which is the event's.
    pub(super) fn write_members(self, json: &mut String) {
        for (idx, stat) in self.all().enumerate() {
            if self.all().take(idx).any(|before| before.metadata_id == stat.metadata_id) {
                continue;
            }
            let length = json.len();
            write_key(json, self.name_of(stat));
            if !self.write_value(json, stat) {
                json.truncate(length);
            }
        }
    }

    /// Appends a value; returns false for one that no reader could use: a program in binary form and the like.
    fn write_value(self, json: &mut String, stat: &XStat) -> bool {
        use x_stat::Value as V;
        // Writing to a string cannot fail.
        let _ = match &stat.value {
            Some(V::DoubleValue(n)) if n.is_finite() => write!(json, "{n}"),
            Some(V::DoubleValue(n)) => write!(json, "\"{n}\""),
            Some(V::Uint64Value(n)) => write!(json, "{n}"),
            Some(V::Int64Value(n)) => write!(json, "{n}"),
            Some(V::StrValue(text)) => {
                write_text(json, text);
                Ok(())
            }
            Some(V::RefValue(id)) => {
                let Some(metadata) = self.plane.stat_metadata.get(&(*id as i64)) else { return false };
                write_text(json, &metadata.name);
                Ok(())
            }
            Some(V::BytesValue(_)) | None => return false,
        };
        true
    }
}

/// The number in a statistic.
pub(super) fn number(stat: &XStat) -> Option<f64> {
    match stat.value {
        Some(x_stat::Value::DoubleValue(n)) => Some(n),
        Some(x_stat::Value::Uint64Value(n)) => Some(n as f64),
        Some(x_stat::Value::Int64Value(n)) => Some(n as f64),
        _ => None,
    }
}

/// Appends a member with a text to a JSON object's members.
pub(super) fn write_member(json: &mut String, key: &str, text: &str) {
    write_key(json, key);
    write_text(json, text);
}

fn write_key(json: &mut String, key: &str) {
    if !json.is_empty() {
        json.push(',');
    }
    write_text(json, key);
    json.push(':');
}

/// Appends a text in quotation marks, cut at [`MAX_TEXT`].
fn write_text(json: &mut String, text: &str) {
    let cut = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    let text = &text[..cut];
    if text.bytes().any(|b| b < 0x20 || b == b'"' || b == b'\\') {
        json.push_str(&serde_json::Value::from(text).to_string());
    } else {
        json.push('"');
        json.push_str(text);
        json.push('"');
    }
}
