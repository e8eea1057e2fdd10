//! Decodes pages of the kernel's trace ring, as read from `trace_pipe_raw`.
//!
//! ```text
//! byte 0   time of the page u64        an event's first word: type_len 5 bits (low), time since the last event 27 bits
//!      8   commit u64: bytes of         1..=28  payload of type_len * 4 bytes
//!          events (bits 0..20);              0  the next word is the length of the payload and itself
//!          bit 31: events were lost         29  padding: nothing more on the page, or (delta > 0) as 0
//!          before, bit 30: how many,        30  time goes on by next word << 27 | delta
//!          as u64 after the events          31  the time is next word << 27 | delta
//!     16   events
//! ```
//!
//! The offsets of `commit` and of the events are in the file `header_page`. Little-endian.

use super::format::Format;

/// Offsets of the parts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    commit: usize,
    commit_size: usize,
    data: usize,
}

impl Layout {
    /// Parses the file `header_page`, which has the form of a `format` file without an id.
    pub fn parse(text: &str) -> Option<Layout> {
        let format = Format::parse(&format!("ID: 0\n{text}"))?;
        let (commit, data) = (format.field("commit")?, format.field("data")?);
        Some(Layout { commit: commit.offset(), commit_size: commit.size(), data: data.offset() })
    }
}

/// Bit of `commit`: events were lost before the page.
const LOST: u64 = 1 << 31;
/// Bit of `commit`: the number of lost events follows the events.
const LOST_STORED: u64 = 1 << 30;
/// Bits of `commit` with the length of the events.
const COMMIT_MASK: u64 = (1 << 20) - 1;
/// Values of `type_len` that are not lengths of payloads: `RINGBUF_TYPE_PADDING` and so on.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of `delta` in an event's first word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time; the upper bits are those of the page's time.
const TIME_BITS: u64 = 59;

/// The events of a page.
pub struct Page<'a> {
    bytes: &'a [u8],
    time: u64,
    /// Events that were lost before this page; `u64::MAX` if their number is unknown.
    pub lost: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

impl<'a> Page<'a> {
    /// Parses a page; `None` if the bytes are not a page.
    pub fn new(page: &'a [u8], layout: Layout) -> Option<Page<'a>> {
        let time = long(page, 0)?;
        let commit = match layout.commit_size {
            8 => long(page, layout.commit)?,
            _ => u64::from(word(page, layout.commit)?),
        };
        let len = (commit & COMMIT_MASK) as usize;
        let bytes = page.get(layout.data..layout.data.checked_add(len)?)?;
        let lost = match commit & (LOST | LOST_STORED) {
            0 => 0,
            flags if flags == LOST | LOST_STORED => long(page, layout.data + len).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        Some(Page { bytes, time, lost })
    }
}

/// Iterates over the events: time and payload.
impl<'a> Iterator for Page<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let first_word = word(self.bytes, 0)?;
            let (type_len, delta) = (first_word & 31, u64::from(first_word >> 5));
            let (skip, payload) = match type_len {
                0 => {
                    let len = word(self.bytes, 4)? as usize;
                    (4 + len, Some(8..4 + len))
                }
                PADDING if delta == 0 => return None,
                PADDING => (4 + word(self.bytes, 4)? as usize, None),
                TIME_EXTEND | TIME_STAMP => (8, None),
                n => (4 + 4 * n as usize, Some(4..4 + 4 * n as usize)),
            };
            match type_len {
                TIME_STAMP => {
                    let time = u64::from(word(self.bytes, 4)?) << DELTA_BITS | delta;
                    self.time = time | self.time >> TIME_BITS << TIME_BITS;
                }
                TIME_EXTEND => {
                    let time = u64::from(word(self.bytes, 4)?) << DELTA_BITS | delta;
                    self.time = self.time.wrapping_add(time);
                }
                _ => self.time = self.time.wrapping_add(delta),
            }
            let event = payload.and_then(|range| self.bytes.get(range));
            // The kernel aligns events to words.
            self.bytes = self.bytes.get(skip.next_multiple_of(4)..)?;
            if let Some(event) = event {
                return Some((self.time, event));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: Layout = Layout { commit: 8, commit_size: 8, data: 16 };

    fn page(time: u64, flags: u64, events: &[u32]) -> Vec<u8> {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(((4 * events.len() as u64) | flags).to_le_bytes());
        bytes.extend(events.iter().flat_map(|w| w.to_le_bytes()));
        bytes
    }

    #[test]
    fn every_kind_of_word() {
        let words = [
            5 << 5 | 1,
            7, // at 1005: one word
            2 << 5 | 30,
            1, // and 1 << 27 | 2 later
            3 << 5,
            8,
            9, // of explicit length
            9 << 5 | 31,
            2, // now it is 2 << 27 | 9
            1 << 5 | 29,
            4, // a hole
            1 << 5 | 2,
            10,
            11,
            29,
            0, // nothing more
        ];
        let mut bytes = page(1000, LOST | LOST_STORED, &words);
        bytes.extend(6u64.to_le_bytes());
        let page = Page::new(&bytes, LAYOUT).unwrap();
        assert_eq!(page.lost, 6);
        let found: Vec<(u64, Vec<u32>)> =
            page.map(|(t, e)| (t, e.chunks(4).map(|w| word(w, 0).unwrap()).collect())).collect();
        let later = 1005 + (1 << 27 | 2) + 3;
        assert_eq!(found, [(1005, vec![7]), (later, vec![9]), ((2 << 27 | 9) + 2, vec![10, 11])]);
        assert_eq!(
            Layout::parse(
                " field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
            ),
            Some(LAYOUT)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..600), len in 0u64..700) {
            let mut bytes = bytes;
            if bytes.len() >= 16 {
                bytes[8..16].copy_from_slice(&len.to_le_bytes());
            }
            if let Some(page) = Page::new(&bytes, LAYOUT) {
                prop_assert!(page.count() <= bytes.len() / 4);
            }
        }
    }
}
