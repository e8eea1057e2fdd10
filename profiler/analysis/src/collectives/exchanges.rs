//! Exchanges: the executions of several ranks that are one collective, and the rank that came last.
//!
//! | what is known | the n-th of which sequence |
//! |---|---|
//! | PyTorch's arguments, with a number | that number in the group |
//! | PyTorch's arguments | the group's collectives of one kind |
//! | a transfer between two ranks | the group's transfers from one to the other |
//! | the kernel's name | the executions of that name in each process |
//!
//! [`super::sequence`] says what belongs together where the ranks do not have as many.

use super::calls::{Call, Calls};
use super::kind::CollectiveKind;
use super::sequence::{Span, shift};
use crate::lines::{Lines, PieceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace_store::Store;

/// An execution of a collective by all ranks of the trace that take part in it.
pub(crate) struct Exchange {
    /// Rows of [`Exchanges::calls`], one per process, sorted by start.
    pub calls: Vec<u32>,
    pub kind: CollectiveKind,
}

/// All exchanges with at least two ranks.
pub(crate) struct Exchanges {
    pub calls: Calls,
    /// Sorted by the first start.
    pub rows: Vec<Exchange>,
    /// Rows of `rows` by (line, piece).
    by_piece: FxHashMap<(u32, u32), u32>,
}

/// The sequence that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum SequenceKey {
    Name(u32),
    Group(u32, CollectiveKind),
    /// Group, sender and receiver.
    Transfer(u32, u32, u32),
}

/// The rows of a sequence's calls by process, sorted by start.
type Sequence = BTreeMap<u32, Vec<u32>>;

impl Exchanges {
    pub(crate) fn new(store: &Store, lines: &Lines) -> Exchanges {
        let calls = Calls::new(store, lines);
        let mut exchanges = Exchanges { rows: Vec::new(), by_piece: FxHashMap::default(), calls };
        for (key, ranks) in sequences(store, &exchanges.calls) {
            for matched in match_ranks(&exchanges.calls, ranks) {
                exchanges.add(key, matched);
            }
        }
        let calls = &exchanges.calls.rows;
        exchanges.rows.sort_by_key(|exchange| (calls[exchange.calls[0] as usize].start, exchange.calls[0]));
        for (row, exchange) in (0..).zip(&exchanges.rows) {
            let pieces = exchange.calls.iter().map(|call| calls[*call as usize].piece_id);
            exchanges.by_piece.extend(pieces.map(|piece_id| ((piece_id.line, piece_id.piece), row)));
        }
        exchanges
    }

    fn add(&mut self, key: SequenceKey, mut matched: Vec<u32>) {
        let call = |row: &u32| &self.calls.rows[*row as usize];
        matched.sort_by_key(|row| (call(row).start, call(row).process));
        let last_start = matched.iter().map(|row| call(row).start).max();
        let first_end = matched.iter().map(|row| call(row).end).min();
        let kind = match key {
            SequenceKey::Group(_, kind) => kind,
            SequenceKey::Transfer(..) => CollectiveKind::Send,
            SequenceKey::Name(_) => {
                matched.first().map_or(CollectiveKind::Other, |row| self.calls.signature(call(row)).kind)
            }
        };
        // No rank can leave before the last one has come: else these are not one exchange.
        if last_start <= first_end || !kind.synchronises() {
            self.rows.push(Exchange { calls: matched, kind });
        }
    }

    /// The calls of an exchange, sorted by start.
    pub(crate) fn calls_of<'a>(&'a self, exchange: &'a Exchange) -> impl DoubleEndedIterator<Item = &'a Call> + Clone {
        exchange.calls.iter().map(|row| &self.calls.rows[*row as usize])
    }

    /// The exchanges that no rank can leave before the last one has come.
    pub(crate) fn synchronising(&self) -> impl Iterator<Item = &Exchange> {
        self.rows.iter().filter(|exchange| exchange.kind.synchronises())
    }

    /// Whether a call of an exchange waits for the one that came last.
    pub(crate) fn waits(&self, exchange: &Exchange, call: &Call) -> bool {
        exchange.kind.synchronises() || self.calls.signature(call).kind == CollectiveKind::Receive
    }

    /// The rank that came last to the exchange of a piece, for which the piece waited; `None` if nothing is known of the
    /// others, or if the piece itself came last.
    pub(crate) fn last_peer(&self, piece_id: PieceId) -> Option<PieceId> {
        let row = *self.by_piece.get(&(piece_id.line, piece_id.piece))?;
        let exchange = self.rows.get(row as usize)?;
        let own = self.calls_of(exchange).find(|call| call.piece_id == piece_id)?;
        let last = self.calls_of(exchange).next_back().filter(|_| self.waits(exchange, own))?;
        Some(last.piece_id).filter(|last| *last != piece_id)
    }
}

/// The sequences in which several processes take part.
fn sequences(store: &Store, calls: &Calls) -> BTreeMap<SequenceKey, Sequence> {
    let mut keys: FxHashMap<(u32, u32), Option<SequenceKey>> = FxHashMap::default();
    let mut found: BTreeMap<SequenceKey, Sequence> = BTreeMap::new();
    for (row, call) in (0..).zip(&calls.rows) {
        let key = keys.entry((call.signature, call.process)).or_insert_with(|| sequence_key(store, calls, call));
        if let Some(key) = key {
            found.entry(*key).or_default().entry(call.process).or_default().push(row);
        }
    }
    found.retain(|_, ranks| ranks.len() > 1);
    for rows in found.values_mut().flat_map(BTreeMap::values_mut) {
        rows.sort_by_key(|row| (calls.rows[*row as usize].start, *row));
    }
    found
}

fn sequence_key(store: &Store, calls: &Calls, call: &Call) -> Option<SequenceKey> {
    let signature = calls.signature(call);
    let Some(group) = signature.group else { return signature.site.map(SequenceKey::Name) };
    match (signature.kind, signature.peer) {
        (CollectiveKind::Send | CollectiveKind::Receive, Some((sends, peer))) => {
            let rank = store.processes().get(call.process as usize)?.rank()?;
            let own = calls.group(signature)?.member(rank)?;
            let (from, to) = if sends { (own, peer) } else { (peer, own) };
            Some(SequenceKey::Transfer(group, from, to))
        }
        // Of transfers to unknown ranks nothing says which belong together.
        (CollectiveKind::Send | CollectiveKind::Receive | CollectiveKind::SendReceive, _) => None,
        (kind, _) => Some(SequenceKey::Group(group, kind)),
    }
}

/// The calls that are one exchange, at most one per process and at least two.
fn match_ranks(calls: &Calls, ranks: Sequence) -> Vec<Vec<u32>> {
    if let Some(numbered) = by_number(calls, &ranks) {
        return numbered;
    }
    let spans = |rows: &[u32]| -> Vec<Span> {
        let span = |row: &u32| {
            let call = &calls.rows[*row as usize];
            let signature = calls.signature(call);
            // Each rank may send another number of elements.
            let bytes = signature.bytes.filter(|_| signature.kind != CollectiveKind::AllToAll);
            Span { start: call.start, end: call.end, bytes: bytes.unwrap_or(0) }
        };
        rows.iter().map(span).collect()
    };
    // By the position in the first rank's sequence.
    let mut matched: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    let mut first: Option<Vec<Span>> = None;
    for rows in ranks.into_values() {
        let spans = spans(&rows);
        let shift = first.as_ref().map_or(0, |first| shift(first, &spans));
        first.get_or_insert(spans);
        for (at, row) in (shift..).zip(rows) {
            matched.entry(at).or_default().push(row);
        }
    }
    matched.into_values().filter(|rows| rows.len() > 1).collect()
}

/// As [`match_ranks`], where all calls have numbers that differ within each process.
fn by_number(calls: &Calls, ranks: &Sequence) -> Option<Vec<Vec<u32>>> {
    let mut matched: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for rows in ranks.values() {
        let mut last = None;
        for row in rows {
            let seq = calls.rows[*row as usize].seq?;
            if last.replace(seq).is_some_and(|last| last >= seq) {
                return None;
            }
            matched.entry(seq).or_default().push(*row);
        }
    }
    Some(matched.into_values().filter(|rows| rows.len() > 1).collect())
}
