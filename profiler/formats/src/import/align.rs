//! Puts several files on one clock.
//!
//! Files with times of day are aligned by them. The collectives that two files have in common (the all-reduces of one
//! group, as many in both) are more precise: neither side can end before the other has begun, which bounds the
//! difference of the clocks from both sides, and usually both end together. [Messages](super::messages) in both
//! directions bound it too, since none was received before it was sent ([`mod@by_messages`]). The bound is reported. If
//! no constant difference is possible, because one of the clocks runs faster, the difference is a line
//! ([`trace_model::clocks`] says what is assumed of clocks). A file without any relation to the others begins where the
//! first begins.

mod by_messages;
mod shift;

pub(super) use shift::Shift;

use super::ids::SiteIdx;
use super::messages::Message;
use super::problems::Problem;
use super::stage::Stage;
use by_messages::by_messages;
use shift::{ClockShifts, Fit};
use std::collections::BTreeMap;
use trace_model::clocks::{BoundKind, Fact, Line};
use trace_model::{Category, Warning};

/// Times of day are larger than this, ns since 1970 (2001); times since a machine's start are smaller.
const UNIX_NS: i64 = 1_000_000_000_000_000_000;

/// An error bound below which collectives are preferred to a possible difference by the time of day, ns.
const GOOD_BOUND_NS: i64 = 1_000_000;

/// Start and end of a collective on one rank.
type Span = (i64, i64);

/// The shift of each stage's times.
pub(super) fn shifts(stages: &mut [Stage], messages: &[Message], warnings: &mut Vec<Warning>) -> Vec<Shift> {
    if stages.len() < 2 {
        return vec![Shift::Constant(0); stages.len()];
    }
    for (idx, stage) in stages.iter_mut().enumerate() {
        stage.rank.get_or_insert(idx as u32);
    }
    let (wall, has_wall) = by_wall_clock(stages);
    let shifts = wall.iter().copied().map(Shift::Constant).collect();
    let mut placed = ClockShifts { shifts, bounds: vec![None; stages.len()], warnings: Vec::new() };
    placed.bounds[0] = Some(0);
    let reference = collectives(&stages[0]);
    for (idx, stage) in stages.iter().enumerate().skip(1) {
        let theirs = collectives(stage);
        let found = if let Some((difference, bound)) = by_collectives(&reference, &theirs, wall[idx] - wall[0]) {
            Some((Shift::Constant(wall[0].saturating_add(difference)), bound))
        } else {
            drifting(&reference, &theirs).map(|(line, bound)| (Shift::Drifting(line, wall[0]), bound))
        };
        if let Some((shift, bound)) = found {
            placed.place(idx, shift, bound);
            placed.warn_aligned(stage, &stages[0], "their collectives", shift, bound);
        }
    }
    by_messages(stages, messages, &has_wall, &mut placed);
    warnings.append(&mut placed.warnings);
    for (idx, stage) in stages.iter_mut().enumerate() {
        if !has_wall[idx] && placed.bounds[idx].is_none() {
            stage.problems.count(Problem::NoCommonClock);
        }
    }
    placed.shifts
}

/// The shift of each stage by its times of day, and whether it has any; a stage without begins where the first begins.
fn by_wall_clock(stages: &[Stage]) -> (Vec<i64>, Vec<bool>) {
    let ranges: Vec<_> = stages.iter().map(Stage::range).collect();
    let wall = |stage: &Stage, range: Option<(i64, i64)>| match (stage.wall_offset, range) {
        (Some(offset), _) => Some(offset),
        (None, Some((begin, _))) if begin > UNIX_NS => Some(0),
        _ => None,
    };
    let offsets: Vec<Option<i64>> = stages.iter().zip(&ranges).map(|(s, r)| wall(s, *r)).collect();
    let first = offsets[0].unwrap_or(0);
    let begin = ranges[0].map_or(0, |(begin, _)| begin.saturating_add(first));
    let shift = |idx: usize| match (offsets[idx], ranges[idx]) {
        (Some(offset), _) if offsets[0].is_some() => (offset, true),
        (_, Some((own, _))) if idx > 0 => (begin.saturating_sub(own), false),
        _ => (first, true),
    };
    (0..stages.len()).map(shift).unzip()
}

/// Collectives by name, in order of time.
fn collectives(stage: &Stage) -> BTreeMap<String, Vec<Span>> {
    let mut found: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for track in &stage.tracks {
        for slice in &track.slices {
            if stage.sites.means(slice.site) == Category::Collective {
                let name = stage.sites.name(SiteIdx(slice.site));
                match found.get_mut(name) {
                    Some(spans) => spans.push((slice.start, slice.end)),
                    None => {
                        found.insert(name.to_owned(), vec![(slice.start, slice.end)]);
                    }
                }
            }
        }
    }
    found.values_mut().for_each(|spans| spans.sort_unstable());
    found
}

/// What to add to the second's times, and the error bound; `None` if the two have nothing in common, if no constant
/// difference is possible, or if the `presumed` one is good enough.
fn by_collectives(
    first: &BTreeMap<String, Vec<Span>>,
    second: &BTreeMap<String, Vec<Span>>,
    presumed: i64,
) -> Option<(i64, i64)> {
    let (least, most) = facts(first, second);
    let fit = Fit::new(&least, &most).filter(Fit::is_constant)?;
    let between_ends = |(least, most): (&Fact, &Fact)| most.limit.saturating_sub(least.at);
    let mut ends: Vec<i64> = least.iter().zip(&most).map(between_ends).collect();
    ends.sort_unstable();
    let difference = ends[ends.len() / 2].clamp(fit.low, fit.high);
    let bound = fit.bound(difference);
    // A presumed difference that is possible is replaced by a good bound only: the clocks may be synchronised well.
    let is_better = !(fit.low..=fit.high).contains(&presumed) || bound < GOOD_BOUND_NS;
    is_better.then_some((difference, bound))
}

/// The line of the difference if no constant one is possible, and its error bound from the first to the last
/// collective.
fn drifting(first: &BTreeMap<String, Vec<Span>>, second: &BTreeMap<String, Vec<Span>>) -> Option<(Line, i64)> {
    let (least, most) = facts(first, second);
    Fit::new(&least, &most).filter(|fit| !fit.is_constant())?.drifting()
}

/// The facts that collectives prove about the second clock: each ends after its counterpart in the first begins, and
/// the counterpart after it begins. Only names with as many collectives in both are used, since else the pairs are
/// unknown.
fn facts(first: &BTreeMap<String, Vec<Span>>, second: &BTreeMap<String, Vec<Span>>) -> (Vec<Fact>, Vec<Fact>) {
    let (mut least, mut most) = (Vec::new(), Vec::new());
    for (name, theirs) in second {
        let Some(ours) = first.get(name).filter(|ours| ours.len() == theirs.len()) else { continue };
        for (our, their) in ours.iter().zip(theirs) {
            least.push(Fact { at: their.1, limit: our.0, kind: BoundKind::Lower });
            most.push(Fact { at: their.0, limit: our.1, kind: BoundKind::Upper });
        }
    }
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(spans: &[Span]) -> BTreeMap<String, Vec<Span>> {
        BTreeMap::from([("all-reduce".to_owned(), spans.to_vec())])
    }

    #[test]
    fn a_planted_difference_is_found_within_its_bound() {
        // Ranks arrive at different times and leave together, the second's clock 12,345 ns ahead.
        let arrivals = [(100, 130), (1_000, 700), (2_500, 2_900), (4_000, 4_050)];
        let ours: Vec<Span> = arrivals.iter().map(|(a, b)| (*a, *a.max(b) + 20)).collect();
        let theirs: Vec<Span> = arrivals.iter().map(|(a, b)| (b + 12_345, a.max(b) + 22 + 12_345)).collect();
        let (difference, bound) = by_collectives(&of(&ours), &of(&theirs), 0).unwrap();
        assert!((difference + 12_345).abs() <= bound && bound < 200, "{difference} {bound}");
        assert!((difference + 12_345).abs() <= 2);
    }

    proptest! {
        /// Ranks arrive when they like and leave within some us of each other; the second's clock is off and runs at
        /// another rate.
        #[test]
        fn planted_skew_and_drift_are_found_within_the_bound(
            offset in -1_000_000_000i64..1_000_000_000,
            ppm in -200i64..200,
            arrivals in prop::collection::vec((0i64..400_000, 0i64..400_000, 0i64..20_000), 20..60),
        ) {
            let theirs_at = |t: i64| t + offset + t * ppm / 1_000_000;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (n, (a, b, late)) in arrivals.iter().enumerate() {
                let step = n as i64 * 20_000_000;
                let end = step + a.max(b) + 1_000;
                ours.push((step + a, end));
                theirs.push((theirs_at(step + b), theirs_at(end + late)));
            }
            let (ours, theirs) = (of(&ours), of(&theirs));
            let wrong = |found: &dyn Fn(i64) -> i64| {
                let times = arrivals.iter().enumerate().map(|(n, (a, b, _))| n as i64 * 20_000_000 + a.max(b));
                times.map(|t| (found(theirs_at(t)) - t).abs()).max().unwrap_or(0)
            };
            match (by_collectives(&ours, &theirs, 0), drifting(&ours, &theirs)) {
                (Some((difference, bound)), _) => {
                    // One difference fits all: the drift is within the bound.
                    let most = wrong(&|t| t + difference);
                    prop_assert!(most <= bound + 1, "{most} {bound}");
                }
                (None, Some((line, bound))) => {
                    let most = wrong(&|t| Shift::Drifting(line, 0).apply(t));
                    prop_assert!(most <= bound + 1 && bound < 1_000_000, "{most} {bound}");
                }
                (None, None) => prop_assert!(false, "nothing found"),
            }
        }
    }

    #[test]
    fn a_presumed_difference_stays_where_collectives_say_less() {
        // They last 9 ms, so that they say little; the clocks may well agree.
        let ours = of(&[(0, 9_000_000), (20_000_000, 29_000_000), (50_000_000, 59_000_000)]);
        assert_eq!(by_collectives(&ours, &ours, 0), None);
        assert!(drifting(&ours, &ours).is_none());
    }

    #[test]
    fn what_contradicts_is_no_relation() {
        assert_eq!(by_collectives(&of(&[(0, 10), (100, 110)]), &of(&[(0, 10), (900, 910)]), 0), None);
        assert_eq!(by_collectives(&of(&[(0, 10)]), &of(&[(0, 10), (20, 30)]), 0), None);
    }
}
