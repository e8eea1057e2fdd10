//! Collectives: the slices of several processes that are one exchange, and the process that came last.
//!
//! The peers of a communicator call their collectives in the same order. So the n-th collective of a name in one
//! process belongs to the n-th of that name in the others, where all have the same number of them and they overlap in
//! time.

use super::activity::Activity;
use super::lines::{Lines, PieceId};
use rustc_hash::FxHashMap;

/// All exchanges with at least two peers.
pub(crate) struct Exchanges {
    /// The pieces of each exchange, one per process, sorted by start.
    pub rows: Vec<Vec<PieceId>>,
    /// Rows of `rows`, by (line, piece).
    by_piece: FxHashMap<(u32, u32), u32>,
}

impl Exchanges {
    pub(crate) fn new(lines: &Lines) -> Exchanges {
        // (start, piece) by site and process.
        let mut sites: FxHashMap<u32, FxHashMap<u32, Vec<(i64, PieceId)>>> = FxHashMap::default();
        for (index, line) in lines.lines.iter().enumerate() {
            for (piece, p) in line.pieces.iter().enumerate().filter(|(_, p)| p.activity == Activity::Collective) {
                let piece_id = PieceId { line: index as u32, piece: piece as u32 };
                let ranks = sites.entry(line.slice(p).site).or_default();
                ranks.entry(line.process).or_default().push((p.start, piece_id));
            }
        }
        let mut exchanges = Exchanges { rows: Vec::new(), by_piece: FxHashMap::default() };
        for ranks in sites.into_values().filter(|ranks| ranks.len() > 1) {
            let mut ranks: Vec<Vec<(i64, PieceId)>> = ranks.into_values().collect();
            ranks.iter_mut().for_each(|calls| calls.sort_unstable_by_key(|(start, piece_id)| (*start, piece_id.line)));
            if ranks.iter().any(|calls| calls.len() != ranks[0].len()) {
                continue;
            }
            for i in 0..ranks[0].len() {
                exchanges.add(lines, ranks.iter().map(|calls| calls[i].1).collect());
            }
        }
        exchanges.rows.sort_by_key(|peers| lines.piece(peers[0]).start);
        for (row, peers) in exchanges.rows.iter().enumerate() {
            exchanges.by_piece.extend(peers.iter().map(|piece_id| ((piece_id.line, piece_id.piece), row as u32)));
        }
        exchanges
    }

    fn add(&mut self, lines: &Lines, mut peers: Vec<PieceId>) {
        peers.sort_by_key(|piece_id| (lines.piece(*piece_id).start, piece_id.line));
        let last_start = peers.iter().map(|piece_id| lines.piece(*piece_id).start).max();
        let first_end = peers.iter().map(|piece_id| lines.piece(*piece_id).end).min();
        // No peer can leave an exchange before the last peer has joined: else the slices are not one exchange.
        if last_start <= first_end {
            self.rows.push(peers);
        }
    }

    /// The peer that came last to the exchange of a piece; `None` if the peer is unknown, or is the piece itself.
    pub(crate) fn last_peer(&self, piece_id: PieceId) -> Option<PieceId> {
        let row = *self.by_piece.get(&(piece_id.line, piece_id.piece))?;
        self.rows[row as usize].last().copied().filter(|last| *last != piece_id)
    }
}
