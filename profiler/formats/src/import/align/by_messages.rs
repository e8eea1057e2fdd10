//! Aligns clocks by messages: a message from the first clock to the second bounds the second's difference from one
//! side, a message back from the other side.
//!
//! Nothing is assumed of delays: the difference is the middle of the possible range, and the bound is half of the
//! range. Files that exchange no messages with the first are aligned with files that do, in order of their bounds,
//! which add up.

use super::shift::{ClockShifts, Fit, Shift};
use crate::import::messages::Message;
use crate::import::stage::Stage;
use std::collections::BTreeMap;
use trace_model::clocks::{BoundKind, Fact};

/// Messages of two files, by sender and receiver.
type Messages = BTreeMap<(usize, usize), Vec<Message>>;

/// The difference of the second file's clock that follows from the messages of two files.
#[derive(Clone, Copy)]
enum Relation {
    /// The shift and its bound.
    Known(Shift, i64),
    /// What it was presumed to be, and by how much that may be wrong.
    AsPresumed(i64),
    OneWay,
    Contradictory,
}

/// Aligns files with others by the messages between them, and warns about files for which that is not possible.
pub(super) fn by_messages(stages: &[Stage], messages: &[Message], has_wall: &[bool], placed: &mut ClockShifts) {
    let mut by_pair = Messages::new();
    for message in messages {
        by_pair.entry((message.from, message.to)).or_default().push(*message);
    }
    let n =
        |a: usize, b: usize| [(a, b), (b, a)].iter().filter_map(|pair| by_pair.get(pair)).map(Vec::len).sum::<usize>();
    // Of each file the smallest bound that an aligned file gives, and that file.
    let mut best: BTreeMap<usize, (i64, usize, Option<Shift>)> = BTreeMap::new();
    let mut failed: BTreeMap<usize, (usize, Relation)> = BTreeMap::new();
    let mut newly: Vec<usize> = (0..stages.len()).filter(|idx| placed.bounds[*idx].is_some()).collect();
    loop {
        for via in std::mem::take(&mut newly) {
            let base = placed.bounds[via].unwrap_or(0);
            let others: Vec<usize> =
                neighbours(&by_pair, via).filter(|other| placed.bounds[*other].is_none()).collect();
            for other in others {
                let presumed = has_wall[other].then_some(placed.shifts[other]);
                let (bound, shift) = match relation(&by_pair, (via, placed.shifts[via]), other, presumed) {
                    Relation::Known(shift, bound) => (bound, Some(shift)),
                    Relation::AsPresumed(bound) => (bound, None),
                    relation => {
                        failed.entry(other).or_insert((via, relation));
                        continue;
                    }
                };
                let found = (bound.saturating_add(base), via, shift);
                if best.get(&other).is_none_or(|known| found.0 < known.0) {
                    best.insert(other, found);
                }
            }
        }
        let Some(idx) = best.iter().min_by_key(|(_, found)| found.0).map(|(idx, _)| *idx) else { break };
        let Some((bound, via, shift)) = best.remove(&idx) else { break };
        placed.place(idx, shift.unwrap_or(placed.shifts[idx]), bound);
        newly.push(idx);
        if let Some(shift) = shift {
            let by = format!("{} messages", n(idx, via));
            placed.warn_aligned(&stages[idx], &stages[via], &by, shift, bound);
        }
    }
    for (idx, (via, relation)) in failed {
        if placed.bounds[idx].is_none() {
            let why = match relation {
                Relation::OneWay => "went one way only",
                _ => "contradict each other",
            };
            let (source, n, early) = (&stages[via].source, n(idx, via), early(messages, &placed.shifts, idx));
            let text = format!(
                "its clock could not be aligned with that of {source}: their {n} messages {why}; {early} of its messages seem to \
                 arrive before they leave"
            );
            placed.warn(&stages[idx], text);
        }
    }
}

fn neighbours(by_pair: &Messages, of: usize) -> impl Iterator<Item = usize> + '_ {
    let all = by_pair.keys().filter_map(move |(from, to)| match (*from == of, *to == of) {
        (true, _) => Some(*to),
        (_, true) => Some(*from),
        _ => None,
    });
    all.collect::<std::collections::BTreeSet<usize>>().into_iter()
}

fn early(messages: &[Message], shifts: &[Shift], of: usize) -> usize {
    let its = messages.iter().filter(|m| m.from == of || m.to == of);
    its.filter(|m| shifts[m.to].apply(m.received) < shifts[m.from].apply(m.sent)).count()
}

/// The shift of `other` relative to `via`, whose shift is known.
fn relation(by_pair: &Messages, (via, shift): (usize, Shift), other: usize, presumed: Option<Shift>) -> Relation {
    let of = |pair| by_pair.get(&pair).map_or(&[][..], Vec::as_slice);
    let least: Vec<Fact> = of((via, other))
        .iter()
        .map(|m| Fact { at: m.received, limit: shift.apply(m.sent), kind: BoundKind::Lower })
        .collect();
    let most: Vec<Fact> = of((other, via))
        .iter()
        .map(|m| Fact { at: m.sent, limit: shift.apply(m.received), kind: BoundKind::Upper })
        .collect();
    let Some(fit) = Fit::new(&least, &most) else { return Relation::OneWay };
    if !fit.is_constant() {
        let drifting = |(line, bound)| Relation::Known(Shift::Drifting(line, 0), bound);
        return fit.drifting().map_or(Relation::Contradictory, drifting);
    }
    let middle = i64::midpoint(fit.low, fit.high);
    match presumed {
        // The times of day may be more precise than the messages.
        Some(Shift::Constant(at)) if (fit.low..=fit.high).contains(&at) && fit.bound(middle) >= 1_000_000 => {
            Relation::AsPresumed(fit.bound(at))
        }
        _ => Relation::Known(Shift::Constant(middle), fit.bound(middle)),
    }
}

#[cfg(test)]
mod tests;
