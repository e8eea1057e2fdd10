//! The `format` files of tracefs, which describe where the fields of an event are. They differ from kernel to kernel.

use rustc_hash::FxHashMap;

/// Position of a field in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    /// Whether the field is a `__data_loc`: offset (lower 16 bits) and length (upper 16 bits) of the data in the event.
    is_data_loc: bool,
    is_signed: bool,
}

/// The layout of one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The kernel's id of the kind: `common_type` of its events.
    pub id: u16,
    fields: FxHashMap<String, Field>,
}

impl Format {
    /// Parses a `format` file; `None` if it has no id.
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|l| l.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(parse_field).collect();
        Some(Format { id, fields })
    }

    /// The fields in order of their offsets, without the `common_` ones that all events have.
    pub fn specific_fields(&self) -> Vec<(&str, Field)> {
        let specific = self.fields.iter().filter(|(name, _)| !name.starts_with("common_"));
        let mut fields: Vec<_> = specific.map(|(name, field)| (name.as_str(), *field)).collect();
        fields.sort_by_key(|(_, field)| field.offset);
        fields
    }

    /// The field with a name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// Parses a line such as `field:pid_t prev_pid; offset:24; size:4; signed:1;`.
fn parse_field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?.trim();
    let mut property = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    let (offset, size) = (property("offset:")?, property("size:")?);
    let is_signed = property("signed:") == Some(1);
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?;
    Some((name.to_owned(), Field { offset, size, is_data_loc: declaration.starts_with("__data_loc"), is_signed }))
}

impl Field {
    /// Offset in the event, bytes.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// Size, bytes.
    pub fn size(self) -> usize {
        self.size
    }

    /// The bytes of the value; `None` if the event is too short.
    fn bytes<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        if !self.is_data_loc {
            return Some(bytes);
        }
        let data_loc = u32::from_le_bytes(bytes.try_into().ok()?);
        let (offset, len) = ((data_loc & 0xffff) as usize, (data_loc >> 16) as usize);
        event.get(offset..offset + len)
    }

    /// The value as an unsigned number, without sign extension; 0 if the event is too short or the field longer than a
    /// word.
    pub fn number(&self, event: &[u8]) -> u64 {
        let mut word = [0; 8];
        match self.bytes(event) {
            Some(bytes) if bytes.len() <= 8 => word[..bytes.len()].copy_from_slice(bytes),
            _ => {}
        }
        u64::from_le_bytes(word)
    }

    /// The value as a signed number; `None` if the field is not signed.
    pub fn signed_number(&self, event: &[u8]) -> Option<i64> {
        let unused_bits = 64 - 8 * self.size.clamp(1, 8) as u32;
        self.is_signed.then(|| self.number(event).cast_signed() << unused_bits >> unused_bits)
    }

    /// Whether the field is a number: a field as wide as a number that is not a `__data_loc`.
    pub fn is_number(&self) -> bool {
        !self.is_data_loc && matches!(self.size, 1 | 2 | 4 | 8)
    }

    /// The text from the field's offset to the first zero or the event's end, for a last field such as `buf[]`, whose
    /// size is 0.
    pub fn text_to_end<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        until_zero(event.get(self.offset..).unwrap_or_default())
    }

    /// The value as text, up to the first zero.
    pub fn text<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        until_zero(self.bytes(event).unwrap_or_default())
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(WAKING).unwrap();
        assert_eq!(format.id, 375);
        let mut event = vec![0; 40];
        event[8..12].copy_from_slice(b"init");
        event[24..28].copy_from_slice(&17u32.to_le_bytes());
        event[28..32].copy_from_slice(&(32u32 | 4 << 16).to_le_bytes());
        event[32..36].copy_from_slice(b"abc\0");
        assert_eq!(format.field("comm").unwrap().text(&event), b"init");
        assert_eq!(format.field("pid").unwrap().number(&event), 17);
        assert_eq!(format.field("pid").unwrap().signed_number(&event), Some(17));
        assert_eq!(format.field("comm").unwrap().signed_number(&event), None);
        assert_eq!(format.field("name").unwrap().text(&event), b"abc");
        assert_eq!(format.field("target_cpu"), None);
        event[24..28].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(format.field("pid").unwrap().signed_number(&event), Some(-1));
        // An event that is too short, and a `__data_loc` that points outside of it.
        assert_eq!(format.field("pid").unwrap().number(&event[..20]), 0);
        event[28] = 0xff;
        assert_eq!(format.field("name").unwrap().text(&event), b"");
        assert_eq!(Format::parse("name: x\n"), None);
    }
}
