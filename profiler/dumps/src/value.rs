//! A value in eight bytes: small ones lie in it, the rest in the tables of a tree.

use crate::texts::TextId;

/// A value of a tree: four bits say of which kind it is, the others are a whole number or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value(u64);

/// A value taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    Bool(bool),
    Int(i64),
    /// In the table of wide whole numbers.
    Wide(usize),
    /// In the table of floats.
    Float(usize),
    Text(TextId),
    /// A list, tuple or set in the table of lists.
    List(usize),
    /// In the table of dictionaries.
    Dict(usize),
    /// What no dump has: bytes, whole numbers beyond 128 bits.
    Opaque,
}

const TAG_BITS: u32 = 4;

impl Value {
    pub const NONE: Self = Self::tagged(0, 0);
    pub const OPAQUE: Self = Self::tagged(8, 0);

    const fn tagged(tag: u64, payload: u64) -> Self {
        Self(payload << TAG_BITS | tag)
    }

    pub fn bool(value: bool) -> Self {
        Self::tagged(1, value.into())
    }

    /// `None` where it needs more than 60 bits.
    pub fn small_int(value: i64) -> Option<Self> {
        let fits = value << TAG_BITS >> TAG_BITS == value;
        fits.then(|| Self::tagged(2, value as u64))
    }

    pub fn wide(index: usize) -> Self {
        Self::tagged(3, index as u64)
    }

    pub fn float(index: usize) -> Self {
        Self::tagged(4, index as u64)
    }

    pub fn text(id: TextId) -> Self {
        Self::tagged(5, id.0.into())
    }

    pub fn list(index: usize) -> Self {
        Self::tagged(6, index as u64)
    }

    pub fn dict(index: usize) -> Self {
        Self::tagged(7, index as u64)
    }

    #[inline]
    pub fn kind(self) -> Kind {
        let payload = self.0 >> TAG_BITS;
        match self.0 & ((1 << TAG_BITS) - 1) {
            0 => Kind::None,
            1 => Kind::Bool(payload != 0),
            2 => Kind::Int(self.0 as i64 >> TAG_BITS),
            3 => Kind::Wide(payload as usize),
            4 => Kind::Float(payload as usize),
            5 => Kind::Text(TextId(payload as u32)),
            6 => Kind::List(payload as usize),
            7 => Kind::Dict(payload as usize),
            _ => Kind::Opaque,
        }
    }

    /// Whether it never changes: all but lists and dictionaries.
    pub fn is_scalar(self) -> bool {
        !matches!(self.kind(), Kind::List(_) | Kind::Dict(_))
    }
}

#[test]
fn values_are_what_they_were() {
    let largest = (1_i64 << 59) - 1;
    for value in [0, 1, -1, largest, -largest - 1] {
        assert_eq!(Value::small_int(value).map(Value::kind), Some(Kind::Int(value)));
    }
    assert_eq!((Value::small_int(largest + 1), Value::small_int(i64::MIN)), (None, None));
    assert_eq!((Value::NONE.kind(), Value::bool(true).kind()), (Kind::None, Kind::Bool(true)));
    assert_eq!(Value::dict(7).kind(), Kind::Dict(7));
    assert!(Value::OPAQUE.is_scalar() && !Value::list(0).is_scalar());
}
