//! Replays recorded work with changes: when would everything have run, had some of it taken less time?
//!
//! Each piece begins when the last of its needs ([`super::needs`]) has arrived, after the delay that it had in the
//! recording, and takes as long as recorded, or as long as the change says. Without a change everything runs when it
//! ran. The method is that of Daydream (Zhu et al., USENIX ATC 2020), on all threads, streams and processes.
//!
//! What it assumes: what is not recorded (host code between slices, the time that a stream takes to begin) stays as
//! long as it was, work keeps its order on its thread or stream, and needs that the trace does not have do not exist.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::{LineKind, PieceId};
use super::needs::{Edge, Link, Needs, Target};
use super::step_index::LastAct;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The most pieces that are replayed, since a piece takes 150 bytes.
const MAX_PIECES: usize = 8 << 20;

/// Part of the recorded time that work takes in a replay.
pub(crate) trait Change: Sync {
    /// The factor of a piece's own time.
    fn factor(&self, piece_id: PieceId) -> f64;

    /// The factor of what passed between the last need of a piece and its start.
    fn delay_factor(&self, _piece_id: PieceId) -> f64 {
        1.0
    }

    /// Whether hosts go on without waiting for devices.
    fn skips_host_waits(&self) -> bool {
        false
    }
}

/// What a need is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// The start of a piece.
    Start,
    /// A time in a piece, which is nearer to the start by the piece's factor.
    Inside,
    /// The end of a piece.
    End,
}

/// A need that arrives some time after an anchor.
#[derive(Clone, Copy, Debug)]
struct Need {
    piece: u32,
    anchor: Anchor,
    offset: i64,
}

/// A piece of the recording.
struct Row {
    start: i64,
    end: i64,
    id: PieceId,
    /// The time from the last need to the start.
    delay: i64,
    /// The end of the piece's needs in [`Replay::needs`].
    needs_end: u32,
    /// A wait of a host for a device.
    is_host_wait: bool,
}

/// Work as recorded, with all its needs.
pub(crate) struct Replay {
    rows: Vec<Row>,
    needs: Vec<Need>,
    /// What a piece waits for while it runs, and when that had arrived.
    inside: FxHashMap<u32, (Need, i64)>,
    /// Starts and ends in order of time: the piece's row, and whether it ends.
    events: Vec<(u32, bool)>,
    /// The row of the first piece of each line.
    first_rows: Vec<u32>,
}

impl Replay {
    /// Indexes the work of a range; `None` if it is too much.
    pub(crate) fn new(deps: &Deps<'_>, range: &Range<i64>) -> Option<Replay> {
        let lines = &deps.lines.lines;
        let mut first_rows = Vec::with_capacity(lines.len());
        let mut n_pieces = 0;
        for line in lines {
            first_rows.push(n_pieces as u32);
            n_pieces += line.pieces.len();
        }
        if n_pieces > MAX_PIECES {
            return None;
        }
        let builder = Builder { deps, needs: Needs(deps), first_rows: &first_rows, latencies: launch_latencies(deps) };
        let by_line = (0..lines.len() as u32).into_par_iter().map(|line| builder.line(line, range));
        let mut replay = Replay {
            rows: Vec::with_capacity(n_pieces),
            needs: Vec::new(),
            inside: FxHashMap::default(),
            events: Vec::new(),
            first_rows: Vec::new(),
        };
        for (rows, needs, inside) in by_line.collect::<Vec<_>>() {
            let n_before = replay.needs.len() as u32;
            replay.rows.extend(rows.into_iter().map(|row| Row { needs_end: row.needs_end + n_before, ..row }));
            replay.needs.extend(needs);
            replay.inside.extend(inside);
        }
        replay.events = events(&replay.rows);
        replay.first_rows = first_rows;
        Some(replay)
    }

    /// The time at which the last of these pieces would end.
    pub(crate) fn end_of(&self, last: &[PieceId], change: &dyn Change) -> i64 {
        let mut times: Vec<(i64, i64)> = self.rows.iter().map(|row| (row.start, row.end)).collect();
        for (row, is_end) in &self.events {
            let recorded = &self.rows[*row as usize];
            if *is_end {
                times[*row as usize].1 = self.end(*row, recorded, &times, change);
            } else {
                let begin = if *row == 0 { 0 } else { self.rows[*row as usize - 1].needs_end };
                let needs = &self.needs[begin as usize..recorded.needs_end as usize];
                let last_arrival = needs.iter().map(|need| self.arrival(need, &times, change)).max();
                let delay = || scale(recorded.delay, change.delay_factor(recorded.id));
                times[*row as usize].0 = last_arrival.map_or(recorded.start, |arrival| arrival + delay());
            }
        }
        let row = |id: &PieceId| (self.first_rows[id.line as usize] + id.piece) as usize;
        last.iter().map(|piece_id| times[row(piece_id)].1).max().unwrap_or(0)
    }

    fn arrival(&self, need: &Need, times: &[(i64, i64)], change: &dyn Change) -> i64 {
        let (start, end) = times[need.piece as usize];
        match need.anchor {
            Anchor::Start => start + need.offset,
            Anchor::End => end + need.offset,
            Anchor::Inside => start + scale(need.offset, change.factor(self.rows[need.piece as usize].id)),
        }
    }

    fn end(&self, row: u32, recorded: &Row, times: &[(i64, i64)], change: &dyn Change) -> i64 {
        let start = times[row as usize].0;
        if recorded.is_host_wait && change.skips_host_waits() {
            return start;
        }
        let factor = change.factor(recorded.id);
        match self.inside.get(&row) {
            Some((need, arrived)) => {
                let arrival = self.arrival(need, times, change);
                start.max(arrival) + scale(recorded.end - arrived, factor)
            }
            None => start + scale(recorded.end - recorded.start, factor),
        }
    }
}

fn scale(ns: i64, factor: f64) -> i64 {
    if factor == 1.0 { ns } else { (ns as f64 * factor) as i64 }
}

/// Starts and ends in order of time. At one time pieces end before others begin; a piece without duration ends after it
/// began.
fn events(rows: &[Row]) -> Vec<(u32, bool)> {
    let mut events: Vec<(i64, u8, u32)> = Vec::with_capacity(2 * rows.len());
    for (index, row) in (0..).zip(rows) {
        events.push((row.start, 1, index));
        events.push((row.end, if row.start == row.end { 2 } else { 0 }, index));
    }
    events.par_sort_unstable();
    events.into_iter().map(|(_, order, index)| (index, order != 1)).collect()
}

/// The shortest times from a launch to the work's start on a device's line: from the start of the launching call to
/// work that began meanwhile, and from its end to work that began later.
#[derive(Clone, Copy, Default)]
struct Latencies {
    from_start: Option<i64>,
    from_end: Option<i64>,
}

fn launch_latencies(deps: &Deps<'_>) -> Vec<Latencies> {
    let latencies = |line: u32| {
        let mut shortest = Latencies::default();
        let is_device = deps.lines.line(line).kind == LineKind::Device;
        let pieces = deps.lines.line(line).pieces.iter().filter(|_| is_device);
        for (piece, p) in (0..).zip(pieces) {
            let Some(launch) = deps.correlated(PieceId { line, piece }).map(|call| deps.lines.slice(call)) else {
                continue;
            };
            let (latency, least) = match p.start - launch.end {
                latency @ 0.. => (latency, &mut shortest.from_end),
                _ => (p.start - launch.start, &mut shortest.from_start),
            };
            *least = Some(least.map_or(latency, |least| least.min(latency))).filter(|latency| *latency >= 0);
        }
        shortest
    };
    (0..deps.lines.lines.len() as u32).into_par_iter().map(latencies).collect()
}

struct Builder<'b, 'd, 'a> {
    deps: &'d Deps<'a>,
    needs: Needs<'d, 'a>,
    first_rows: &'b [u32],
    latencies: Vec<Latencies>,
}

type LineRows = (Vec<Row>, Vec<Need>, Vec<(u32, (Need, i64))>);

impl<'d> Builder<'_, 'd, '_> {
    fn line(&self, line: u32, range: &Range<i64>) -> LineRows {
        let (mut rows, mut needs, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for (piece, p) in (0..).zip(&self.deps.lines.line(line).pieces) {
            let id = PieceId { line, piece };
            let mut delay = 0;
            if range.contains(&p.start) {
                let n_before = needs.len();
                let mut last_arrival = None;
                let mut add = |link: Link<'d>| {
                    if let Some(need) = self.need(id, &link) {
                        needs.push(need);
                        last_arrival = last_arrival.max(Some(link.arrival));
                    }
                };
                self.order(id).into_iter().for_each(&mut add);
                self.of_start(id).for_each(&mut add);
                match last_arrival {
                    Some(arrival) => delay = p.start - arrival,
                    None => needs.truncate(n_before),
                }
                if let Some(link) = self.inside(id)
                    && let Some(need) = self.need(id, &link)
                {
                    inside.push((self.row(id), (need, link.arrival)));
                }
            }
            let is_host_wait = p.activity == Activity::Sync && self.deps.lines.line(line).kind != LineKind::Device;
            rows.push(Row { start: p.start, end: p.end, id, delay, needs_end: needs.len() as u32, is_host_wait });
        }
        (rows, needs, inside)
    }

    fn row(&self, piece_id: PieceId) -> u32 {
        self.first_rows[piece_id.line as usize] + piece_id.piece
    }

    /// The piece before on the line, waits included: what they wait for ends them. A worker's wait for work takes as
    /// long as there is none.
    fn order(&self, piece_id: PieceId) -> Option<Link<'d>> {
        let pieces = &self.deps.lines.line(piece_id.line).pieces;
        let before = (0..piece_id.piece).rev().find(|piece| pieces[*piece as usize].activity != Activity::Idle)?;
        Some(self.needs.link_to_piece(PieceId { piece: before, ..piece_id }))
    }

    /// The needs of a piece's start, apart from the line's order and the waits in it.
    fn of_start(&self, piece_id: PieceId) -> impl Iterator<Item = Link<'d>> {
        let is_work = self.deps.lines.piece(piece_id).activity.is_work();
        let links = if is_work { self.needs.of_start(piece_id).others } else { [None; _] };
        links.into_iter().flatten().map(move |link| match link.next {
            Target::Start(launch) if link.via == Edge::Launch => self.launch(piece_id, launch, link),
            _ => link,
        })
    }

    /// The need of a device's work for its launch: it begins no sooner after it than any work ever did.
    fn launch(&self, work: PieceId, launch: PieceId, link: Link<'d>) -> Link<'d> {
        let (start, latencies) = (self.deps.lines.piece(work).start, self.latencies[work.line as usize]);
        let (link, latency) = match self.needs.link_to_end(launch, Edge::Launch) {
            ended if ended.arrival <= start => (ended, latencies.from_end),
            _ => (link, latencies.from_start),
        };
        Link { arrival: (link.arrival + latency.unwrap_or(0)).min(start), ..link }
    }

    /// What a piece waits for while it runs.
    fn inside(&self, piece_id: PieceId) -> Option<Link<'d>> {
        let piece = self.deps.lines.piece(piece_id);
        let link = if piece.activity.is_wait() {
            let before = piece_id.piece.checked_sub(1);
            self.needs.find_wait_end(PieceId { piece: piece_id.piece + 1, ..piece_id }, before)
        } else {
            self.needs.find_wait_inside(piece_id, piece.end)
        };
        link.filter(|link| piece.start < link.arrival && link.arrival <= piece.end)
    }

    /// A link of a piece as a need; `None` if the trace does not say what it began with.
    fn need(&self, of: PieceId, link: &Link<'d>) -> Option<Need> {
        let (anchor, piece_id) = match link.next {
            Target::Start(piece_id) => (Anchor::Start, piece_id),
            Target::Run(piece_id, until, _) if until >= self.deps.lines.piece(piece_id).end => (Anchor::End, piece_id),
            Target::Run(piece_id, ..) => (Anchor::Inside, piece_id),
            Target::Transfer(transfer, _) => (Anchor::End, self.needs.find_send(transfer)?),
            Target::Root(_) => (Anchor::End, self.step_before(of)?),
            Target::Parked(_, op) => (Anchor::End, op),
            Target::Sent(line, time) => {
                (Anchor::End, PieceId { line, piece: self.deps.lines.line(line).row_before(time)? })
            }
            Target::Unknown => return None,
        };
        let piece = self.deps.lines.piece(piece_id);
        let from = if anchor == Anchor::End { piece.end } else { piece.start };
        // What is recorded to arrive before it was sent would run backwards.
        (from <= link.arrival).then(|| Need { piece: self.row(piece_id), anchor, offset: link.arrival - from })
    }

    /// The last piece of the step before an op's, on the thread that began both.
    fn step_before(&self, piece_id: PieceId) -> Option<PieceId> {
        let (deps, slice) = (self.deps, self.deps.lines.slice(piece_id));
        let process = deps.lines.line(piece_id.line).process;
        let row = deps.steps.row(deps.store, process, deps.store.step_id_of(slice)?, slice.start)?;
        let step = deps.store.steps().get(row as usize)?;
        let (before, _) = deps.steps.last_ended_step(deps.store, step.slice.track, step.start)?;
        let (_, LastAct::Piece(last) | LastAct::Wait(_, last)) = deps.steps.last_act(before)?;
        Some(last)
    }
}

#[cfg(test)]
mod tests;
