//! Texts, each stored once.

use std::hash::{BuildHasher as _, RandomState};

use rustc_hash::FxHashMap;

/// A text of a dump: its number in the order of first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub(crate) u32);

/// The texts of a file. The first one is empty.
#[derive(Debug)]
pub(crate) struct Texts {
    buffer: String,
    /// Where each text ends in the buffer; it begins where the one before it ends.
    ends: Vec<usize>,
    /// Numbers by hash. Of two texts with one hash the later is at the next free hash.
    numbers: FxHashMap<u64, u32>,
    /// Random, so that no file can be made whose texts collide.
    hasher: RandomState,
}

impl Texts {
    /// The empty text.
    pub const EMPTY: TextId = TextId(0);

    pub fn new() -> Self {
        let mut new =
            Self { buffer: String::new(), ends: Vec::new(), numbers: FxHashMap::default(), hasher: RandomState::new() };
        new.intern("");
        new
    }

    pub fn get(&self, id: TextId) -> &str {
        let number = id.0 as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.buffer.get(start..*end)).unwrap_or_default()
    }

    pub fn find(&self, text: &str) -> Option<TextId> {
        self.search(text).ok()
    }

    pub fn intern(&mut self, text: &str) -> TextId {
        match self.search(text) {
            Ok(id) => id,
            Err(hash) => {
                // A file would have to be above 4 GiB to have more.
                let id = TextId(self.ends.len() as u32);
                self.buffer.push_str(text);
                self.ends.push(self.buffer.len());
                self.numbers.insert(hash, id.0);
                id
            }
        }
    }

    /// Its number, or the hash under which it would be stored.
    fn search(&self, text: &str) -> Result<TextId, u64> {
        let mut hash = self.hasher.hash_one(text);
        while let Some(number) = self.numbers.get(&hash) {
            if self.get(TextId(*number)) == text {
                return Ok(TextId(*number));
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }
}

#[test]
fn a_text_has_one_number() {
    let mut texts = Texts::new();
    let a = texts.intern("alloc");
    assert_eq!((texts.intern("alloc"), texts.find("alloc"), texts.find("free")), (a, Some(a), None));
    assert_eq!((texts.intern(""), texts.get(Texts::EMPTY), texts.get(a)), (Texts::EMPTY, "", "alloc"));
}
