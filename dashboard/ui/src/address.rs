//! A panel's state as parameters of an address. Each panel declares its parameters once, with [`address_fields`], from
//! which the writer, the reader and the list of accepted values follow.
//!
//! [`address_fields`]: crate::address_fields

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    str::FromStr,
    sync::Arc,
};

/// Parameters (names with values) in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Adds a value for a name.
    pub fn set(&mut self, name: &str, value: impl fmt::Display) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    /// Adds a value if there is one.
    pub fn set_some(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds a range of times, `START..END`.
    pub fn set_range(&mut self, name: &str, range: &Range<i64>) {
        self.set(name, format_args!("{}..{}", range.start, range.end));
    }

    /// Each name with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of a name, as text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// The parsed value of a name; `None` where it is missing or invalid.
    pub fn read<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// Parses a range of times; `None` where it is missing, invalid or not `start < end`.
    pub fn read_range(&self, name: &str) -> Option<Range<i64>> {
        let (start, end) = self.get(name)?.split_once("..")?;
        let range = start.parse().ok()?..end.parse().ok()?;
        (range.start < range.end).then_some(range)
    }

    /// Every value of a name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }
}

impl FromIterator<(String, String)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The values that a parameter accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any text: names, filters, queries. Whether a name exists is known only once the files are read.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// `1`, or `0` for no.
    Flag,
    /// A number.
    Number,
    /// Two numbers with `..` between them.
    Range,
    /// Whole numbers with `.` between them.
    List,
}

/// Parameters with the values that they accept.
pub type Names = Vec<(&'static str, Accepts)>;

impl Accepts {
    /// Whether a value is accepted.
    pub fn accepts(&self, value: &str) -> bool {
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        match self {
            Self::Text => true,
            Self::Words(words) => words.contains(&value),
            Self::Flag => matches!(value, "0" | "1"),
            Self::Number => is_number(value),
            Self::Range => value.split_once("..").is_some_and(|(from, to)| is_number(from) && is_number(to)),
            Self::List => value.split('.').all(|part| part.parse::<u32>().is_ok()),
        }
    }

    /// A description of the accepted values, for a message.
    pub fn text(&self) -> String {
        match self {
            Self::Text => "any text".to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Flag => "0, 1".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Range => "two numbers, FROM..TO".to_owned(),
            Self::List => "whole numbers with dots between them".to_owned(),
        }
    }
}

/// An enum whose variants are the rows of a table.
pub trait Choice: Copy + PartialEq + 'static {
    /// Each variant with its name in addresses and its title in the window, in the window's order.
    const TABLE: &'static [(Self, &'static str, &'static str)];

    /// All variants.
    fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.iter().map(|row| row.0)
    }

    /// The variant with this name in addresses.
    fn by_id(id: &str) -> Option<Self> {
        Self::TABLE.iter().find(|row| row.1 == id).map(|row| row.0)
    }

    /// The name in addresses, the same in all versions.
    fn id(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The title in the window.
    fn title(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }
}

/// A state whose differences from the default are written into addresses.
pub trait AddressState {
    /// The parameters that an address may have.
    fn accepts() -> Names;
    /// The parameters that differ from the default.
    fn params(&self) -> Params;
    /// Applies parameters; missing ones take their default.
    fn set_params(&mut self, params: &Params);
}

/// A value of a parameter.
pub trait Value: Sized {
    /// The accepted values.
    fn accepts() -> Accepts;
    /// The value as texts: several for a list.
    fn texts(&self) -> Vec<String>;
    /// Parses the texts; `None` where there are none or they are invalid.
    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self>;
}

/// Declares the parameters of a state: `address_fields!(Settings { "filter" = filter: Filter, "log" = curve.log_y: bool
/// })`. Defaults are those of the state's [`Default`].
#[macro_export]
macro_rules! address_fields {
    ($State:ty { $($name:literal = $($field:ident).+ : $Type:ty),+ $(,)? }) => {
        impl $crate::address::AddressState for $State {
            fn accepts() -> $crate::address::Names {
                vec![$(($name, <$Type as $crate::address::Value>::accepts())),+]
            }

            fn params(&self) -> $crate::address::Params {
                let (default, mut out) = (<$State>::default(), $crate::address::Params::default());
                $(if self.$($field).+ != default.$($field).+ {
                    $crate::address::Value::texts(&self.$($field).+).iter().for_each(|text| out.set($name, text));
                })+
                out
            }

            fn set_params(&mut self, params: &$crate::address::Params) {
                let default = <$State>::default();
                $(self.$($field).+ =
                    <$Type as $crate::address::Value>::from_texts(params.all($name)).unwrap_or(default.$($field).+);)+
            }
        }
    };
}

impl<T: Choice> Value for T {
    fn accepts() -> Accepts {
        Accepts::Words(T::TABLE.iter().map(|row| row.1).collect())
    }

    fn texts(&self) -> Vec<String> {
        vec![self.id().to_owned()]
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        T::by_id(texts.next()?)
    }
}

impl Value for bool {
    fn accepts() -> Accepts {
        Accepts::Flag
    }

    fn texts(&self) -> Vec<String> {
        vec![u8::from(*self).to_string()]
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        texts.next().map(|text| text == "1")
    }
}

impl Value for Vec<Arc<str>> {
    fn accepts() -> Accepts {
        Accepts::Text
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some(texts.map(Into::into).collect())
    }
}

/// Implements [`Value`] for types with `Display` and `FromStr`.
macro_rules! values {
    ($($Type:ty: $accepts:ident),+) => {$(
        impl Value for $Type {
            fn accepts() -> Accepts {
                Accepts::$accepts
            }

            fn texts(&self) -> Vec<String> {
                vec![self.to_string()]
            }

            fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
                texts.next()?.parse().ok()
            }
        }
    )+};
}

values!(String: Text, f64: Number, u32: Number, usize: Number);

/// Implements [`Value`] for lists of whole numbers.
macro_rules! lists {
    ($($Type:ty),+) => {$(
        impl Value for $Type {
            fn accepts() -> Accepts {
                Accepts::List
            }

            fn texts(&self) -> Vec<String> {
                vec![self.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")]
            }

            fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
                Some(texts.next()?.split('.').filter_map(|number| number.parse().ok()).collect())
            }
        }
    )+};
}

lists!(Vec<u32>, BTreeSet<u32>);

impl Value for BTreeMap<u32, u32> {
    fn accepts() -> Accepts {
        Accepts::List
    }

    fn texts(&self) -> Vec<String> {
        self.iter().flat_map(|(key, value)| [*key, *value]).collect::<Vec<u32>>().texts()
    }

    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some(Vec::<u32>::from_texts(texts)?.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value)).collect())
    }
}

impl<const N: usize> Value for [String; N] {
    fn accepts() -> Accepts {
        Accepts::Text
    }

    fn texts(&self) -> Vec<String> {
        self.to_vec()
    }

    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut out = [const { String::new() }; N];
        out.iter_mut().zip(texts).for_each(|(value, text)| text.clone_into(value));
        Some(out)
    }
}

impl Value for Option<usize> {
    fn accepts() -> Accepts {
        Accepts::Number
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some(texts.next()?.parse().ok())
    }
}

impl Value for Option<Arc<str>> {
    fn accepts() -> Accepts {
        Accepts::Text
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        texts.next().map(|text| Some(text.into()))
    }
}

impl<T: FromStr + fmt::Display> Value for Option<[T; 2]> {
    fn accepts() -> Accepts {
        Accepts::Range
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(|[lo, hi]| format!("{lo}..{hi}")).collect()
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (lo, hi) = texts.next()?.split_once("..")?;
        Some(Some([lo.parse().ok()?, hi.parse().ok()?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct State {
        name: String,
        is_on: bool,
        tags: Vec<Arc<str>>,
        range: Option<[i64; 2]>,
    }

    address_fields!(State {
        "name" = name: String,
        "on" = is_on: bool,
        "tag" = tags: Vec<Arc<str>>,
        "range" = range: Option<[i64; 2]>,
    });

    #[test]
    fn fields_are_read_as_they_were_written() {
        assert_eq!(State::default().params(), Params::default(), "the usual state says nothing");
        let state = State { name: "a=b".into(), is_on: true, tags: vec!["x".into(), "y".into()], range: Some([-1, 7]) };
        let params = state.params();
        assert_eq!(
            (params.get("name"), params.get("on"), params.get("range")),
            (Some("a=b"), Some("1"), Some("-1..7"))
        );
        assert_eq!(params.all("tag").collect::<Vec<_>>(), ["x", "y"]);
        let mut read = State { is_on: true, ..State::default() };
        read.set_params(&params);
        assert_eq!(read, state);
        read.set_params(&Params::default());
        assert_eq!(read, State::default());
        assert_eq!(State::accepts()[3], ("range", Accepts::Range));
    }
}
