//! The event record: the 32 bytes that a producer writes for an event.
//!
//! ```text
//! byte  0        8      12     16     20            24            32
//!       | begin  | dur  | site | node | correlation |     arg     |
//!         u64      u32    u32    u32    u32           u64            little-endian
//! ```
//!
//! `begin` is in ticks ([`crate::clock::now`]), `dur` in ticks. The site word:
//!
//! ```text
//! bit 31      28 27       24 23                     0
//!     |  kind   |  depth    |       site id         |
//! ```
//!
//! `depth` is the number of slices that were open around the event on its thread; 15 means 15 or more.
//!
//! A slice of `u32::MAX` ticks or more (1.4 s at 3 GHz) takes two records, published together: a [`Kind::LongSlice`]
//! record whose `arg` is the duration, then the slice itself with `dur = u32::MAX` and its own `arg`. Either record
//! alone (after damage) still says when the slice began. [`Decoder`] joins them.
//!
//! An event may have a text: [`Kind::Text`] records directly before it, published with it. In these the site id is the
//! number of bytes of UTF-8, at most 28, which fill the other fields in the order begin, dur, node, correlation, arg.

use crate::names::{NodeId, SiteId};
use bytemuck::{Pod, Zeroable};

/// The kind of an event; four bits of the site word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An interval on the emitting thread.
    Slice = 0,
    /// An event without duration.
    Instant = 1,
    /// A counter's value, which holds from now on; `arg` holds the bits of an `f64`.
    Counter = 2,
    /// The begin of a flow; the end has the same `correlation`.
    FlowOut = 3,
    /// The end of a flow.
    FlowIn = 4,
    /// `arg` bytes were allocated. `correlation` is `n / 64 + 1`, where the site has `n` bytes allocated afterwards; 0
    /// if that is unknown.
    Alloc = 5,
    /// `arg` bytes were freed; `correlation` as for [`Kind::Alloc`].
    Free = 6,
    /// A part of the text of the next event.
    Text = 7,
    /// The duration (in `arg`) of the slice in the next record.
    LongSlice = 14,
}

impl Kind {
    /// The kind of a four-bit number; `None` for numbers that this version does not know.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            0 => Self::Slice,
            1 => Self::Instant,
            2 => Self::Counter,
            3 => Self::FlowOut,
            4 => Self::FlowIn,
            5 => Self::Alloc,
            6 => Self::Free,
            7 => Self::Text,
            14 => Self::LongSlice,
            _ => return None,
        })
    }
}

/// The deepest depth that a record can hold.
pub const MAX_DEPTH: u32 = 15;

/// Bytes of a text that one record holds.
pub const TEXT_BYTES: usize = 28;
/// The longest text of an event, bytes.
pub const MAX_TEXT: usize = 1024;

/// The site word of a record: kind, depth (saturating at [`MAX_DEPTH`]) and site id.
#[inline]
#[must_use]
pub fn site_word(kind: Kind, depth: u32, site: SiteId) -> u32 {
    let depth = if depth > MAX_DEPTH { MAX_DEPTH } else { depth };
    (kind as u32) << 28 | depth << 24 | site.get()
}

/// One event as it is stored in rings and trace files; the module's documentation shows the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    /// The begin of the event, ticks.
    pub begin: u64,
    /// The duration, ticks. 0 for events without duration; `u32::MAX` where a [`Kind::LongSlice`] record before this
    /// one holds the duration.
    pub dur: u32,
    /// Kind, depth and site id.
    pub site: u32,
    /// The graph node, or [`NodeId::NONE`]'s number.
    pub node: u32,
    /// The number that related events share; the category of the site says in which sense.
    pub correlation: u32,
    /// A value; the category of the site says which.
    pub arg: u64,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// The kind; `None` for a kind that this version does not know.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_bits(self.site >> 28)
    }

    /// The number of slices that were open around the event, at most [`MAX_DEPTH`].
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.site >> 24 & 0xf
    }

    /// The call site.
    #[must_use]
    pub fn site_id(&self) -> SiteId {
        SiteId::from_bits(self.site)
    }

    /// The graph node.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        NodeId::new(self.node)
    }

    /// A record that holds `part` of a text, at most [`TEXT_BYTES`]. The records of all parts come directly before the
    /// event; the text has at most [`MAX_TEXT`] bytes.
    #[must_use]
    pub fn from_text(part: &[u8]) -> Self {
        let mut bytes = [0; TEXT_BYTES];
        let len = part.len().min(TEXT_BYTES);
        bytes[..len].copy_from_slice(&part[..len]);
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        Self {
            begin: word(0),
            dur: half(8),
            site: site_word(Kind::Text, 0, SiteId::from_bits(len as u32)),
            node: half(12),
            correlation: half(16),
            arg: word(20),
        }
    }

    /// The part of a text that a [`Kind::Text`] record holds.
    fn text_part(&self) -> ([u8; TEXT_BYTES], usize) {
        let mut bytes = [0; TEXT_BYTES];
        bytes[..8].copy_from_slice(&self.begin.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.dur.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.node.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.correlation.to_le_bytes());
        bytes[20..].copy_from_slice(&self.arg.to_le_bytes());
        (bytes, (self.site_id().get() as usize).min(TEXT_BYTES))
    }

    /// The record as four words. Shifts make them: a cast would store the fields and load wider words, which stalls the
    /// store buffer's forwarding.
    #[inline]
    pub(crate) fn words(self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [self.begin, pair(self.dur, self.site), pair(self.node, self.correlation), self.arg]
    }

    #[inline]
    pub(crate) fn from_words(words: [u64; 4]) -> Self {
        bytemuck::cast(words)
    }
}

/// A decoded event: long slices are joined and the site word is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind; never [`Kind::LongSlice`] or [`Kind::Text`].
    pub kind: Kind,
    /// The number of slices that were open around the event, at most [`MAX_DEPTH`].
    pub depth: u32,
    /// The call site.
    pub site: SiteId,
    /// The graph node or [`NodeId::NONE`].
    pub node: NodeId,
    /// The begin of the event, ticks.
    pub begin: u64,
    /// The duration, ticks.
    pub dur: u64,
    /// The number that related events share.
    pub correlation: u32,
    /// The value; the bits of an `f64` for a counter.
    pub arg: u64,
}

/// Turns the records of one ring, in order, into events.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The preceding record, if it is a [`Kind::LongSlice`].
    long_slice: Option<Record>,
    /// The parts of the next event's text.
    next_text: Vec<u8>,
    /// The last event's text.
    text: Vec<u8>,
    n_unknown: u64,
}

impl Decoder {
    /// Decodes the next record. Returns the event that the record completes; `None` for the first half of a long slice
    /// and for kinds of later versions (counted in [`n_unknown`](Self::n_unknown)).
    pub fn push(&mut self, record: Record) -> Option<Event> {
        let long = self.long_slice.take();
        let Some(kind) = record.kind() else {
            // A text before it was this event's, not the next one's.
            self.next_text.clear();
            self.n_unknown += 1;
            return None;
        };
        if kind == Kind::LongSlice {
            self.long_slice = Some(record);
            return None;
        }
        if kind == Kind::Text {
            let (bytes, len) = record.text_part();
            if self.next_text.len() + len <= MAX_TEXT {
                self.next_text.extend_from_slice(&bytes[..len]);
            }
            return None;
        }
        std::mem::swap(&mut self.text, &mut self.next_text);
        self.next_text.clear();
        let joined = long.filter(|l| kind == Kind::Slice && l.begin == record.begin && record.dur == u32::MAX);
        Some(Event {
            kind,
            depth: record.depth(),
            site: record.site_id(),
            node: record.node_id(),
            begin: record.begin,
            dur: joined.map_or(u64::from(record.dur), |l| l.arg),
            correlation: record.correlation,
            arg: record.arg,
        })
    }

    /// The text of the event that [`push`](Self::push) returned last; empty for most.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// The number of records with a kind that this version does not know.
    #[must_use]
    pub fn n_unknown(&self) -> u64 {
        self.n_unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_as_drawn() {
        let record = Record {
            begin: 0x0807_0605_0403_0201,
            dur: 0x0c0b_0a09,
            site: site_word(Kind::Counter, 3, SiteId::from_bits(0x0a_0b0c)),
            node: 0x1413_1211,
            correlation: 0x1817_1615,
            arg: 0x201f_1e1d_1c1b_1a19,
        };
        let mut want: Vec<u8> = (1..=32).collect();
        want[12..16].copy_from_slice(&[0x0c, 0x0b, 0x0a, 0x23]);
        assert_eq!(bytemuck::bytes_of(&record), want);
    }

    #[test]
    fn long_slices_join_and_halves_survive() {
        let word = |kind| site_word(kind, 2, SiteId::from_bits(7));
        let long = Record { begin: 50, site: word(Kind::LongSlice), arg: 1 << 40, ..Record::default() };
        let rest = Record { begin: 50, dur: u32::MAX, site: word(Kind::Slice), arg: 9, ..Record::default() };
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(long), None);
        let event = decoder.push(rest).unwrap();
        assert_eq!((event.dur, event.arg, event.depth), (1 << 40, 9, 2));
        // Without its first half the slice is at least that long; a first half does not leak into another slice.
        assert_eq!(decoder.push(rest).unwrap().dur, u64::from(u32::MAX));
        decoder.push(long);
        assert_eq!(decoder.push(Record { begin: 51, ..rest }).unwrap().dur, u64::from(u32::MAX));
        assert_eq!(decoder.push(Record { site: 9 << 28, ..rest }), None);
        assert_eq!(decoder.n_unknown(), 1);
    }

    #[test]
    fn the_text_of_an_unknown_event_goes_with_it() {
        let mut decoder = Decoder::default();
        decoder.push(Record::from_text(b"of a later version"));
        decoder.push(Record { site: 9 << 28, ..Record::default() });
        decoder.push(Record { site: site_word(Kind::Instant, 0, SiteId::OTHER), ..Record::default() });
        assert_eq!((decoder.text().as_ref(), decoder.n_unknown()), ("", 1));
    }

    proptest! {
        #[test]
        fn texts_round_trip(text in "\\PC{0,200}") {
            let mut decoder = Decoder::default();
            for part in text.as_bytes().chunks(TEXT_BYTES) {
                prop_assert_eq!(decoder.push(Record::from_text(part)), None);
            }
            let event = Record { begin: 5, site: site_word(Kind::Instant, 0, SiteId::OTHER), ..Record::default() };
            prop_assert_eq!(decoder.push(event).map(|e| e.begin), Some(5));
            prop_assert_eq!(decoder.text(), text.as_str());
            decoder.push(event);
            prop_assert_eq!(decoder.text(), "");
        }

        #[test]
        fn site_word_round_trips(kind in 0u32..16, depth in 0u32..100, site in any::<u32>()) {
            if let Some(kind) = Kind::from_bits(kind) {
                let record = Record { site: site_word(kind, depth, SiteId::from_bits(site)), ..Record::default() };
                prop_assert_eq!(record.kind(), Some(kind));
                prop_assert_eq!(record.depth(), depth.min(MAX_DEPTH));
                prop_assert_eq!(record.site_id().get(), site & 0xff_ffff);
                prop_assert_eq!(Record::from_words(record.words()), record);
            }
        }
    }
}
