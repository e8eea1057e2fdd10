//! Arrows between files: messages from one rank of a job to another.
//!
//! An arrow whose start is alone in its file and whose end is alone in another file, under the same category, name and id, is one that went
//! from the one to the other. Ids that are a process's own (a launch and its kernel) are left out of this.

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
    /// It had not left before: the begin of the slice that sends it.
    pub(super) sent: i64,
    /// It had come then: the end of the slice that receives it.
    pub(super) came: i64,
}

/// What is alone under an id, over all files.
#[derive(Clone, Copy)]
enum Met {
    One(usize, UnpairedPoint),
    Pair((usize, UnpairedPoint), (usize, UnpairedPoint)),
    /// More than two, or twice the same end: who belongs to whom is not known.
    Unclear,
}

/// Joins the arrows that go from file to file, and counts those of which one end is missing.
pub(super) fn join(stages: &mut [Stage], correlations: &mut u32) -> Vec<Message> {
    let mut messages = Vec::new();
    for ((from, tail), (to, head)) in pairs(stages) {
        *correlations = correlations.wrapping_add(1);
        let name = stages[from].sites.name(tail.site).to_owned();
        for (idx, kind, end) in [(from, EventKind::FlowOut, tail), (to, EventKind::FlowIn, head)] {
            let site = stages[idx].site("edge", &name);
            stages[idx].point(end.track, Event { correlation: *correlations, ..site.at(kind, end.time) });
        }
        messages.push((Message { from, to, sent: tail.time, came: head.time }, tail.track, head.track));
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
    let mut met: FxHashMap<(u64, u64), Met> = FxHashMap::default();
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
                        Met::One(other, before) if other != idx => match (before.part, lone.part) {
                            (FlowPart::Start | FlowPart::Step, FlowPart::Finish) => Met::Pair((other, before), here),
                            (FlowPart::Finish, FlowPart::Start | FlowPart::Step) => Met::Pair(here, (other, before)),
                            _ => Met::Unclear,
                        },
                        _ => Met::Unclear,
                    };
                })
                .or_insert(Met::One(idx, *lone));
        }
    }
    let pairs =
        met.into_values().filter_map(|met| if let Met::Pair(tail, head) = met { Some((tail, head)) } else { None });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable_by_key(|((from, tail), (to, head))| (*from, *to, tail.time, head.time, tail.id));
    pairs
}

/// Puts each message's ends at the begin and the end of the innermost slices in which they are.
fn widen(stages: &[Stage], messages: Vec<(Message, TrackIdx, TrackIdx)>) -> Vec<Message> {
    /// When, of which message, whether it arrives.
    type End = (i64, usize, bool);
    let mut ends: FxHashMap<(usize, TrackIdx), Vec<End>> = FxHashMap::default();
    for (n, (message, tail, head)) in messages.iter().enumerate() {
        ends.entry((message.from, *tail)).or_default().push((message.sent, n, false));
        ends.entry((message.to, *head)).or_default().push((message.came, n, true));
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
                if arrives { message.came = *end } else { message.sent = *start }
            }
        }
    }
    messages
}
