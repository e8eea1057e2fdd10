//! Puts several files on one clock.
//!
//! Files that know the time of day are laid on it. Where two files have the same collectives (the all-reduces of one
//! group, as many in both), these say more: none of the two can end before the other has begun, which bounds the clocks'
//! difference from both sides, and usually they end together. The bound is told. A file without any relation to the
//! first begins where that begins.

use super::emit::clock_notice;
use super::problems::Problem;
use super::stage::Stage;
use crate::batch::Notice;
use crate::store::Category;
use std::collections::BTreeMap;

/// Times since 1970 are beyond this many nanoseconds (2001), times since a machine's start are not.
const UNIX_NS: i64 = 1_000_000_000_000_000_000;

/// A collective: when it ran on one rank.
type Span = (i64, i64);

/// What to add to the times of each stage.
pub(super) fn shifts(stages: &mut [Stage], notices: &mut Vec<Notice>) -> Vec<i64> {
    if stages.len() < 2 {
        return vec![0; stages.len()];
    }
    for (idx, stage) in stages.iter_mut().enumerate() {
        stage.rank.get_or_insert(idx as u32);
    }
    let mut shifts = by_wall_clock(stages);
    let reference = collectives(&stages[0]);
    for (idx, stage) in stages.iter().enumerate().skip(1) {
        if let Some((difference, bound)) = by_collectives(&reference, &collectives(stage), shifts[idx] - shifts[0]) {
            shifts[idx] = shifts[0].saturating_add(difference);
            let text = format!("laid beside {} by their collectives, to within {bound} ns", stages[0].source);
            notices.push(clock_notice(&format!("{} (rank {})", stage.source, stage.rank.unwrap_or(0)), text));
        }
    }
    shifts
}

/// By the time of day; a file without one begins with the first.
fn by_wall_clock(stages: &mut [Stage]) -> Vec<i64> {
    let ranges: Vec<_> = stages.iter().map(Stage::range).collect();
    let wall = |stage: &Stage, range: Option<(i64, i64)>| match (stage.wall_offset, range) {
        (Some(offset), _) => Some(offset),
        (None, Some((begin, _))) if begin > UNIX_NS => Some(0),
        _ => None,
    };
    let offsets: Vec<Option<i64>> = stages.iter().zip(&ranges).map(|(s, r)| wall(s, *r)).collect();
    let first = offsets[0].unwrap_or(0);
    let begin = ranges[0].map_or(0, |(begin, _)| begin.saturating_add(first));
    let mut shifts = Vec::with_capacity(stages.len());
    for (idx, stage) in stages.iter_mut().enumerate() {
        shifts.push(match (offsets[idx], ranges[idx]) {
            (Some(offset), _) if offsets[0].is_some() => offset,
            (_, Some((own, _))) if idx > 0 => {
                stage.problems.count(Problem::NoCommonClock);
                begin.saturating_sub(own)
            }
            _ => first,
        });
    }
    shifts
}

/// Collectives by name, in order of time.
fn collectives(stage: &Stage) -> BTreeMap<String, Vec<Span>> {
    let mut found: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for track in &stage.tracks {
        for slice in &track.slices {
            if stage.sites.means(slice.site) == Category::Collective {
                let name = stage.sites.name(super::sites::SiteIdx(slice.site));
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

/// How far the second is behind the first, and how wrong that may be; `None` where they have nothing in common, or what
/// they have contradicts a constant difference. Only names of which both have as many are used: a part of a recording
/// has others.
fn by_collectives(
    first: &BTreeMap<String, Vec<Span>>,
    second: &BTreeMap<String, Vec<Span>>,
    presumed: i64,
) -> Option<(i64, i64)> {
    let (mut least, mut most, mut ends) = (i64::MIN, i64::MAX, Vec::new());
    for (name, theirs) in second {
        let Some(ours) = first.get(name).filter(|ours| ours.len() == theirs.len()) else { continue };
        for (our, their) in ours.iter().zip(theirs) {
            // theirs + d ends after ours begins, and ours after theirs + d begins.
            least = least.max(our.0.saturating_sub(their.1));
            most = most.min(our.1.saturating_sub(their.0));
            ends.push(our.1.saturating_sub(their.1));
        }
    }
    if ends.is_empty() || least > most {
        return None;
    }
    ends.sort_unstable();
    let difference = ends[ends.len() / 2].clamp(least, most);
    let bound = (difference - least).max(most - difference);
    // The clocks may be better than that already.
    let is_better = presumed < least || presumed > most || bound < 1_000_000;
    is_better.then_some((difference, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_contradicts_is_no_relation() {
        assert_eq!(by_collectives(&of(&[(0, 10), (100, 110)]), &of(&[(0, 10), (900, 910)]), 0), None);
        assert_eq!(by_collectives(&of(&[(0, 10)]), &of(&[(0, 10), (20, 30)]), 0), None);
    }
}
