//! What a rank did, as far as two ranks' times for it can be compared.

use crate::deps::Deps;
use crate::lines::PieceId;
use crate::stalls::Cause;
use crate::walk::{PartKind, Walk, WalkPart};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::SliceId;
use trace_store::Store;

/// The parts of one walk, at most.
const MAX_PARTS: usize = 1_024;

/// What a rank did longer than others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// What it did, as a part of a sentence: a slice's name, or that no slice was recorded, and after what.
    pub text: String,
    /// Its time for it, ns.
    pub ns: i64,
    /// The time for it of the rank in the middle, or the median of the others', ns.
    pub other_ns: i64,
    /// The longest slice of it, or the slice after which there was none.
    pub slice: Option<SliceId>,
}

/// What times are compared of. Names are rows of the sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum DoingKey {
    /// Slices of a name.
    Ran(u32),
    /// Code without slices, after a slice of a name.
    Untraced(Option<u32>),
    /// Nothing that was waited for ran.
    Idle(Cause, Option<u32>),
    /// Another process was waited for.
    Peer(u32),
    /// The collective before ended later than on the other rank.
    CollectiveBefore,
}

impl DoingKey {
    pub(super) fn text(self, store: &Store) -> String {
        let name = |site: u32| store.sites().get(site as usize).map_or("?", |site| site.name.as_str());
        match self {
            DoingKey::Ran(site) => format!("`{}`", name(site)),
            DoingKey::Untraced(Some(site)) => format!("code without slices after `{}`", name(site)),
            DoingKey::Untraced(None) => "code without slices".to_owned(),
            DoingKey::Idle(cause, Some(site)) => format!("{} at `{}`", cause.name(), name(site)),
            DoingKey::Idle(cause, None) => cause.name().to_owned(),
            DoingKey::Peer(process) => {
                let process = store.processes().get(process as usize);
                format!(
                    "waiting for {}",
                    process.map_or_else(|| "another process".to_owned(), |p| format!("{} on {}", p.title(), p.host))
                )
            }
            DoingKey::CollectiveBefore => "the end of the collective before, which came later here".to_owned(),
        }
    }
}

/// Time, and the longest slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DoingTime {
    pub(super) ns: i64,
    longest_ns: i64,
    pub(super) slice: Option<SliceId>,
}

impl DoingTime {
    pub(super) fn add(&mut self, ns: i64, slice: Option<SliceId>) {
        self.ns += ns;
        if ns > self.longest_ns || self.slice.is_none() {
            (self.longest_ns, self.slice) = (ns, slice);
        }
    }

    /// Adds another's time, and takes its slice if that is longer.
    pub(super) fn merge(&mut self, other: &DoingTime) {
        self.ns += other.ns;
        if other.longest_ns > self.longest_ns || self.slice.is_none() {
            (self.longest_ns, self.slice) = (other.longest_ns, other.slice);
        }
    }
}

pub(super) type DoingTimes = FxHashMap<DoingKey, DoingTime>;

/// What was on the way to a piece of work in a range that ends with the piece's start.
pub(super) fn on_the_way_to(deps: &Deps<'_>, piece_id: PieceId, range: &Range<i64>) -> DoingTimes {
    let (mut parts, mut times) = (Vec::new(), DoingTimes::default());
    if range.is_empty() {
        return times;
    }
    Walk::explain_start(deps, piece_id, range, MAX_PARTS, &mut parts);
    let process = deps.lines.line(piece_id.line).process;
    for part in &parts {
        let (key, slice) = key_of(deps, process, part);
        times.entry(key).or_default().add(part.end - part.start, slice);
    }
    times
}

fn key_of(deps: &Deps<'_>, process: u32, part: &WalkPart) -> (DoingKey, Option<SliceId>) {
    let site_of = |slice: SliceId| deps.store.slice(slice).map(|slice| slice.site);
    let runner = match part.kind {
        PartKind::Runs(piece_id, _) => piece_id.line,
        _ => part.line,
    };
    let (runner, owner) = (deps.lines.line(runner), deps.lines.line(runner).process);
    match part.kind {
        _ if owner != process => (DoingKey::Peer(owner), None),
        PartKind::Runs(piece_id, _) => {
            let slice = deps.lines.slice(piece_id);
            (DoingKey::Ran(slice.site), Some(slice.id))
        }
        PartKind::Idle(cause, slice) => (DoingKey::Idle(cause, slice.and_then(site_of)), slice),
        PartKind::Untraced | PartKind::Begin => {
            let before = runner.row_before(part.end).map(|row| runner.slice(&runner.pieces[row as usize]));
            (DoingKey::Untraced(before.map(|slice| slice.site)), before.map(|slice| slice.id))
        }
    }
}
