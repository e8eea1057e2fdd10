//! What PyTorch's profiler says of a collective: arguments of its kernel (Kineto copies them from the host's call), or of
//! the call `record_param_comms` itself.

use super::group::ProcessGroup;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The key that all of these arguments have.
const NAME: &str = "\"Collective name\"";

/// The arguments of a collective. A number may be written as text; what cannot be read is as if it were not there.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CommsArgs<'a> {
    #[serde(borrow, rename = "Collective name")]
    name: Option<&'a RawValue>,
    #[serde(borrow, rename = "In msg nelems")]
    input: Option<&'a RawValue>,
    #[serde(borrow, rename = "Out msg nelems")]
    output: Option<&'a RawValue>,
    #[serde(borrow, rename = "Group size")]
    size: Option<&'a RawValue>,
    #[serde(borrow)]
    dtype: Option<&'a RawValue>,
    #[serde(borrow, rename = "Process Group Name")]
    group: Option<&'a RawValue>,
    #[serde(borrow, rename = "Process Group Description")]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "Process Group Ranks")]
    ranks: Option<&'a RawValue>,
    #[serde(borrow, rename = "Src Rank")]
    source: Option<&'a RawValue>,
    #[serde(borrow, rename = "Dst Rank")]
    destination: Option<&'a RawValue>,
    #[serde(borrow, rename = "Seq")]
    seq: Option<&'a RawValue>,
    #[serde(borrow, rename = "External id")]
    external: Option<&'a RawValue>,
}

impl<'a> CommsArgs<'a> {
    /// `None` where the text says nothing of a collective.
    pub(super) fn parse(text: &'a str) -> Option<CommsArgs<'a>> {
        let args: CommsArgs<'a> = text.contains(NAME).then(|| serde_json::from_str(text).ok()).flatten()?;
        args.name.map(words).is_some_and(|name| !name.is_empty()).then_some(args)
    }

    /// The collective, as the framework calls it: `_allgather_base`.
    pub(super) fn name(&self) -> String {
        self.name.map(words).unwrap_or_default()
    }

    /// The elements of a rank's input and output.
    pub(super) fn elements(&self) -> Option<(u64, u64)> {
        Some((number(self.input?)?, number(self.output?)?))
    }

    /// The type of the elements, as PyTorch's names have it: `BFloat16`.
    pub(super) fn dtype(&self) -> String {
        self.dtype.map(words).unwrap_or_default()
    }

    /// The other rank of a transfer between two, counted in the group: whether this one sends, and the number.
    pub(super) fn peer(&self) -> Option<(bool, u32)> {
        let rank = |value: &'a RawValue| number(value).and_then(|rank| u32::try_from(rank).ok());
        let to = self.destination.and_then(rank).map(|rank| (true, rank));
        to.or_else(|| self.source.and_then(rank).map(|rank| (false, rank)))
    }

    /// The number of the collective in its group.
    pub(super) fn seq(&self) -> Option<u64> {
        self.seq.and_then(number)
    }

    /// `None` where the group has no name.
    pub(super) fn group(&self) -> Option<ProcessGroup> {
        let ranks = self.ranks.map(words).unwrap_or_default();
        let ranks = ranks.split(|c: char| !c.is_ascii_digit()).filter_map(|rank| rank.parse().ok()).collect();
        Some(ProcessGroup {
            name: words(self.group?),
            description: self.description.map(words).unwrap_or_default(),
            ranks,
            size: self.size.and_then(number).and_then(|size| u32::try_from(size).ok()),
        })
    }
}

/// The number by which a kernel's arguments name the host's call.
pub(super) fn external_id(text: &str) -> Option<u64> {
    text.contains("\"External id\"")
        .then(|| serde_json::from_str::<CommsArgs<'_>>(text).ok())
        .flatten()?
        .external
        .and_then(number)
}

/// The bytes of an element; `None` of a type that is not known.
pub(super) fn element_bytes(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" | "Float8_e4m3fnuz" | "Float8_e5m2fnuz" => 1,
        "Float8_e8m0fnu" | "Float4_e2m1fn_x2" => 1,
        "Half" | "BFloat16" | "Short" | "UInt16" => 2,
        "Float" | "Int" | "UInt32" | "ComplexHalf" => 4,
        "Double" | "Long" | "UInt64" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        _ => return None,
    })
}

/// A text, or any other value as it is written.
fn words(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

fn number(value: &RawValue) -> Option<u64> {
    value.get().trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kineto_writes_is_read() {
        let text = r#"{"External id": 5660, "device": 0, "Collective name": "send", "In msg nelems": 4096, "Out msg nelems": "8192",
            "Group size": 2, "dtype": "Float", "In split size": "[]", "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": "[4, 6]", "Dst Rank": 1, "Seq": 7}"#;
        let args = CommsArgs::parse(text).unwrap();
        assert_eq!((args.name().as_str(), args.dtype().as_str()), ("send", "Float"));
        assert_eq!((args.elements(), args.peer(), args.seq()), (Some((4096, 8192)), Some((true, 1)), Some(7)));
        let group = args.group().unwrap();
        assert_eq!((group.title(), &group.ranks[..], group.size), ("default_pg", &[4, 6][..], Some(2)));
        assert_eq!(external_id(text), Some(5660));
    }

    #[test]
    fn what_is_missing_or_damaged_is_not_there() {
        assert!(CommsArgs::parse(r#"{"correlation": 3}"#).is_none());
        assert!(CommsArgs::parse(r#"{"Collective name": ""}"#).is_none());
        assert!(CommsArgs::parse(r#"{"Collective name": "send""#).is_none());
        let args =
            CommsArgs::parse(r#"{"Collective name": "x", "In msg nelems": -1, "Process Group Ranks": [1, 2, "..."]}"#);
        let args = args.unwrap();
        assert!(args.elements().is_none() && args.group().is_none() && args.peer().is_none() && args.seq().is_none());
        let args =
            CommsArgs::parse(r#"{"Collective name": "x", "Process Group Name": 3, "Process Group Ranks": [1, 12]}"#);
        let group = args.unwrap().group().unwrap();
        assert_eq!((group.name.as_str(), &group.ranks[..]), ("3", &[1, 12][..]));
    }
}
