//! The side that shows the trace: keeps a store of far lanes up to date.

use super::cache::{FarPages, Names};
use super::lane::FarLane;
use super::message::{
    Answer, Answered, Asked, KnownLane, LaneState, Question, State, StateQuestion, TableState, VERSION,
};
use super::tile::Tile;
use super::{BLOCK, LaneKey};
use crate::batch::Batch;
use crate::seal;
use crate::store::{Lane, MAX_LANES, Parts, Store};
use bytes::Bytes;
use prost::Message;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Brings a question to the process that has the trace.
pub trait Ask: Send + Sync {
    /// The answer to a question, from [`Server::answer`](super::Server::answer). Waits for it.
    ///
    /// # Errors
    /// That it did not come, and why.
    fn ask(&self, question: &[u8]) -> Result<Bytes, FarError>;

    /// Where the trace is, for messages.
    fn place(&self) -> String;
}

/// Why nothing came.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// The connection broke, or was not made.
    #[error("{0}")]
    Connection(String),
    /// The other side says why there is no answer.
    #[error("the other side says: {0}")]
    Answer(String),
    /// What came is not what was asked for.
    #[error("the answer makes no sense: {0}")]
    Senseless(&'static str),
    /// A table cannot be read.
    #[error("the answer makes no sense: {0}")]
    Table(String),
}

/// Asks and looks at the answer's kind.
pub(super) fn asked(ask: &dyn Ask, question: Asked) -> Result<Answered, FarError> {
    let answer = ask.ask(&Question { asked: Some(question), version: VERSION }.encode_to_vec())?;
    let answer = Answer::decode(answer).map_err(|_| FarError::Senseless("it is damaged"))?;
    if answer.version != VERSION && !matches!(answer.answered, Some(Answered::Problem(_))) {
        return Err(FarError::Senseless("the two programs are of different versions"));
    }
    match answer.answered.ok_or(FarError::Senseless("it is empty"))? {
        Answered::Problem(problem) => Err(FarError::Answer(problem)),
        other => Ok(other),
    }
}

/// Follows a distant trace. See the module's notes.
pub struct Viewer {
    ask: Arc<dyn Ask>,
    pages: Option<Arc<FarPages>>,
    /// The last tables, by name.
    tables: FxHashMap<String, (u32, Bytes)>,
    lanes: BTreeMap<LaneKey, FarLane>,
    live: Option<bool>,
}

impl Viewer {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(ask: Arc<dyn Ask>) -> Viewer {
        Viewer { ask, pages: None, tables: FxHashMap::default(), lanes: BTreeMap::new(), live: None }
    }

    /// Asks what has changed; an empty batch if nothing has. [`Store::apply`] gives the store what there is.
    ///
    /// # Errors
    /// That no answer came, or one that makes no sense. What is known stays.
    pub fn poll(&mut self) -> Result<Batch, FarError> {
        let Answered::State(state) = asked(&*self.ask, Asked::State(self.question()))? else {
            return Err(FarError::Senseless("it is not to its question"));
        };
        if self.pages.as_ref().is_none_or(|pages| pages.generation() != state.generation) {
            self.pages = Some(Arc::new(FarPages::new(Arc::clone(&self.ask), state.generation)));
            (self.tables, self.lanes) = Default::default();
        }
        let is_changed = !state.lanes.is_empty()
            || state.tables.iter().any(|table| !table.file.is_empty())
            || self.live != Some(state.live)
            || self.pages.as_ref().is_some_and(|pages| pages.has_recovered());
        let mut batch = Batch::new();
        if is_changed {
            batch = self.take_in(state).inspect_err(|_| self.forget())?;
        }
        Ok(batch)
    }

    /// Asks for everything the next time.
    fn forget(&mut self) {
        self.pages = None;
    }

    fn question(&self) -> StateQuestion {
        let tables =
            self.tables.iter().map(|(name, (crc, _))| TableState { name: name.clone(), crc: *crc, file: Bytes::new() });
        let lanes = self.lanes.iter().map(|((track, lane), known)| KnownLane {
            track: *track,
            lane: *lane,
            end: known.ordinals.end,
            blocks: known.first_block + known.fences.len() as u64,
        });
        let generation = self.pages.as_ref().map_or(0, |pages| pages.generation());
        StateQuestion { generation, tables: tables.collect(), lanes: lanes.collect() }
    }

    fn take_in(&mut self, state: State) -> Result<Batch, FarError> {
        let pages = self.pages.clone().ok_or(FarError::Senseless("there is no generation"))?;
        for TableState { name, crc, file } in state.tables {
            if file.is_empty() {
                continue;
            }
            if crc32c::crc32c(&file) != crc {
                return Err(FarError::Table(format!("the table {name} is damaged")));
            }
            self.tables.insert(name, (crc, file));
        }
        let files = self.tables.iter().map(|(name, (_, file))| (name.clone(), file.clone())).collect();
        let mut parts = seal::parts_of(&files).map_err(FarError::Table)?;
        let names = Names { sites: parts.sites.len() as u32, nodes: parts.nodes.len() as u32 };
        let mut kept = FxHashMap::default();
        for lane in state.lanes {
            let before = self.take_lane(&pages, &lane, names).ok_or(FarError::Senseless("a lane makes no sense"))?;
            kept.extend(before.map(|range| ((lane.track, lane.lane), range)));
        }
        pages.changed(&kept);
        pages.set_names(names);
        // Tables of a trace that grows may be older than its lanes.
        for lane in self.lanes.values() {
            let range = lane.range();
            parts.range = parts.range.start.min(range.start)..parts.range.end.max(range.end);
        }
        self.place(&mut parts);
        parts.pager = Some(pages);
        self.live = Some(state.live);
        let mut batch = Batch::of_whole(Store::of_parts(parts));
        batch.set_live(state.live);
        batch.set_disk_bytes(state.disk_bytes);
        Ok(batch)
    }

    /// Checks the state of a lane and takes it over. Gives the times in which it is what it was, if it was known.
    fn take_lane(&mut self, pages: &Arc<FarPages>, state: &LaneState, names: Names) -> Option<Option<Range<i64>>> {
        let key = (state.track, state.lane);
        let all = Tile::of_message(state.all.as_ref()?, u64::MAX, names)?;
        let (all, n) = all.only_span()?;
        let ordinals = state.first..state.first.checked_add(u64::from(n))?;
        let before = self.lanes.remove(&key);
        let (mut first_block, mut fences) = (state.first_block, Vec::new());
        let mut kept = None;
        if let Some(before) = before {
            // What was given up at the begin, and what came at the end.
            let begin = if ordinals.start > before.ordinals.start { all.start } else { i64::MIN };
            kept = Some(begin..before.all.end);
            if state.first_block == before.first_block + before.fences.len() as u64 {
                first_block = before.first_block;
                fences = Arc::unwrap_or_clone(before.fences);
            }
        }
        let mut at = 0_i64;
        for gap in &state.fences {
            at = at.checked_add(*gap).filter(|at| super::is_time(*at))?;
            if fences.last().is_some_and(|last| at < *last) {
                return None;
            }
            fences.push(at);
        }
        let blocks = first_block..first_block.checked_add(fences.len() as u64)?;
        if blocks.start > ordinals.start / BLOCK || blocks.end != ordinals.end.div_ceil(BLOCK) {
            return None;
        }
        let (pages, fences) = (Arc::clone(pages), Arc::new(fences));
        self.lanes.insert(key, FarLane { pages, key, ordinals, all, first_block, fences });
        Some(kept)
    }

    /// Gives the tracks their lanes. Of a track that is not told of yet they wait.
    fn place(&self, parts: &mut Parts) {
        for ((track, lane), far) in &self.lanes {
            let Some(row) = parts.tracks.get_mut(*track as usize).filter(|_| (*lane as usize) < MAX_LANES) else {
                continue;
            };
            while row.lanes.len() <= *lane as usize {
                row.lanes.push(Lane::new(*track, row.lanes.len() as u32));
            }
            row.lanes[*lane as usize] = Lane::of_far(*track, *lane, far.clone());
        }
    }
}
