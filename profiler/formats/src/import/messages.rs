//! Finds messages from one rank of a job to another: flows between files.
//!
//! A start that is alone in its file and an end that is alone in another file, with the same category, name and id, are
//! the two ends of a message. Ids that are unique in a process only (of a launch and its kernel) are not considered.

use super::flows::{FlowPart, UnpairedPoint};
use super::ids::TrackIdx;
use super::problems::Problem;
use super::stage::Stage;
use rustc_hash::FxHashMap;
use trace_model::{Event, EventKind};

/// A message between two files, each side in the times of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The earliest time at which it was sent: the start of the sending slice.
    pub(super) sent: i64,
    /// The latest time at which it was received: the end of the receiving slice.
    pub(super) received: i64,
}

/// The lone points with one id, over all files.
#[derive(Clone, Copy)]
enum LonePoints {
    One(usize, UnpairedPoint),
    Pair((usize, UnpairedPoint), (usize, UnpairedPoint)),
    /// More than two points, or the same end twice: which belong together is unknown.
    Unclear,
}

/// Joins the flows between files, and counts those of which one end is missing.
pub(super) fn join(stages: &mut [Stage], correlations: &mut u32) -> Vec<Message> {
    let mut messages = Vec::new();
    for ((from, tail), (to, head)) in pairs(stages) {
        *correlations = correlations.wrapping_add(1);
        let name = stages[from].sites.name(tail.site).to_owned();
        for (idx, kind, end) in [(from, EventKind::FlowOut, tail), (to, EventKind::FlowIn, head)] {
            let site = stages[idx].site("edge", &name);
            stages[idx].point(end.track, Event { correlation: *correlations, ..site.at(kind, end.time) });
        }
        messages.push((Message { from, to, sent: tail.time, received: head.time }, tail.track, head.track));
    }
    let mut n_joined = vec![0; stages.len()];
    for (message, ..) in &messages {
        n_joined[message.from] += 1;
        n_joined[message.to] += 1;
    }
    for (stage, n_joined) in stages.iter_mut().zip(n_joined) {
        let n_lone = std::mem::take(&mut stage.flows.lone).len() as u64;
        stage.problems.add(Problem::UnpairedFlow, n_lone - n_joined, None);
    }
    widen(stages, messages)
}

fn pairs(stages: &[Stage]) -> Vec<((usize, UnpairedPoint), (usize, UnpairedPoint))> {
    let mut met: FxHashMap<(u64, u64), LonePoints> = FxHashMap::default();
    if stages.len() < 2 {
        return Vec::new();
    }
    for (idx, stage) in stages.iter().enumerate() {
        for lone in &stage.flows.lone {
            let Some(space) = lone.space else { continue };
            let here = (idx, *lone);
            met.entry((space, lone.id))
                .and_modify(|met| {
                    *met = match *met {
                        LonePoints::One(other, before) if other != idx => match (before.part, lone.part) {
                            (FlowPart::Start | FlowPart::Step, FlowPart::Finish) => {
                                LonePoints::Pair((other, before), here)
                            }
                            (FlowPart::Finish, FlowPart::Start | FlowPart::Step) => {
                                LonePoints::Pair(here, (other, before))
                            }
                            _ => LonePoints::Unclear,
                        },
                        _ => LonePoints::Unclear,
                    };
                })
                .or_insert(LonePoints::One(idx, *lone));
        }
    }
    let pairs = met
        .into_values()
        .filter_map(|met| if let LonePoints::Pair(tail, head) = met { Some((tail, head)) } else { None });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable_by_key(|((from, tail), (to, head))| (*from, *to, tail.time, head.time, tail.id));
    pairs
}

/// Moves the ends of each message to the start and the end of the innermost slices that they are in.
fn widen(stages: &[Stage], messages: Vec<(Message, TrackIdx, TrackIdx)>) -> Vec<Message> {
    /// Time, message, and whether it is the receiving end.
    type End = (i64, usize, bool);
    let mut ends: FxHashMap<(usize, TrackIdx), Vec<End>> = FxHashMap::default();
    for (n, (message, tail, head)) in messages.iter().enumerate() {
        ends.entry((message.from, *tail)).or_default().push((message.sent, n, false));
        ends.entry((message.to, *head)).or_default().push((message.received, n, true));
    }
    let mut messages: Vec<Message> = messages.into_iter().map(|(message, ..)| message).collect();
    for ((stage, track), mut ends) in ends {
        ends.sort_unstable();
        let mut slices: Vec<(i64, i64)> =
            stages[stage].tracks[track as usize].slices.iter().map(|s| (s.start, s.end)).collect();
        slices.sort_unstable_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        let (mut slices, mut open) = (slices.into_iter().peekable(), Vec::new());
        for (time, n, arrives) in ends {
            while let Some(slice) = slices.next_if(|(start, _)| *start <= time) {
                open.push(slice);
            }
            while open.last().is_some_and(|(_, end)| *end < time) {
                open.pop();
            }
            if let Some((start, end)) = open.last() {
                let message = &mut messages[n];
                if arrives { message.received = *end } else { message.sent = *start }
            }
        }
    }
    messages
}
