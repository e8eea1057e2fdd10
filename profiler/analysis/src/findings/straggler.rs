//! The finding about the rank that others wait for in collectives: how late it is, and what it does meanwhile.

use super::facts::{Facts, Finding, MAX_SLICES, shorten};
use crate::communication::{Doing, ExchangeRow, RankRow};
use crate::intervals::union_ns;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use text::bytes;
use trace_model::Process;

/// The finding about the rank that came last by most, without delays that came with the collective before: those are
/// another rank's, or the devices'.
pub(super) fn finding(facts: &Facts<'_>) -> Option<Finding> {
    let ranks = facts.communication.ranks.iter().filter(|rank| rank.own_late_ns > 0);
    let worst = ranks.min_by_key(|rank| (Reverse(rank.own_late_ns), rank.process))?;
    let is_of_worst =
        |e: &&ExchangeRow| e.is_waited_for() && e.participants.last().is_some_and(|last| last.process == worst.process);
    let mut late: Vec<&ExchangeRow> = facts.communication.exchanges.iter().filter(is_of_worst).collect();
    late.sort_by_key(|exchange| Reverse(exchange.own_late_ns()));
    // Waits for collectives of several streams may overlap; their time is counted once.
    let waits = late.iter().filter_map(|exchange| {
        let last = exchange.participants.last()?.start;
        Some((last - exchange.own_late_ns(), last))
    });
    let saves_ns = union_ns(waits.collect());
    let longest = late.first()?.participants.last()?;
    let slices =
        late.iter().take(MAX_SLICES).filter_map(|exchange| Some(exchange.participants.last()?.slice)).collect();
    let mut found = facts.finding("straggler", saves_ns, longest.start..longest.end, slices);
    found.text = text(facts, worst, &late)?;
    Some(found)
}

fn text(facts: &Facts<'_>, rank: &RankRow, late: &[&ExchangeRow]) -> Option<String> {
    let process = facts.store.processes().get(rank.process as usize)?;
    let carried_ns = rank.late_ns - rank.own_late_ns;
    let carried = if carried_ns > 0 {
        format!(", and {} more that came with the collective before", facts.per_step(carried_ns))
    } else {
        String::new()
    };
    let mut text = format!(
        "{} came last to {} of {} collectives, {} late in all{carried}; the others waited {} for it. {}",
        title(process),
        rank.times_last,
        rank.exchanges,
        facts.per_step(rank.own_late_ns),
        facts.per_step(rank.waited_ns),
        most_affected(facts, late),
    );
    // The collective before is in the sentence already.
    let reason = rank.reasons.iter().find(|reason| reason.slice.is_some());
    if let Some(reason) = reason.filter(|reason| 4 * (reason.ns - reason.other_ns) > rank.own_late_ns) {
        text += &format!(" On the way there it spent {}.", doing(facts, reason, "the rank that came first"));
    }
    if let Some(unlike) = rank.unlike_others.first() {
        text += &format!(" In all, its host spent {}.", doing(facts, unlike, "the other ranks'"));
    }
    Some(text)
}

/// `Rank 3, python (662),`.
fn title(process: &Process) -> String {
    match process.rank() {
        Some(rank) => format!("Rank {rank}, {},", process.title()),
        None => format!("{} on {}", process.title(), process.host),
    }
}

/// The sentence about the collective that came late by most.
fn most_affected(facts: &Facts<'_>, late: &[&ExchangeRow]) -> String {
    let mut sums: FxHashMap<usize, i64> = FxHashMap::default();
    for exchange in late {
        *sums.entry(exchange.collective).or_default() += exchange.own_late_ns();
    }
    let most = sums.into_iter().min_by_key(|(row, ns)| (Reverse(*ns), *row));
    let row = most.and_then(|(row, ns)| Some((facts.communication.collectives.get(row)?, ns)));
    let Some((row, ns)) = row else { return String::new() };
    let size = row.bytes.map_or_else(String::new, |n| format!(" of {}", bytes(n)));
    let group = row.group.and_then(|group| facts.communication.groups.get(group));
    let group = group.map_or_else(String::new, |group| format!(" in `{}`", group.title()));
    format!("Most of it before `{}`{size}{group}: {}.", shorten(&row.name), facts.per_step(ns))
}

/// What a rank did, its time for it, and that of `others`.
fn doing(facts: &Facts<'_>, doing: &Doing, others: &str) -> String {
    let (own, other) = (facts.per_step(doing.ns), duration_per_step(facts, doing.other_ns));
    format!("{own} in {} ({others} {other})", shorten(&doing.text))
}

/// As [`Facts::per_step`], without the words.
fn duration_per_step(facts: &Facts<'_>, ns: i64) -> String {
    facts.per_step(ns).trim_end_matches(" a step").to_owned()
}
