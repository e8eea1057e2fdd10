//! Track events: slices, instants, counters, arrows; and Chrome's events in their old form.

use super::args;
use super::sequence::Sequence;
use super::tracks::Tracks;
use crate::import::flows::{FlowKey, FlowPart};
use crate::import::ids::{SiteIdx, TrackIdx};
use crate::import::problems::Problem;
use crate::import::stage::Stage;
use formats::perfetto::TrackEvent;
use formats::perfetto::track_event::LegacyEvent;
use trace_model::{Event, NO_ARGS};

const BEGIN: u32 = 1;
const END: u32 = 2;
const INSTANT: u32 = 3;
const COUNTER: u32 = 4;

/// Stages an event that happened at `time`.
pub(super) fn take(e: &TrackEvent, time: i64, sequence: &mut Sequence, tracks: &mut Tracks, stage: &mut Stage) {
    let defaults = sequence.event_defaults();
    let uuid = e.track_uuid.or_else(|| defaults?.track_uuid).unwrap_or(0);
    extra_counters(e, time, sequence, tracks, stage);
    if e.r#type == Some(COUNTER) {
        let value = e.counter_value.map(Value::Whole).or(e.double_counter_value.map(Value::Real));
        return match value {
            Some(value) => counter(uuid, value, time, sequence, tracks, stage),
            None => stage.problems.count(Problem::UnknownEvent),
        };
    }
    let track = tracks.track(uuid, stage);
    let site = site(e, sequence, stage);
    let args = match args::json(&e.debug_annotations, sequence) {
        Some(json) => stage.args.push(&json),
        None => NO_ARGS,
    };
    match (e.r#type.unwrap_or(0), &e.legacy_event) {
        (BEGIN, _) => {
            let site = site.unwrap_or_else(|| stage.site("", ""));
            stage.mark(track, time, false, Some(site), args);
        }
        (END, _) => stage.mark(track, time, true, site, args),
        (INSTANT, _) => {
            let site = site.unwrap_or_else(|| stage.site("", ""));
            stage.instant(track, time, site, args);
        }
        (_, Some(legacy)) => old(legacy, time, track, site, args, stage),
        _ => stage.problems.count(Problem::UnknownEvent),
    }
    arrows(e, time, track, site, stage);
}

/// Category and name; `None` where it has no name.
fn site(e: &TrackEvent, sequence: &Sequence, stage: &mut Stage) -> Option<SiteIdx> {
    let iid = e.name_iid.or_else(|| e.legacy_event.as_ref()?.name_iid);
    let name = match (&e.name, iid) {
        (Some(name), _) => name.as_str(),
        (None, Some(iid)) => match sequence.names.get(iid) {
            Some(name) => name,
            None => {
                stage.problems.count(Problem::MissingName);
                "?"
            }
        },
        (None, None) => return None,
    };
    let mut category = e.categories.join(",");
    for iid in &e.category_iids {
        if !category.is_empty() {
            category.push(',');
        }
        category.push_str(sequence.categories.get(*iid).unwrap_or("?"));
    }
    Some(stage.site(&category, name))
}

fn arrows(e: &TrackEvent, time: i64, track: TrackIdx, site: Option<SiteIdx>, stage: &mut Stage) {
    let site = site.unwrap_or(SiteIdx::NONE);
    let space = stage.flows.shared_space(b"flow");
    let old = stage.flows.shared_space(b"old flow");
    let ids = [
        (space, &e.flow_ids, FlowPart::Step),
        (space, &e.terminating_flow_ids, FlowPart::Finish),
        (old, &e.flow_ids_old, FlowPart::Step),
        (old, &e.terminating_flow_ids_old, FlowPart::Finish),
    ];
    for (space, ids, part) in ids {
        for id in ids {
            stage.flows.point(FlowKey { space, id: *id }, part, track, time, site);
        }
    }
}

/// A counter's value as it comes.
#[derive(Clone, Copy)]
enum Value {
    Whole(i64),
    Real(f64),
}

fn extra_counters(e: &TrackEvent, time: i64, sequence: &mut Sequence, tracks: &mut Tracks, stage: &mut Stage) {
    if e.extra_counter_values.is_empty() && e.extra_double_counter_values.is_empty() {
        return;
    }
    let defaults = sequence.event_defaults().cloned().unwrap_or_default();
    let or = |own: &Vec<u64>, default: Vec<u64>| if own.is_empty() { default } else { own.clone() };
    let whole = or(&e.extra_counter_track_uuids, defaults.extra_counter_track_uuids);
    let real = or(&e.extra_double_counter_track_uuids, defaults.extra_double_counter_track_uuids);
    for (uuid, value) in whole.into_iter().zip(&e.extra_counter_values) {
        counter(uuid, Value::Whole(*value), time, sequence, tracks, stage);
    }
    for (uuid, value) in real.into_iter().zip(&e.extra_double_counter_values) {
        counter(uuid, Value::Real(*value), time, sequence, tracks, stage);
    }
}

fn counter(uuid: u64, value: Value, time: i64, sequence: &mut Sequence, tracks: &Tracks, stage: &mut Stage) {
    let (descriptor, name) = tracks.counter(uuid);
    let factor = descriptor.and_then(|d| d.unit_multiplier).unwrap_or(1) as f64;
    let value = match value {
        Value::Real(value) => value,
        Value::Whole(step) if descriptor.and_then(|d| d.is_incremental) == Some(true) => {
            let sum = sequence.counted.entry(uuid).or_insert(0);
            *sum = sum.wrapping_add(step);
            *sum as f64
        }
        Value::Whole(value) => value as f64,
    };
    let site = stage.site(&tracks.counter_category(uuid), &name);
    let process = tracks.process(uuid, stage);
    stage.counter(process, time, site, value * factor);
}

/// Chrome's phases within a track event.
fn old(e: &LegacyEvent, time: i64, track: TrackIdx, site: Option<SiteIdx>, args: u32, stage: &mut Stage) {
    let phase = u8::try_from(e.phase.unwrap_or(0)).unwrap_or(0);
    let site = site.unwrap_or_else(|| stage.site("", ""));
    let process = stage.tracks[track as usize].process;
    let (space, id) = match (e.unscoped_id, e.local_id, e.global_id) {
        (Some(id), ..) | (None, Some(id), _) => (u64::from(process), id),
        (None, None, Some(id)) => (u64::MAX, id),
        _ => (u64::from(process), 0),
    };
    let key = (process, space, id);
    match phase {
        b'X' => {
            let end = time.saturating_add(e.duration_us.unwrap_or(0).saturating_mul(1_000));
            stage.slice(track, Event { args, ..site.slice(time, end) });
        }
        b'B' | b'E' => stage.mark(track, time, phase == b'E', Some(site), args),
        b'I' | b'i' => stage.instant(track, time, site, args),
        b'b' | b'S' | b'e' | b'F' => stage.async_mark(key, time, matches!(phase, b'e' | b'F'), site, args),
        b'n' | b'T' | b'p' => stage.async_instant(key, time, site, args),
        _ => stage.problems.count(Problem::UnknownEvent),
    }
}
