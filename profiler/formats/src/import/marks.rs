//! Pairs the begins and ends of one track to slices.

use super::ids::SiteIdx;
use super::problems::{Problem, Problems};
use super::sites::Sites;
use rustc_hash::FxHashMap;
use trace_model::{Event, NO_ARGS};

/// A begin or an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) time: i64,
    pub(super) is_end: bool,
    /// The site that begins or ends; [`SiteIdx::NONE`] ends the slice that began last.
    pub(super) site: SiteIdx,
    pub(super) args: u32,
}

/// Pairs marks in order of time. An end with a name closes the last begin with that name and all slices inside; a begin
/// without an end is closed at `last`. Both cases are counted as problems.
pub(super) fn close(mut marks: Vec<Mark>, last: i64, sites: &Sites, problems: &mut Problems, out: &mut Vec<Event>) {
    // Stable: marks at the same time keep the file's order.
    marks.sort_by_key(|mark| mark.time);
    let mut open: Vec<Mark> = Vec::new();
    // The number of open slices with each name: an end without a begin need not be searched for. The slices that a
    // search passes are closed by it, so all searches together are linear.
    let mut n_open: FxHashMap<&str, u64> = FxHashMap::default();
    for mark in marks {
        if !mark.is_end {
            *n_open.entry(sites.name(mark.site)).or_default() += 1;
            open.push(mark);
            continue;
        }
        let is_missing = mark.site != SiteIdx::NONE && n_open.get(sites.name(mark.site)).is_none_or(|n| *n == 0);
        if is_missing {
            problems.count(Problem::EndWithoutBegin);
            continue;
        }
        let is_begin_of = |begin: &Mark| mark.site == SiteIdx::NONE || is_same(sites, begin.site, mark.site);
        let Some(at) = open.iter().rposition(is_begin_of) else {
            problems.count(Problem::EndWithoutBegin);
            continue;
        };
        problems.add(Problem::ClosedByOuter, (open.len() - at - 1) as u64, None);
        for (depth, begin) in open.drain(at..).enumerate().rev() {
            let of_end = if depth == 0 { mark.args } else { NO_ARGS };
            if let Some(n) = n_open.get_mut(sites.name(begin.site)) {
                *n -= 1;
            }
            out.push(slice(&begin, mark.time, of_end));
        }
    }
    problems.add(Problem::BeginWithoutEnd, open.len() as u64, None);
    out.extend(open.iter().rev().map(|begin| slice(begin, last.max(begin.time), NO_ARGS)));
}

fn is_same(sites: &Sites, begin: SiteIdx, end: SiteIdx) -> bool {
    begin == end || sites.name(begin) == sites.name(end)
}

fn slice(begin: &Mark, end: i64, args_of_end: u32) -> Event {
    let args = if begin.args == NO_ARGS { args_of_end } else { begin.args };
    Event { args, ..begin.site.slice(begin.time, end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks such as `A 1` and `/A 2` (`/ 3` ends anything); gives the slices and what was counted.
    fn closed(text: &str) -> (String, String) {
        let (mut sites, mut problems, mut out) = (Sites::default(), Problems::default(), Vec::new());
        let words: Vec<&str> = text.split_whitespace().collect();
        let marks = words.chunks(2).map(|pair| {
            let name = pair[0].trim_start_matches('/');
            let site = if name.is_empty() { SiteIdx::NONE } else { sites.get_or_add("", name) };
            let is_end = pair[0].starts_with('/');
            Mark { time: pair[1].parse().unwrap(), is_end, site, args: NO_ARGS }
        });
        let marks = marks.collect();
        close(marks, 99, &sites, &mut problems, &mut out);
        let show = |e: &Event| format!("{} {}..{}", sites.name(SiteIdx(e.site)), e.start, e.end);
        let counted = [Problem::EndWithoutBegin, Problem::BeginWithoutEnd, Problem::ClosedByOuter];
        (out.iter().map(show).collect::<Vec<_>>().join(", "), counted.map(|p| problems.n(p).to_string()).join(" "))
    }

    #[test]
    fn begins_and_ends_become_slices() {
        let check =
            |text, slices: &str, counted: &str| assert_eq!(closed(text), (slices.into(), counted.into()), "{text}");
        check("A 1 B 2 /B 3 /A 4", "B 2..3, A 1..4", "0 0 0");
        check("A 1 B 2 / 3 / 4", "B 2..3, A 1..4", "0 0 0");
        check("/A 4 A 1 A 2 /A 3", "A 2..3, A 1..4", "0 0 0");
        check("A 1 B 2 /A 4 /B 5", "B 2..4, A 1..4", "1 0 1");
        check("A 1 /B 2", "A 1..99", "1 1 0");
        check("A 1 /A 1 A 1 /A 2", "A 1..1, A 1..2", "0 0 0");
    }
}
