//! Findings about several devices: communication that no compute hides.

use super::facts::{Facts, Finding, MAX_SLICES, shorten};
use crate::activity::{Activities, Activity};
use crate::breakdown::DeviceBreakdown;
use crate::critical::{PathKind, Segment};
use crate::intervals::union_ns;
use crate::stalls::cause::Cause;
use std::cmp::Reverse;
use text::duration;
use trace_model::SliceRef;

/// The minimum share of a device's time at which exposed communication is reported, even if the path does not lead
/// through it.
const MIN_EXPOSED_SHARE: f64 = 0.1;
/// The title of a finding about exposed communication.
const EXPOSED_TITLE: &str = "exposed communication";

pub(super) fn add_findings(facts: &Facts<'_>, found: &mut Vec<Finding>) {
    if let Some((exposed, collectives)) = exposed_communication(facts) {
        if is_mostly_within(facts, PathKind::Stall(Cause::Unexplained), collectives) {
            // The streams waited for communication without a record of the wait: the same time, explained better.
            found.retain(|f| f.title != "unexplained");
        }
        // The path may lead through all of the communication, through some, or, if every rank waits for another,
        // through none. The larger of the two findings stays.
        match found.iter_mut().find(|f| f.title == EXPOSED_TITLE) {
            Some(on_path) if on_path.saves_ns >= exposed.saves_ns => {}
            Some(on_path) => *on_path = exposed,
            None => found.push(exposed),
        }
    }
}

fn exposed_share(device: &DeviceBreakdown) -> f64 {
    device.times.communication_exposed_ns as f64 / device.times.total_ns().max(1) as f64
}

/// The finding about the device with the largest share of exposed communication, and the intervals of that device's
/// collectives.
fn exposed_communication(facts: &Facts<'_>) -> Option<(Finding, Vec<(i64, i64)>)> {
    let worst = facts.devices.iter().max_by(|a, b| exposed_share(a).total_cmp(&exposed_share(b)))?;
    if exposed_share(worst) < MIN_EXPOSED_SHARE {
        return None;
    }
    let n = facts.devices.iter().filter(|device| exposed_share(device) >= MIN_EXPOSED_SHARE).count();
    let slices = collectives(facts, worst);
    let range = slices.first().map_or(worst.times.range.clone(), |longest| longest.start..longest.end);
    let exposed_ns = worst.times.communication_exposed_ns;
    let mut finding =
        facts.finding(EXPOSED_TITLE, exposed_ns, range, slices.iter().take(MAX_SLICES).map(|slice| slice.id).collect());
    let process = facts.store.processes().get(worst.process as usize);
    let owner = process.map_or_else(String::new, |p| format!(" of {} on {}", p.title(), p.host));
    let others = match facts.devices.len() {
        1 => String::new(),
        all => format!("; {n} of {all} devices spend {:.0} % or more so", MIN_EXPOSED_SHARE * 100.0),
    };
    let longest = slices.first().map_or_else(String::new, |slice| {
        let name = shorten(facts.store.slice_name(slice));
        format!(" The longest of {}, {}, is `{name}`.", slices.len(), duration(slice.dur()))
    });
    finding.text = format!(
        "{:.1} % of the time of {}{owner} is communication that no compute hides, {}{others}.{longest} Larger buckets that start \
         earlier, fewer bytes, or peers that come at the same time help.",
        exposed_share(worst) * 100.0,
        worst.device,
        duration(exposed_ns),
    );
    Some((finding, slices.iter().map(|slice| (slice.start, slice.end)).collect()))
}

/// Whether most of the time of the path's segments of a kind lies in the intervals `parts`.
fn is_mostly_within(facts: &Facts<'_>, kind: PathKind, mut parts: Vec<(i64, i64)>) -> bool {
    let segments = || facts.paths.iter().flat_map(|p| &p.segments).filter(|segment| segment.kind == kind);
    let all: i64 = segments().map(Segment::dur).sum();
    let both_ns = union_ns(parts.clone()) + union_ns(segments().map(|segment| (segment.start, segment.end)).collect());
    parts.extend(segments().map(|segment| (segment.start, segment.end)));
    all > 0 && 2 * (both_ns - union_ns(parts)) > all
}

/// A device's collectives, the longest first.
fn collectives(facts: &Facts<'_>, device: &DeviceBreakdown) -> Vec<SliceRef> {
    let (store, activities) = (facts.store, Activities::new(facts.store));
    let tracks = device.streams.iter().filter_map(|(track, ..)| store.track(*track));
    let slices = tracks.flat_map(|track| track.lanes.iter().flat_map(|lane| lane.slices(&facts.range)));
    let mut found: Vec<SliceRef> = slices.filter(|slice| activities.get(slice) == Activity::Collective).collect();
    found.sort_by_key(|slice| (Reverse(slice.dur()), slice.start));
    found
}
